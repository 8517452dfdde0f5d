/* SPDX-License-Identifier: BSD-2-Clause */
/* Pools, queues and threads of a path. */
#define LOG_ROOM "gateway/path"
#include "gateway/path.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

/* Samples taken from queues before sources and timers are looked at again. */
#define QUEUE_BURST 64
#define POLL_FDS_MAX 64
#define NODE_FDS_MAX 8

static unsigned hold_max(const struct node *n)
{
	return n->type->hold_max ? n->type->hold_max((struct node *)n) : 0;
}

static struct memory_type *wrap(struct node *n, struct memory_type *t)
{
	struct memory_type *wrapped =
		n->type->memory_type ? n->type->memory_type(n, t) : NULL;

	return wrapped ? wrapped : t;
}

/* The register makes new samples; without one they pass through. */
static bool passes_through(const struct path *p)
{
	return p->source_count == 1;
}

/* Memory and room that the destinations of `p` need; `but` has them already. */
static void add_destinations(const struct path *p, const struct node *but,
			     struct memory_type **type, unsigned *count)
{
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
	struct memory_type *type = wrap(s->node, s->path->memory);
	unsigned count = (unsigned)s->path->queuelen + 2 * s->vectorize +
			 hold_max(s->node);
	unsigned capacity = s->capacity;

	if (passes_through(s->path)) {
		add_destinations(s->path, s->node, &type, &count);
		capacity = MAX(capacity, s->path->capacity);
	}
	for (unsigned k = 0; k < s->secondary_count; k++) {
		const struct path *other = s->secondaries[k]->path;

		count += (unsigned)other->queuelen + QUEUE_BURST;
		if (passes_through(other)) {
			add_destinations(other, s->node, &type, &count);
			capacity = MAX(capacity, other->capacity);
		}
	}
	log_debug("path %s: %u samples of %u values for %s", s->path->name,
		  count, capacity, s->node->name);
	return pool_init(&s->pool, count, capacity, type);
}

static int prepare_source(struct path_source *s)
{
	int ret;

	if (!s->path->direct) {
		ret = ring_init(&s->queue, (uint64_t)s->path->queuelen);
		if (ret)
			return ret;
	}
	if (s->primary)
		return 0;
	s->batch = calloc(s->vectorize, sizeof(*s->batch));
	s->received = calloc(s->vectorize, sizeof(*s->received));
	if (!s->batch || !s->received)
		return -ENOMEM;
	ret = prepare_source_pool(s);
	if (ret)
		log_error("path %s: no memory for samples of %s: %s",
			  s->path->name, s->node->name, strerror(-ret));
	return ret;
}

static int prepare_register(struct path *p)
{
	const struct path_source *end = &p->sources[p->source_count - 1];
	unsigned capacity = MAX(end->offset + end->count, p->capacity);
	unsigned count = (unsigned)p->queuelen;
	struct memory_type *type = p->memory;
	int ret;

	if (p->source_count == 1 && p->rate_hz == 0)
		return 0;
	p->last = calloc(1, sizeof(*p->last) +
				    capacity * sizeof(p->last->data[0]));
	if (!p->last)
		return -ENOMEM;
	p->last->capacity = capacity;
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

/*
 * All sources can be waited for in one poll(). Asked once they are started,
 * because a node may have its descriptor only then.
 */
static bool all_offer_descriptors(const struct path *p)
{
	int fds[NODE_FDS_MAX];

	for (unsigned i = 0; i < p->source_count; i++) {
		const struct path_source *s = &p->sources[i];

		if (s->primary || s->secondary_count ||
		    !s->node->type->poll_fds)
			return false;
	}
	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;

		if (n->type->poll_fds(n, fds, NODE_FDS_MAX) > 0)
			continue;
		/* Nobody will poll after all. */
		while (i-- > 0)
			p->sources[i].node->type->poll_fds(p->sources[i].node,
							   fds, 0);
		return false;
	}
	return true;
}

