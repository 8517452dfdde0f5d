/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools and queues of a path. Its threads: path_thread.c. */
#define LOG_ROOM "gateway/path"
#include "gateway/path/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/path/path_queue.h"
#include "util/log.h"

/* Samples that a node and its hooks keep beyond the call. */
static unsigned hold_max(const struct node *n)
{
	unsigned own = n->type->hold_max ?
			       n->type->hold_max((struct node *)n) : 0;

	return own + hook_list_hold_max(n->in.hooks) +
	       hook_list_hold_max(n->out.hooks);
}

static struct memory_type *wrap(struct node *n, struct memory_type *t)
{
	struct memory_type *wrapped =
		n->type->memory_type ? n->type->memory_type(n, t) : NULL;

	return wrapped ? wrapped : t;
}

/* Memory and room that the destinations of `p` need; `but` has them already. */
static void add_destinations(const struct path *p, const struct node *but,
			     struct memory_type **type, unsigned *count)
{
	*count += hook_list_hold_max(p->hooks);
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (n == but)
			continue;
		*type = wrap(n, *type);
		*count += hold_max(n);
	}
}

static int prepare_source_pool(struct path_source *s)
{
	const struct path_share *share = s->share;
	struct memory_type *type = wrap(s->node, s->path->memory);
	unsigned count = (unsigned)s->path->queuelen + 2 * s->vectorize +
			 hold_max(s->node);
	unsigned capacity = s->capacity;

	if (!s->path->mapped) {
		add_destinations(s->path, s->node, &type, &count);
		capacity = MAX(capacity, s->path->capacity);
	}
	for (unsigned k = 0; share && k < share->count; k++) {
		const struct path *other = share->sources[k]->path;

		count += (unsigned)other->queuelen + PATH_QUEUE_BURST;
		if (!other->mapped) {
			add_destinations(other, s->node, &type, &count);
			capacity = MAX(capacity, other->capacity);
		}
	}
	log_debug("path %s: %u samples of %u values for %s", s->path->name,
		  count, capacity, s->node->name);
	return pool_init(&s->pool, count, capacity, type);
}

/* For what it takes of a reader that has no room for it. */
static int prepare_copies(struct path_source *s)
{
	struct memory_type *type = s->path->memory;
	unsigned count = (unsigned)s->path->queuelen + PATH_QUEUE_BURST + 1;
	unsigned capacity = MAX(s->capacity, s->primary->capacity);

	if (!s->path->mapped) {
		add_destinations(s->path, NULL, &type, &count);
		capacity = MAX(capacity, s->path->capacity);
	}
	return pool_init(&s->copies, count, capacity, type);
}

static void set_policy(struct path_source *s)
{
	int full = s->path->full;

	if (full == PATH_FULL_AUTO)
		full = s->primary ? PATH_DROP_NEWEST : PATH_BLOCK;
	atomic_store(&s->full, full);
	if (!s->primary)
		s->age = s->node->stats;
}

int path_source_prepare_reading(struct path_source *s)
{
	int ret = -ENOMEM;

	set_policy(s);
	s->batch = calloc(s->vectorize, sizeof(*s->batch));
	s->received = calloc(s->vectorize, sizeof(*s->received));
	if (s->batch && s->received)
		ret = prepare_source_pool(s);
	return ret;
}

static int prepare_source(struct path_source *s)
{
	int ret;

	if (!s->path->direct) {
		ret = ring_init(&s->queue, (uint64_t)s->path->queuelen);
		if (ret)
			return ret;
	}
	if (s->primary) {
		set_policy(s);
		ret = s->late ? prepare_copies(s) : 0;
	} else {
		ret = path_source_prepare_reading(s);
	}
	if (ret)
		log_error("path %s: no memory for samples of %s: %s",
			  s->path->name, s->node->name, strerror(-ret));
	return ret;
}

