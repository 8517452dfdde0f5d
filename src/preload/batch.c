/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that were begun; see batch.h. */
#include "preload/batch.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16u

/* Room for `count` elements. It grows to what the program posts at once, and stays. */
static void *room_for(void *array, unsigned *room, size_t count, size_t size)
{
	unsigned more = *room ? *room : FIRST_ROOM;

	if (count <= *room)
		return array;
	while (more < count && more < UINT32_MAX / 2)
		more *= 2;
	array = more < count ? NULL : reallocarray(array, more, size);
	if (array)
		*room = more;
	return array;
}

void batch_clear(struct batch *b)
{
	b->begun_count = 0;
	b->sge_count = 0;
	b->full = false;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	free(b->begun);
	free(b->sges);
	free(b);
}

struct preload_request *batch_begin(struct batch *b)
{
	struct preload_request *all = b->full ? NULL : room_for(b->begun, &b->begun_room,
							       b->begun_count + 1, sizeof(*all));

	if (!all) {
		b->full = true;
		return NULL;
	}
	b->begun = all;
	all += b->begun_count++;
	memset(all, 0, sizeof(*all));
	return all;
}

struct preload_request *batch_last(struct batch *b)
{
	return b->full || !b->begun_count ? NULL : &b->begun[b->begun_count - 1];
}

void batch_add_sges(struct batch *b, const struct ibv_sge *sges, size_t count)
{
	struct preload_request *last = batch_last(b);
	struct ibv_sge *all;

	if (!last || !count)
		return;
	all = room_for(b->sges, &b->sge_room, b->sge_count + count, sizeof(*all));
	if (!all) {
		b->full = true;
		return;
	}
	b->sges = all;
	memcpy(&all[b->sge_count], sges, count * sizeof(*sges));
	b->sge_count += (unsigned)count;
	last->sge_count += (int)count;
	for (size_t i = 0; i < count; i++)
		last->bytes += sges[i].length;
}

void batch_end(struct batch *b)
{
	const struct ibv_sge *at = b->sges;

	for (unsigned i = 0; i < b->begun_count; i++) {
		b->begun[i].sge = b->begun[i].sge_count ? at : NULL;
		at += b->begun[i].sge_count;
	}
}
