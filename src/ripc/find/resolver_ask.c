/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions. The thread that wants to know sends, and repeats after 20, 40, 80 ms and so on,
 * at most half a second; other threads that want the same wait for the same answer, and one
 * of them goes on asking when the first one's time is over. The ways to ask are begun one
 * after the other, so that a rendezvous is not bothered with what the network answers; those
 * begun go on.
 */
#include "ripc/find/resolver_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_NS (20 * RESOLVER_MS)
#define INTERVAL_MAX_NS (500 * RESOLVER_MS)
#define STEP_MAX_NS (60 * RESOLVER_MS)

static struct question *question_like(struct resolver *r, uint32_t id, const char *name)
{
	list_for_each(q, &r->questions, struct question, link)
		if (q->id == id && !strcmp(q->name, name))
			return q;
	return NULL;
}

static struct question *question_new(struct resolver *r, uint32_t from, uint32_t id,
				     const char *name, unsigned timeout_ms)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->nonce = resolver_draw(r);
	q->from = from;
	q->id = id;
	memcpy(q->name, name, strlen(name) + 1);
	q->began_ns = q->next_ns = resolver_now_ns();
	q->interval_ns = FIRST_NS;
	/* Each way gets its turn within the first half of the time. */
	q->step_ns = timeout_ms * RESOLVER_MS / (2 * r->method_count);
	if (q->step_ns > STEP_MAX_NS)
		q->step_ns = STEP_MAX_NS;
	pthread_cond_init(&q->wake, NULL);
	list_push(&r->questions, &q->link);
	count(&r->counters.asked);
	return q;
}

static void question_leave(struct question *q)
{
	if (--q->waiters)
		return;
	list_remove(&q->link);
	pthread_cond_destroy(&q->wake);
	free(q);
}

/* How many of the ways have begun, and when the next one will. */
static unsigned methods_begun(const struct resolver *r, const struct question *q,
			      uint64_t now_ns, uint64_t *next_ns)
{
	const uint64_t begun = q->step_ns ? (now_ns - q->began_ns) / q->step_ns :
					    r->method_count;

	if (begun + 1 >= r->method_count)
		return r->method_count;
	*next_ns = q->began_ns + (begun + 1) * q->step_ns;
	return (unsigned)begun + 1;
}

/* Sends it, and says when next. The lock is held, but not meanwhile. */
static void question_send(struct resolver *r, struct question *q, uint64_t now_ns)
{
	struct packet_resolve p = { .type = PACKET_ASK, .nonce = q->nonce, .from = q->from,
				    .id = q->id, .where = r->config.self };
	uint64_t next_way_ns = UINT64_MAX;
	const unsigned methods = methods_begun(r, q, now_ns, &next_way_ns);

	memcpy(p.name, q->name, sizeof(p.name));
	q->next_ns = now_ns + q->interval_ns;
	q->interval_ns = q->interval_ns < INTERVAL_MAX_NS / 2 ? 2 * q->interval_ns :
							     INTERVAL_MAX_NS;
	if (next_way_ns < q->next_ns)
		q->next_ns = next_way_ns;
	pthread_mutex_unlock(&r->lock);
	methods_send(r, methods, &p);
	pthread_mutex_lock(&r->lock);
}

static int question_wait(struct resolver *r, struct question *q, unsigned timeout_ms)
{
	const uint64_t end_ns = resolver_now_ns() + timeout_ms * RESOLVER_MS;

	while (!q->answered && !r->closing) {
		uint64_t now_ns = resolver_now_ns();

		if (now_ns >= q->next_ns)
			question_send(r, q, now_ns);
		else if (now_ns >= end_ns)
			return -EHOSTUNREACH;
		else
			resolver_wait(r, &q->wake, q->next_ns < end_ns ? q->next_ns : end_ns);
	}
	return q->answered ? 0 : -ESHUTDOWN;
}

/* One of `id` and `name`. */
static int find(struct resolver *r, uint32_t from, uint32_t id, const char *name,
		unsigned timeout_ms, uint32_t *found, struct packet_where *where)
{
	const struct known_service *known;
	struct question *q;
	int ret = -ESHUTDOWN;

	pthread_mutex_lock(&r->lock);
	known = id ? known_find(&r->known, id) : known_find_name(&r->known, name);
	if (known) {
		*found = known->id;
		*where = known->where;
		pthread_mutex_unlock(&r->lock);
		return 0;
	}
	if (!resolver_begin(r))
		goto out;
	q = question_like(r, id, name);
	if (!q)
		q = question_new(r, from, id, name, timeout_ms);
	ret = -ENOBUFS;
	if (q) {
		q->waiters++;
		ret = question_wait(r, q, timeout_ms);
		if (!ret) {
			*found = q->found;
			*where = q->where;
		}
		question_leave(q);
	}
	if (ret)
		count(&r->counters.failed);
	resolver_end(r);
out:
	pthread_mutex_unlock(&r->lock);
	return ret;
}

int resolver_find(struct resolver *r, uint32_t from, uint32_t id, unsigned timeout_ms,
		  struct packet_where *out)
{
	uint32_t found;

	return id ? find(r, from, id, "", timeout_ms, &found, out) : -EINVAL;
}

int resolver_find_name(struct resolver *r, const char *name, unsigned timeout_ms,
		       uint32_t *id)
{
	struct packet_where where;

	if (!packet_name_valid(name, strnlen(name, RIPC_NAME_MAX + 1)))
		return -EINVAL;
	return find(r, 0, 0, name, timeout_ms, id, &where);
}

static bool is_finished(const struct resolver *r, const struct packet_resolve *p)
{
	for (unsigned i = 0; i < FINISHED_MAX; i++)
		if (r->finished[i].nonce == p->nonce)
			return r->finished[i].instance == p->where.instance;
	return false;
}

/* Who asks from here on asks anew. */
static void question_end(struct resolver *r, struct question *q, uint32_t id,
			 const struct packet_where *where)
{
	q->answered = true;
	q->found = id;
	q->where = *where;
	r->finished[r->finished_next].nonce = q->nonce;
	r->finished[r->finished_next].instance = where->instance;
	r->finished_next = (r->finished_next + 1) % FINISHED_MAX;
	list_remove(&q->link);
	pthread_cond_broadcast(&q->wake);
}

bool question_answered(struct resolver *r, const struct packet_resolve *p,
		       const union address *from, bool *first)
{
	*first = false;
	list_for_each(q, &r->questions, struct question, link) {
		if (q->nonce != p->nonce)
			continue;
		if ((q->id ? q->id != p->id : strcmp(q->name, p->name)) ||
		    !methods_sent_to(r, q->id, q->name, from))
			return false;
		question_end(r, q, p->id, &p->where);
		*first = true;
		return true;
	}
	return is_finished(r, p);
}

bool question_learned(struct resolver *r, uint32_t id, const char *name,
		      const struct packet_where *where)
{
	bool wanted = false;

	list_for_each_safe(q, &r->questions, struct question, link)
		if (q->id ? q->id == id : !strcmp(q->name, name)) {
			question_end(r, q, id, where);
			wanted = true;
		}
	return wanted;
}