static int prepare_register(struct path *p)
{
	unsigned capacity = MAX(p->register_length, p->capacity);
	unsigned count = (unsigned)p->queuelen + p->batch_max;
	struct memory_type *type = p->memory;
	int ret;

	if (!p->mapped && p->rate_hz == 0)
		return 0;
	p->last = calloc(1, sizeof(*p->last) +
				    capacity * sizeof(p->last->data[0]));
	if (!p->last)
		return -ENOMEM;
	p->last->capacity = capacity;
	for (unsigned i = 0; p->mapped && i < p->register_length; i++)
		p->last->data[i] = p->signals->signals[i].init;
	add_destinations(p, NULL, &type, &count);
	ret = pool_init(&p->pool, count, capacity, type);
	if (ret) {
		log_error("path %s: no memory for samples: %s", p->name,
			  strerror(-ret));
		return ret;
	}
	p->has_pool = true;
	return 0;
}

int path_prepare(struct path *p)
{
	int ret = 0;

	p->direct = p->source_count == 1 && !p->sources[0].primary &&
		    p->rate_hz == 0 && p->poll != PATH_POLL_YES;
	p->batch_max = PATH_QUEUE_BURST;
	for (unsigned i = 0; i < p->source_count; i++)
		p->batch_max = MAX(p->batch_max, p->sources[i].vectorize);
	p->batch = calloc(p->batch_max, sizeof(*p->batch));
	if (!p->batch)
		return -ENOMEM;
	for (unsigned d = 0; d < p->destination_count; d++) {
		p->destinations[d].batch =
			calloc(p->batch_max, sizeof(struct sample *));
		if (!p->destinations[d].batch)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < p->source_count && !ret; i++)
		ret = prepare_source(&p->sources[i]);
	return ret ? ret : prepare_register(p);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

uint64_t path_unmade(const struct path *p)
{
	uint64_t n = get(&p->unmade) + get(&p->hooks->starved);

	/* Hooks of a node run in the thread of the path that reads it. */
	for (unsigned i = 0; i < p->source_count; i++)
		if (!p->sources[i].primary)
			n += get(&p->sources[i].node->in.hooks->starved);
	for (unsigned d = 0; d < p->destination_count; d++)
		n += get(&p->destinations[d].node->out.hooks->starved);
	return n;
}

uint64_t path_dropped(const struct path *p)
{
	uint64_t n = path_unmade(p);

	for (unsigned i = 0; i < p->source_count; i++)
		n += get(&p->sources[i].overruns);
	return n;
}

uint64_t path_take_losses(struct path *p)
{
	uint64_t now = get(&p->unmade);
	uint64_t n = now - p->unmade_told + hook_list_take_losses(p->hooks);

	p->unmade_told = now;
	return n;
}

void path_reset_counters(struct path *p)
{
	hist_reset(&p->latency);
	atomic_store(&p->forwarded, 0);
	atomic_store(&p->negative, 0);
	atomic_store(&p->unmade, 0);
	p->unmade_told = 0;
	atomic_store(&p->discarded, 0);
	atomic_store(&p->merged, 0);
	atomic_store(&p->repeated, 0);
	hook_list_reset(p->hooks);
	for (unsigned i = 0; i < p->source_count; i++) {
		atomic_store(&p->sources[i].overruns, 0);
		atomic_store(&p->sources[i].starved, 0);
	}
}

void path_release(struct path *p)
{
	if (p->stuck)
		return;
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];
		struct sample *smp;

		while (s->queue.slots && (smp = path_queue_pop(s))) {
			atomic_fetch_add(&p->discarded, 1);
			sample_put(smp);
		}
		if (s->spare_count)
			sample_put_many(s->batch, s->spare_count);
		s->spare_count = 0;
	}
}

void path_destroy(struct path *p)
{
	if (!p)
		return;
	list_remove(&p->entry);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];

		pool_destroy(&s->pool);
		pool_destroy(&s->copies);
		ring_destroy(&s->queue);
		free(s->batch);
		free(s->received);
		free(s->share);
	}
	for (unsigned d = 0; d < p->destination_count; d++)
		free(p->destinations[d].batch);
	if (p->has_pool)
		pool_destroy(&p->pool);
	hook_list_destroy(p->hooks);
	signal_list_put(p->signals);
	signal_list_put(p->out_signals);
	if (p->last)
		sample_own_list(p->last, NULL);
	path_map_destroy(p);
	free(p->last);
	free(p->batch);
	free(p->sources);
	free(p->destinations);
	free(p->name);
	free(p);
}
