/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending rate; see rtp_rate.h. */
#include "gateway/node/rtp/rtp_rate.h"

#include <math.h>

#include "util/container_of.h"

void rtp_rate_begin(struct rtp_rate *r, double init)
{
	r->rate = MAX(r->min, MIN(init, r->source));
	r->integral = r->before = 0;
}

void rtp_rate_report(struct rtp_rate *r, double loss, double since_s)
{
	double wanted = loss < RTP_LOSS_MIN ? r->rate + r->a : r->rate * r->b;
	double error = wanted - r->rate, next;

	since_s = MAX(since_s, 0.001);
	next = r->rate + r->kp * error + r->ki * (r->integral + error * since_s) +
	       r->kd * (error - r->before) / since_s;
	/* At a limit the integral does not grow: it would hold the rate there. */
	if (next > r->min && next < r->source)
		r->integral += error * since_s;
	r->before = error;
	r->rate = MAX(r->min, MIN(next, r->source));
}

uint64_t rtp_rate_step(const struct rtp_rate *r, int throttle)
{
	if (throttle == RTP_THROTTLE_DISABLED || r->rate >= r->source)
		return 0;
	if (throttle == RTP_THROTTLE_DECIMATE)
		return (uint64_t)ceil(r->source / r->rate - 1e-9);
	return (uint64_t)llround(1e9 / r->rate);
}

bool rtp_gate_admits(struct rtp_gate *g, int throttle, uint64_t step, uint64_t now_ns)
{
	if (!step) {
		g->began = false;
		return true;
	}
	if (throttle == RTP_THROTTLE_DECIMATE) {
		if (g->began && ++g->skipped < step)
			return false;
		g->skipped = 0;
	} else {
		if (g->began && now_ns < g->next_ns)
			return false;
		/* One that is late by less than a step does not delay the next one. */
		if (!g->began || now_ns - g->next_ns > step)
			g->next_ns = now_ns;
		g->next_ns += step;
	}
	g->began = true;
	return true;
}
