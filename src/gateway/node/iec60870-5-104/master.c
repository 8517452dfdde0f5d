/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a master does: it asks for the values of the slave and hands them to the path, and gives
 * the samples that are written as commands. The next sample's commands follow when all of the
 * last one are confirmed, refused or too late, so that each sample has one result.
 */
#define LOG_ROOM "gateway/iec60870-5-104"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/node/iec60870-5-104/station.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

enum step { STEP_DONE, STEP_SELECT, STEP_EXECUTE };

/* The connection whose data transfer is started; the first one if none is. */
static struct station_connection *active(struct station *s)
{
	for (unsigned i = 1; i < s->server.max; i++)
		if (station_connection_is_started(&s->connections[i]))
			return &s->connections[i];
	return &s->connections[0];
}

static bool send_one(struct station *s, unsigned type, const struct iec104_object *o)
{
	const struct iec104_asdu a = { .type = (uint8_t)type, .cause = IEC104_ACTIVATION, .count = 1,
				       .originator = (uint8_t)s->originator,
				       .station = (uint16_t)s->common_address };
	uint8_t asdu[IEC104_ASDU_MAX];

	return station_queue_put(&active(s)->flow.high, asdu, iec104_asdu_encode(&a, o, asdu), false);
}

/* ---- which connection ---- */

static bool is_usable(const struct station_connection *c)
{
	return c->base.stream.fd >= 0 && !c->connecting && !c->shut && !c->link.why;
}

void station_master_choose(struct station *s, uint64_t now_ns)
{
	struct station_connection *chosen = NULL;

	if (s->ending)
		return;
	for (unsigned i = 0; i < s->server.max; i++) {
		struct station_connection *c = &s->connections[i];

		if (is_usable(c) && c->link.state != IEC104_STOPPED)
			return;
		if (is_usable(c) && !chosen)
			chosen = c;
	}
	if (!chosen)
		return;
	if (s->was_active && s->was_active != chosen)
		node_figure_add(s->node, STATION_SWITCHES, 1);
	s->was_active = chosen;
	iec104_link_start(&chosen->link, now_ns);
}

/* ---- commands ---- */

static const struct iec104_object *order(const struct station *s)
{
	return s->orders.objects + (size_t)s->orders.head * s->out.count;
}

static void give(struct station *s, unsigned point, enum step step)
{
	struct iec104_object o = order(s)[point];

	o.select = step == STEP_SELECT;
	s->orders.steps[point] = (uint8_t)step;
	send_one(s, s->out.list[point].info->type, &o);
}

static void begin_orders(struct station *s, uint64_t now_ns)
{
	struct station_orders *r = &s->orders;

	if (r->active || !r->count || !s->started)
		return;
	r->active = true;
	r->refused = false;
	r->open = 0;
	r->until_ns = now_ns + (uint64_t)(s->command_s * 1e9);
	for (unsigned i = 0; i < s->out.count; i++) {
		r->steps[i] = STEP_DONE;
		if (!order(s)[i].address)
			continue;
		r->open++;
		give(s, i, s->out.list[i].select ? STEP_SELECT : STEP_EXECUTE);
	}
}

/* `why`: the sample is lost. */
static void end_orders(struct station *s, const char *why)
{
	struct station_orders *r = &s->orders;

	r->active = false;
	r->head = (r->head + 1) % r->size;
	r->count--;
	if (why)
		node_lose(s->node, NODE_LOSS_REFUSED, 1, "%s", why);
}

/* The slave has answered a command. */
static void take_answer(struct station *s, const struct iec104_asdu *a)
{
	struct station_orders *r = &s->orders;
	bool positive = a->cause == IEC104_ACTIVATION_CON && !a->negative;
	struct iec104_object o;
	int point;

	iec104_object_decode(a, 0, &o);
	point = points_find(&s->out, o.address, (enum iec104_kind)a->info->kind);
	if (a->cause == IEC104_ACTIVATION_END || point < 0 || !r->active ||
	    r->steps[point] == STEP_DONE || o.select != (r->steps[point] == STEP_SELECT))
		return;
	if (positive && r->steps[point] == STEP_SELECT) {
		give(s, (unsigned)point, STEP_EXECUTE);
		return;
	}
	node_figure_add(s->node, positive ? STATION_COMMANDS : STATION_REFUSED, 1);
	r->steps[point] = STEP_DONE;
	r->refused |= !positive;
	if (--r->open)
		return;
	end_orders(s, r->refused ? "the slave refuses a command" : NULL);
	begin_orders(s, clock_now_ns());
}

