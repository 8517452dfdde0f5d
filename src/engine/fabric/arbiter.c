/* SPDX-License-Identifier: BSD-2-Clause */
/* Which data lane of a port sends next, and the tables that say so; see arbiter.h. */
#include "engine/fabric/arbiter.h"

#include <errno.h>
#include <string.h>

#define LOW 0
#define HIGH 1
#define LIMIT_BYTES 4096 /* unit of the high limit */
#define USUAL_WEIGHT 64

static void go_to(struct fabric_port *o, unsigned high, uint8_t entry)
{
	struct fabric_weights *w = &o->weights[high];

	w->current = entry;
	w->entry = o->entries[high][entry];
	w->left_bytes = w->entry.weight * FABRIC_BLOCK_BYTES;
}

static void restart(struct fabric_port *o, unsigned high)
{
	struct fabric_weights *w = &o->weights[high];

	w->count = FABRIC_ARBITRATION_ENTRIES;
	while (w->count && !o->entries[high][w->count - 1].weight)
		w->count--;
	go_to(o, high, 0);
}

void fabric_arbiter_init(struct fabric_port *o)
{
	memset(o->entries, 0, sizeof(o->entries));
	for (uint8_t i = 0; i < o->link_lanes; i++)
		o->entries[LOW][i] = (struct fabric_arbitration){ i, USUAL_WEIGHT };
	restart(o, LOW);
	restart(o, HIGH);
	o->low_turn = false;
	fabric_arbiter_limit(o);
}

void fabric_arbiter_limit(struct fabric_port *o)
{
	o->high_left_bytes = o->setting.high_limit * LIMIT_BYTES;
}

/* From the current entry on once around, to the current entry with its weight renewed. */
static int scan(struct fabric_port *o, unsigned high, uint16_t can)
{
	struct fabric_weights *w = &o->weights[high];

	for (unsigned i = 0; w->count && i <= w->count; i++) {
		if (w->left_bytes > 0 && (can >> w->entry.lane & 1))
			return w->entry.lane;
		if (w->count > 1) /* else the table, which is far away in memory, is not read again */
			go_to(o, high, w->current + 1 == w->count ? 0 : (uint8_t)(w->current + 1));
		else
			w->left_bytes = w->entry.weight * FABRIC_BLOCK_BYTES;
	}
	return -1;
}

int fabric_arbiter_pick(struct fabric_port *o, uint16_t can)
{
	int lane = scan(o, o->low_turn ? LOW : HIGH, can);

	if (lane >= 0)
		return lane;
	o->low_turn = !o->low_turn;
	return scan(o, o->low_turn ? LOW : HIGH, can);
}

void fabric_arbiter_sent(struct fabric_port *o, uint32_t bytes)
{
	o->weights[o->low_turn ? LOW : HIGH].left_bytes -= (int32_t)bytes;
	if (o->low_turn) {
		o->low_turn = false; /* one packet */
	} else if (o->setting.high_limit != FABRIC_HIGH_UNLIMITED) {
		o->high_left_bytes -= (int32_t)bytes;
		if (o->high_left_bytes <= 0) {
			fabric_arbiter_limit(o);
			o->low_turn = true;
		}
	}
}

int fabric_set_arbitration(struct fabric *f, uint32_t node, uint8_t port, bool high, unsigned first,
			   const struct fabric_arbitration *entries, unsigned count)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !entries || first > FABRIC_ARBITRATION_ENTRIES ||
	    count > FABRIC_ARBITRATION_ENTRIES - first)
		return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		if (entries[i].lane >= FABRIC_LANE_MANAGEMENT && entries[i].weight)
			return -EINVAL;
	for (unsigned i = 0; i < count; i++)
		o->entries[high][first + i] = entries[i];
	restart(o, high);
	if (o->lanes)
		fabric_port_wake(f, o);
	return 0;
}

int fabric_get_arbitration(const struct fabric *f, uint32_t node, uint8_t port, bool high,
			   unsigned first, struct fabric_arbitration *entries, unsigned count)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !entries || first > FABRIC_ARBITRATION_ENTRIES ||
	    count > FABRIC_ARBITRATION_ENTRIES - first)
		return -EINVAL;
	memcpy(entries, &o->entries[high][first], count * sizeof(*entries));
	return 0;
}
