/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter of faults; see fault.h.
 *
 * Each direction has a lane, which decides, and a heap of packets that wait for their
 * time, both under one spin lock that is never held across a call of another carrier or
 * of the owner. One thread at a time moves due packets on, so their order is kept.
 */
#include "transport/carrier/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "transport/carrier/drainer.h"
#include "transport/carrier/held.h"
#include "util/container_of.h"
#include "util/spin.h"

#define HELD_BYTES (16u << 20)

struct side {
	struct spin lock;
	struct impair_lane lane;
	struct held held;
	struct drainer drainer; /* who moves packets on */
	/* No parameter is set, no judge is asked, nothing is held, and no thread moves packets:
	 * units may pass. */
	atomic_bool open;
	bool none;         /* no parameter is set */
	bool judged;       /* the judge is asked about each packet */
	bool moving;
};

struct fault {
	struct carrier carrier;
	struct carrier_fault_params p;
	struct side sides[2];
	struct drainer poller;
	atomic_bool blocked; /* the carrier below has no room */
	/* Packets of so many bytes were refused by the carrier below; SIZE_MAX: none were. */
	atomic_size_t too_long;
};

static struct fault *fault_of(struct carrier *c)
{
	return container_of(c, struct fault, carrier);
}

static uint64_t now(const struct fault *f)
{
	return clock_source_now_ns(&f->p.clock);
}

/* Under the lock. */
static void see_if_open(struct side *s)
{
	atomic_store_explicit(&s->open, s->none && !s->judged && !s->held.count &&
			      !s->moving,
			      memory_order_release);
}

static bool is_open(const struct side *s)
{
	return atomic_load_explicit(&s->open, memory_order_acquire);
}

/* ---- taking ---- */

/* Under the lock; consumes the packet. */
static void hold(struct side *s, struct held_packet *packet, unsigned class,
		 uint64_t due_ns, bool corrupt)
{
	if (corrupt)
		impair_corrupt(&s->lane, packet->data, packet->bytes);
	if (held_push(&s->held, packet, due_ns))
		return;
	s->lane.count[class].overflowed++;
	free(packet);
}

/* Congestion experienced (RFC 3168). */
#define ECN_CE 3

static void mark(struct carrier_unit *unit)
{
	unit->tos = (uint8_t)((unit->known & CARRIER_TOS ? unit->tos : 0) | ECN_CE);
	unit->known |= CARRIER_TOS;
}

/* Carries the verdict out on the packet and on its fate. Under the lock. */
static void apply(const struct carrier_fault_verdict *v, struct held_packet *packet,
		  struct impair_fate *fate)
{
	if (v->mark)
		mark(&packet->unit);
	if (v->corrupt)
		packet->data[packet->bytes / 2] ^= 1;
	if (v->drop)
		fate->copies = 0;
	if (v->duplicate && fate->copies == 1)
		fate->copy[fate->copies++] = fate->copy[0];
	for (unsigned i = 0; i < fate->copies; i++)
		fate->copy[i].due_ns += v->delay_ns;
}

/* Under the lock. */
static struct carrier_fault_verdict judge(struct fault *f, const struct side *s,
					  const struct held_packet *packet, uint64_t now_ns)
{
	struct carrier_fault_verdict v = { 0 };

	if (s->judged)
		f->p.judge(f->p.judge_arg, (enum carrier_direction)(s - f->sides), &packet->unit,
			   now_ns, &v);
	return v;
}

/* Under the lock. */
static void take_packet(struct fault *f, struct side *s, struct held_packet *packet,
			uint64_t now_ns)
{
	unsigned class = f->p.classify ? f->p.classify(f->p.classify_arg, &packet->unit) :
					 0;
	struct held_packet *copy = NULL;
	struct carrier_fault_verdict verdict;
	struct impair_fate fate;

	if (class >= IMPAIR_CLASSES)
		class = 0;
	/* A queue that is full takes no time of the link. */
	if (!held_has_room(&s->held, packet->bytes)) {
		s->lane.count[class].packets++;
		s->lane.count[class].overflowed++;
		free(packet);
		return;
	}
	verdict = judge(f, s, packet, now_ns);
	impair_decide(&s->lane, class, packet->bytes, now_ns, &fate);
	apply(&verdict, packet, &fate);
	if (fate.copies == 2 && !(copy = held_double(packet)))
		s->lane.count[class].overflowed++;
	if (fate.copies)
		hold(s, packet, class, fate.copy[0].due_ns, fate.copy[0].corrupt);
	else
		free(packet);
	if (copy)
		hold(s, copy, class, fate.copy[1].due_ns, fate.copy[1].corrupt);
}