int path_prepare(struct path *p)
{
	int ret = 0;

	p->direct = p->source_count == 1 && !p->sources[0].primary &&
		    p->rate_hz == 0 && p->poll != PATH_POLL_YES;
	p->batch_max = QUEUE_BURST;
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

int path_source_share(struct path_source *s, struct path_source *primary)
{
	struct path_source **more =
		reallocarray(primary->secondaries,
			     primary->secondary_count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	primary->secondaries = more;
	more[primary->secondary_count++] = s;
	s->primary = primary;
	return 0;
}

/* All sources have ended. Wakes readers of nodes that loop; they find that it
 * was the end. */
static void announce_end(struct path *p)
{
	uint64_t one = 1;

	if (atomic_load(&p->ended))
		return;
	for (unsigned d = 0; d < p->destination_count; d++)
		atomic_fetch_add(&p->destinations[d].node->feed, 1);
	atomic_store(&p->ended, true);
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (n->type->flags & NODE_LOOPS && n->type->interrupt)
			n->type->interrupt(n);
	}
	log_debug("path %s: ended after %llu samples", p->name,
		  (unsigned long long)p->forwarded);
	if (p->ended_fd >= 0 &&
	    write(p->ended_fd, &one, sizeof(one)) < 0) {
		/* The super-node also looks by itself now and then. */
	}
}

/* Something will be written to `n` again. */
static void go_on(struct node *n)
{
	if (n->type->flags & NODE_LOOPS && n->type->rearm)
		n->type->rearm(n);
	atomic_fetch_add(&n->feed, 1);
	waker_wake(&n->revival);
}

/* A source was started anew: so are those who read what is written here. */
static void revoke_end(struct path *p)
{
	if (!atomic_load(&p->ended))
		return;
	for (unsigned d = 0; d < p->destination_count; d++)
		go_on(p->destinations[d].node);
	atomic_store(&p->ended, false);
	log_debug("path %s: goes on", p->name);
}

static bool all_sources_ended(struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (!atomic_load(&p->sources[i].ended))
			return false;
	return true;
}

/* The busy-polling way: nothing between source and destinations. */
static void run_direct(struct path *p)
{
	struct path_source *s = &p->sources[0];

	while (!path_stopping(p)) {
		int n = path_source_read(s, p->batch);

		if (likely(n > 0))
			path_emit(p, p->batch, (unsigned)n);
		else if (n == -ENODATA) {
			announce_end(p);
			if (path_source_await(s))
				revoke_end(p);
		} else
			path_source_wait(s, n);
	}
}

/* Empties the queue of one source; true when there was something. */
static bool drain(struct path *p, struct path_source *s)
{
	unsigned n = 0;
	void *smp;

	/* What another path reads for this one is dropped behind instead. */
	if (unlikely(path_rests(p) && !s->primary && !atomic_load(&p->stop)))
		return false;
	while (n < QUEUE_BURST && (smp = ring_pop(&s->queue)))
		p->batch[n++] = smp;
	if (!n)
		return false;
	if (passes_through(p) && !p->last && s->triggers) {
		path_emit(p, p->batch, n);
	} else {
		for (unsigned i = 0; i < n; i++)
			path_register_put(p, s, p->batch[i]);
	}
	return true;
}

/* Resends when it is time; returns ns until the next time, at most 100 ms. */
static uint64_t resend_when_due(struct path *p, uint64_t *next_ns)
{
	const uint64_t longest = 100000000;
	uint64_t now, period;

	if (p->rate_hz == 0)
		return longest;
	now = clock_now_ns();
	period = (uint64_t)(1e9 / p->rate_hz);
	if (*next_ns == 0)
		*next_ns = now + period;
	if (now >= *next_ns) {
		path_resend(p);
		/* Stay on the grid, leave out what was missed. */
		*next_ns += period * ((now - *next_ns) / period + 1);
	}
	return MIN(*next_ns - now, longest);
}

static void run_queued(struct path *p)
{
	uint64_t next_ns = 0;

	for (;;) {
		bool stop = atomic_load(&p->stop), worked = false;
		unsigned generation = waker_prepare(&p->waker);
		/* `ended` first: what came before it is in the queue. */
		bool ended = all_sources_ended(p);
		uint64_t wait_ns = 100000000;

		for (unsigned i = 0; i < p->source_count; i++)
			worked |= drain(p, &p->sources[i]);
		if (!p->ended)
			wait_ns = resend_when_due(p, &next_ns);
		if (worked)
			continue;
		if (stop)
			break;
		if (!ended)
			revoke_end(p);
		else if (!path_rests(p))
			announce_end(p);
		waker_wait(&p->waker, generation, wait_ns);
	}
}

struct poll_set {
	struct pollfd fds[POLL_FDS_MAX];
	struct path_source *sources[POLL_FDS_MAX];
	unsigned count;
};

static void fill_poll_set(struct path *p, struct poll_set *set)
{
	int fds[NODE_FDS_MAX];

	set->fds[0] = (struct pollfd){ .fd = p->event_fd, .events = POLLIN };
	set->count = 1;
	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;
		int got;

		if (p->sources[i].ended || path_rests(p) ||
		    !gate_enter(&n->in.gate))
			continue;
		got = n->type->poll_fds(n, fds, (int)ARRAY_SIZE(fds));
		gate_leave(&n->in.gate);
		for (int k = 0; k < got && set->count < POLL_FDS_MAX; k++) {
			set->fds[set->count] = (struct pollfd){
				.fd = fds[k], .events = POLLIN };
			set->sources[set->count++] = &p->sources[i];
		}
	}
}

