/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Linux's siw has sent (iwarp_siw.txt, made by tests/qemu/siw_facts.py), read by the decoders.
 * Usage: wire_iwarp_siw_test FILE.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/iwarp/mpa.h"
#include "wire/iwarp/receiver.h"

enum { LINE_MAX_BYTES = 2048, FACTS_MIN = 100 };

/* The TERMINATEs, as the decoder has to read them. */
static const struct {
	const char *name;
	uint8_t layer, type, code;
	bool has_ddp, has_rdmap;
} terminates[] = {
	{ "write_stag", IWARP_LAYER_DDP, IWARP_TYPE_DDP_TAGGED, 0, true, false },
	{ "write_bounds", IWARP_LAYER_DDP, IWARP_TYPE_DDP_TAGGED, 1, true, false },
	{ "write_access", IWARP_LAYER_DDP, IWARP_TYPE_DDP_TAGGED, 0, true, false },
	{ "write_wrap", IWARP_LAYER_DDP, IWARP_TYPE_CATASTROPHIC, 0, true, false },
	{ "send_qn", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 1, true, false },
	{ "send_no_buffer", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 2, true, false },
	{ "send_long", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 2, true, false },
	{ "send_msn", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 3, true, false },
	{ "send_mo", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 4, true, false },
	{ "read_stag", IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_PROTECTION, 0, true, true },
	{ "read_bounds", IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_PROTECTION, 1, true, true },
	{ "read_msn", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 3, true, false },
	{ "ddp_version_tagged", IWARP_LAYER_DDP, IWARP_TYPE_DDP_TAGGED, 4, false, false },
	{ "ddp_version", IWARP_LAYER_DDP, IWARP_TYPE_DDP_UNTAGGED, 6, false, false },
	{ "ulpdu_17", IWARP_LAYER_LLP, IWARP_TYPE_MPA, 3, false, false },
	{ "reply_key", IWARP_LAYER_LLP, IWARP_TYPE_MPA, 4, false, false },
	{ "crc_send_bad", IWARP_LAYER_LLP, IWARP_TYPE_MPA, 2, false, false },
	{ "crc_write_stag", IWARP_LAYER_DDP, IWARP_TYPE_DDP_TAGGED, 0, true, false },
	{ "read_response", IWARP_LAYER_DDP, IWARP_TYPE_CATASTROPHIC, 0, true, false },
	/* Without flags both orders of the bits have a meaning, and the decoder takes the RFC's. The
	 * first two are errors 5 and 6 of RDMAP, remote operation, the others 6 and 7 of MPA. */
	{ "rdmap_version", IWARP_LAYER_LLP, IWARP_TYPE_MPA, 5, false, false },
	{ "opcode_8", IWARP_LAYER_LLP, IWARP_TYPE_MPA, 6, false, false },
	{ "reply_ord_129", IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_OPERATION, 6, false, false },
	{ "rtr_none", IWARP_LAYER_RDMAP, IWARP_TYPE_RDMAP_OPERATION, 7, false, false },
};

static unsigned found, wrong;

static void check(bool good, const char *name, const char *what)
{
	if (good)
		return;
	printf("failed: %s: %s\n", name, what);
	wrong++;
}

/* With S, and without IRD and ORD: rejections, and private data whose length siw counts in 8 bits,
 * so that 252 bytes behind IRD and ORD are 0. */
static bool has_no_ird(const char *name)
{
	static const char *const names[] = {
		"request_2_short", "request_2_empty", "accept_252", "connect_252", "connect_255",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Frames of MPA: of siw as responder, and as initiator. */
static void read_frame(const char *name, const uint8_t *from, size_t bytes, bool reply)
{
	struct iwarp_mpa mpa;
	size_t frame_bytes = 0;
	uint8_t again[IWARP_MPA_FRAME_MAX];
	size_t own;
	enum iwarp_error error = iwarp_mpa_decode(from, bytes, reply, &mpa, &frame_bytes);

	if (has_no_ird(name)) {
		check(error == IWARP_MPA_ENHANCED, name, "refused, as there is no IRD");
		return;
	}
	check(error == IWARP_OK, name, "the frame is read");
	check(frame_bytes == bytes, name, "it ends where siw's does");
	if (mpa.revision == 0 || !strcmp(name, "request_reserved") ||
	    !strcmp(name, "request_1_s") || frame_bytes != bytes)
		return;
	own = iwarp_mpa_encode(&mpa, again);
	check(own == bytes && !memcmp(again, from, bytes), name, "ours are the same bytes");
}

static void read_terminate(const char *name, const struct iwarp_terminate *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(terminates); i++) {
		if (strcmp(terminates[i].name, name) != 0)
			continue;
		found++;
		check(t->layer == terminates[i].layer && t->type == terminates[i].type &&
			      t->code == terminates[i].code, name, "layer, type and code");
		check(t->has_ddp == terminates[i].has_ddp &&
			      t->has_rdmap == terminates[i].has_rdmap, name, "its headers");
	}
}

static void read_fpdus(const char *name, const uint8_t *from, size_t bytes, bool crc)
{
	static uint8_t buffer[IWARP_ULPDU_MAX];
	struct iwarp_receiver r;
	enum iwarp_event event;

	iwarp_receiver_init(&r, false, crc, buffer);
	while ((event = iwarp_receiver_take(&r, &from, &bytes)) == IWARP_FPDU) {
		if (r.segment.opcode == IWARP_TERMINATE)
			read_terminate(name, &r.segment.terminate);
	}
	check(event == IWARP_NOTHING && iwarp_receiver_idle(&r), name, "all FPDUs are read");
}

static bool is_frame(const char *name)
{
	return !strncmp(name, "request_", 8) || !strncmp(name, "accept_", 7) ||
	       !strncmp(name, "reject_", 7) || strstr(name, "_request_");
}

static void read_fact(const char *name, const uint8_t *from, size_t bytes)
{
	bool crc = !strncmp(name, "crc_", 4) || !strncmp(name, "strict_", 7);

	if (!strncmp(name, "connect_", 8))
		read_frame(name, from, bytes, false);
	else if (is_frame(name))
		read_frame(name, from, bytes, true);
	else
		read_fpdus(name, from, bytes, crc);
}

static size_t unhex(const char *text, uint8_t *to)
{
	size_t bytes = 0;
	unsigned byte;

	while (sscanf(text + 2 * bytes, "%2x", &byte) == 1)
		to[bytes++] = (uint8_t)byte;
	return bytes;
}

int main(int argc, char **argv)
{
	static char line[LINE_MAX_BYTES], name[64], end[8], hex[LINE_MAX_BYTES];
	static uint8_t bytes[LINE_MAX_BYTES / 2];
	FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
	unsigned facts = 0;

	if (!file) {
		perror("the file of facts");
		return 1;
	}
	while (fgets(line, sizeof(line), file)) {
		if (*line == '#' || sscanf(line, "%63s %7s %2047s", name, end, hex) != 3)
			continue;
		facts++;
		if (*hex != '-')
			read_fact(name, bytes, unhex(hex, bytes));
	}
	fclose(file);
	check(facts >= FACTS_MIN, argv[1], "all facts are there");
	check(found == ARRAY_SIZE(terminates), argv[1], "all TERMINATEs of the table are there");
	return wrong != 0;
}
