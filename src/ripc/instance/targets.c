/* SPDX-License-Identifier: BSD-2-Clause */
/* Return buffers of the peers', which our long messages are written into: by peer. */
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* What one peer may make us remember. */
#define TARGETS_MAX 1024

static void target_free(struct peer *p, struct target *t)
{
	list_remove(&t->entry);
	p->targets_count--;
	free(t);
}

void targets_clear(struct peer *p)
{
	list_for_each_safe(t, &p->targets, struct target, entry)
		target_free(p, t);
}

void targets_revoke(struct peer *p, uint32_t of, uint32_t by)
{
	list_for_each_safe(t, &p->targets, struct target, entry)
		if (t->of == of && t->by == by)
			target_free(p, t);
}

void targets_forget(struct peer *p, uint64_t number)
{
	list_for_each_safe(t, &p->targets, struct target, entry)
		if (t->number == number)
			target_free(p, t);
}

void targets_add(struct peer *p, const struct packet_message *m)
{
	uint64_t number = m->type == PACKET_LONG ? m->number : 0;

	for (unsigned i = 0; i < m->returns_count && p->targets_count < TARGETS_MAX; i++) {
		struct target *t = malloc(sizeof(*t));

		if (!t)
			break; /* fetched instead of written */
		*t = (struct target){ .of = m->from, .by = m->to, .number = number,
				      .memory = m->returns[i] };
		list_push(&p->targets, &t->entry);
		p->targets_count++;
	}
}

bool target_take(struct peer *p, uint32_t of, uint32_t by, uint64_t bytes,
		 struct packet_memory *out)
{
	for (struct list *e = p->targets.next; e != &p->targets; e = e->next) {
		struct target *t = list_entry(e, struct target, entry);

		if (t->of != of || t->by != by || t->memory.bytes < bytes)
			continue;
		*out = t->memory;
		target_free(p, t);
		return true;
	}
	return false;
}
