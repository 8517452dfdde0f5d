/* SPDX-License-Identifier: BSD-2-Clause */
/* See flow.h. */
#include "gateway/node/iec60870-5-104/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- queues ---- */

int station_queue_init(struct station_queue *q, unsigned limit, unsigned more)
{
	*q = (struct station_queue){ .size = limit + more, .limit = limit };
	q->slots = calloc(q->size, sizeof(*q->slots));
	return q->slots ? 0 : -ENOMEM;
}

unsigned station_queue_room(const struct station_queue *q)
{
	return q->count < q->limit ? q->limit - q->count : 0;
}

bool station_queue_put(struct station_queue *q, const uint8_t *asdu, size_t len, bool last)
{
	struct station_slot *slot = &q->slots[(q->head + q->count) % q->size];

	if (!station_queue_room(q))
		return false;
	slot->len = (uint8_t)len;
	slot->last = last;
	memcpy(slot->asdu, asdu, len);
	q->count++;
	return true;
}

static void pop(struct station_queue *q)
{
	q->head = (q->head + 1) % q->size;
	q->count--;
}

static void put_back(struct station_queue *q, const struct station_slot *slot)
{
	q->head = (q->head + q->size - 1) % q->size;
	q->slots[q->head] = *slot;
	q->count++;
}

void station_queue_drop(struct station_queue *q)
{
	bool last = false;

	while (q->count && !last) {
		last = q->slots[q->head].last;
		pop(q);
	}
}

unsigned station_queue_samples(const struct station_queue *q)
{
	unsigned samples = 0;

	for (unsigned i = 0; i < q->count; i++)
		samples += q->slots[(q->head + i) % q->size].last;
	return samples;
}

static void empty(struct station_queue *q)
{
	q->head = q->count = 0;
}

/* ---- life ---- */

int station_flow_init(struct station_flow *f, struct iec104_link *link, unsigned low,
		      unsigned high, unsigned k)
{
	int ret;

	*f = (struct station_flow){ .low = &f->own, .link = link, .k = k };
	ret = station_queue_init(&f->own, low, 0);
	ret = station_queue_init(&f->high, high, 0) ?: ret;
	f->flight = calloc(k, sizeof(*f->flight));
	return f->flight ? ret : -ENOMEM;
}

void station_flow_free(struct station_flow *f)
{
	free(f->own.slots);
	free(f->high.slots);
	free(f->flight);
}

void station_flow_begin(struct station_flow *f, struct station_group *group)
{
	f->flight_head = f->flight_count = 0;
	empty(&f->own);
	empty(&f->high);
	f->group = group;
	f->low = group ? &group->low : &f->own;
	f->next = group ? group->members : NULL;
	if (group)
		group->members = f;
}

static struct station_flown *flown(struct station_flow *f, unsigned i)
{
	return &f->flight[(f->flight_head + i) % f->k];
}

/* What is not acknowledged waits again, in its order; the link still waits for its
 * acknowledgements. Whether there was any. */
static bool take_back(struct station_flow *f)
{
	unsigned before = f->low->count;

	for (unsigned i = f->flight_count; i--;) {
		struct station_flown *last = flown(f, i);

		if (last->low)
			put_back(f->low, &last->slot);
		last->low = false;
	}
	return f->low->count > before;
}

static void leave(struct station_flow *f)
{
	struct station_flow **at = &f->group->members;

	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	f->next = NULL;
}

unsigned station_flow_end(struct station_flow *f, bool delivered)
{
	unsigned lost = 0;

	if (f->group) {
		if (!delivered)
			take_back(f);
		station_flow_stopped(f);
		leave(f);
	} else {
		for (unsigned i = 0; i < f->flight_count && !delivered; i++)
			lost += flown(f, i)->low && flown(f, i)->slot.last;
		lost += station_queue_samples(&f->own);
	}
	station_flow_begin(f, NULL);
	return lost;
}

/* ---- who sends ---- */

bool station_flow_started(struct station_flow *f)
{
	struct station_group *g = f->group;
	bool takes_over;

	if (!g)
		return false;
	takes_over = g->active && g->active != f;
	for (struct station_flow *other = g->members; other; other = other->next) {
		if (other == f)
			continue;
		iec104_link_deactivate(other->link);
		takes_over |= take_back(other);
		if (other == g->active)
			empty(&other->high);
	}
	g->active = f;
	g->known = true;
	return takes_over;
}

void station_flow_stopped(struct station_flow *f)
{
	if (f->group && f->group->active == f)
		f->group->active = NULL;
}

/* ---- sending ---- */

bool station_flow_send(struct station_flow *f, uint64_t now_ns)
{
	struct station_queue *q = f->high.count ? &f->high : f->low;
	const struct station_slot *slot = &q->slots[q->head];
	struct station_flown *to;

	if (!q->count || !iec104_link_send(f->link, slot->asdu, slot->len, now_ns))
		return false;
	to = flown(f, f->flight_count++);
	to->low = q == f->low;
	to->slot = *slot;
	pop(q);
	return true;
}

void station_flow_acknowledged(struct station_flow *f, unsigned count)
{
	f->flight_head = (f->flight_head + count) % f->k;
	f->flight_count -= count;
}

bool station_flow_waits(const struct station_flow *f)
{
	return f->high.count || (f->low->count && (!f->group || f->group->active == f));
}
