/* SPDX-License-Identifier: BSD-2-Clause */
/* Random datagrams of routed GOOSE for tshark; see grid_dump.h. tshark knows version 2 alone. */
#include "grid_dump.h"
#include "wire/bytes.h"
#include "wire/grid/goose.h"
#include "wire/grid/session.h"

#define VALUES 12

static void check(bool good)
{
	if (!good)
		abort();
}

/* A datagram over IPv4 to the port of the protocol. */
static size_t put_udp(struct prng *random, uint8_t frame[GRID_FRAME_MAX], const void *payload,
		      size_t len)
{
	static const uint8_t head[] = { 1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
				       /* Ethernet, IPv4 */
					0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0,
						/* UDP, no check sum */
					10, 0, 0, 1, 239, 0, 0, 1 };
	uint8_t *ip = frame + 14, *udp = ip + 20;

	memcpy(frame, head, sizeof(head));
	put_16(ip + 2, (uint16_t)(28 + len));
	put_16(udp, (uint16_t)(0xc000 + grid_below(random, 0x3000)));
	put_16(udp + 2, SESSION_PORT);
	put_16(udp + 4, (uint16_t)(8 + len));
	put_16(udp + 6, 0);
	memcpy(udp + 8, payload, len);
	return 42 + len;
}

static void say(FILE *lines, const uint8_t *datagram, size_t len)
{
	struct session_part part;
	struct session s;
	struct goose g;

	check(!session_decode(datagram, len, &s) && !session_security(&s) && !s.vector.len);
	check(session_next(&s.payloads, &part) == 1 && !goose_decode(&part.body, &g));
	check(session_next(&s.payloads, &(struct session_part){ 0 }) == 0);
	fprintf(lines,
		"0x%02x\t%u\t0x%04x\t0x%08x\t0x%04x\t0x%08x\t0\t0x%02x\t0x%02x\t0x%04x\t0x%04zx\t%.*s\t%u\t%u\t%d\t%u\n",
		s.kind, s.number, s.version, s.key_time, (uint16_t)s.next_key_minutes, s.key_id,
		part.type,
		part.simulation, part.appid, part.body.len, (int)g.reference.len,
		(const char *)g.reference.at,
		g.state, g.sequence, g.simulation, g.count);
}

static size_t make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines)
{
	struct goose_value values[VALUES];
	uint8_t buffer[GRID_FRAME_MAX - 42], *at;
	char name[40];
	unsigned count = grid_below(random, VALUES + 1);
	const bool simulation = grid_below(random, 2);
	const struct session s = {
		.kind = SESSION_GOOSE, .number = (uint32_t)prng_next(random), .version = 2,
		.key_time = (uint32_t)prng_next(random),
		.next_key_minutes = (int16_t)prng_next(random),
		.key_id = (uint32_t)prng_next(random),
	};
	const struct session_part part = { .type = SESSION_PAYLOAD_GOOSE, .simulation = simulation,
					   .appid = (uint16_t)prng_next(random) };
	struct goose g = {
		.reference = { (uint8_t *)name, 1 + grid_below(random, sizeof(name)) },
		.dataset = { (const uint8_t *)"set", 3 },
		.allowed_live_ms = 1 + grid_below(random, 5000),
		.time = { .seconds = (uint32_t)prng_next(random) }, .simulation = simulation,
		.state = (uint32_t)prng_next(random), .sequence = (uint32_t)prng_next(random),
	};
	size_t len;

	grid_text(random, name, sizeof(name));
	for (unsigned i = 0; i < count; i++)
		values[i] = (struct goose_value){ .type = GOOSE_INTEGER,
						 .integer = (int32_t)prng_next(random) };
	at = goose_encode_body(&g, values, count, buffer + SESSION_HEAD_MAX,
			       sizeof(buffer) - SESSION_HEAD_MAX, &len);
	check(at);
	at = session_wrap(&s, &part, at, &len);
	say(lines, at, len);
	return put_udp(random, frame, at, len);
}

int main(int argc, char **argv)
{
	return grid_dump(argc, argv, make);
}