void station_master_forget(struct station *s, const char *why)
{
	unsigned count = s->orders.count;

	s->orders.count = 0;
	s->orders.active = false;
	if (count)
		node_lose(s->node, NODE_LOSS_ABSENT, count, "%s", why);
}

/* ---- values ---- */

static void forget_seen(struct station *s)
{
	if (s->seen_count)
		memset(s->seen, 0, s->in.count * sizeof(*s->seen));
	s->seen_count = 0;
}

static void deliver(struct station *s, const struct timespec *origin)
{
	station_deliver(s, origin->tv_sec ? origin : NULL);
	forget_seen(s);
}

static void take_value(struct station *s, const struct iec104_asdu *a,
		       const struct iec104_object *o, unsigned point)
{
	const struct point *p = &s->in.list[point];
	const struct signal *signals = s->node->in.signals->signals;

	s->seen[point] = true;
	s->seen_count++;
	s->values[p->value] = point_from_object((enum iec104_kind)a->info->kind, o,
						signals[p->value].type);
	if (p->quality != POINT_NO_SIGNAL)
		s->values[p->quality] = point_number(signals[p->quality].type, o->quality);
}

static void take_values(struct station *s, const struct iec104_asdu *a)
{
	struct timespec origin = { 0 };
	struct iec104_object o;

	for (unsigned i = 0; i < a->count; i++) {
		int64_t ns;
		int point;

		iec104_object_decode(a, i, &o);
		point = points_find(&s->in, o.address, (enum iec104_kind)a->info->kind);
		if (point < 0) {
			node_figure_add(s->node, STATION_UNKNOWN, 1);
			continue;
		}
		if (o.quality & IEC104_INVALID && s->in.list[point].quality == POINT_NO_SIGNAL) {
			node_figure_add(s->node, STATION_INVALID, 1);
			continue;
		}
		/* The same object once more belongs to the next sample. */
		if (s->seen[point] && s->complete) {
			node_figure_add(s->node, STATION_INCOMPLETE, 1);
			forget_seen(s);
		} else if (s->seen[point]) {
			deliver(s, &origin);
		}
		if (a->info->timed && iec104_time_to_ns(&o.time, &ns))
			origin = timespec_from_ns((uint64_t)ns);
		take_value(s, a, &o, (unsigned)point);
	}
	if (s->complete ? s->seen_count == s->in.count : s->seen_count)
		deliver(s, &origin);
}

/* ---- what comes ---- */

static void ask_about(struct station *s, unsigned counters)
{
	struct iec104_object o = { .value = (int32_t)((unsigned)s->counter_freeze << IEC104_FREEZE_SHIFT |
						      counters) };

	if (s->counter_freeze)
		send_one(s, IEC104_C_CI_NA, &o);
	o.value = (int32_t)counters;
	send_one(s, IEC104_C_CI_NA, &o);
}

/* Freezes or resets them first, if so configured. */
static void ask_counters(struct station *s)
{
	if (!s->counter_interrogation)
		return;
	for (unsigned group = 1; group <= POINT_COUNTER_GROUPS; group++)
		if (s->counter_groups >> group & 1)
			ask_about(s, group);
	if (!s->counter_groups)
		ask_about(s, IEC104_COUNTERS_ALL);
	if (s->counter_interval_s > 0)
		s->counters_ns = clock_now_ns() + (uint64_t)(s->counter_interval_s * 1e9);
}

static void ask(struct station *s)
{
	struct iec104_object o = { .time = iec104_time_from_ns(
					   (int64_t)timespec_to_ns(clock_realtime())) };

	if (s->clock_synchronization)
		send_one(s, IEC104_C_CS_NA, &o);
	for (unsigned group = s->groups ? 1 : 0; s->interrogation && group <= POINT_GROUPS; group++) {
		o.value = (int32_t)(IEC104_STATION_INTERROGATION + group);
		if (s->groups >> group & 1 || !group)
			send_one(s, IEC104_C_IC_NA, &o);
		if (!group)
			break;
	}
	ask_counters(s);
}

