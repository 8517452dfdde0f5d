/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate of a sender; see pace.h. Time passes when a packet leaves or a CNP comes: the
 * steps in between are made up for then. */
#include "engine/rc/pace.h"

#include <string.h>

#define ALPHA_ONE 65535
/* With fewer steps to make up for, alpha is not near 0, nor the rate near that of the
 * line. */
#define STEPS_MAX 4096

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void rc_pace_open(struct rc_pace *p, uint64_t line_bps)
{
	memset(p, 0, sizeof(*p));
	p->line_bps = line_bps ? line_bps : RC_PACE_LINE_BPS;
}

static void grow(struct rc_pace *p)
{
	uint8_t most = p->time_steps > p->byte_steps ? p->time_steps : p->byte_steps;
	uint8_t fewest = (uint8_t)least(p->time_steps, p->byte_steps);

	if (fewest > RC_PACE_FAST_STEPS)
		p->target_bps += p->line_bps / RC_PACE_JUMP_PART *
				 (fewest - RC_PACE_FAST_STEPS);
	else if (most >= RC_PACE_FAST_STEPS)
		p->target_bps += p->line_bps / RC_PACE_GROW_PART;
	p->target_bps = least(p->target_bps, p->line_bps);
	p->rate_bps += (p->target_bps - p->rate_bps) / 2;
	if (p->rate_bps >= p->line_bps - p->line_bps / 128)
		p->active = false;
}

static void count_step(uint8_t *steps)
{
	*steps += *steps < UINT8_MAX;
}

/* The steps that time has brought. While the pace held a packet back nothing could be
 * marked: such a wait counts as one step, however long. (Where the paper counts each
 * 55 us, many slow senders grow several times before one of them is marked again.) */
static void pass(struct rc_pace *p, uint64_t now_ns)
{
	if (p->decay_ns < p->next_ns)
		p->decay_ns = p->next_ns;
	if (p->grow_ns < p->next_ns)
		p->grow_ns = p->next_ns;
	if (now_ns > p->grow_ns && now_ns - p->grow_ns > STEPS_MAX * RC_PACE_STEP_NS) {
		p->active = false;
		return;
	}
	for (; now_ns >= p->decay_ns; p->decay_ns += RC_PACE_STEP_NS)
		p->alpha = (uint16_t)(p->alpha - (p->alpha >> RC_PACE_G_SHIFT));
	for (; p->active && now_ns >= p->grow_ns; p->grow_ns += RC_PACE_STEP_NS) {
		count_step(&p->time_steps);
		grow(p);
	}
}

void rc_pace_count(struct rc_pace *p, uint32_t bytes, uint64_t now_ns)
{
	uint64_t wire = bytes + RC_PACE_HEADERS, from = p->next_ns;

	pass(p, now_ns);
	if (p->bytes <= wire) {
		p->bytes = RC_PACE_STEP_BYTES;
		count_step(&p->byte_steps);
		grow(p);
	} else {
		p->bytes -= wire;
	}
	if (now_ns > RC_PACE_LATE_NS && from < now_ns - RC_PACE_LATE_NS)
		from = now_ns - RC_PACE_LATE_NS;
	p->next_ns = from + wire * 8 * UINT64_C(1000000000) / p->rate_bps;
}

void rc_pace_cut(struct rc_pace *p, uint64_t now_ns)
{
	if (p->active && now_ns - p->cut_ns < RC_PACE_CNP_NS / 2)
		return;
	if (p->active)
		pass(p, now_ns);
	if (!p->active) {
		p->active = true;
		p->alpha = ALPHA_ONE;
		p->rate_bps = p->line_bps;
		p->next_ns = now_ns;
	}
	p->target_bps = p->rate_bps;
	p->rate_bps -= p->rate_bps * p->alpha >> 17;
	if (p->rate_bps < p->line_bps / RC_PACE_LEAST_PART)
		p->rate_bps = p->line_bps / RC_PACE_LEAST_PART;
	p->rate_bps += !p->rate_bps;
	p->alpha = (uint16_t)(p->alpha + ((ALPHA_ONE - p->alpha) >> RC_PACE_G_SHIFT));
	p->time_steps = p->byte_steps = 0;
	p->bytes = RC_PACE_STEP_BYTES;
	p->cut_ns = now_ns;
	p->decay_ns = p->grow_ns = now_ns + RC_PACE_STEP_NS;
}