static void take_unit(struct fault *f, struct side *s, const struct carrier_unit *unit,
		      size_t bytes)
{
	unsigned packets = carrier_unit_packets(unit, bytes);
	uint64_t now_ns = now(f);

	for (unsigned k = 0; k < packets; k++) {
		struct held_packet *packet =
			held_copy(unit, (size_t)k * unit->segment,
				  carrier_packet_bytes(unit, bytes, k), k);

		spin_lock(&s->lock);
		if (packet)
			take_packet(f, s, packet, now_ns);
		else
			s->lane.count[0].overflowed++;
		see_if_open(s);
		spin_unlock(&s->lock);
	}
}

/* ---- moving on ---- */

static struct held_packet *next_due(struct fault *f, struct side *s)
{
	struct held_packet *packet;
	uint64_t now_ns = now(f);

	spin_lock(&s->lock);
	packet = held_pop(&s->held, now_ns);
	s->moving = packet;
	see_if_open(s);
	spin_unlock(&s->lock);
	return packet;
}

static void put_back(struct side *s, struct held_packet *packet)
{
	spin_lock(&s->lock);
	held_push_back(&s->held, packet);
	s->moving = false;
	see_if_open(s);
	spin_unlock(&s->lock);
}

static void count_refused(struct fault *f, struct side *s, struct held_packet *packet)
{
	unsigned class = f->p.classify ? f->p.classify(f->p.classify_arg, &packet->unit) :
					 0;

	spin_lock(&s->lock);
	s->lane.count[class < IMPAIR_CLASSES ? class : 0].refused++;
	spin_unlock(&s->lock);
}

/* Who emits a packet learns only with the next one of its length that it is too long. */
static void remember_too_long(struct fault *f, size_t bytes)
{
	size_t known = atomic_load(&f->too_long);

	while (bytes < known && !atomic_compare_exchange_weak(&f->too_long, &known, bytes))
		;
}

static bool is_too_long(const struct fault *f, const struct carrier_unit *unit, size_t bytes)
{
	return !(unit->known & CARRIER_FRAGMENTS) &&
	       carrier_packet_bytes(unit, bytes, 0) >=
		       atomic_load_explicit(&f->too_long, memory_order_relaxed);
}

static void emit_due(struct fault *f)
{
	struct side *s = &f->sides[CARRIER_OUT];
	struct held_packet *packet;

	while ((packet = next_due(f, s))) {
		int n;

		atomic_store(&f->blocked, false);
		n = carrier_emit(f->carrier.below, &packet->unit, 1);
		if (n == -EAGAIN) {
			put_back(s, packet);
			atomic_store(&f->blocked, true);
			return;
		}
		if (n == -EMSGSIZE && !(packet->unit.known & CARRIER_FRAGMENTS))
			remember_too_long(f, packet->bytes);
		if (n < 0)
			count_refused(f, s, packet);
		free(packet);
	}
}

/* Whoever emits or polls. */
static void move_out(struct fault *f)
{
	do {
		if (!drainer_enter(&f->sides[CARRIER_OUT].drainer))
			return;
		emit_due(f);
	} while (drainer_leave(&f->sides[CARRIER_OUT].drainer));
}

/* Who polls; how many. */
static unsigned move_in(struct fault *f, unsigned budget)
{
	struct held_packet *packet;
	unsigned n = 0;

	while (n < budget && (packet = next_due(f, &f->sides[CARRIER_IN]))) {
		carrier_deliver(&f->carrier, &packet->unit);
		free(packet);
		n++;
	}
	return n;
}

/* ---- the table ---- */

static int fault_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct fault *f = fault_of(c);
	struct side *s = &f->sides[CARRIER_OUT];

	if (unlikely(n && units[0].known & CARRIER_LOST))
		return 1;
	if (likely(is_open(s)))
		return carrier_emit(c->below, units, n);
	for (unsigned i = 0; i < n; i++) {
		size_t bytes = carrier_unit_bytes(&units[i]);

		if (!bytes) {
			move_out(f);
			return i ? (int)i : -EINVAL;
		}
		if (unlikely(is_too_long(f, &units[i], bytes))) {
			move_out(f);
			return i ? (int)i : -EMSGSIZE;
		}
		take_unit(f, s, &units[i], bytes);
	}
	move_out(f);
	return (int)n;
}

/* From below, within our poll. */
static void fault_deliver(void *arg, const struct carrier_unit *unit)
{
	struct fault *f = arg;
	struct side *s = &f->sides[CARRIER_IN];

	if (likely(is_open(s)))
		carrier_deliver(&f->carrier, unit);
	else
		take_unit(f, s, unit, carrier_unit_bytes(unit));
}

