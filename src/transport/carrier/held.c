/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that wait for a time; see held.h. */
#include "transport/carrier/held.h"

#include <stdlib.h>

static struct held_packet *alloc_packet(size_t bytes)
{
	struct held_packet *p = malloc(sizeof(*p) + bytes);

	if (!p)
		return NULL;
	p->next = NULL;
	p->stage = 0;
	p->bytes = bytes;
	return p;
}

static void point_inside(struct held_packet *p)
{
	p->iov = (struct iovec){ p->data, p->bytes };
	p->unit.iov = &p->iov;
	p->unit.count = 1;
	p->unit.segment = 0;
}

struct held_packet *held_copy(const struct carrier_unit *unit, size_t at, size_t bytes,
			      unsigned k)
{
	struct held_packet *p = alloc_packet(bytes);

	if (!p)
		return NULL;
	p->unit = *unit;
	p->unit.ip_id = (uint16_t)(unit->ip_id + k);
	point_inside(p);
	carrier_unit_gather(unit, at, bytes, p->data);
	return p;
}

struct held_packet *held_double(const struct held_packet *packet)
{
	struct held_packet *p = alloc_packet(packet->bytes);

	if (!p)
		return NULL;
	p->unit = packet->unit;
	point_inside(p);
	memcpy(p->data, packet->data, packet->bytes);
	return p;
}

void held_init(struct held *h, size_t bytes_max)
{
	*h = (struct held){ .bytes_max = bytes_max };
}

void held_destroy(struct held *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->heap[i]);
	free(h->heap);
	*h = (struct held){ 0 };
}

static bool is_before(const struct held_packet *a, const struct held_packet *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static bool grow(struct held *h)
{
	size_t room = h->room ? 2 * h->room : 16;
	struct held_packet **heap = realloc(h->heap, room * sizeof(struct held_packet *));

	if (!heap)
		return false;
	h->heap = heap;
	h->room = room;
	return true;
}

void held_push_back(struct held *h, struct held_packet *packet)
{
	size_t i = h->count++;

	while (i && is_before(packet, h->heap[(i - 1) / 2])) {
		h->heap[i] = h->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->heap[i] = packet;
	h->bytes += packet->bytes + HELD_OVERHEAD;
}

bool held_push(struct held *h, struct held_packet *packet, uint64_t due_ns)
{
	if (!held_has_room(h, packet->bytes))
		return false;
	/* One place more, for held_push_back(). */
	if (h->count + 1 >= h->room && !grow(h))
		return false;
	packet->due_ns = due_ns;
	packet->order = h->order++;
	held_push_back(h, packet);
	return true;
}

struct held_packet *held_pop(struct held *h, uint64_t now_ns)
{
	struct held_packet *first, *last;
	size_t i = 0, child;

	if (!h->count || h->heap[0]->due_ns > now_ns)
		return NULL;
	first = h->heap[0];
	last = h->heap[--h->count];
	while ((child = 2 * i + 1) < h->count) {
		if (child + 1 < h->count && is_before(h->heap[child + 1], h->heap[child]))
			child++;
		if (!is_before(h->heap[child], last))
			break;
		h->heap[i] = h->heap[child];
		i = child;
	}
	h->heap[i] = last;
	h->bytes -= first->bytes + HELD_OVERHEAD;
	return first;
}

static int by_order(const void *a, const void *b)
{
	const struct held_packet *const *x = a, *const *y = b;

	return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

void held_release(struct held *h)
{
	for (size_t i = 0; i < h->count; i++)
		h->heap[i]->due_ns = 0;
	if (h->count) /* what is sorted is a heap */
		qsort(h->heap, h->count, sizeof(struct held_packet *), by_order);
}
