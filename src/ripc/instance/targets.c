/* SPDX-License-Identifier: BSD-2-Clause */
/* Return buffers of the peers', which our long messages are written into: by peer. */
#include <stdlib.h>

#include "ripc/instance/instance.h"

/* What one peer may make us remember. */
#define TARGETS_MAX 1024

/* peer->lock */
static void targets_of(struct peer *p, uint32_t of, uint32_t by, bool all)
{
	for (struct list *e = p->targets.next; e != &p->targets;) {
		struct target *t = list_entry(e, struct target, entry);

		e = e->next;
		if (all || (t->of == of && t->by == by)) {
			list_remove(&t->entry);
			p->targets_count--;
			free(t);
		}
	}
}

void targets_clear(struct peer *p)
{
	targets_of(p, 0, 0, true);
}

void targets_revoke(struct peer *p, uint32_t of, uint32_t by)
{
	targets_of(p, of, by, false);
}

void targets_add(struct conn *c, const struct packet_message *m)
{
	struct peer *p = c->peer;

	pthread_mutex_lock(&p->lock);
	/* Of a connection that has ended: void. */
	for (unsigned i = 0; p->conn == c && i < m->returns_count &&
			     p->targets_count < TARGETS_MAX; i++) {
		struct target *t = malloc(sizeof(*t));

		if (!t)
			break; /* fetched instead of written */
		*t = (struct target){ .of = m->from, .by = m->to, .memory = m->returns[i] };
		list_push(&p->targets, &t->entry);
		p->targets_count++;
	}
	pthread_mutex_unlock(&p->lock);
}

bool target_take(struct peer *p, uint32_t of, uint32_t by, uint64_t bytes,
		 struct packet_memory *out)
{
	for (struct list *e = p->targets.next; e != &p->targets; e = e->next) {
		struct target *t = list_entry(e, struct target, entry);

		if (t->of != of || t->by != by || t->memory.bytes < bytes)
			continue;
		*out = t->memory;
		list_remove(&t->entry);
		p->targets_count--;
		free(t);
		return true;
	}
	return false;
}
