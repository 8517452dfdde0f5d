/* SPDX-License-Identifier: BSD-2-Clause */
/* What a slave does: it sends the samples that are written, answers questions, takes commands. */
#define LOG_ROOM "gateway/iec60870-5-104"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/node/iec60870-5-104/station.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* What a master has asked, and the bytes of the answer, which repeat it. */
struct question {
	struct station_connection *from;
	struct iec104_asdu asdu;
	struct iec104_object object;
	uint8_t bytes[IEC104_ASDU_MAX];
	size_t len;
};

static void answer(struct question *q, enum iec104_cause cause, bool negative)
{
	struct station_connection *c = q->from;

	iec104_asdu_answer(q->bytes, cause, negative);
	if (!station_queue_put(&c->flow.high, q->bytes, q->len, false) && !c->link.why)
		c->link.why = "it asks faster than it takes the answers (high_priority_queue)";
}

/* Answers a question that was to confirm something. */
static void confirm(struct question *q, bool positive)
{
	answer(q, q->asdu.cause == IEC104_DEACTIVATION ? IEC104_DEACTIVATION_CON :
							 IEC104_ACTIVATION_CON, !positive);
}

/* ---- values ---- */

static struct iec104_asdu head(const struct station *s, enum iec104_cause cause, unsigned originator)
{
	return (struct iec104_asdu){ .cause = cause, .originator = (uint8_t)originator,
				     .station = (uint16_t)s->common_address };
}

static bool has_group(const struct points *p, bool counters, unsigned group)
{
	for (unsigned i = 0; i < p->count; i++)
		if (point_is_in(&p->list[i], counters, group))
			return true;
	return !group;
}

/* All values but the counters, without time tags. */
static void send_all(struct question *q)
{
	struct station *s = q->from->station;
	uint8_t asdu[IEC104_ASDU_MAX];

	for (unsigned i = 0; i < s->out.chunk_count; i++) {
		const struct point_chunk *chunk = &s->out.chunks[i];
		size_t len;

		if (chunk->info->kind == IEC104_COUNTER)
			continue;
		len = point_chunk_encode(&s->out, chunk, s->last, false,
					 head(s, IEC104_INTERROGATED, q->asdu.originator), asdu);
		station_queue_put(&q->from->flow.high, asdu, len, false);
	}
}

static void send_group(struct question *q, bool counters, unsigned group,
		       const struct iec104_object *objects, unsigned cause)
{
	struct station *s = q->from->station;
	uint8_t asdu[IEC104_ASDU_MAX];
	unsigned next = 0;
	size_t len;

	while ((len = point_group_encode(&s->out, counters, group, &next, objects,
					 head(s, (enum iec104_cause)(cause + group),
					      q->asdu.originator), asdu)))
		station_queue_put(&q->from->flow.high, asdu, len, false);
}

/* Whether the question can be answered. */
static bool may_interrogate(const struct question *q, bool counters, unsigned group)
{
	const struct station *s = q->from->station;

	return q->asdu.cause != IEC104_DEACTIVATION && !q->object.address &&
	       has_group(&s->out, counters, group) &&
	       station_queue_room(&q->from->flow.high) >= s->out.chunk_count + 2;
}

static void interrogate(struct question *q)
{
	struct station *s = q->from->station;
	/* A value below that of the station is a group beyond the last one then. */
	unsigned group = (unsigned)(q->object.value - IEC104_STATION_INTERROGATION);

	if (group > POINT_GROUPS || !may_interrogate(q, false, group)) {
		confirm(q, false);
		return;
	}
	node_figure_add(s->node, STATION_INTERROGATIONS, 1);
	confirm(q, true);
	if (group)
		send_group(q, false, group, s->last, IEC104_INTERROGATED);
	else
		send_all(q);
	answer(q, IEC104_ACTIVATION_END, false);
}

/* ---- counters ---- */

/* What was frozen last, or what there is now. */
static void send_counters(struct question *q, unsigned group)
{
	struct station *s = q->from->station;

	for (unsigned i = 0; i < s->out.count; i++) {
		const struct station_counter *n = &s->counters[i];

		s->readings[i] = n->is_frozen ? n->frozen : s->last[i];
	}
	send_group(q, true, group, s->readings, IEC104_COUNTERS_REQUESTED);
}

