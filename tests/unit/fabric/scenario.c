/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios: each key is read into its place, and what is wrong is told with its line and key. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/simulate/scenario.h"

static int read_text(const char *text, struct simulate_scenario **s, char *why, size_t why_bytes)
{
	return simulate_scenario_read(text, strlen(text), "x", NULL, s, why, why_bytes);
}

static struct simulate_scenario *must_read(const char *text)
{
	struct simulate_scenario *s = NULL;
	char why[300];

	if (read_text(text, &s, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

static void each_key_has_its_place(void **state)
{
	struct simulate_scenario *s = must_read(
		"title  A few words # and a hash \n"
		"topology ring:4,hosts=2 # eight hosts\r\n"
		"routing up-down\nlanes 4\nlevel 3 lane=0\nhigh-limit 7\nbuffer 16KiB\nmtu 2048\nhoq-life 9\n"
		"switch latency=150ns mode=store-and-forward queues=output\n"
		"arbitration low 0:64 1:128\narbitration high at=switch-2:3 2:255\n"
		"congestion-switch threshold=15 marking-rate=3 packet=512 victims=yes\n"
		"congestion-host timer=20 increase=2 trigger=3 minimum=1 limit=63\ncongestion-table 0 1/8 3/2 5\n"
		"seed 18446744073709551615\nduration 2ms\nmeasure-from 0.5ms\nsample 3us\ndeadlock-after 20us\ndeadlock go-on\n"
		"traffic a host-1,host-3..5 -> host-8 load=50% message=64KiB packet=1KiB window=8 sl=2 start=1us stop=9us\n"
		"traffic b hot-spot target=host-7 share=25% arrivals=random messages=3\n"
		"fault 2us join switch-1:3\nfault 1us cut switch-1:3\nfault 3us bit-errors host-1 1e-9\n"
		"expect rate a / b = 3 within 2%\nexpect latency-99 b < 12.5\n");
	const struct simulate_traffic *a = &s->traffic[0], *b = &s->traffic[1];

	assert_string_equal(s->title, "A few words # and a hash");
	assert_int_equal(s->topology->node_count, 12);
	assert_int_equal(s->routing, SIMULATE_UP_DOWN);
	assert_int_equal(s->lanes, 4);
	assert_int_equal(s->lane_of_level[3], 0);
	assert_int_equal(s->lane_of_level[6], 2);
	assert_int_equal(s->high_limit, 7);
	assert_int_equal(s->buffer_bytes, 16384);
	assert_int_equal(s->mtu, 2048);
	assert_int_equal(s->hoq_life, 9);
	assert_int_equal(s->latency_ps, 150000);
	assert_true(s->store_and_forward && s->output_queues && s->goes_on);
	assert_int_equal(s->rule_count, 2);
	assert_int_equal(s->rules[0].count, 2);
	assert_int_equal(s->rules[0].at.node, TOPOLOGY_NONE);
	assert_int_equal(s->rules[1].at.port, 3);
	assert_int_equal(s->rules[1].entries[0].weight, 255);
	assert_int_equal(s->congestion.marked_bytes, 512);
	assert_int_equal(s->congestion.timer, 20);
	assert_int_equal(s->congestion.table_count, 4);
	assert_int_equal(s->congestion.table[1], 1 | 3 << 14);
	assert_true(s->seed == UINT64_MAX);
	assert_int_equal(s->measure_from_ps, 500000000);
	assert_int_equal(a->source_count, 4);
	assert_int_equal(a->target_count, 1);
	assert_true(a->load > 0.499 && a->load < 0.501 && a->window == 8 && a->sl == 2);
	assert_int_equal(a->stop_ps, 9000000);
	assert_int_equal(a->packet_bytes, 1024);
	assert_int_equal(b->source_count, 8);
	assert_int_equal(b->packet_bytes, 2048);
	assert_int_equal(b->messages, 3);
	assert_true(b->random_arrivals && b->targets[b->hot_target].node == topology_find_id(s->topology, "host-7"));
	assert_int_equal(s->faults[0].kind, SIMULATE_CUT);
	assert_int_equal(s->faults[1].kind, SIMULATE_JOIN);
	assert_int_equal(s->expect[0].b, 1);
	assert_string_equal(s->expect[1].text, "latency-99 b < 12.5");
	simulate_scenario_free(s);
}

#define HEAD "topology single:4\n"
#define TRAFFIC "traffic t uniform\nduration 1ms\n"

static void what_is_wrong_is_told(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "x:1: topology is missing: a scenario has a line 'topology' and lines 'traffic'" },
		{ HEAD, "x:1: traffic is missing: a scenario has a line 'topology' and lines 'traffic'" },
		{ HEAD "\ntrafic t uniform\n", "x:3: there is no key 'trafic' here, did you mean 'traffic'?" },
		{ "lanes 3\n" HEAD TRAFFIC, "x:1: lanes: a port has 1, 2, 4, 8 or 15" },
		{ "lanes 16\n", "x:1: lanes: expected a whole number from 1 to 15" },
		{ "mtu 1000\n" HEAD TRAFFIC, "x:1: mtu: it is 256, 512, 1024, 2048 or 4096" },
		{ HEAD TRAFFIC "buffer 4KiB\n",
		  "x:4: buffer: it has to take a packet of the mtu with its headers, 4224 bytes" },
		{ HEAD TRAFFIC "measure-from 1ms\n", "x:4: measure-from: it is not before the end, duration" },
		{ "duration 5\n", "x:1: duration: '5' is not a time, such as 300ns or 2ms" },
		{ "seed 1 2\n", "x:1: here: '2' is not expected any more" },
		{ "traffic t uniform\n", "x:1: traffic: the line 'topology' has to stand before it" },
		{ HEAD "topology single:4\n", "x:2: topology: it stands in an earlier line already" },
		{ "topology a.topo\n", "x:1: topology: files are not read here, only families such as ring:8" },
		{ HEAD "routing dor\n", "x:2: routing: expected min-hop, up-down, lash or dfsssp" },
		{ HEAD "traffic t unifrom\n", "x:2: there is no key 'unifrom' here, did you mean 'uniform'?" },
		{ HEAD "traffic t uniform laod=3%\n", "x:2: there is no key 'laod' here, did you mean 'load'?" },
		{ HEAD "traffic t uniform load=120%\n", "x:2: load: '120%' is not within its limits: a share up to 100%" },
		{ HEAD "traffic t host-1 -> host-9\n",
		  "x:2: node: 'host-9' is not the name of a node, such as host-1 or host-1:1" },
		{ HEAD "traffic t host-1 -> switch-1\n",
		  "x:2: host: 'switch-1' is not a host: switches send and receive no traffic" },
		{ HEAD "traffic t host-1 ->\n", "x:2: traffic: targets are missing behind ->" },
		{ HEAD "traffic t host-3..1 -> host-2\n", "x:2: hosts: a range goes upwards and has up to 4096 hosts" },
		{ HEAD "traffic t uniform\n", "x:2: traffic 't' never ends: give duration, or stop= or messages= here" },
		{ HEAD TRAFFIC "traffic t uniform\n", "x:4: traffic: 't' stands in line 2 already" },
		{ HEAD "traffic t shift\n", "x:2: by: a shift of 4 hosts is by=1 to by=3" },
		{ HEAD "traffic t bit-reversal hosts=host-1..3\n",
		  "x:2: bit-reversal: 3 hosts are not a power of two; hosts= gives a list" },
		{ HEAD "traffic t hot-spot share=5%\n", "x:2: hot-spot: target=HOST is missing" },
		{ HEAD "traffic t uniform start=2us stop=1us\n", "x:2: stop: it is not behind start" },
		{ HEAD "mtu 512\ntraffic t uniform packet=1024 stop=1us\n",
		  "x:3: packet: 1024 bytes are more than the mtu, 512" },
		{ HEAD "routing lash\ntraffic t uniform sl=1 stop=1us\n",
		  "x:3: sl: with lash and dfsssp the layer of the path is the service level" },
		{ HEAD "level 2 lane=1\n" TRAFFIC, "x:4: level 2: there are lanes 0 to 0" },
		{ HEAD "arbitration mid 0:1\n", "x:2: arbitration: expected high or low" },
		{ HEAD "arbitration low 15:1\n",
		  "x:2: arbitration: an entry is LANE:WEIGHT, 0 to 14 and 0 to 255 (of 64 bytes)" },
		{ HEAD "congestion-host limit=3 minimum=4\n", "x:2: minimum: it is above limit, 3" },
		{ HEAD "fault 1us break host-1\n", "x:2: fault: expected cut, join or bit-errors" },
		{ HEAD "fault 1us cut host-1:2\n", "x:2: port: 'host-1:2' is not a port with a cable" },
		{ HEAD "expect rate t > 1\n", "x:2: expect: no traffic 't' stands before this line" },
		{ HEAD TRAFFIC "expect rate u > 1\n", "x:4: expect: no traffic 'u' stands before this line" },
		{ HEAD TRAFFIC "expect lost == 0\n", "x:4: expect: <, > or = is missing, between blanks" },
		{ HEAD TRAFFIC "expect lost < 1 within 2\n",
		  "x:4: expect: behind the number of = may stand 'within NUMBER', nothing else" },
		{ HEAD TRAFFIC "expect lots = 0\n", "x:4: there is no key 'lots' here, did you mean 'lost'?" },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct simulate_scenario *s = NULL;
		char why[300];

		if (!read_text(cases[i].text, &s, why, sizeof(why)))
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(why, cases[i].why);
		assert_null(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_has_its_place),
		cmocka_unit_test(what_is_wrong_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
