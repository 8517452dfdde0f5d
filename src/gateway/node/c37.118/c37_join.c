/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of several devices that become one sample: values of data frames with the same time, in
 * the order of in.streams, and a last value that says which of them have come. The threads of the
 * clients bring frames; a thread of its own sends steps whose waiting time is over.
 */
#define LOG_ROOM "gateway/c37.118"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/thread.h"
#include "gateway/node/c37.118/c37_align.h"
#include "gateway/node/c37.118/c37_node.h"
#include "gateway/sample/time.h"
#include "util/clock.h"

struct c37_join {
	struct c37_node *node;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;      /* of what follows */
	pthread_cond_t changed;
	bool stop;
	struct c37_align align;
	unsigned total;            /* values of a step, without the last one */
	union signal_data *values; /* of each place of a step */
};

static union signal_data *values_at(struct c37_join *j, unsigned place)
{
	return j->values + (size_t)place * j->total;
}

/* What is not there is not a number, where the type has such a value. */
static void clear(struct c37_join *j, unsigned place)
{
	const struct signal_list *l = j->node->node->in.signals;
	union signal_data *to = values_at(j, place);

	for (unsigned i = 0; i < j->total; i++) {
		to[i].bits = 0;
		if (l->signals[i].type == SIGNAL_FLOAT)
			to[i].f = NAN;
		else if (l->signals[i].type == SIGNAL_COMPLEX)
			to[i].z.re = to[i].z.im = NAN;
	}
}

/* ---- steps, with the lock ---- */

static void send_step(struct c37_join *j, const struct c37_step *step)
{
	struct c37_node *c = j->node;
	struct node *n = c->node;
	struct sample *s = sample_alloc(&c->inbox.pool);
	unsigned absent = c->stream_count - (unsigned)__builtin_popcount(step->present);
	uint64_t number = n->sequence++;

	node_figure_add(n, C37_STEPS, 1);
	node_figure_add(n, C37_STEPS_INCOMPLETE, absent > 0);
	node_figure_add(n, C37_FRAMES_ABSENT, absent);
	if (!s) {
		atomic_fetch_add_explicit(&c->inbox.lost, 1, memory_order_relaxed);
		clear(j, step->place);
		return;
	}
	memcpy(s->data, values_at(j, step->place), j->total * sizeof(*s->data));
	s->data[j->total].i = step->present;
	s->length = j->total + 1;
	s->signals = n->in.signals;
	s->sequence = number;
	s->origin = sample_time_from_ns(step->time_ns);
	s->received = clock_realtime();
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	inbox_push(&c->inbox, 0, s);
	clear(j, step->place);
}

static void send_due(struct c37_join *j, uint64_t now_ns)
{
	struct c37_step step;

	while (c37_align_next(&j->align, now_ns, &step))
		send_step(j, &step);
}

static void make_room(struct c37_join *j)
{
	struct c37_step step;

	if (c37_align_make_room(&j->align, &step))
		send_step(j, &step);
}

unsigned c37_join_put(struct c37_stream *stream, const struct c37_layout *layout,
		      const struct c37_frame *f, int64_t time_ns)
{
	struct c37_node *c = stream->node;
	struct c37_join *j = c->join;
	uint64_t now = clock_now_ns();
	unsigned place, cut = 0;
	enum c37_align_result result;

	pthread_mutex_lock(&j->lock);
	make_room(j);
	result = c37_align_put(&j->align, stream->number, time_ns, now, &place);
	if (result == C37_ALIGN_TAKEN)
		cut = c37_layout_values(layout, f, &(struct c37_room){
			.data = values_at(j, place) + stream->first, .capacity = stream->values,
			.want = c->node->in.signals->signals + stream->first,
			.want_count = stream->values });
	else
		node_figure_add(c->node, result == C37_ALIGN_LATE ? C37_TOO_LATE : C37_REPEATED, 1);
	send_due(j, now);
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
	return cut;
}

void c37_join_set(struct c37_stream *stream, bool running)
{
	struct c37_join *j = stream->node->join;

	pthread_mutex_lock(&j->lock);
	c37_align_set(&j->align, stream->number, !running, stream->in.transport == C37_TCP);
	send_due(j, clock_now_ns());
	pthread_mutex_unlock(&j->lock);
}

/* ---- life ---- */

static void *run(void *arg)
{
	struct c37_join *j = arg;

	pthread_mutex_lock(&j->lock);
	while (!j->stop) {
		uint64_t due = c37_align_due_ns(&j->align), now = clock_now_ns();
		struct timespec until;

		if (due <= now) {
			send_due(j, now);
			inbox_wake(&j->node->inbox);
			continue;
		}
		until = timespec_from_ns(clock_monotonic_ns_slow() + MIN(due - now, NSEC_PER_SEC));
		pthread_cond_clockwait(&j->changed, &j->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

int c37_join_start(struct c37_node *c)
{
	struct c37_join *j = calloc(1, sizeof(*j));
	int ret = -ENOMEM;

	if (!j)
		return -ENOMEM;
	c->join = j;
	j->node = c;
	j->total = c->node->in.signals->count - 1;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->changed, NULL);
	c37_align_init(&j->align, c->stream_count, (uint64_t)(c->in.wait_s * 1e9),
		       (int64_t)(c->in.tolerance_s * 1e9));
	j->values = calloc((size_t)C37_STEPS_MAX * j->total, sizeof(*j->values));
	if (j->values) {
		for (unsigned i = 0; i < C37_STEPS_MAX; i++)
			clear(j, i);
		ret = thread_start(&j->thread, "c37-join", THREAD_AS_CALLER, run, j);
	}
	j->has_thread = !ret;
	return ret;
}

void c37_join_stop(struct c37_node *c)
{
	struct c37_join *j = c->join;

	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->changed);
	pthread_mutex_unlock(&j->lock);
	if (j->has_thread)
		pthread_join(j->thread, NULL);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j->values);
	free(j);
	c->join = NULL;
}
