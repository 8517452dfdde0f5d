/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries out scenarios; see run.h. This file has the order of things in time. */
#define LOG_ROOM "fabric"
#include "fabric/simulate/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/build.h"
#include "fabric/simulate/plan.h"
#include "fabric/simulate/sample.h"
#include "fabric/simulate/sender.h"
#include "fabric/simulate/summary.h"
#include "util/container_of.h"
#include "util/log.h"

#define SLICE_EVENTS 200000u /* between two looks at Ctrl-C */
#define SAMPLES 500u
#define SAMPLE_PS_LEAST UINT64_C(1000000)
#define SAMPLE_PS_STANDARD UINT64_C(10000000) /* of scenarios without a duration */

static const char *const losses[] = {
	[FABRIC_DROP_NO_ROUTE] = "no route", [FABRIC_DROP_LINK_DOWN] = "link down",
	[FABRIC_DROP_CORRUPT] = "bit error", [FABRIC_DROP_TOO_LONG] = "too long",
	[FABRIC_DROP_LIFETIME] = "waited too long", [FABRIC_DROP_LANE] = "no such lane",
	[FABRIC_DROP_STATE] = "port not active", [FABRIC_DROP_PARTITION] = "partition",
	[FABRIC_DROP_MANAGEMENT] = "management buffer full",
};

const char *simulate_loss_name(unsigned why)
{
	return why < sizeof(losses) / sizeof(losses[0]) ? losses[why] : NULL;
}

/* ---- trace ---- */

static void trace(void *arg, const struct fabric_event *e)
{
	static const char *const kinds[] = { "sent", "arrived", "dropped", "marked" };
	const struct simulate_state *st = arg;

	fprintf(st->o->trace, "%llu %s %s:%u lane %u packet %llu lid %u -> %u bytes %u%s%s\n",
		(unsigned long long)e->at_ps, kinds[e->kind], st->s->topology->nodes[e->node].id, e->port, e->lane,
		(unsigned long long)e->packet->number, e->packet->slid, e->packet->dlid, e->packet->bytes,
		e->kind == FABRIC_EVENT_DROPPED ? " " : "",
		e->kind == FABRIC_EVENT_DROPPED ? simulate_loss_name(e->why) : "");
}

/* ---- faults ---- */

static void carry_out(struct simulate_state *st, const struct simulate_fault *f)
{
	struct topology_end peer;

	switch (f->kind) {
	case SIMULATE_BIT_ERRORS:
		fabric_set_bit_error_rate(st->f, f->end.node, f->end.port, f->rate);
		break;
	case SIMULATE_CUT:
		fabric_set_link(st->f, f->end.node, f->end.port, false);
		break;
	case SIMULATE_JOIN:
		fabric_set_link(st->f, f->end.node, f->end.port, true);
		simulate_build_port(st, f->end.node, f->end.port);
		if (topology_peer(st->s->topology, f->end.node, f->end.port, &peer))
			simulate_build_port(st, peer.node, peer.port);
		break;
	}
}

/* ---- time ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t sample_ps(const struct simulate_scenario *s)
{
	uint64_t each = s->duration_ps ? s->duration_ps / SAMPLES : SAMPLE_PS_STANDARD;

	return s->sample_ps ? s->sample_ps : each < SAMPLE_PS_LEAST ? SAMPLE_PS_LEAST : each;
}

/* The next time at which this file has something to do. */
static uint64_t next_ps(const struct simulate_state *st)
{
	uint64_t next = least(least(st->end_ps, st->next_sample_ps), fabric_queue_next_ps(&st->due));

	if (st->next_fault < st->s->fault_count)
		next = least(next, st->s->faults[st->next_fault].at_ps);
	if (!st->before)
		next = least(next, st->s->measure_from_ps);
	return next;
}

/* Nothing will be sent any more, and nothing moves. */
static bool has_ended(const struct simulate_state *st)
{
	return st->senders_done == st->sender_count &&
	       (!fabric_packets_inside(st->f) || fabric_next_ps(st->f) == FABRIC_NEVER);
}

/* What is due now. Whether the scenario goes on; -ENOMEM. */
static int do_due(struct simulate_state *st)
{
	const uint64_t now = fabric_now_ps(st->f);
	struct fabric_due *due;

	if (!st->before && now >= st->s->measure_from_ps && simulate_summary_begin(st))
		return -ENOMEM;
	while (st->next_fault < st->s->fault_count && st->s->faults[st->next_fault].at_ps <= now)
		carry_out(st, &st->s->faults[st->next_fault++]);
	while ((due = fabric_queue_take(&st->due, now)))
		simulate_sender_due(st, container_of(due, struct simulate_sender, due));
	if (now < st->next_sample_ps)
		return 1;
	st->next_sample_ps += sample_ps(st->s);
	simulate_sample_congestion(st);
	if (simulate_sample_deadlocks(st) && !st->s->goes_on)
		return 0;
	return !has_ended(st);
}

