/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * large MEGABYTES PAYLOAD [LINK]: writes a capture of this size to standard output, of WRITEs, SENDs and
 * READs with PAYLOAD bytes each on 64 connections, of which each thousandth packet got lost and is sent
 * again. To measure how fast and in how much memory `busbar trace` reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "wire/capture/link.h"

#define CONNECTIONS 64
#define ROUNDS 64   /* of each connection, in a piece of the file */
#define BATCH 8     /* requests under way */
#define LOST_EACH 1000
#define HEADER_BYTES 24 /* of the file */

static int64_t now_ns;
static uint64_t sent;

static uint8_t operation(uint64_t n)
{
	static const uint8_t all[] = { IB_WRITE_ONLY, IB_SEND_ONLY, IB_READ_REQUEST };

	return all[n % 3];
}

static void answer(struct scene *s, const struct scene_connection *c, uint8_t op, uint32_t psn,
		   uint32_t payload)
{
	if (op == IB_READ_REQUEST)
		scene_response(s, c, now_ns += 100, psn, payload);
	else
		scene_acknowledge(s, c, now_ns += 100, psn, SCENE_ACK);
}

/* A batch of requests and their answers. One may be lost: the responder asks for it. */
static void batch(struct scene *s, struct scene_connection *c, uint32_t payload)
{
	uint32_t lost = sent % LOST_EACH < BATCH && sent ? (uint32_t)(sent % BATCH) : BATCH;

	for (uint32_t i = 0; i < BATCH; i++)
		scene_request(s, c, now_ns += 100, operation(sent + i), c->psn + i, payload);
	for (uint32_t i = 0; i < lost; i++)
		answer(s, c, operation(sent + i), c->psn + i, payload);
	if (lost < BATCH)
		scene_acknowledge(s, c, now_ns += 1000, c->psn + lost, SCENE_NAK_SEQUENCE);
	for (uint32_t i = lost; i < BATCH; i++)
		scene_request(s, c, now_ns += 100, operation(sent + i), c->psn + i, payload);
	for (uint32_t i = lost; i < BATCH; i++)
		answer(s, c, operation(sent + i), c->psn + i, payload);
	c->psn += BATCH;
	sent += BATCH;
}

int main(int argc, char **argv)
{
	struct scene_file f = { .link = argc > 3 ? (uint16_t)atoi(argv[3]) : CAPTURE_ETHERNET, .ns = true };
	size_t left = argc > 2 ? strtoul(argv[1], NULL, 0) << 20 : 0, bytes, skip = 0;
	uint32_t payload = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 0;
	static struct scene_connection c[CONNECTIONS];

	if (!payload || payload > 4096)
		return 2;
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		c[i] = (struct scene_connection){ 1, 2, 0x100 + i, 0x900 + i, i * 1000 };
	for (; left; left -= bytes < left ? bytes : left, skip = HEADER_BYTES) {
		struct scene s = { 0 };
		uint8_t *file;

		for (uint32_t i = 0; i < ROUNDS * CONNECTIONS; i++)
			batch(&s, &c[i % CONNECTIONS], payload);
		file = scene_write(&s, &f, &bytes);
		if (fwrite(file + skip, bytes - skip, 1, stdout) != 1)
			return 1;
		free(file);
		scene_free(&s);
	}
	return 0;
}
