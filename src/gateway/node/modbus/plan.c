/* SPDX-License-Identifier: BSD-2-Clause */
/* Which registers one request reads or writes; see registers.h. */
#include <stdlib.h>

#include "gateway/node/modbus/registers.h"
#include "util/container_of.h"

static unsigned end_of(const struct modbus_map *m)
{
	return m->address + m->count;
}

static int compare(const void *a, const void *b)
{
	const struct modbus_map *x = a, *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->bit != y->bit)
		return x->bit < y->bit ? -1 : 1;
	return x->signal < y->signal ? -1 : 1;
}

/* A block that grows: the end of its registers, and how many of them belong to a signal. */
struct growing {
	struct modbus_block block;
	unsigned end, used;
};

static struct growing begin(const struct modbus_map *m, unsigned first, bool writes)
{
	return (struct growing){
		.block = { .address = m->address, .count = m->count, .table = m->table,
			   .bits = writes && m->kind == MODBUS_BIT, .first = first, .maps = 1 },
		.end = end_of(m),
		.used = m->count,
	};
}

/* Adds `m`, which begins not before the last one. False: it needs another block. */
static bool add(struct growing *g, const struct modbus_map *m, unsigned max, double min_usage,
		bool writes)
{
	unsigned end = MAX(g->end, end_of(m)), count = end - g->block.address;
	unsigned begin = MAX(g->end, (unsigned)m->address);
	unsigned used = g->used + (end_of(m) > begin ? end_of(m) - begin : 0);

	if (m->table != g->block.table || count > max || used < min_usage * count)
		return false;
	if (writes && (g->block.bits || m->kind == MODBUS_BIT) &&
	    !(g->block.bits && m->kind == MODBUS_BIT && m->address == g->block.address))
		return false;
	g->end = end;
	g->used = used;
	g->block.count = count;
	g->block.maps++;
	return true;
}

static unsigned plan(struct modbus_map maps[], unsigned count, unsigned max, double min_usage,
		     bool writes, struct modbus_block out[])
{
	struct growing g;
	unsigned blocks = 0;

	if (!count)
		return 0;
	qsort(maps, count, sizeof(*maps), compare);
	g = begin(&maps[0], 0, writes);
	for (unsigned i = 1; i < count; i++) {
		if (add(&g, &maps[i], max, min_usage, writes))
			continue;
		out[blocks++] = g.block;
		g = begin(&maps[i], i, writes);
	}
	out[blocks++] = g.block;
	return blocks;
}

unsigned modbus_plan_reads(struct modbus_map maps[], unsigned count, unsigned max, double min_usage,
			   struct modbus_block out[])
{
	return plan(maps, count, max, min_usage, false, out);
}

unsigned modbus_plan_writes(struct modbus_map maps[], unsigned count, unsigned max,
			    struct modbus_block out[])
{
	return plan(maps, count, max, 1, true, out);
}

const struct modbus_map *modbus_find_overlap(const struct modbus_map maps[], unsigned count)
{
	for (unsigned i = 1; i < count; i++) {
		const struct modbus_map *a = &maps[i - 1], *b = &maps[i];

		if (a->table != b->table || b->address >= end_of(a))
			continue;
		if (a->kind == MODBUS_BIT && b->kind == MODBUS_BIT && a->bit != b->bit)
			continue;
		return b;
	}
	return NULL;
}
