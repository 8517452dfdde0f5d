/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of experiments on a subnet. Each text is refused with a line that says why, or gives a scenario that
 * can be carried out: all packets are accounted for, and those of a flow keep their order.
 *
 * usage: fuzz_scenario [RUNS [SEED]]
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/run.h"
#include "util/log.h"

#define MUTATE_BYTES "0123456789=:,.->/%# \t\nusmKiBahostlinw"
#include "drive.h"

#define NODES_MAX 40u
#define DURATION_PS UINT64_C(20000000)

static void must(bool good)
{
	if (!good)
		abort();
}

static void must_be_consistent(const struct simulate_scenario *s)
{
	must(s->topology && s->traffic_count >= 1 && s->traffic_count <= SIMULATE_TRAFFIC_MAX);
	must(s->lanes >= 1 && s->lanes <= 15 && s->mtu >= 256 && s->mtu <= 4096);
	for (unsigned i = 0; i < 16; i++)
		must(s->lane_of_level[i] < s->lanes);
	for (uint32_t i = 0; i < s->traffic_count; i++) {
		const struct simulate_traffic *f = &s->traffic[i];

		must(f->packet_bytes && f->packet_bytes <= s->mtu && f->message_bytes && f->stop_ps > f->start_ps);
		must(f->source_count && f->target_count && f->name[0]);
	}
	for (uint32_t i = 1; i < s->fault_count; i++)
		must(s->faults[i - 1].at_ps <= s->faults[i].at_ps);
	for (uint32_t i = 0; i < s->expect_count; i++)
		must(s->expect[i].a < (int)s->traffic_count && s->expect[i].b < (int)s->traffic_count);
}

/* A short time of it, where that is little work. */
static void must_run(struct simulate_scenario *s)
{
	const struct simulate_options options = { 0 };
	struct simulate_result *r = NULL;

	if (s->topology->node_count > NODES_MAX)
		return;
	if (!s->duration_ps || s->duration_ps > DURATION_PS)
		s->duration_ps = DURATION_PS;
	if (s->sample_ps && s->sample_ps < DURATION_PS / 20)
		s->sample_ps = DURATION_PS / 20;
	for (uint32_t i = 0; i < s->traffic_count; i++)
		if (s->traffic[i].message_bytes < 512 && s->traffic[i].load > 0)
			s->traffic[i].message_bytes = 512;
	if (simulate_run(s, &options, &r))
		return;
	must(r->end_ps <= s->duration_ps);
	must(r->sent == r->delivered + r->lost + r->inside && !r->reordered);
	simulate_result_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct simulate_scenario *s = NULL;
	char why[300] = "";

	log_set_level(LOG_OFF);
	if (simulate_scenario_read((const char *)data, size, "fuzz", NULL, &s, why, sizeof(why))) {
		must(!s && why[0]);
		for (const char *c = why; *c; c++)
			must(!iscntrl((unsigned char)*c));
		return 0;
	}
	must_be_consistent(s);
	must_run(s);
	simulate_scenario_free(s);
	return 0;
}

static const char *const texts[] = {
	"title Two flows\ntopology ring:4,hosts=2,delay=25ns\nrouting up-down\nlanes 2\nlevel 1 lane=1\n"
	"arbitration low 0:64 1:128\narbitration high at=switch-1:2 1:8\nhigh-limit 3\nbuffer 16KiB\nmtu 2048\nseed 3\n"
	"duration 1ms\nmeasure-from 5us\ntraffic a host-1,host-2 -> host-5 message=64KiB # bulk\n"
	"traffic b host-3 -> host-5 load=1% message=256 sl=1 start=2us stop=15us\n"
	"expect share a > 0.9\nexpect rate a / b = 2 within 5%\nexpect lost = 0\n",
	"topology single:6\nswitch queues=output latency=100ns mode=store-and-forward\nhoq-life 3\ndeadlock go-on\n"
	"congestion-switch threshold=15 marking-rate=2 packet=512 victims=yes\n"
	"congestion-host timer=2 increase=1 trigger=2 minimum=0 limit=31\ncongestion-table step=1/8\n"
	"traffic hot host-2..5 -> host-1 window=9\ntraffic c uniform load=30% arrivals=random message=4KiB\n"
	"traffic h hot-spot target=host-1 share=25% messages=5\nduration 20us\nsample 1us\ndeadlock-after 3us\n",
	"topology torus:3x3\nrouting dfsssp\nlanes 4\ntraffic p permutation message=8KiB\ntraffic s shift by=2 packet=512\n"
	"traffic r bit-reversal hosts=host-1..8\ntraffic all all-to-all messages=2 message=1KiB\nduration 30us\n"
	"fault 3us cut switch-1-1:2\nfault 6us join switch-1-1:2\nfault 1us bit-errors switch-1-2:2 1e-5\n"
	"expect circles = 0\nexpect layers < 4\nexpect latency-99 p < 50\n",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *from = texts[random_below(sizeof(texts) / sizeof(texts[0]))];
	size_t size = strlen(from);

	memcpy(bytes, from, size);
	return mutate_times(bytes, size, capacity, random_below(5));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 1500, 2000, make);
}
