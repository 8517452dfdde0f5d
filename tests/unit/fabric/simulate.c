/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a scenario's run gives: patterns have the flows of their definitions, an idle subnet the times that can be
 * calculated by hand, loads and shares are those that were asked for, and nothing is lost without being counted.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/simulate/fair.h"
#include "fabric/simulate/run.h"

struct experiment {
	struct simulate_scenario *s;
	struct simulate_result *r;
};

static struct experiment carry_out(const char *text)
{
	const struct simulate_options options = { 0 };
	struct experiment e = { 0 };
	char why[300];

	if (simulate_scenario_read(text, strlen(text), "x", NULL, &e.s, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(simulate_run(e.s, &options, &e.r), 0);
	assert_true(e.r->sent == e.r->delivered + e.r->lost + e.r->inside);
	assert_true(e.r->reordered == 0);
	return e;
}

static void end(struct experiment *e)
{
	simulate_result_free(e->r);
	simulate_scenario_free(e->s);
}

static bool is_near(double value, double right, double part)
{
	return fabs(value - right) <= part * right;
}

/* ---- patterns ---- */

/* The number of the host at which a port is: hosts come behind the switch in `single`. */
static unsigned host_of(const struct simulate_scenario *s, struct topology_end end)
{
	return (unsigned)atoi(s->topology->nodes[end.node].id + strlen("host-")) - 1;
}

static void a_permutation_has_each_host_once_and_nobody_to_itself(void **state)
{
	struct experiment e = carry_out("topology single:16\ntraffic p permutation messages=1\nseed 5\n");
	unsigned from = 0, to = 0;

	assert_int_equal(e.r->flow_count, 16);
	for (unsigned i = 0; i < 16; i++) {
		unsigned a = host_of(e.s, e.r->flows[i].source), b = host_of(e.s, e.r->flows[i].target);

		assert_int_not_equal(a, b);
		from |= 1u << a;
		to |= 1u << b;
		assert_int_equal(e.r->flows[i].delivered, 1);
	}
	assert_int_equal(from, 0xffff);
	assert_int_equal(to, 0xffff);
	end(&e);
}

static void shift_and_bit_reversal_have_the_targets_of_their_names(void **state)
{
	static const unsigned reversed[] = { 0, 4, 2, 6, 1, 5, 3, 7 };
	struct experiment e = carry_out("topology single:8\ntraffic s shift by=3 messages=1\n"
					"traffic r bit-reversal messages=1\n");
	unsigned i;

	for (i = 0; i < 8; i++)
		assert_int_equal(host_of(e.s, e.r->flows[i].target), (host_of(e.s, e.r->flows[i].source) + 3) % 8);
	/* 0, 2, 5 and 7 read the same in reverse, and send nothing. */
	assert_int_equal(e.r->groups[1].flow_count, 4);
	for (; i < e.r->flow_count; i++)
		assert_int_equal(host_of(e.s, e.r->flows[i].target), reversed[host_of(e.s, e.r->flows[i].source)]);
	end(&e);
}

static void lists_are_pairs_or_each_to_each(void **state)
{
	struct experiment e = carry_out("topology single:8\ntraffic p host-1..3 -> host-4..6 messages=1\n"
					"traffic i host-1..3 -> host-8 messages=2\n"
					"traffic x host-1,host-2 -> host-1..3 messages=1\n");

	assert_int_equal(e.r->groups[0].flow_count, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(host_of(e.s, e.r->flows[i].target), host_of(e.s, e.r->flows[i].source) + 3);
	assert_int_equal(e.r->groups[1].flow_count, 3);
	assert_int_equal(e.r->groups[1].messages, 6);
	/* Nobody sends to itself. */
	assert_int_equal(e.r->groups[2].flow_count, 4);
	end(&e);
}

static void all_to_all_sends_each_message_once_per_pair(void **state)
{
	struct experiment e = carry_out("topology fat-tree:3x3\nmtu 1024\ntraffic a all-to-all messages=2 message=2500\n");

	assert_int_equal(e.r->flow_count, 72);
	for (unsigned i = 0; i < 72; i++) {
		/* Packets of 1024, 1024 and 452 bytes. */
		assert_int_equal(e.r->flows[i].delivered, 6);
		assert_int_equal(e.r->flows[i].messages, 2);
		assert_int_equal(e.r->flows[i].bytes, 2 * (2500 + 3 * 26));
	}
	assert_int_equal(e.r->hops, 72 * 6 * 2 + 54 * 6 * 2);
	end(&e);
}

static void a_hot_spot_gets_its_share_and_uniform_gets_even_ones(void **state)
{
	struct experiment e = carry_out("topology single:9\ntraffic h hot-spot target=host-9 share=40% load=10% messages=2000\n"
					"traffic u uniform load=10% messages=2000\n");
	uint64_t hot = 0;

	for (uint32_t i = 0; i < e.r->flow_count; i++) {
		const struct simulate_flow *w = &e.r->flows[i];

		if (w->traffic == 1)
			assert_true(is_near((double)w->messages, 250, 0.25));
		else if (host_of(e.s, w->target) == 8)
			hot += w->messages;
	}
	/* Of the other eight, and what is left evenly. */
	assert_true(is_near((double)hot, 8 * 2000 * (0.4 + 0.6 / 8), 0.05));
	end(&e);
}

/* ---- times and rates ---- */

/* 4x EDR: 12.12 GB/s after 64b/66b of 103.125 Gbit/s, that is 100 Gbit/s: a byte takes 80 ps. */
static void an_idle_path_takes_the_time_of_its_parts(void **state)
{
	struct experiment e = carry_out("topology line:2,delay=100ns\nmtu 2048\nswitch latency=200ns mode=store-and-forward\n"
					"traffic t host-1 -> host-2 message=1000 messages=1\n");
	/* Three cables, three times 1026 bytes, two switches. */
	uint64_t whole_ns = 3 * 100 + 3 * 1026 * 80 / 1000 + 2 * 200;
	struct experiment cut = carry_out("topology line:2,delay=100ns\nmtu 2048\nswitch latency=200ns\n"
					  "traffic t host-1 -> host-2 message=1000 messages=1\n");
	/* The header of 8 bytes is enough for a switch. */
	uint64_t cut_ns = 3 * 100 + 2 * 8 * 80 / 1000 + 1026 * 80 / 1000 + 2 * 200;

	assert_in_range(e.r->groups[0].packets.max, whole_ns - 2, whole_ns + 2);
	assert_in_range(cut.r->groups[0].packets.max, cut_ns - 2, cut_ns + 2);
	assert_int_equal(e.r->hops, 3);
	end(&e);
	end(&cut);
}

static void a_load_is_the_one_that_was_asked_for(void **state)
{
	static const char *const arrivals[] = { "regular", "random" };

	for (unsigned i = 0; i < 2; i++) {
		char text[300];
		struct experiment e;

		snprintf(text, sizeof(text), "topology single:2\nduration 2ms\nmeasure-from 100us\n"
			 "traffic t host-1 -> host-2 load=30%% message=1000 arrivals=%s\n", arrivals[i]);
		e = carry_out(text);
		assert_true(is_near(e.r->groups[0].rate_bps, 30e9, i ? 0.03 : 0.001));
		assert_true(is_near(e.r->groups[0].share, 1, i ? 0.03 : 0.001));
		assert_true(is_near(e.r->links[0].load + e.r->links[1].load + e.r->links[2].load + e.r->links[3].load,
				    0.6, 0.04));
		end(&e);
	}
}

static void fair_shares_change_when_traffic_starts_and_stops(void **state)
{
	/* Half of the time alone, half of the time two. */
	struct experiment e = carry_out("topology single:3\nduration 400us\ntraffic a host-1 -> host-3 message=16KiB\n"
					"traffic b host-2 -> host-3 message=16KiB start=200us\n");

	assert_true(is_near(e.r->groups[0].fair_bps, 75e9, 0.001));
	assert_true(is_near(e.r->groups[1].fair_bps, 50e9, 0.001));
	assert_true(is_near(e.r->groups[0].share, 1, 0.03));
	end(&e);
}

static void targets_share_the_load_of_their_sender(void **state)
{
	struct experiment e = carry_out("topology single:4\nduration 300us\nmeasure-from 50us\n"
					"traffic t all-to-all load=40% message=2000\nexpect rate t = 160 within 1%\n"
					"expect rate t = 200 within 1%\nexpect rate t = 100 within 1%\n");

	assert_true(is_near(e.r->groups[0].fair_bps, 160e9, 0.001));
	assert_true(is_near(e.r->flows[0].fair_bps, 40e9 / 3, 0.001));
	assert_true(e.r->verdicts[0].holds && !e.r->verdicts[1].holds && !e.r->verdicts[2].holds);
	end(&e);
}

static void a_window_bounds_what_is_on_the_way(void **state)
{
	/* One packet at a time: its latency decides the rate. */
	struct experiment e = carry_out("topology single:2,delay=1us\nduration 500us\n"
					"traffic t host-1 -> host-2 message=4096 window=1\n");
	double latency_s = (double)e.r->groups[0].packets.max * 1e-9;

	assert_true(is_near(e.r->groups[0].rate_bps, 8 * 4122 / latency_s, 0.02));
	assert_true(e.r->inside <= 1);
	end(&e);
}

static void fair_shares_are_max_min(void **state)
{
	/* Flows 0 and 1 on link 0, flows 1 and 2 on link 1; flow 3 on link 1 wants little. */
	static const uint32_t paths[][2] = { { 0 }, { 0, 1 }, { 1 }, { 1 } };
	static const uint32_t lengths[] = { 1, 2, 1, 1 };
	static const double demands[] = { 100, 100, 100, 2 }, right[] = { 6, 4, 4, 2 };
	double room[] = { 10, 10 };
	struct simulate_fair_flow flows[4];

	for (unsigned i = 0; i < 4; i++)
		flows[i] = (struct simulate_fair_flow){ paths[i], lengths[i], demands[i], 0 };
	assert_int_equal(simulate_fair_shares(flows, 4, room, 2), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_true(is_near(flows[i].share, right[i], 1e-6));
}

/* ---- faults, deadlocks, expectations ---- */

static void what_is_lost_is_counted_with_its_cause(void **state)
{
	struct experiment e = carry_out("topology line:2\nduration 300us\ntraffic t host-1 -> host-2 load=50%\n"
					"fault 100us cut switch-1:2\nfault 200us join switch-1:2\n"
					"fault 250us bit-errors switch-1:2 1e-6\nexpect lost > 100\nexpect reordered = 0\n");
	uint64_t sum = 0;

	for (unsigned i = 0; simulate_loss_name(i); i++)
		sum += e.r->lost_why[i];
	assert_int_equal(sum, e.r->lost);
	assert_string_equal(simulate_loss_name(2), "bit error");
	assert_true(e.r->lost_why[2] > 0);
	/* A third of what was sent, and those with bit errors. */
	assert_true(is_near((double)e.r->lost, (double)e.r->sent / 3, 0.05));
	assert_true(e.r->verdicts[0].holds && e.r->verdicts[1].holds);
	end(&e);
}

static void a_window_does_not_stop_at_losses(void **state)
{
	struct experiment e = carry_out("topology line:2\nduration 200us\ntraffic t host-1 -> host-2 window=4\n"
					"fault 50us cut switch-1:2\nfault 60us join switch-1:2\n");

	assert_true(e.r->lost > 0);
	assert_true(e.r->flows[0].last_ps > UINT64_C(190000000));
	end(&e);
}

static void a_deadlock_is_found_with_its_lanes(void **state)
{
	struct experiment e = carry_out("topology ring:5\nbuffer 8KiB\nmtu 2048\nduration 1ms\n"
					"traffic t shift by=2 message=64KiB\nexpect deadlocks = 0\nexpect share t > 50%\n");

	assert_int_equal(e.r->deadlock_count, 1);
	assert_int_equal(e.r->deadlocks[0].count, 5);
	assert_int_equal(e.r->circle_count, 5);
	assert_true(e.r->end_ps < e.s->duration_ps);
	assert_true(e.r->inside > 0);
	assert_false(e.r->verdicts[0].holds);
	assert_false(e.r->verdicts[1].holds);
	end(&e);
}

static void lash_never_deadlocks_where_min_hop_does(void **state)
{
	struct experiment e = carry_out("topology ring:5\nrouting lash\nlanes 2\nbuffer 8KiB\nmtu 2048\n"
					"traffic t shift by=2 message=64KiB messages=50\n");

	assert_int_equal(e.r->deadlock_count, 0);
	assert_int_equal(e.r->layers, 2);
	assert_int_equal(e.r->groups[0].messages, 250);
	assert_int_equal(e.r->inside, 0);
	end(&e);
}

static void equal_seeds_give_equal_results(void **state)
{
	static const char text[] = "topology torus:3x3\nduration 100us\nseed 4\n"
				   "traffic t uniform load=60% arrivals=random message=3000\n";
	struct experiment a = carry_out(text), b = carry_out(text);

	assert_int_equal(a.r->flow_count, b.r->flow_count);
	assert_true(a.r->events == b.r->events && a.r->hops == b.r->hops);
	for (uint32_t i = 0; i < a.r->flow_count; i++)
		assert_true(a.r->flows[i].number == b.r->flows[i].number && a.r->flows[i].bytes == b.r->flows[i].bytes);
	end(&a);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_permutation_has_each_host_once_and_nobody_to_itself),
		cmocka_unit_test(shift_and_bit_reversal_have_the_targets_of_their_names),
		cmocka_unit_test(lists_are_pairs_or_each_to_each),
		cmocka_unit_test(all_to_all_sends_each_message_once_per_pair),
		cmocka_unit_test(a_hot_spot_gets_its_share_and_uniform_gets_even_ones),
		cmocka_unit_test(an_idle_path_takes_the_time_of_its_parts),
		cmocka_unit_test(a_load_is_the_one_that_was_asked_for),
		cmocka_unit_test(fair_shares_change_when_traffic_starts_and_stops),
		cmocka_unit_test(targets_share_the_load_of_their_sender),
		cmocka_unit_test(a_window_bounds_what_is_on_the_way),
		cmocka_unit_test(fair_shares_are_max_min),
		cmocka_unit_test(what_is_lost_is_counted_with_its_cause),
		cmocka_unit_test(a_window_does_not_stop_at_losses),
		cmocka_unit_test(a_deadlock_is_found_with_its_lanes),
		cmocka_unit_test(lash_never_deadlocks_where_min_hop_does),
		cmocka_unit_test(equal_seeds_give_equal_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
