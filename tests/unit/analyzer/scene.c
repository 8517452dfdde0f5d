/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets and capture files for tests of the analyzer; see scene.h. */
#include "scene.h"

#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/capture/link.h"

#define SYNDROME_DEFAULT SCENE_ACK
#define NS_PER_S UINT64_C(1000000000)
#define EPOCH_NS NS_PER_S /* of the time 0 of a scene */
#define FRAME_MAX (8192 + 256)

void scene_free(struct scene *s)
{
	free(s->packet);
	memset(s, 0, sizeof(*s));
}

void scene_add(struct scene *s, const struct scene_packet *p)
{
	if (s->count == s->room) {
		s->room = s->room ? s->room * 2 : 64;
		s->packet = realloc(s->packet, s->room * sizeof(*s->packet));
		if (!s->packet)
			abort();
	}
	s->packet[s->count++] = *p;
}

void scene_request_at(struct scene *s, const struct scene_connection *c, int64_t ns, uint8_t opcode,
		      uint32_t psn, uint32_t length, uint64_t va)
{
	scene_add(s, &(struct scene_packet){
		.ns = ns, .from = c->client, .to = c->server, .qpn = c->server_qpn,
		.opcode = opcode, .psn = psn & IB_QPN_MASK, .length = length, .va = va,
		.payload = opcode == IB_READ_REQUEST ? 0 : length });
}

void scene_request(struct scene *s, const struct scene_connection *c, int64_t ns, uint8_t opcode,
		   uint32_t psn, uint32_t length)
{
	scene_request_at(s, c, ns, opcode, psn, length, 0x10000);
}

void scene_response(struct scene *s, const struct scene_connection *c, int64_t ns, uint32_t psn,
		    uint32_t length)
{
	scene_add(s, &(struct scene_packet){
		.ns = ns, .from = c->server, .to = c->client, .qpn = c->client_qpn,
		.opcode = IB_READ_RESPONSE_ONLY, .psn = psn & IB_QPN_MASK,
		.syndrome = SYNDROME_DEFAULT, .payload = length });
}

void scene_acknowledge(struct scene *s, const struct scene_connection *c, int64_t ns, uint32_t psn,
		       uint8_t syndrome)
{
	scene_add(s, &(struct scene_packet){
		.ns = ns, .from = c->server, .to = c->client, .qpn = c->client_qpn,
		.opcode = IB_ACKNOWLEDGE, .psn = psn & IB_QPN_MASK, .syndrome = syndrome });
}

