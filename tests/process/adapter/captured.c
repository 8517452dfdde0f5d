/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a side's capture; see captured.h. */
#include "captured.h"

#include <arpa/inet.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "pcapng_read.h"

enum { ETHERNET = 14, IPV4 = 20, UDP = 8, ICRC = 4 };

static char folder[100];
static pid_t first;

void captured_begin(void)
{
	char pattern[128];

	const char *kept = getenv("CAPTURED_IN");

	snprintf(folder, sizeof(folder), "%s",
		 kept ? kept : "/tmp/busbar-captured-XXXXXX");
	if (!kept && !mkdtemp(folder))
		fail("no folder");
	first = kept ? 0 : getpid();
	atexit(captured_end);
	snprintf(pattern, sizeof(pattern), "%s/%%p.pcapng", folder);
	setenv("BUSBAR_CAPTURE", pattern, 1);
}

void captured_end(void)
{
	char pattern[128];
	glob_t found;

	if (getpid() != first)
		return;
	snprintf(pattern, sizeof(pattern), "%s/*", folder);
	if (!glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
	rmdir(folder);
}

/* ---- checksums ---- */

static uint16_t get16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

static uint32_t ones(uint32_t sum, const uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		sum += (uint32_t)data[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Bit by bit, by the definition (IBTA 7.8.1, A17.3.3). */
static uint32_t crc_of(uint32_t crc, const uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static void check_icrc(const uint8_t *ip, uint32_t bytes)
{
	static const uint8_t lrh[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	uint8_t masked[IPV4 + UDP + 12];
	uint32_t crc;

	memcpy(masked, ip, sizeof(masked));
	masked[1] = masked[8] = masked[10] = masked[11] = 255; /* TOS, TTL, checksum */
	masked[IPV4 + 6] = masked[IPV4 + 7] = 255;             /* UDP checksum */
	masked[IPV4 + UDP + 4] = 255;                          /* FECN, BECN */
	crc = crc_of(0xffffffff, lrh, sizeof(lrh));
	crc = crc_of(crc, masked, sizeof(masked));
	crc = ~crc_of(crc, ip + sizeof(masked), bytes - sizeof(masked) - ICRC);
	for (int i = 0; i < 4; i++)
		expect_eq(ip[bytes - 4 + (uint32_t)i], crc >> 8 * i & 255);
}

static void check_headers(const uint8_t *frame, uint32_t length)
{
	const uint8_t *ip = frame + ETHERNET, *udp = ip + IPV4;
	uint8_t pseudo[12];

	expect(length >= ETHERNET + IPV4 + UDP + 12 + ICRC);
	expect_eq(get16(frame + 12), 0x0800);
	expect_eq(ip[0], 0x45);
	expect_eq(get16(ip + 2), length - ETHERNET);
	expect_eq(ip[9], 17);
	expect_eq(ones(0, ip, IPV4), 0xffff);
	expect_eq(get16(udp + 2), IB_UDP_PORT);
	expect(get16(udp) >= 0xc000 || get16(udp) == IB_UDP_PORT);
	expect_eq(get16(udp + 4), length - ETHERNET - IPV4);
	memcpy(pseudo, ip + 12, 8);
	pseudo[8] = 0;
	pseudo[9] = 17;
	memcpy(pseudo + 10, udp + 4, 2);
	expect_eq(ones(ones(0, pseudo, 12), udp, length - ETHERNET - IPV4), 0xffff);
	check_icrc(ip, length - ETHERNET);
}

/* ---- files ---- */

static void take(struct capture_of *c, const struct read_packet *p)
{
	struct captured *to = &c->at[c->count];
	const uint8_t *bth = p->data + ETHERNET + IPV4 + UDP;
	size_t headers;

	expect(c->count < CAPTURED_MAX);
	expect_eq(p->captured, p->length);
	check_headers(p->data, p->captured);
	to->out = p->flags == 2;
	to->frame = p->data;
	to->length = p->captured;
	memcpy(to->src, p->data + ETHERNET + 12, 4);
	memcpy(to->dst, p->data + ETHERNET + 16, 4);
	headers = ib_decode(bth, p->captured - ETHERNET - IPV4 - UDP, &to->ib);
	expect(headers);
	to->payload = bth + headers;
	snprintf(to->comment, sizeof(to->comment), "%.31s", p->comment);
	c->count++;
}

void captured_load(const struct side *s, struct capture_of *c)
{
	struct pcapng_file f;
	struct read_packet p;
	char name[128];

	c->count = 0;
	captured_rewind(c);
	snprintf(name, sizeof(name), "%s/%d.pcapng", folder,
		 (int)(s->end ? getpid() : s->pid));
	expect(pcapng_load(name, &f));
	while (pcapng_next(&f, &p))
		take(c, &p);
	expect_eq(f.untold, 0);
	expect(f.statistics > 0);
	c->bytes = f.bytes;
}

void captured_free(struct capture_of *c)
{
	free(c->bytes);
}

void captured_rewind(struct capture_of *c)
{
	memset(c->next, 0, sizeof(c->next));
}

static bool is_answer(const struct captured *p)
{
	uint8_t op = p->ib.opcode & IB_OPERATION_MASK;

	return op >= IB_READ_RESPONSE_FIRST && op <= IB_ATOMIC_ACKNOWLEDGE &&
	       (p->ib.opcode & IB_SERVICE_MASK) != IB_SERVICE_UD;
}

static const struct captured *next(struct capture_of *c, bool out, bool answer)
{
	unsigned *at = &c->next[out][answer];

	while (*at < c->count) {
		const struct captured *p = &c->at[(*at)++];

		if (p->out == out && is_answer(p) == answer)
			return p;
	}
	return NULL;
}

const struct captured *captured_request(struct capture_of *c, bool out)
{
	const struct captured *p = next(c, out, false);

	if (!p)
		fail("one more request should have been captured");
	return p;
}

const struct captured *captured_answer(struct capture_of *c, bool out)
{
	const struct captured *p = next(c, out, true);

	if (!p)
		fail("one more answer should have been captured");
	return p;
}

const struct captured *captured_any(struct capture_of *c, bool out, bool answer)
{
	return next(c, out, answer);
}