/* Reads one ready source. */
static void read_ready(struct path *p, struct path_source *s)
{
	int n = path_source_read(s, s->received);

	if (n < 0 && n != -ENODATA && n != -EAGAIN && n != -EHOSTDOWN)
		path_source_wait(s, n);
	for (int i = 0; i < n; i++)
		path_register_put(p, s, s->received[i]);
}

static void run_polled(struct path *p)
{
	uint64_t next_ns = 0;
	struct poll_set set;

	while (!path_stopping(p)) {
		struct timespec t =
			timespec_from_ns(p->ended ? 100000000 :
						    resend_when_due(p, &next_ns));

		for (unsigned i = 0; i < p->source_count; i++)
			path_source_revived(&p->sources[i]);
		if (all_sources_ended(p))
			announce_end(p);
		else
			revoke_end(p);
		/* A node may open its descriptor anew (a reconnect). */
		fill_poll_set(p, &set);
		if (ppoll(set.fds, set.count, &t, NULL) <= 0)
			continue;
		for (unsigned i = 1; i < set.count; i++)
			if (set.fds[i].revents && !set.sources[i]->ended)
				read_ready(p, set.sources[i]);
	}
}

static void *run(void *arg)
{
	struct path *p = arg;

	if (p->direct)
		run_direct(p);
	else if (p->polled)
		run_polled(p);
	else
		run_queued(p);
	if (p->direct || p->polled)
		for (unsigned i = 0; i < p->source_count; i++)
			path_source_leave(&p->sources[i]);
	announce_end(p);
	return NULL;
}

static int create_thread(pthread_t *t, void *(*function)(void *), void *arg,
			 const char *name, int64_t affinity)
{
	int ret = pthread_create(t, NULL, function, arg);
	char short_name[16];

	if (ret) {
		log_error("cannot start a thread for %s: %s", name,
			  strerror(ret));
		return -ret;
	}
	strncpy(short_name, name, sizeof(short_name) - 1);
	short_name[sizeof(short_name) - 1] = '\0';
	pthread_setname_np(*t, short_name);
	if (affinity) {
		cpu_set_t set;

		CPU_ZERO(&set);
		for (unsigned i = 0; i < 63; i++)
			if (affinity >> i & 1)
				CPU_SET(i, &set);
		ret = pthread_setaffinity_np(*t, sizeof(set), &set);
		if (ret)
			log_warn("path %s: affinity 0x%llx refused: %s", name,
				 (unsigned long long)affinity, strerror(ret));
	}
	return 0;
}

