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
	s = good("");
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
	bad("loss=\x1b[31m\n", "loss: '?[31m'", "from 0 to 1");
	bad("=1", ": ", "no such key");
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
	return 0;
}
