/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact times and counters of single packets, and what the functions of a fabric refuse. */
#include <errno.h>
#include <string.h>

#include "fabric_kit.h"

static struct {
	uint64_t at_ps[64];
	uint32_t node[64];
	unsigned delivered, dropped, why;
	struct fabric *f;
} seen;

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	(void)arg;
	(void)port;
	CHECK(seen.delivered < 64);
	seen.at_ps[seen.delivered] = fabric_now_ps(seen.f);
	seen.node[seen.delivered++] = node;
	fabric_packet_free(seen.f, p);
}

static void drop(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		 enum fabric_drop why)
{
	(void)arg;
	(void)node;
	(void)port;
	seen.dropped++;
	seen.why = why;
	fabric_packet_free(seen.f, p);
}

static const struct fabric_ops ops = { .deliver = deliver, .drop = drop };

static struct fabric *begin(void)
{
	struct fabric *f;

	memset(&seen, 0, sizeof(seen));
	CHECK(fabric_open(NULL, &ops, 1, &f) == 0);
	seen.f = f;
	return f;
}

static void one_packet_over_one_link(void)
{
	struct fabric *f = begin();
	struct fabric_link link = kit_link(1);
	struct fabric_counters c;
	uint32_t a = kit_host(f), b = kit_host(f);

	kit_join(f, a, 1, b, 1, &link);
	kit_send(f, a, 2, 0, 2074);
	CHECK(fabric_packets_inside(f) == 1);
	fabric_run(f, FABRIC_NEVER, 0);
	CHECK(seen.delivered == 1 && seen.node[0] == b);
	CHECK(seen.at_ps[0] == 2074 * BYTE_PS + 5000);
	CHECK(fabric_packets_inside(f) == 0 && fabric_next_ps(f) == FABRIC_NEVER);
	CHECK(fabric_get_counters(f, a, 1, &c) == 0);
	CHECK(c.xmit_packets == 1 && c.xmit_words == 518 && c.unicast_xmit == 1 && !c.xmit_wait);
	CHECK(fabric_get_counters(f, b, 1, &c) == 0);
	CHECK(c.rcv_packets == 1 && c.rcv_words == 518 && c.unicast_rcv == 1);
	fabric_close(f);
}

/* Two hosts at one switch, with LIDs 1 and 2. */
static void join_two(struct fabric *f, bool store_and_forward)
{
	const struct fabric_switch sw = {
		.latency_ps = 100000, .store_and_forward = store_and_forward,
	};
	struct fabric_link link = kit_link(1);
	uint32_t a = kit_host(f), b = kit_host(f), s = kit_switch(f, 4);

	CHECK(fabric_set_switch(f, s, &sw) == 0);
	kit_join(f, a, 1, s, 1, &link);
	kit_join(f, b, 1, s, 2, &link);
	kit_route(f, s, 1, 1);
	kit_route(f, s, 2, 2);
}

static void one_packet_over_a_switch(void)
{
	for (int stores = 0; stores < 2; stores++) {
		struct fabric *f = begin();

		join_two(f, stores);
		kit_send(f, 0, 2, 0, 2074);
		fabric_run(f, FABRIC_NEVER, 0);
		CHECK(seen.delivered == 1 && seen.node[0] == 1);
		CHECK(seen.at_ps[0] == (stores ? 2074 : 8) * BYTE_PS + 5000 + 100000 +
					       2074 * BYTE_PS + 5000);
		CHECK(fabric_next_ps(f) == FABRIC_NEVER);
		fabric_close(f);
	}
}

int main(void)
{
	one_packet_over_one_link();
	one_packet_over_a_switch();
	puts("ok");
	return 0;
}