static void fault_writable(void *arg)
{
	struct fault *f = arg;

	move_out(f);
	carrier_writable(&f->carrier);
}

static unsigned poll_once(struct fault *f, unsigned budget)
{
	unsigned used = move_in(f, budget), below;

	if (used == budget)
		return used;
	below = carrier_poll(f->carrier.below, budget - used);
	/* What came has used up that much of the budget, whether it passed or is held. */
	if (below == budget - used)
		return budget;
	return used + below + move_in(f, budget - used - below);
}

static unsigned fault_poll(struct carrier *c, unsigned budget)
{
	struct fault *f = fault_of(c);
	unsigned used = 0;

	move_out(f);
	do {
		if (!drainer_enter(&f->poller))
			break;
		if (used < budget)
			used += poll_once(f, budget - used);
	} while (drainer_leave(&f->poller) && used < budget);
	return used;
}

static uint64_t side_next_ns(struct side *s)
{
	uint64_t next;

	spin_lock(&s->lock);
	next = held_next_ns(&s->held);
	spin_unlock(&s->lock);
	return next;
}

static uint64_t fault_next_ns(struct carrier *c)
{
	struct fault *f = fault_of(c);
	uint64_t next = carrier_next_ns(c->below), in, out;

	in = side_next_ns(&f->sides[CARRIER_IN]);
	/* Where there is no room, writable() is what moves them. */
	out = atomic_load(&f->blocked) ? UINT64_MAX :
					 side_next_ns(&f->sides[CARRIER_OUT]);
	return MIN(next, MIN(in, out));
}

static void fault_close(struct carrier *c)
{
	struct fault *f = fault_of(c);

	carrier_close(c->below);
	for (unsigned i = 0; i < 2; i++)
		held_destroy(&f->sides[i].held);
	free(f);
}

static const struct carrier_ops fault_ops = {
	.emit = fault_emit,
	.poll = fault_poll,
	.next_ns = fault_next_ns,
	.close = fault_close,
};

int carrier_fault_open(struct carrier *below, const struct carrier_fault_params *params,
		       struct carrier **out)
{
	struct carrier_upper upper = { fault_deliver, fault_writable, NULL };
	struct fault *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->carrier.ops = &fault_ops;
	f->carrier.below = below;
	f->p = *params;
	atomic_init(&f->too_long, SIZE_MAX);
	for (unsigned i = 0; i < 2; i++) {
		impair_lane_init(&f->sides[i].lane, 2 * params->seed + i);
		held_init(&f->sides[i].held,
			  params->held_bytes ? params->held_bytes : HELD_BYTES);
		f->sides[i].none = true;
		see_if_open(&f->sides[i]);
	}
	upper.arg = f;
	carrier_set_upper(below, &upper);
	*out = &f->carrier;
	return 0;
}

void carrier_fault_set(struct carrier *c, unsigned directions, unsigned classes,
		       const struct impair_params *params)
{
	struct fault *f = fault_of(c);

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &f->sides[i];

		if (!(directions & (1u << i)))
			continue;
		spin_lock(&s->lock);
		impair_lane_set(&s->lane, classes, params);
		s->none = true;
		for (unsigned k = 0; k < IMPAIR_CLASSES; k++)
			s->none = s->none && impair_is_none(&s->lane.params[k]);
		if (s->none) {
			impair_lane_forget(&s->lane);
			held_release(&s->held);
		}
		see_if_open(s);
		spin_unlock(&s->lock);
	}
}

void carrier_fault_judge(struct carrier *c, bool on)
{
	struct fault *f = fault_of(c);

	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &f->sides[i];

		spin_lock(&s->lock);
		s->judged = on && f->p.judge;
		see_if_open(s);
		spin_unlock(&s->lock);
	}
}

void carrier_fault_seed(struct carrier *c, uint64_t seed)
{
	struct fault *f = fault_of(c);

	for (unsigned i = 0; i < 2; i++) {
		spin_lock(&f->sides[i].lock);
		impair_lane_seed(&f->sides[i].lane, 2 * seed + i);
		spin_unlock(&f->sides[i].lock);
	}
}

bool carrier_fault_passes(struct carrier *c)
{
	struct fault *f = fault_of(c);

	return is_open(&f->sides[CARRIER_OUT]) && is_open(&f->sides[CARRIER_IN]);
}

void carrier_fault_count(struct carrier *c, enum carrier_direction direction,
			 unsigned class, struct impair_counters *out)
{
	struct side *s = &fault_of(c)->sides[direction];

	spin_lock(&s->lock);
	*out = s->lane.count[class];
	spin_unlock(&s->lock);
}
