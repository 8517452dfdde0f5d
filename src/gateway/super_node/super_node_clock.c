/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking after the data path's clock (util/clock_servo.h), from the thread that
 * waits for the end of the gateway: readings when they are due, and a line in the log
 * when somebody has set the system's clock.
 */
#define LOG_ROOM "gateway/clock"
#include <limits.h>

#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

void super_node_clock_start(struct super_node *sn)
{
	struct clock_status s;

	clock_init();
	clock_keep_begin();
	clock_get_status(&s);
	sn->clock_steps = s.steps;
	sn->clock_jumps = s.jumps;
	sn->keeps_clock = true;
}

void super_node_clock_stop(struct super_node *sn)
{
	if (sn->keeps_clock)
		clock_keep_end();
	sn->keeps_clock = false;
}

int super_node_clock_tick(struct super_node *sn)
{
	struct clock_status s;
	uint64_t ns;

	if (!sn->keeps_clock)
		return INT_MAX;
	ns = clock_keep();
	clock_get_status(&s);
	if (s.steps != sn->clock_steps)
		log_warn("%s was set by %+.9f s; timestamps follow it, deadlines do not",
			 s.wall, (double)s.step_ns / 1e9);
	if (s.jumps != sn->clock_jumps)
		log_warn("the processors' counter and CLOCK_MONOTONIC came apart by %+.9f s, as after a suspend; deadlines go on from where they were",
			 (double)s.jump_ns / 1e9);
	sn->clock_steps = s.steps;
	sn->clock_jumps = s.jumps;
	/* Rounded up: it is due then. */
	return (int)(ns / 1000000) + 1;
}

json_t *super_node_clock_json(void)
{
	struct clock_status s;

	clock_get_status(&s);
	return json_pack("{ss ss sI sI sI sf sI sI sf}", "source",
			 clock_source(), "follows", s.wall, "offset_ns",
			 (json_int_t)s.offset_ns, "uncertainty_ns",
			 (json_int_t)s.uncertainty_ns, "offset_max_ns",
			 (json_int_t)s.offset_max_ns, "rate_ppm",
			 (double)s.rate_ppb / 1e3, "readings",
			 (json_int_t)s.readings, "steps", (json_int_t)s.steps,
			 "last_step_s", (double)s.step_ns / 1e9);
}
