/* SPDX-License-Identifier: BSD-2-Clause */
/* Impairments as text: what is taken, and what the errors say. */
#include <string.h>

#include "check.h"
#include "transport/carrier/impair.h"

static char error[256];

static struct impair_settings good(const char *text)
{
	struct impair_settings s;

	check(impair_parse(text, &s, error, sizeof(error)) == 0);
	return s;
}

/* All `parts` are in the error, and the settings are not touched. */
static void bad(const char *text, const char *key, const char *part)
{
	struct impair_settings s, was;

	memset(&s, 0x5a, sizeof(s));
	was = s;
	error[0] = '\0';
	check(impair_parse(text, &s, error, sizeof(error)) < 0);
	if (strncmp(error, key, strlen(key)) || !strstr(error, part))
		printf("'%s' gave: %s\n", text, error);
	check(!strncmp(error, key, strlen(key)));
	check(strstr(error, part));
	check(!strchr(error, '\n'));
	check(!memcmp(&s, &was, sizeof(s)));
}

static void all_keys_are_read(void)
{
	struct impair_settings s = good(
		"loss=0.01,dup=0.02,reorder=0.05,delay=100us,jitter=20us,rate=1Gbit,"
		"corrupt=0.001,gap=5us,partition=1,seed=7");

	check(s.out.loss == 0.01 && s.out.duplicate == 0.02 && s.out.reorder == 0.05);
	check(s.out.delay_ns == 100000 && s.out.jitter_ns == 20000);
	check(s.out.rate_bps == 1000000000 && s.out.corrupt == 0.001);
	check(s.out.gap_ns == 5000 && s.out.partition && s.seed == 7);
	check(impair_is_none(&s.in));
}

static void directions_blanks_and_units(void)
{
	struct impair_settings s = good(" loss = 50% , in.loss=1, in.delay=1.5 ms,"
					"IN.Rate=10mbit, delay=0 ");

	check(s.out.loss == 0.5 && s.in.loss == 1 && s.in.delay_ns == 1500000);
	check(s.in.rate_bps == 10000000 && s.out.delay_ns == 0 && s.seed == 1);
	s = good("events = /a b/c.events , loss=1");
	check(!strcmp(s.events, "/a b/c.events") && s.out.loss == 1);
	s = good("");
	check(!s.events[0]);
	check(impair_is_none(&s.out) && impair_is_none(&s.in));
}

static void errors_name_the_key(void)
{
	bad("los=0.1", "los: ", "there are loss, dup, reorder");
	bad("loss=1.5", "loss: '1.5'", "from 0 to 1");
	bad("loss=-1", "loss: '-1'", "from 0 to 1");
	bad("loss=nan", "loss: 'nan'", "from 0 to 1");
	bad("loss=", "loss: ''", "from 0 to 1");
	bad("in.dup=200%", "in.dup: '200%'", "from 0 to 1");
	bad("loss=0.1,delay=100", "delay: '100'", "with its unit");
	bad("delay=100 parsec", "delay: '100 parsec'", "ns, us, ms, s");
	bad("delay=2000000s", "delay: ", "up to an hour");
	bad("delay=inf", "delay: ", "up to an hour");
	bad("rate=1Gb", "rate: '1Gb'", "Gbit");
	bad("rate=0.1bit", "rate: '0.1bit'", "Gbit");
	bad("seed=1.5", "seed: '1.5'", "whole number");
	bad("seed=18446744073709551616", "seed: ", "2^64");
	bad("partition=yes", "partition: 'yes'", "0 or 1");
	bad("loss=0.1,loss=0.2", "loss: ", "twice");
	bad("seed=1,seed=1", "seed: ", "twice");
	bad("loss", "loss: ", "key=value");
	bad("loss=0.1,,dup=0.1", ": ", "two commas");
	bad("loss=0.1,", ": ", "commas");
	bad("in.seed=1", "in.seed: ", "no such key");
	bad("events=", "events: ''", "the name of a file");
	bad("events=a,events=b", "events: ", "twice");
	bad("in.events=a", "in.events: ", "no such key");
	bad("loss=\x1b[31m\n", "loss: '?[31m'", "from 0 to 1");
	bad("=1", ": ", "no such key");
	bad("after=1.5t", "after: '1.5t'", "k, m, g");
	bad("cut=64k", "cut: '64k'", "from 0 to 1");
	/* All keys are named, to the last word. */
	bad("a_key_that_is_longer_than_what_is_shown_of_it=1", "a_key", "for what arrives");
}