int path_start(struct path *p, int ended_fd)
{
	int ret;

	p->ended_fd = ended_fd;
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->event_fd < 0)
		return -errno;
	/* A path that was replaced by this one has left its end behind. */
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (atomic_load(&n->feed) & 1)
			go_on(n);
	}
	ret = hook_list_start(p->hooks);
	if (ret)
		return ret;
	p->started = true;
	p->polled = !p->direct && p->poll != PATH_POLL_NO &&
		    all_offer_descriptors(p);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];

		if (p->direct || p->polled || s->primary)
			continue;
		ret = create_thread(&s->thread, path_source_run, s,
				    s->node->name,
				    s->node->affinity ? s->node->affinity :
							p->affinity);
		if (ret)
			return ret;
		s->has_thread = true;
	}
	ret = create_thread(&p->thread, run, p, p->name,
			    p->affinity ? p->affinity :
			    p->direct ? p->sources[0].node->affinity : 0);
	p->has_thread = !ret;
	return ret;
}

static void interrupt_nodes(struct path *p)
{
	gate_wake(&p->gate);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;

		gate_wake(&n->in.gate);
		waker_wake(&n->revival);
		if (!p->sources[i].primary && n->type->interrupt)
			n->type->interrupt(n);
	}
}

/* Joins a thread that may sit in a node's read: asks until it has left. */
static void join(struct path *p, pthread_t t, bool reading)
{
	for (;;) {
		struct timespec until;

		if (reading)
			interrupt_nodes(p);
		clock_gettime(CLOCK_REALTIME, &until);
		until = timespec_from_ns(timespec_to_ns(until) + 20000000);
		if (pthread_timedjoin_np(t, NULL, &until) != ETIMEDOUT)
			return;
		/* Threads of a write that blocks for long. */
		for (unsigned d = 0; d < p->destination_count; d++) {
			struct node *n = p->destinations[d].node;

			if (n->type->interrupt)
				n->type->interrupt(n);
		}
		waker_wake(&p->waker);
	}
}

void path_stop_reading(struct path *p)
{
	uint64_t one = 1;

	atomic_store(&p->stop_reading, true);
	if (p->event_fd >= 0 && write(p->event_fd, &one, sizeof(one)) < 0)
		log_debug("path %s: %s", p->name, strerror(errno));
	for (unsigned i = 0; i < p->source_count; i++) {
		if (p->sources[i].has_thread)
			join(p, p->sources[i].thread, true);
		p->sources[i].has_thread = false;
	}
	if (p->has_thread && (p->direct || p->polled)) {
		join(p, p->thread, true);
		p->has_thread = false;
	}
}

void path_stop(struct path *p)
{
	atomic_store(&p->stop, true);
	waker_wake(&p->waker);
	if (p->has_thread)
		join(p, p->thread, false);
	p->has_thread = false;
	if (p->started)
		hook_list_stop(p->hooks);
	p->started = false;
	if (p->event_fd >= 0)
		close(p->event_fd);
	p->event_fd = -1;
}

void path_release(struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];
		struct sample *smp;

		while (s->queue.slots && (smp = ring_pop(&s->queue)))
			sample_put(smp);
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
		ring_destroy(&s->queue);
		free(s->batch);
		free(s->received);
		free(s->secondaries);
	}
	for (unsigned d = 0; d < p->destination_count; d++)
		free(p->destinations[d].batch);
	if (p->has_pool)
		pool_destroy(&p->pool);
	hook_list_destroy(p->hooks);
	signal_list_put(p->signals);
	signal_list_put(p->out_signals);
	if (p->last && p->source_count == 1)
		signal_list_put(p->last->signals);
	free(p->last);
	free(p->batch);
	free(p->sources);
	free(p->destinations);
	free(p->name);
	free(p);
}