static void freeze(struct station *s, unsigned point, enum iec104_freeze how)
{
	struct station_counter *n = &s->counters[point];
	struct iec104_object *now = &s->last[point];

	if (how != IEC104_RESET) {
		n->sequence = (n->sequence + 1) & IEC104_COUNTER_SEQUENCE;
		n->is_frozen = true;
		n->frozen = *now;
		n->frozen.quality = (uint8_t)((now->quality & ~IEC104_COUNTER_SEQUENCE) | n->sequence);
	}
	if (how != IEC104_FREEZE) {
		n->base += (uint32_t)now->value;
		now->value = 0;
	}
}

/* A master has asked for counters, or to freeze or reset them. */
static void interrogate_counters(struct question *q)
{
	struct station *s = q->from->station;
	unsigned asked = (unsigned)q->object.value & ((1u << IEC104_FREEZE_SHIFT) - 1);
	unsigned group = asked == IEC104_COUNTERS_ALL ? 0 : asked;
	enum iec104_freeze how = (enum iec104_freeze)((unsigned)q->object.value >> IEC104_FREEZE_SHIFT);
	bool resets = how == IEC104_RESET || how == IEC104_FREEZE_RESET;

	if (!asked || asked > IEC104_COUNTERS_ALL || (resets && !s->counter_reset) ||
	    !may_interrogate(q, true, group)) {
		confirm(q, false);
		return;
	}
	confirm(q, true);
	if (how == IEC104_READ) {
		node_figure_add(s->node, STATION_INTERROGATIONS, 1);
		send_counters(q, group);
		answer(q, IEC104_ACTIVATION_END, false);
		return;
	}
	node_figure_add(s->node, STATION_FREEZES, 1);
	for (unsigned i = 0; i < s->out.count; i++)
		if (point_is_in(&s->out.list[i], true, group))
			freeze(s, i, how);
}

static void read_one(struct question *q)
{
	struct station *s = q->from->station;
	uint8_t asdu[IEC104_ASDU_MAX];

	for (unsigned i = 0; i < s->out.count; i++) {
		const struct point *p = &s->out.list[i];
		struct iec104_asdu a = head(s, IEC104_REQUESTED, q->asdu.originator);

		if (p->address != q->object.address)
			continue;
		a.type = iec104_type_of((enum iec104_kind)p->info->kind, false)->type;
		a.count = 1;
		if (!station_queue_put(&q->from->flow.high, asdu,
				       iec104_asdu_encode(&a, &s->last[i], asdu), false))
			q->from->link.why = "it asks faster than it takes the answers (high_priority_queue)";
		return;
	}
	answer(q, IEC104_UNKNOWN_ADDRESS, true);
}

/* The clock of the host stays as it is; the answer has its time. */
static void synchronize(struct question *q)
{
	struct station *s = q->from->station;
	int64_t now = (int64_t)timespec_to_ns(clock_realtime()), peer;
	bool good = s->clock_synchronization && iec104_time_to_ns(&q->object.time, &peer);
	struct iec104_time own = iec104_time_from_ns(now);

	if (good)
		node_figure_set(s->node, STATION_CLOCK_OFFSET,
				(uint64_t)((peer > now ? peer - now : now - peer) / 1000000));
	iec104_time_encode(&own, q->bytes + q->len - IEC104_TIME_BYTES);
	confirm(q, good);
}

/* ---- commands ---- */

static bool too_old(const struct station *s, const struct question *q)
{
	int64_t now = (int64_t)timespec_to_ns(clock_realtime()), given;

	if (!q->asdu.info->timed || s->command_age_s <= 0)
		return false;
	return !iec104_time_to_ns(&q->object.time, &given) ||
	       (double)(now > given ? now - given : given - now) > s->command_age_s * 1e9;
}

static bool is_permitted(const struct question *q)
{
	enum iec104_kind kind = q->asdu.info->kind;

	return (kind != IEC104_DOUBLE_COMMAND && kind != IEC104_STEP_COMMAND) ||
	       q->object.value == 1 || q->object.value == 2;
}

/* The same value and qualifier. */
static bool is_selected(const struct station_selection *sel, const struct iec104_object *o,
			uint64_t now_ns)
{
	return sel->until_ns && now_ns < sel->until_ns && sel->object.value == o->value &&
	       !memcmp(&sel->object.real, &o->real, sizeof(o->real)) &&
	       sel->object.qualifier == o->qualifier;
}

