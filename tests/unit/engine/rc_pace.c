/* SPDX-License-Identifier: BSD-2-Clause */
/* The pace of a sender against the equations of the paper that pace.h names. */
#include <stdio.h>
#include <stdlib.h>

#include "engine/rc/pace.h"

#define LINE UINT64_C(8000000000) /* a byte in a nanosecond */

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

/* Sends packets as early as they may leave until `end_ns`; how many bytes. */
static uint64_t send_until(struct rc_pace *p, uint64_t *now_ns, uint64_t end_ns)
{
	uint64_t bytes = 0;

	while (*now_ns < end_ns) {
		if (rc_pace_waits(p, *now_ns)) {
			*now_ns = p->next_ns;
			continue;
		}
		rc_pace_sent(p, 1024, *now_ns);
		bytes += 1024 + RC_PACE_HEADERS;
		if (!p->active)
			*now_ns += 1024 + RC_PACE_HEADERS;
	}
	return bytes;
}

static void nothing_waits_before_a_cnp(void)
{
	struct rc_pace p;

	rc_pace_open(&p, LINE);
	for (uint64_t i = 0; i < 1000; i++) {
		check(!rc_pace_waits(&p, 0), "no wait");
		rc_pace_sent(&p, 4096, 0);
	}
	check(!p.active, "nothing is counted");
}

static void a_cnp_halves_the_rate_and_it_returns(void)
{
	uint64_t now = 1000, begin = now, bytes;
	struct rc_pace p;

	rc_pace_open(&p, LINE);
	rc_pace_cut(&p, now);
	check(p.active && p.rate_bps >= LINE / 2 && p.rate_bps <= LINE / 2 + LINE / 1000,
	      "alpha is 1 at first");
	bytes = send_until(&p, &now, begin + 54000);
	check(bytes >= 26000 && bytes <= 30000, "half of the bytes");
	/* Fast recovery: half of the way back with each step. */
	send_until(&p, &now, begin + 54000 + RC_PACE_STEP_NS);
	check(p.rate_bps >= LINE * 74 / 100 && p.rate_bps <= LINE * 76 / 100, "a step");
	send_until(&p, &now, begin + 54000 + 2 * RC_PACE_STEP_NS);
	check(p.rate_bps >= LINE * 87 / 100 && p.rate_bps <= LINE * 88 / 100, "another");
	send_until(&p, &now, begin + 9 * RC_PACE_STEP_NS);
	check(!p.active, "back to the line");
}

static void many_cnps_cut_to_the_least_rate(void)
{
	struct rc_pace p;
	uint64_t now = 1000;

	rc_pace_open(&p, LINE);
	for (unsigned i = 0; i < 1000; i++, now += RC_PACE_CNP_NS)
		rc_pace_cut(&p, now);
	check(p.rate_bps == LINE / RC_PACE_LEAST_PART, "not below");
	/* A packet takes 2 ms, and is a step. */
	send_until(&p, &now, now + 150 * RC_PACE_STEP_NS);
	check(p.time_steps >= 3 && p.time_steps < RC_PACE_FAST_STEPS &&
		      p.rate_bps == LINE / RC_PACE_LEAST_PART, "no growth at first");
	send_until(&p, &now, now + 150 * RC_PACE_STEP_NS);
	check(p.rate_bps > LINE / 100 && p.rate_bps < LINE / 5, "then step by step");
	send_until(&p, &now, now + 1000 * RC_PACE_STEP_NS);
	check(!p.active, "to the line");
}

/* How much one step by bytes adds to the target behind so many steps of both kinds. */
static uint64_t gain_behind(uint8_t steps)
{
	struct rc_pace p;

	rc_pace_open(&p, LINE);
	for (unsigned i = 0; i < 10; i++)
		rc_pace_cut(&p, 1000 + i * RC_PACE_CNP_NS);
	p.rate_bps = p.target_bps = LINE / 4;
	p.time_steps = p.byte_steps = steps;
	p.bytes = 100; /* until the next step */
	rc_pace_sent(&p, 1024, 1000 + 10 * RC_PACE_CNP_NS - 1);
	check(p.byte_steps == steps + 1 && p.time_steps == steps, "a step by bytes");
	return p.target_bps - LINE / 4;
}

static void growth_has_three_speeds(void)
{
	check(gain_behind(RC_PACE_FAST_STEPS - 2) == 0, "fast recovery");
	check(gain_behind(RC_PACE_FAST_STEPS) == LINE / RC_PACE_GROW_PART, "additive");
	check(gain_behind(RC_PACE_FAST_STEPS + 1) == LINE / RC_PACE_JUMP_PART, "hyper");
	check(gain_behind(RC_PACE_FAST_STEPS + 3) == LINE / RC_PACE_JUMP_PART * 3, "more");
}

static void copies_of_a_cnp_cut_once(void)
{
	struct rc_pace p;
	uint64_t rate;

	rc_pace_open(&p, LINE);
	rc_pace_cut(&p, 1000);
	rate = p.rate_bps;
	rc_pace_cut(&p, 1000);
	rc_pace_cut(&p, 2000);
	check(p.rate_bps == rate, "once");
	rc_pace_cut(&p, 51000);
	check(p.rate_bps < rate, "the next one counts");
}

static void alpha_falls_without_cnps(void)
{
	struct rc_pace p;
	uint64_t now = 1000;
	uint16_t alpha;

	rc_pace_open(&p, LINE);
	rc_pace_cut(&p, now);
	alpha = p.alpha;
	send_until(&p, &now, 1000 + 3 * RC_PACE_STEP_NS);
	check(p.active && p.alpha < alpha && p.alpha > alpha - alpha / 50, "by 1/256 a step");
}

static void a_wait_of_the_pace_is_one_step(void)
{
	struct rc_pace p;

	rc_pace_open(&p, LINE);
	for (unsigned i = 0; i < 100; i++)
		rc_pace_cut(&p, 1000 + i * RC_PACE_CNP_NS);
	p.next_ns = 1000 + 200 * RC_PACE_STEP_NS;
	rc_pace_sent(&p, 1024, p.next_ns);
	check(p.time_steps == 1, "however long it was");
	rc_pace_sent(&p, 1024, p.next_ns + 3 * RC_PACE_STEP_NS);
	check(p.time_steps > 3, "but for what the sender had nothing to say");
}

static void after_a_long_time_it_is_forgotten(void)
{
	struct rc_pace p;

	rc_pace_open(&p, 0);
	check(p.line_bps == RC_PACE_LINE_BPS, "some line");
	for (unsigned i = 0; i < 100; i++)
		rc_pace_cut(&p, 1000 + i * RC_PACE_CNP_NS);
	rc_pace_sent(&p, 1024, UINT64_C(3600) * 1000000000);
	check(!p.active, "an hour");
}

static void a_late_sender_catches_up_a_little(void)
{
	struct rc_pace p;
	unsigned n = 0;

	rc_pace_open(&p, LINE);
	rc_pace_cut(&p, 1000);
	for (; !rc_pace_waits(&p, 51000); n++)
		rc_pace_sent(&p, 1024, 51000);
	check(n >= 9 && n <= 11, "20 us at half a byte in a nanosecond");
}

int main(void)
{
	nothing_waits_before_a_cnp();
	a_cnp_halves_the_rate_and_it_returns();
	many_cnps_cut_to_the_least_rate();
	growth_has_three_speeds();
	copies_of_a_cnp_cut_once();
	alpha_falls_without_cnps();
	a_wait_of_the_pace_is_one_step();
	after_a_long_time_it_is_forgotten();
	a_late_sender_catches_up_a_little();
	return 0;
}