static int earlier(const void *a, const void *b)
{
	const struct scene_packet *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

void scene_sort(struct scene *s)
{
	qsort(s->packet, s->count, sizeof(*s->packet), earlier);
}

/* ---- one frame ---- */

static uint8_t *bth(const struct scene_packet *p, uint8_t *to)
{
	struct ib_packet ib = {
		.opcode = p->opcode, .migrated = true, .pkey = IB_PKEY_DEFAULT, .dest_qpn = p->qpn,
		.psn = p->psn, .bytes = p->payload, .ack_req = true,
		.reth = { .va = p->va, .rkey = 0x77, .length = p->length },
		.aeth = { .syndrome = p->syndrome },
	};
	size_t header = ib_encode(p->headers ? p->headers : &ib, to);
	size_t rest = p->payload + ib_pad(p->payload) + IB_ICRC_BYTES;

	memset(to + header, 0, rest);
	return to + header + rest;
}

static uint8_t *udp(const struct scene_packet *p, uint32_t bytes, uint8_t *to)
{
	to = put_16(to, 0xc000);
	to = put_16(to, IB_UDP_PORT);
	to = put_16(to, (uint16_t)(8 + bytes));
	return bth(p, put_16(to, 0));
}

static uint8_t *ip(const struct scene_packet *p, bool v6, uint32_t bytes, uint8_t *to)
{
	uint8_t ecn = p->marked ? 3 : 2;

	if (v6) {
		to = put_32(to, UINT32_C(6) << 28 | (uint32_t)ecn << 20);
		to = put_16(to, (uint16_t)(8 + bytes));
		to = put_16(to, 17 << 8 | 64);
		for (int i = 0; i < 2; i++) {
			memset(to, 0, 16);
			to[0] = 0xfd;
			put_16(to + 14, i ? p->to : p->from);
			to += 16;
		}
		return udp(p, bytes, to);
	}
	to = put_16(to, (uint16_t)(0x4500 | ecn));
	to = put_16(to, (uint16_t)(28 + bytes));
	to = put_32(to, 0x00004000);
	to = put_32(to, 0x40110000);
	to = put_32(to, 0x0a000000u | p->from);
	return udp(p, bytes, put_32(to, 0x0a000000u | p->to));
}

static uint8_t *ethernet(const struct scene_packet *p, const struct scene_file *f, uint32_t bytes,
			 uint8_t *to)
{
	memset(to, 2, 12);
	to += 12;
	if (f->tagged)
		to = put_32(to, 0x81000005);
	to = put_16(to, f->ip6 ? 0x86dd : 0x0800);
	return ip(p, f->ip6, bytes, to);
}

static uint8_t *infiniband(const struct scene_packet *p, uint32_t bytes, uint8_t *to)
{
	to = put_16(to, 2);
	to = put_16(to, p->to);
	to = put_16(to, (uint16_t)((bytes + 8) / 4));
	return bth(p, put_16(to, p->from));
}

static uint8_t *erf_record(const struct scene_packet *p, const struct scene_file *f, uint32_t bytes, uint8_t *to)
{
	/* The record's own time: units of 1/2^32 s, in little endian order. */
	uint64_t ns = (uint64_t)p->ns + EPOCH_NS;
	uint64_t units = (ns / NS_PER_S << 32) + ((ns % NS_PER_S << 32) + NS_PER_S - 1) / NS_PER_S;

	memset(to, 0, 24);
	units = htole64(units);
	memcpy(to, &units, sizeof(units));
	to[8] = (uint8_t)(21 | (f->tagged ? 0x80 : 0));
	put_16(to + 10, (uint16_t)((f->tagged ? 32 : 24) + bytes)); /* the record */
	put_16(to + 14, (uint16_t)(8 + bytes)); /* the packet on the wire */
	to += f->tagged ? 24 : 16;
	return infiniband(p, bytes, to);
}

static uint32_t frame(const struct scene_packet *p, const struct scene_file *f, uint8_t *to)
{
	uint8_t *end = bth(p, to);
	uint32_t bytes = (uint32_t)(end - to);

	switch (f->link) {
	case CAPTURE_ETHERNET: end = ethernet(p, f, bytes, to); break;
	case CAPTURE_RAW_IP: end = ip(p, f->ip6, bytes, to); break;
	case CAPTURE_IPV4: end = ip(p, false, bytes, to); break;
	case CAPTURE_IPV6: end = ip(p, true, bytes, to); break;
	case CAPTURE_INFINIBAND: end = infiniband(p, bytes, to); break;
	case CAPTURE_ERF: end = erf_record(p, f, bytes, to); break;
	case CAPTURE_COOKED:
		memset(to, 0, 16);
		put_16(to + 14, f->ip6 ? 0x86dd : 0x0800);
		end = ip(p, f->ip6, bytes, to + 16);
		break;
	case CAPTURE_COOKED_2:
		memset(to, 0, 20);
		put_16(to, f->ip6 ? 0x86dd : 0x0800);
		end = ip(p, f->ip6, bytes, to + 20);
		break;
	default: break;
	}
	return (uint32_t)(end - to);
}

/* ---- the file ---- */

struct out {
	uint8_t *bytes;
	size_t count, room;
	bool big;
};

static void out_bytes(struct out *o, const void *data, size_t bytes)
{
	if (o->count + bytes > o->room) {
		o->room = (o->count + bytes) * 2 + 4096;
		o->bytes = realloc(o->bytes, o->room);
		if (!o->bytes)
			abort();
	}
	memcpy(o->bytes + o->count, data, bytes);
	o->count += bytes;
}

static void out32(struct out *o, uint32_t v)
{
	uint8_t b[4];

	put_32(b, o->big ? v : __builtin_bswap32(v));
	out_bytes(o, b, sizeof(b));
}

static void out16(struct out *o, uint16_t v)
{
	uint8_t b[2];

	put_16(b, o->big ? v : __builtin_bswap16(v));
	out_bytes(o, b, sizeof(b));
}

static void classic_packet(struct out *o, const struct scene_file *f, int64_t ns, const uint8_t *data,
			   uint32_t captured, uint32_t length)
{
	out32(o, (uint32_t)(ns / 1000000000));
	out32(o, (uint32_t)(ns % 1000000000 / (f->ns ? 1 : 1000)));
	out32(o, captured);
	out32(o, length);
	out_bytes(o, data, captured);
}

/* `direction`: 0 not said, 1 inbound, 2 outbound. */
static void block_packet(struct out *o, int64_t ns, const uint8_t *data, uint32_t captured,
			 uint32_t length, uint32_t direction)
{
	static const uint8_t zero[4];
	uint32_t pad = -captured & 3, all = 32 + captured + pad + (direction ? 12 : 0);

	out32(o, 6);
	out32(o, all);
	out32(o, 0);
	out32(o, (uint32_t)((uint64_t)ns >> 32));
	out32(o, (uint32_t)ns);
	out32(o, captured);
	out32(o, length);
	out_bytes(o, data, captured);
	out_bytes(o, zero, pad);
	if (direction) {
		out16(o, 2); /* epb_flags */
		out16(o, 4);
		out32(o, direction);
		out32(o, 0);
	}
	out32(o, all);
}

static void begin(struct out *o, const struct scene_file *f)
{
	if (!f->ng) {
		out32(o, f->ns ? 0xa1b23c4d : 0xa1b2c3d4);
		out16(o, 2);
		out16(o, 4);
		out32(o, 0);
		out32(o, 0);
		out32(o, 65535);
		out32(o, f->link);
		return;
	}
	out32(o, 0x0a0d0d0a);
	out32(o, 28);
	out32(o, 0x1a2b3c4d);
	out16(o, 1);
	out16(o, 0);
	out32(o, UINT32_MAX);
	out32(o, UINT32_MAX);
	out32(o, 28);
	out32(o, 1);
	out32(o, 28);
	out16(o, f->link);
	out16(o, 0);
	out32(o, 0);
	out16(o, 9); /* if_tsresol: nanoseconds */
	out16(o, 1);
	out_bytes(o, "\x09\0\0\0", 4);
	out32(o, 28);
}

static void statistics(struct out *o, uint64_t dropped)
{
	out32(o, 5);
	out32(o, 36);
	out32(o, 0);
	out32(o, 0);
	out32(o, 0);
	out16(o, 5);
	out16(o, 8);
	out32(o, o->big ? (uint32_t)(dropped >> 32) : (uint32_t)dropped);
	out32(o, o->big ? (uint32_t)dropped : (uint32_t)(dropped >> 32));
	out32(o, 36);
}

uint8_t *scene_write(const struct scene *s, const struct scene_file *f, size_t *bytes)
{
	struct out o = { .big = f->big };
	uint8_t data[FRAME_MAX];

	begin(&o, f);
	for (size_t i = 0; i < s->count; i++) {
		uint32_t length = frame(&s->packet[i], f, data);
		uint32_t captured = f->snap && f->snap < length ? f->snap : length;
		int64_t ns = s->packet[i].ns + (int64_t)EPOCH_NS;

		if (f->ng && f->twice)
			block_packet(&o, ns + 2 * SCENE_US, data, captured, length, 1);
		if (f->ng)
			block_packet(&o, ns, data, captured, length, f->twice ? 2 : 0);
		else
			classic_packet(&o, f, ns, data, captured, length);
	}
	if (f->ng && f->dropped)
		statistics(&o, f->dropped);
	*bytes = o.count;
	return o.bytes;
}
