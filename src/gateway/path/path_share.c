/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One reader of a node for several paths: who joins, who leaves, who takes over. The
 * reader uses a table of those it feeds, which is never changed: another one takes
 * its place while the reader is kept out of it for a moment.
 */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/path/path.h"
#include "util/clock.h"
#include "util/log.h"

/* The reader comes out after one sample; it may be kept from running. */
#define OUT_NS (10 * NSEC_PER_SEC)

/* A table with `add`, or without `take`. NULL in *out: nobody is left. */
static int make_table(const struct path_share *old, struct path_source *add,
		      const struct path_source *take, struct path_share **out)
{
	unsigned count = old ? old->count : 0;
	struct path_share *t = calloc(1, sizeof(*t) +
					 (count + 1) * sizeof(t->sources[0]));

	if (!t)
		return -ENOMEM;
	for (unsigned k = 0; k < count; k++)
		if (old->sources[k] != take)
			t->sources[t->count++] = old->sources[k];
	if (add)
		t->sources[t->count++] = add;
	if (!t->count) {
		free(t);
		t = NULL;
	}
	*out = t;
	return 0;
}

/* The reader is kept out of its table until let_in(). */
static int keep_out(struct path_source *reader)
{
	uint64_t start = clock_now_ns();

	gate_shut(&reader->feeding, GATE_HOLD);
	while (!gate_is_empty(&reader->feeding)) {
		if (clock_now_ns() - start > OUT_NS) {
			log_error("path %s: the thread that reads node %s does not come out, the paths it reads for stay as they are",
				  reader->path->name, reader->node->name);
			gate_open(&reader->feeding, GATE_HOLD);
			return -EBUSY;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
	}
	return 0;
}

static void let_in(struct path_source *reader)
{
	gate_open(&reader->feeding, GATE_HOLD);
}

static void replace_table(struct path_source *reader, struct path_share *t)
{
	struct path_share *old = reader->share;

	atomic_store_explicit(&reader->share, t, memory_order_release);
	free(old);
}

int path_source_share(struct path_source *s, struct path_source *primary)
{
	struct path_share *t;

	if (make_table(primary->share, s, NULL, &t))
		return -ENOMEM;
	replace_table(primary, t);
	s->primary = primary;
	return 0;
}

void path_source_share_late(struct path_source *s, struct path_source *primary)
{
	s->primary = primary;
	s->late = true;
}

int path_source_join(struct path_source *s)
{
	struct path_source *reader = s->primary;
	struct path_share *t;
	int ret = make_table(reader->share, s, NULL, &t);

	if (ret)
		return ret;
	ret = keep_out(reader);
	if (ret) {
		free(t);
		return ret;
	}
	s->round = 0;
	atomic_store(&s->ended, atomic_load(&reader->ended));
	replace_table(reader, t);
	let_in(reader);
	/* A path that rests is read for others all the same. */
	gate_wake(&reader->path->gate);
	return 0;
}

int path_source_unshare(struct path_source *s)
{
	struct path_source *reader = s->primary;
	struct path_share *t;
	int ret = make_table(reader->share, NULL, s, &t);

	if (ret)
		return ret;
	ret = keep_out(reader);
	if (ret) {
		free(t);
		return ret;
	}
	replace_table(reader, t);
	let_in(reader);
	return 0;
}

/* Nobody reads through `s`: there is no thread that uses its table. */
int path_source_hand_over(struct path_source *s, struct path_source *next)
{
	struct path_share *rest;
	int ret = make_table(s->share, NULL, next, &rest);

	if (!ret) {
		replace_table(s, NULL);
		replace_table(next, rest);
		for (unsigned k = 0; rest && k < rest->count; k++) {
			rest->sources[k]->primary = next;
			rest->sources[k]->round = 0;
		}
		next->primary = NULL;
		next->round = 0;
		next->capacity = MAX(next->capacity, s->capacity);
		next->sequence = s->sequence;
		next->ended_by_feed = s->ended_by_feed;
		next->feed_seen = s->feed_seen;
		next->rested = s->rested;
		next->node->in.carries = false; /* it reads for a queue, which may be full */
		ret = path_source_prepare_reading(next);
	}
	if (!ret)
		ret = path_source_start_reader(next);
	if (ret) {
		log_error("path %s: cannot read node %s from now on: %s",
			  next->path->name, next->node->name, strerror(-ret));
		path_source_leave(next);
	}
	return ret;
}