static void take_control(struct station *s, const struct iec104_asdu *a)
{
	bool refused = a->negative || a->cause >= IEC104_UNKNOWN_TYPE;

	if (a->info->kind <= IEC104_BITS_COMMAND)
		take_answer(s, a);
	else if (refused && fault_may_log(&s->faults))
		log_warn("%s: the slave refuses %s (cause %u)", s->node->name, a->info->name,
			 a->cause);
	if (a->type == IEC104_C_IC_NA && a->cause == IEC104_ACTIVATION_END)
		node_figure_add(s->node, STATION_INTERROGATIONS, 1);
}

static void master_asdu(struct station_connection *c, const uint8_t *asdu, size_t len)
{
	struct station *s = c->station;
	struct iec104_asdu a;
	const char *why = iec104_asdu_decode(asdu, len, &a);

	if (why) {
		fault_note(&s->faults, FAULT_MALFORMED, 1, "%s", why);
		return;
	}
	if (!a.info) {
		node_figure_add(s->node, STATION_UNKNOWN, 1);
		return;
	}
	if (a.station != s->common_address && !(a.info->command && a.cause == IEC104_UNKNOWN_STATION)) {
		fault_note(&s->faults, FAULT_FOREIGN, 1, "an ASDU of station %u, ca is %u", a.station,
			   (unsigned)s->common_address);
		return;
	}
	if (a.info->command)
		take_control(s, &a);
	else if (a.type == IEC104_M_EI_NA)
		ask(s); /* The slave has started anew. */
	else if (a.test)
		node_figure_add(s->node, STATION_INVALID, a.count);
	else if (s->in.count)
		take_values(s, &a);
}

static void master_changed(struct station_connection *c)
{
	struct station *s = c->station;

	/* One that stands by has ended. */
	if (!station_connection_is_started(c) && s->started)
		return;
	if (s->in.count)
		forget_seen(s);
	if (station_connection_is_started(c))
		ask(s);
	else
		station_master_forget(s, "the data transfer has ended before the slave confirmed them");
}

static uint64_t master_tick(struct station *s, uint64_t now_ns)
{
	struct station_orders *r = &s->orders;

	if (r->active && now_ns >= r->until_ns)
		end_orders(s, "the slave has not answered a command (command_timeout)");
	begin_orders(s, now_ns);
	if (s->started && now_ns >= s->counters_ns)
		ask_counters(s);
	return MIN(r->active ? r->until_ns : IEC104_NEVER, s->started ? s->counters_ns : IEC104_NEVER);
}

const struct station_role station_master = {
	.asdu = master_asdu,
	.changed = master_changed,
	.tick = master_tick,
};

/* ---- writing ---- */

/* False: a value cannot be commanded. */
static bool convert(const struct station *s, const struct sample *smp, struct iec104_object *to)
{
	const struct signal_list *l = smp->signals;
	struct timespec at = smp->flags & SAMPLE_HAS_ORIGIN ? smp->origin : clock_realtime();
	struct iec104_time time = iec104_time_from_ns((int64_t)timespec_to_ns(at));

	for (unsigned i = 0; i < s->out.count; i++) {
		const struct point *p = &s->out.list[i];
		enum signal_type type = l && p->value < l->count ? l->signals[p->value].type :
								   SIGNAL_FLOAT;

		to[i] = (struct iec104_object){ 0 };
		if (p->value >= smp->length)
			continue;
		if (!point_to_object(p, type, smp->data[p->value], &to[i]))
			return false;
		to[i].time = time;
	}
	return true;
}

static void queue_orders(struct station *s, const struct sample *smp)
{
	struct station_orders *r = &s->orders;
	struct iec104_object *to = r->objects +
				   (size_t)((r->head + r->count) % r->size) * s->out.count;

	if (r->count == r->size)
		node_lose(s->node, NODE_LOSS_FULL, 1,
			  "the slave confirms commands too slowly (low_priority_queue)");
	else if (!smp->length || !convert(s, smp, to))
		node_lose(s->node, NODE_LOSS_FORMAT, 1,
			  "a value is not in the range of its command");
	else
		r->count++;
}

int station_master_write(struct station *s, struct sample *smps[], unsigned cnt)
{
	bool started;

	pthread_mutex_lock(&s->lock);
	started = s->started;
	for (unsigned i = 0; i < cnt && started; i++)
		queue_orders(s, smps[i]);
	if (started)
		station_wake(s);
	pthread_mutex_unlock(&s->lock);
	if (started)
		return (int)cnt;
	node_refuse(s->node, NODE_LOSS_ABSENT, cnt, "the slave is not connected");
	return 0;
}