static void tell_progress(const struct simulate_state *st)
{
	uint64_t now = fabric_now_ps(st->f);
	double share = !st->s->duration_ps ? (double)st->senders_done / st->sender_count :
			(double)now / (double)st->end_ps;

	if (st->o->progress)
		st->o->progress(st->o->arg, share, now);
}

static int run(struct simulate_state *st)
{
	uint64_t told = 0;
	int go_on = 1;

	while (go_on > 0 && fabric_now_ps(st->f) < st->end_ps) {
		uint64_t next = next_ps(st), events = fabric_run(st->f, next, SLICE_EVENTS);

		st->r->events += events;
		if (st->r->events - told >= SLICE_EVENTS) {
			told = st->r->events;
			tell_progress(st);
		}
		if (st->out_of_packets) {
			log_error("the traffic has more packets on their way than there is memory for: set window= or "
				  "smaller buffers");
			return -ENOSPC;
		}
		if (st->o->stop && *st->o->stop) {
			st->r->interrupted = true;
			break;
		}
		/* There are more events before that time. */
		if (events == SLICE_EVENTS && fabric_next_ps(st->f) <= next)
			continue;
		if (fabric_now_ps(st->f) < next)
			fabric_run(st->f, next, 0);
		go_on = do_due(st);
	}
	return go_on < 0 ? go_on : 0;
}

/* ---- from the beginning to the end ---- */

static int begin(struct simulate_state *st)
{
	const struct fabric_ops ops = {
		.deliver = simulate_sender_deliver, .drop = simulate_sender_drop,
		.writable = simulate_sender_writable, .deadlock = simulate_sample_deadlock,
		.event = st->o->trace ? trace : NULL, .arg = st,
	};
	int err = simulate_build_routes(st);

	if (!err)
		err = simulate_plan(st);
	if (!err && !st->sender_count) {
		log_error("no host sends anything: the lists of the traffic have no pairs");
		return -EINVAL;
	}
	if (!err)
		err = simulate_build_fabric(st, &ops);
	if (err)
		return err;
	err = simulate_sender_open(st);
	if (!err)
		err = simulate_sample_open(st);
	if (err)
		log_error("the senders of the traffic cannot be made: %s", strerror(-err));
	return err;
}

static void clean(struct simulate_state *st)
{
	free(st->senders);
	/* Tells drop() that packets that are inside are not lost. */
	st->senders = NULL;
	if (st->f)
		fabric_close(st->f);
	routing_tables_free(st->routing);
	routing_layers_free(st->layers);
	fabric_queue_free(&st->due);
	free(st->by_node);
	free(st->before);
	free(st->open);
}

static int end(struct simulate_state *st)
{
	int err = 0;

	st->r->end_ps = fabric_now_ps(st->f);
	/* It ended before the measurement began. */
	if (!st->before)
		err = simulate_summary_begin(st);
	simulate_sample_end(st);
	if (!err)
		err = simulate_summary(st);
	st->r->stuck = st->r->inside && fabric_next_ps(st->f) == FABRIC_NEVER;
	if (err)
		log_error("no memory for the result");
	return err;
}

int simulate_run(const struct simulate_scenario *s, const struct simulate_options *options,
		 struct simulate_result **r)
{
	struct simulate_state st = {
		.s = s, .o = options, .prng = prng_from(s->seed ^ UINT64_C(0x7472616666696300)),
		.end_ps = s->duration_ps ? s->duration_ps : SIMULATE_TIME_PS_MAX, .next_sample_ps = sample_ps(s),
		.r = calloc(1, sizeof(*st.r)),
	};
	int err = st.r ? 0 : -ENOMEM;

	if (err)
		log_error("no memory for the result");
	fabric_queue_init(&st.due);
	if (!err)
		err = begin(&st);
	if (!err)
		err = run(&st);
	if (!err)
		err = end(&st);
	clean(&st);
	if (err)
		simulate_result_free(st.r);
	else
		*r = st.r;
	return err;
}

void simulate_result_free(struct simulate_result *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->flow_count; i++)
		free(r->flows[i].latency);
	for (uint32_t i = 0; i < r->deadlock_count; i++)
		free(r->deadlocks[i].lanes);
	free(r->circle);
	free(r->flows);
	free(r->groups);
	free(r->links);
	free(r->congested);
	free(r->deadlocks);
	free(r->verdicts);
	free(r);
}
