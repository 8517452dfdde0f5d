/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the engine of a subnet is: fat trees of two levels (18 hosts at a leaf, 18 spines) in which each
 * host sends messages to each other one in turn, or to hosts at random. Prints packet-hops and events in a
 * second of this processor, and the memory. fabric_speed [HOSTS [BYTES [random]]]: without arguments 36, 144
 * and 648 hosts with both.
 */
#include <sys/resource.h>
#include <time.h>

#include "fabric_kit.h"
#include "util/prng.h"

#define LEAF_HOSTS 18u
#define SPINES 18u
#define MTU 2048u
#define MESSAGES 400000u /* at least, of all hosts */
#define HEADERS 26u /* of a packet, with both CRCs */

static struct {
	struct fabric *f;
	uint32_t hosts, packets; /* packets of a message */
	uint32_t messages;       /* that each host sends, some to each other host */
	struct { uint32_t step, packet, to; } next[4096];
	bool random;
	struct prng prng;
	uint64_t hops, delivered;
} run;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t choose_target(uint32_t node)
{
	if (run.random)
		return (node + 1 + (uint32_t)prng_below(&run.prng, run.hosts - 1)) % run.hosts;
	return (node + 1 + run.next[node].step % (run.hosts - 1)) % run.hosts;
}

/* The host sends until its port is full. */
static void send_more(void *arg, uint32_t node, uint8_t port)
{
	(void)arg;
	while (run.next[node].step < run.messages) {
		struct fabric_packet *p;

		if (!run.next[node].packet)
			run.next[node].to = choose_target(node);
		p = kit_packet(run.f, (uint16_t)(run.next[node].to + 1), 0, MTU + HEADERS);
		if (fabric_send(run.f, node, port, p)) {
			fabric_packet_free(run.f, p);
			return;
		}
		if (++run.next[node].packet == run.packets) {
			run.next[node].packet = 0;
			run.next[node].step++;
		}
	}
}

static void deliver(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	(void)arg;
	(void)port;
	CHECK(p->dlid == node + 1);
	run.hops += p->hops;
	run.delivered++;
	fabric_packet_free(run.f, p);
}

static void build(uint32_t hosts)
{
	struct fabric_link link = kit_link(1);
	uint32_t leaves = hosts / LEAF_HOSTS;

	for (uint32_t i = 0; i < hosts; i++)
		kit_host(run.f);
	for (uint32_t i = 0; i < leaves; i++)
		kit_switch(run.f, LEAF_HOSTS + SPINES);
	for (uint32_t i = 0; i < SPINES; i++)
		kit_switch(run.f, (uint8_t)leaves);
	for (uint32_t i = 0; i < hosts; i++)
		kit_join(run.f, i, 1, hosts + i / LEAF_HOSTS, (uint8_t)(i % LEAF_HOSTS + 1), &link);
	for (uint32_t i = 0; i < leaves; i++)
		for (uint32_t k = 0; k < SPINES; k++)
			kit_join(run.f, hosts + i, (uint8_t)(LEAF_HOSTS + k + 1),
				 hosts + leaves + k, (uint8_t)(i + 1), &link);
	for (uint32_t to = 0; to < hosts; to++) {
		for (uint32_t i = 0; i < leaves; i++)
			kit_route(run.f, hosts + i, (uint16_t)(to + 1),
				  (uint8_t)(i == to / LEAF_HOSTS ? to % LEAF_HOSTS + 1
					    : LEAF_HOSTS + to % SPINES + 1));
		for (uint32_t i = 0; i < SPINES; i++)
			kit_route(run.f, hosts + leaves + i, (uint16_t)(to + 1),
				  (uint8_t)(to / LEAF_HOSTS + 1));
	}
}

static void measure(uint32_t hosts, uint32_t bytes, bool random)
{
	static const struct fabric_ops ops = { .deliver = deliver, .writable = send_more };
	uint64_t events;
	struct rusage usage;
	double took;

	run = (typeof(run)){
		.hosts = hosts, .packets = (bytes + MTU - 1) / MTU,
		.messages = (MESSAGES / hosts + hosts - 2) / (hosts - 1) * (hosts - 1),
		.random = random, .prng = prng_from(1),
	};
	CHECK(fabric_open(NULL, &ops, 1, &run.f) == 0);
	build(hosts);
	took = now_s();
	for (uint32_t i = 0; i < hosts; i++)
		send_more(NULL, i, 1);
	events = fabric_run(run.f, FABRIC_NEVER, 0);
	took = now_s() - took;
	CHECK(run.delivered == (uint64_t)hosts * run.messages * run.packets);
	CHECK(fabric_packets_inside(run.f) == 0);
	getrusage(RUSAGE_SELF, &usage);
	printf("%-10s %4u hosts %7u messages %8.3f ms simulated %7.3f s %6.2f M packet-hops/s "
	       "%6.2f M events/s %5.2f events/hop %4ld MiB\n",
	       random ? "random" : "all-to-all", hosts, hosts * run.messages, (double)fabric_now_ps(run.f) * 1e-9, took,
	       (double)run.hops / took * 1e-6, (double)events / took * 1e-6,
	       (double)events / (double)run.hops, usage.ru_maxrss / 1024);
	fabric_close(run.f);
}

int main(int argc, char **argv)
{
	static const uint32_t hosts[] = { 36, 144, 648 };
	uint32_t bytes = argc > 2 ? (uint32_t)atoi(argv[2]) : 4096;

	if (argc > 1)
		measure((uint32_t)atoi(argv[1]) / LEAF_HOSTS * LEAF_HOSTS, bytes, argc > 3);
	for (unsigned i = 0; argc <= 1 && i < 6; i++)
		measure(hosts[i % 3], bytes, i >= 3);
	return 0;
}