/* Whether it is taken. */
static bool execute(struct question *q, unsigned point)
{
	struct station *s = q->from->station;
	const struct point *p = &s->in.list[point];
	struct signal_list *signals = s->node->in.signals;
	struct timespec origin;
	int64_t given;
	bool timed = q->asdu.info->timed && iec104_time_to_ns(&q->object.time, &given);
	union signal_data was = s->values[p->value];

	if (timed)
		origin = timespec_from_ns((uint64_t)given);
	s->values[p->value] = point_from_object((enum iec104_kind)p->info->kind, &q->object,
						signals->signals[p->value].type);
	if (station_deliver(s, timed ? &origin : NULL))
		return true;
	s->values[p->value] = was;
	return false;
}

static void command(struct question *q)
{
	struct station *s = q->from->station;
	int point = points_find(&s->in, q->object.address, (enum iec104_kind)q->asdu.info->kind);
	struct station_selection *sel;
	uint64_t now = clock_now_ns();
	bool good;

	if (point < 0) {
		node_figure_add(s->node, STATION_UNKNOWN, 1);
		answer(q, IEC104_UNKNOWN_ADDRESS, true);
		return;
	}
	sel = &q->from->selected[point];
	if (q->asdu.cause == IEC104_DEACTIVATION) {
		good = sel->until_ns && now < sel->until_ns;
		sel->until_ns = 0;
		confirm(q, good);
		return;
	}
	good = is_permitted(q) && !too_old(s, q) && !q->asdu.test &&
	       (!q->object.select || s->in.list[point].select);
	if (good && q->object.select) {
		*sel = (struct station_selection){ now + (uint64_t)(s->select_s * 1e9), q->object };
		confirm(q, true);
		return;
	}
	if (good && s->in.list[point].select)
		good = is_selected(sel, &q->object, now);
	sel->until_ns = 0;
	good = good && execute(q, (unsigned)point);
	node_figure_add(s->node, good ? STATION_COMMANDS : STATION_REFUSED, 1);
	confirm(q, good);
	if (good)
		answer(q, IEC104_ACTIVATION_END, false);
}

/* ---- what comes ---- */

/* Whether a type may be sent to all stations. */
static bool is_for_all(unsigned type)
{
	return type == IEC104_C_IC_NA || type == IEC104_C_CI_NA || type == IEC104_C_CS_NA ||
	       type == IEC104_C_RP_NA;
}

/* The cause with which a type is refused before its meaning is looked at; 0: it is not. */
static enum iec104_cause first_fault(const struct station *s, const struct iec104_asdu *a)
{
	bool stoppable = a->info && (a->info->kind < IEC104_BITS_COMMAND ||
				     a->type == IEC104_C_IC_NA || a->type == IEC104_C_CI_NA);

	if (!a->info || !a->info->command)
		return IEC104_UNKNOWN_TYPE;
	if (a->station != s->common_address &&
	    !(a->station == IEC104_STATION_ALL && is_for_all(a->type)))
		return IEC104_UNKNOWN_STATION;
	if (a->cause == (a->type == IEC104_C_RD_NA ? IEC104_REQUESTED : IEC104_ACTIVATION) ||
	    (stoppable && a->cause == IEC104_DEACTIVATION))
		return 0;
	return IEC104_UNKNOWN_CAUSE;
}

static void slave_asdu(struct station_connection *c, const uint8_t *asdu, size_t len)
{
	struct station *s = c->station;
	struct question q = { .from = c, .len = len };
	const char *why = iec104_asdu_decode(asdu, len, &q.asdu);
	enum iec104_cause fault;

	if (why) {
		fault_note(&s->faults, FAULT_MALFORMED, 1, "%s", why);
		return;
	}
	memcpy(q.bytes, asdu, len);
	fault = first_fault(s, &q.asdu);
	if (fault) {
		node_figure_add(s->node, STATION_UNKNOWN, 1);
		answer(&q, fault, true);
		return;
	}
	/* The answer names the station. */
	q.bytes[4] = (uint8_t)s->common_address;
	q.bytes[5] = (uint8_t)(s->common_address >> 8);
	iec104_object_decode(&q.asdu, 0, &q.object);
	switch (q.asdu.type) {
	case IEC104_C_IC_NA:
		interrogate(&q);
		break;
	case IEC104_C_CI_NA:
		interrogate_counters(&q);
		break;
	case IEC104_C_RD_NA:
		read_one(&q);
		break;
	case IEC104_C_CS_NA:
		synchronize(&q);
		break;
	case IEC104_C_TS_NA:
	case IEC104_C_TS_TA:
		confirm(&q, true);
		break;
	case IEC104_C_RP_NA: /* A master does not restart a gateway. */
		confirm(&q, false);
		break;
	default:
		command(&q);
	}
}