static void keys_of_streams_are_read(void)
{
	struct impair_settings s = good("cut=1%,reset=0.5,in.stall=1,in.pause=20ms,after=64k");

	check(s.out.cut == 0.01 && s.out.reset == 0.5 && s.out.after_bytes == 65536);
	check(s.in.stall == 1 && s.in.pause_ns == 20000000 && !s.in.after_bytes);
	check(!impair_is_none(&s.out) && !impair_is_none(&s.in));
	check(impair_has_stream_faults(&s.out) && !impair_has_packet_faults(&s.out));
	s = good("after=1g,pause=1s");
	check(impair_is_none(&s.out));
}

static void a_stream_ends_within_a_frame_behind_so_many_bytes(void)
{
	const struct impair_params p = { .cut = 1, .after_bytes = 1000 };
	struct impair_stream_fate fate;
	struct impair_lane lane;

	impair_lane_init(&lane, 3);
	impair_lane_set(&lane, 1, &p);
	for (unsigned i = 0; i < 10; i++) {
		impair_decide_stream(&lane, 96, 0, &fate);
		check(fate.end == IMPAIR_NO_END);
	}
	impair_decide_stream(&lane, 96, 0, &fate);
	check(fate.end == IMPAIR_CUT && fate.end_at == 40);
	for (unsigned i = 0; i < 100; i++) {
		impair_decide_stream(&lane, 2 + i, 0, &fate);
		check(fate.end == IMPAIR_CUT && fate.end_at > 0 && fate.end_at < 2 + i);
	}
}

static void frames_of_a_stream_do_not_overtake_and_stalls_have_a_length(void)
{
	const struct impair_params p = { .delay_ns = 100, .jitter_ns = 1000, .stall = 0.5,
					 .corrupt = 0.5 };
	struct impair_stream_fate fate;
	unsigned stalls = 0, corrupt = 0;
	struct impair_lane lane;
	uint64_t last = 0;

	impair_lane_init(&lane, 3);
	impair_lane_set(&lane, 1, &p);
	for (uint64_t i = 0; i < 1000; i++) {
		impair_decide_stream(&lane, 96, i, &fate);
		check(fate.due_ns >= last && fate.due_ns >= i + 100 && fate.due_ns <= i + 1100);
		check(!fate.pause_ns || fate.pause_ns == IMPAIR_PAUSE_NS);
		last = fate.due_ns;
		stalls += fate.pause_ns != 0;
		corrupt += fate.corrupt;
	}
	check(stalls > 400 && stalls < 600 && corrupt > 400 && corrupt < 600);
}

static void lanes_of_one_seed_agree(void)
{
	struct impair_params p = { .loss = 0.3, .duplicate = 0.2, .jitter_ns = 100 };
	struct impair_lane a, b;

	impair_lane_init(&a, 9);
	impair_lane_init(&b, 9);
	impair_lane_set(&a, IMPAIR_ALL_CLASSES, &p);
	p.delay_ns = 500; /* changes the times and nothing else */
	impair_lane_set(&b, IMPAIR_ALL_CLASSES, &p);
	for (unsigned i = 0; i < 1000; i++) {
		struct impair_fate x, y;

		impair_decide(&a, 0, 100, i * 1000, &x);
		impair_decide(&b, 0, 100, i * 1000, &y);
		check(x.copies == y.copies);
		for (unsigned k = 0; k < x.copies; k++)
			check(x.copy[k].due_ns + 500 == y.copy[k].due_ns);
	}
}

int main(void)
{
	run_test(all_keys_are_read);
	run_test(directions_blanks_and_units);
	run_test(errors_name_the_key);
	run_test(lanes_of_one_seed_agree);
	run_test(keys_of_streams_are_read);
	run_test(a_stream_ends_within_a_frame_behind_so_many_bytes);
	run_test(frames_of_a_stream_do_not_overtake_and_stalls_have_a_length);
	return 0;
}