static void slave_changed(struct station_connection *c)
{
	/* A selection ends with the transfer. */
	memset(c->selected, 0, (c->station->in.count + 1) * sizeof(*c->selected));
}

static uint64_t slave_tick(struct station *s, uint64_t now_ns)
{
	return IEC104_NEVER;
}

const struct station_role station_slave = {
	.asdu = slave_asdu,
	.changed = slave_changed,
	.tick = slave_tick,
};

/* ---- writing ---- */

static enum signal_type sample_type(const struct signal_list *l, unsigned signal)
{
	return l && signal < l->count ? l->signals[signal].type : SIGNAL_FLOAT;
}

static void convert(struct station *s, const struct sample *smp)
{
	const struct signal_list *l = smp->signals;
	struct timespec at = smp->flags & SAMPLE_HAS_ORIGIN ? smp->origin : clock_realtime();
	struct iec104_time time = iec104_time_from_ns((int64_t)timespec_to_ns(at));

	for (unsigned i = 0; i < s->out.count; i++) {
		const struct point *p = &s->out.list[i];

		if (p->value >= smp->length)
			continue;
		point_to_object(p, sample_type(l, p->value), smp->data[p->value], &s->last[i]);
		if (p->info->kind == IEC104_COUNTER)
			s->last[i].value = (int32_t)((uint32_t)s->last[i].value - s->counters[i].base);
		if (p->quality < smp->length)
			s->last[i].quality |= point_quality(sample_type(l, p->quality),
							    smp->data[p->quality]);
		s->last[i].time = time;
	}
}

/* ASDUs of the sample in s->last to a client; the oldest samples give way. */
static void queue_sample(struct station *s, struct station_queue *q, const char *who)
{
	uint8_t asdu[IEC104_ASDU_MAX];
	unsigned dropped = 0;

	for (; station_queue_room(q) < s->out.chunk_count; dropped++)
		station_queue_drop(q);
	for (unsigned i = 0; i < s->out.chunk_count; i++) {
		size_t len = point_chunk_encode(&s->out, &s->out.chunks[i], s->last, true,
						head(s, IEC104_PERIODIC, (unsigned)s->originator),
						asdu);

		station_queue_put(q, asdu, len, i + 1 == s->out.chunk_count);
	}
	if (dropped)
		node_lose(s->node, NODE_LOSS_FULL, dropped,
			  "%s takes them too slowly (low_priority_queue)", who);
}

static bool queue_for_connections(struct station *s)
{
	char text[SOCKET_ADDRESS_MAX];
	bool any = false;

	for (unsigned i = 0; i < s->server.max && s->started; i++) {
		struct station_connection *c = &s->connections[i];

		if (c->flow.group || !station_connection_is_started(c))
			continue;
		queue_sample(s, &c->flow.own, socket_address_print(&c->base.peer, text));
		any = true;
	}
	return any;
}

/* Of a redundancy group that was started once samples wait until it is started again. */
static bool queue_for_groups(struct station *s)
{
	bool any = false;

	for (unsigned i = 0; i < s->redundancy_count; i++) {
		struct station_group *g = &s->redundancy[i].group;

		if (g->known)
			queue_sample(s, &g->low, "a redundancy group");
		any |= g->known;
	}
	return any;
}

int station_slave_write(struct station *s, struct sample *smps[], unsigned cnt)
{
	bool any = false;

	pthread_mutex_lock(&s->lock);
	for (unsigned k = 0; k < cnt; k++) {
		convert(s, smps[k]);
		any |= queue_for_connections(s);
		any |= queue_for_groups(s);
	}
	if (any)
		station_wake(s);
	pthread_mutex_unlock(&s->lock);
	if (any)
		return (int)cnt;
	node_refuse(s->node, NODE_LOSS_ABSENT, cnt, "no master has started the data transfer");
	return 0;
}
