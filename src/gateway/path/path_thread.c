/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of a path: what they run, how they start and end. */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/base/own_thread.h"
#include "gateway/path/path.h"
#include "gateway/path/path_queue.h"
#include "util/clock.h"
#include "util/log.h"

#define POLL_FDS_MAX 64
#define NODE_FDS_MAX 8

/* All sources fit into one poll(). Asked once they are started, because a node
 * may have its descriptor only then. */
static bool all_offer_descriptors(const struct path *p)
{
	int fds[NODE_FDS_MAX], total = 1; /* the first is the path's own */

	for (unsigned i = 0; i < p->source_count; i++) {
		const struct path_source *s = &p->sources[i];
		int got;

		if (s->primary || path_source_feeds_others(&p->sources[i]) ||
		    !s->node->type->poll_fds)
			return false;
		got = s->node->type->poll_fds(s->node, fds, NODE_FDS_MAX);
		total += got;
		if (got <= 0 || total > POLL_FDS_MAX)
			return false;
	}
	return true;
}

/* Nobody will poll; an earlier path of the same nodes may have. */
static void give_up_descriptors(const struct path *p)
{
	int fds[NODE_FDS_MAX];

	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;

		if (!p->sources[i].primary && n->type->poll_fds)
			n->type->poll_fds(n, fds, 0);
	}
}

/* Looks which sources have ended; what they gave before lies in their queues. */
static void look_at_sources(struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		p->sources[i].over = atomic_load(&p->sources[i].ended);
}

/* One whose end is that of all: that of a loop only says that nobody writes to it. */
static bool is_first_end(const struct path *p, const struct path_source *s)
{
	const struct path_source *reader = s->primary ? s->primary : s;

	return s->over && p->end == PATH_END_FIRST &&
	       !atomic_load(&reader->ended_by_feed);
}

static bool sources_ended(const struct path *p)
{
	bool all = true;

	for (unsigned i = 0; i < p->source_count; i++) {
		if (is_first_end(p, &p->sources[i]))
			return true;
		all &= p->sources[i].over;
	}
	return all;
}

/* The samples of `s` are not taken any more, because another source has ended. */
static bool is_left_out(const struct path *p, const struct path_source *s)
{
	return p->ended && !s->over;
}

static void say_who_ended(const struct path *p)
{
	const struct path_source *who = NULL;
	bool all = true;

	for (unsigned i = 0; i < p->source_count; i++) {
		const struct path_source *s = &p->sources[i];

		all &= s->over;
		if (!who && is_first_end(p, s))
			who = s;
	}
	if (who && !all)
		log_info("path %s: node %s has ended, and the path with it; what the others still give is left out (end = \"all\" goes on with them)",
			 p->name, who->node->name);
}

/* The sources have ended: what hooks hold goes out, then readers of nodes that follow
 * their writer are woken; they find that it was the end. */
static void announce_end(struct path *p)
{
	uint64_t one = 1;

	if (atomic_load(&p->ended))
		return;
	say_who_ended(p);
	path_flush(p);
	for (unsigned d = 0; d < p->destination_count; d++)
		atomic_fetch_add(&p->destinations[d].node->feed, 1);
	atomic_store(&p->ended, true);
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (node_follows_writer(n) && n->type->interrupt)
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
	atomic_fetch_add(&n->feed, 1);
	if (node_follows_writer(n) && n->type->rearm)
		n->type->rearm(n);
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

/* Its one source has ended. Sleeps until it has more, or the path is to end. */
static void wait_behind_end(struct path *p, struct path_source *s)
{
	announce_end(p);
	if (path_source_await(s))
		revoke_end(p);
}

/* The busy-polling way: nothing between source and destinations. */
static void run_direct(struct path *p)
{
	struct path_source *s = &p->sources[0];
	unsigned held;

	while (!path_stopping(p)) {
		int n = path_source_read(s, p->batch);

		if (likely(n > 0))
			path_emit(p, p->batch, (unsigned)n);
		else if (n == -ENODATA)
			wait_behind_end(p, s);
		else
			path_source_wait(s, n);
	}
	while ((held = path_source_flush(s, p->batch)))
		path_emit(p, p->batch, held);
}

/* The same into the register. */
static void run_direct_mapped(struct path *p)
{
	struct path_source *s = &p->sources[0];
	unsigned held;

	while (!path_stopping(p)) {
		int n = path_source_read(s, p->batch);

		if (n > 0)
			path_register_put(p, s, p->batch, (unsigned)n);
		else if (n == -ENODATA)
			wait_behind_end(p, s);
		else
			path_source_wait(s, n);
	}
	while ((held = path_source_flush(s, p->batch)))
		path_register_put(p, s, p->batch, held);
}

/* Empties the queue of one source; true when there was something. */
static bool drain(struct path *p, struct path_source *s, bool rests)
{
	unsigned n = 0;

	/* What another path reads for this one is dropped behind instead. */
	if (unlikely(rests && !s->primary && !atomic_load(&p->stop)))
		return false;
	while (n < PATH_QUEUE_BURST && (p->batch[n] = path_queue_pop(s)))
		n++;
	if (!n)
		return false;
	if (unlikely(is_left_out(p, s)))
		path_discard(p, p->batch, n);
	else if (!p->mapped && !p->last && s->triggers)
		path_emit(p, p->batch, n);
	else
		path_register_put(p, s, p->batch, n);
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
	period = (uint64_t)MIN(1e9 / p->rate_hz, 1e18);
	if (*next_ns == 0)
		*next_ns = now + period;
	if (now >= *next_ns) {
		path_resend(p);
		/* Stay on the grid, leave out what was missed. */
		*next_ns += period * ((now - *next_ns) / period + 1);
	}
	return MIN(*next_ns - now, longest);
}

/* Empties the queues; *ended: the sources that end the path have nothing left. */
static bool drain_all(struct path *p, bool *ended)
{
	bool rests = path_rests(p), worked = false, first = false, all = true;

	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];
		bool more = drain(p, s, rests);

		worked |= more;
		first |= !more && is_first_end(p, s);
		all &= !more && s->over;
	}
	*ended = !rests && (first || all);
	return worked;
}

static void run_queued(struct path *p)
{
	uint64_t next_ns = 0;

	for (;;) {
		bool stop = atomic_load(&p->stop), ended, worked;
		unsigned generation = waker_prepare(&p->waker);
		uint64_t wait_ns = 100000000;

		look_at_sources(p);
		if (!sources_ended(p))
			revoke_end(p);
		worked = drain_all(p, &ended);
		if (!p->ended)
			wait_ns = resend_when_due(p, &next_ns);
		if (ended)
			announce_end(p);
		if (worked)
			continue;
		if (stop)
			break;
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

		/* Behind the end only for those who read through it. */
		if (p->sources[i].ended ||
		    (p->ended && !path_source_feeds_others(&p->sources[i])))
			continue;
		if ((path_rests(p) && !path_source_feeds_others(&p->sources[i])) ||
		    !gate_enter(&n->in.gate)) {
			path_source_rest(&p->sources[i]);
			continue;
		}
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
	else if (n > 0 && is_left_out(p, s))
		path_discard(p, s->received, (unsigned)n);
	else if (n > 0)
		path_register_put(p, s, s->received, (unsigned)n);
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
		look_at_sources(p);
		if (sources_ended(p))
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
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];
		unsigned held;

		while ((held = path_source_flush(s, s->received))) {
			if (is_left_out(p, s))
				path_discard(p, s->received, held);
			else
				path_register_put(p, s, s->received, held);
		}
	}
}

static void *run(void *arg)
{
	struct path *p = arg;

	waiting_sharpen_sleep();
	if (p->direct && p->mapped)
		run_direct_mapped(p);
	else if (p->direct)
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

static void set_affinity(pthread_t t, const char *name, int64_t affinity)
{
	cpu_set_t set;
	int ret;

	CPU_ZERO(&set);
	for (unsigned i = 0; i < 63; i++)
		if (affinity >> i & 1)
			CPU_SET(i, &set);
	ret = pthread_setaffinity_np(t, sizeof(set), &set);
	if (ret == EINVAL)
		log_warn("thread of %s: affinity 0x%llx refused, none of these CPUs is there for this process",
			 name, (unsigned long long)affinity);
	else if (ret)
		log_warn("thread of %s: affinity 0x%llx refused: %s", name,
			 (unsigned long long)affinity, strerror(ret));
}

/* One warning for all threads: what is missing is the process's. */
static void set_priority(pthread_t t, const char *name, int64_t priority)
{
	struct sched_param param = { .sched_priority = (int)priority };
	int ret = pthread_setschedparam(t, SCHED_FIFO, &param);
	static atomic_bool warned;

	if (!ret || atomic_exchange(&warned, true))
		return;
	if (ret == EPERM)
		log_warn("thread of %s: priority %d (SCHED_FIFO) refused: the process lacks CAP_SYS_NICE and its limit (`ulimit -r`) is lower; threads run without",
			 name, (int)priority);
	else
		log_warn("thread of %s: priority %d (SCHED_FIFO) refused: %s; threads run without",
			 name, (int)priority, strerror(ret));
}

static int create_thread(pthread_t *t, void *(*function)(void *), void *arg,
			 const char *name, int64_t affinity, int64_t priority)
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
	if (affinity)
		set_affinity(*t, name, affinity);
	if (priority)
		set_priority(*t, name, priority);
	return 0;
}

/* The settings of the gateway do not hold for these. */
static unsigned own_settings(const struct path *p, const struct node *n)
{
	return (p->affinity || (n && n->affinity) ? OWN_AFFINITY : 0) |
	       (p->own_priority || (n && n->priority) ? OWN_PRIORITY : 0);
}

static void *run_reader(void *source)
{
	const struct path_source *s = source;

	own_thread_keep(own_settings(s->path, s->node));
	return path_source_run(source);
}

/* The thread that reads `s`: what the node says goes before the path. */
int path_source_start_reader(struct path_source *s)
{
	struct path *p = s->path;
	const struct node *n = s->node;
	int ret = create_thread(&s->thread, run_reader, s, n->name,
				n->affinity ?: p->affinity,
				n->priority ?: p->priority);

	s->has_thread = !ret;
	return ret;
}

static void *run_path(void *path)
{
	const struct path *p = path;

	own_thread_keep(own_settings(p, p->direct ? p->sources[0].node : NULL));
	return run(path);
}

/* The path's own thread; on the direct way it is the node's reader too. */
static int start_thread(struct path *p)
{
	const struct node *n = p->sources[0].node;
	int64_t priority = p->priority;
	int ret;

	if (p->direct && n->priority && !p->own_priority)
		priority = n->priority;
	ret = create_thread(&p->thread, run_path, p, p->name,
			    p->affinity ?: p->direct ? n->affinity : 0, priority);

	p->has_thread = !ret;
	return ret;
}

/* Does the path wait for the node, or the node's own read()? */
static void await_by_path(const struct path *p, struct path_source *s)
{
	struct node *n = s->node;

	s->waiting = (struct waiting){ 0 };
	if (!s->primary)
		n->in.awaited = n->type->sleep && !n->in.waits_itself &&
				!p->polled;
	s->may_run_turns = path_carry_may_run_turns(p, s);
	if (!s->primary)
		n->in.carries = s->may_run_turns;
}

/* Last, so that nothing is left behind in other paths when something fails. */
static int join_readers(struct path *p)
{
	int ret = 0;
	unsigned i;

	for (i = 0; i < p->source_count && !ret; i++)
		if (p->sources[i].late)
			ret = path_source_join(&p->sources[i]);
	if (!ret)
		return 0;
	path_stop_reading(p);
	while (i-- > 0)
		if (p->sources[i].late)
			path_source_unshare(&p->sources[i]);
	path_stop(p);
	return ret;
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

		n->path_gate = &p->gate;
		if (atomic_load(&n->feed) & 1)
			go_on(n);
	}
	ret = hook_list_start(p->hooks);
	if (ret)
		return ret;
	p->started = true;
	p->polled = !p->direct && p->poll != PATH_POLL_NO &&
		    all_offer_descriptors(p);
	if (!p->polled)
		give_up_descriptors(p);
	if (p->poll == PATH_POLL_YES && !p->polled)
		log_warn("path %s: poll is asked for, but not every source has a descriptor to wait for and no other reader; each gets a thread instead",
			 p->name);
	for (unsigned i = 0; i < p->source_count; i++)
		await_by_path(p, &p->sources[i]);
	path_carry_offer(p);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];

		if (p->direct || p->polled || s->primary)
			continue;
		ret = path_source_start_reader(s);
		if (ret)
			return ret;
	}
	ret = start_thread(p);
	return ret ? ret : join_readers(p);
}

/* Hooks that wait for a reader of what they print. */
static void interrupt_hooks(struct path *p)
{
	hook_list_interrupt(p->hooks);
	for (unsigned i = 0; i < p->source_count; i++)
		if (!p->sources[i].primary)
			hook_list_interrupt(p->sources[i].node->in.hooks);
	for (unsigned d = 0; d < p->destination_count; d++)
		hook_list_interrupt(p->destinations[d].node->out.hooks);
}

static void interrupt_nodes(struct path *p)
{
	gate_wake(&p->gate);
	waker_wake(&p->waker);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;

		gate_wake(&n->in.gate);
		waker_wake(&n->revival);
		if (!p->sources[i].primary && n->type->interrupt)
			n->type->interrupt(n);
	}
}

/* Appends to `text`, as far as there is room. */
__attribute__((format(printf, 3, 4)))
static void append(char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + len, size - len, format, args);
	va_end(args);
}

static void append_hooks(char *text, size_t size, const struct hook_list *l)
{
	const char *before = " or one of its hooks ";

	list_for_each(h, &l->hooks, struct hook, entry) {
		append(text, size, "%s%s", before, h->type->name);
		before = ", ";
	}
}

/* Where the threads of a path are, as far as its gates tell. */
static void tell_stuck(struct path *p)
{
	char text[512] = "";
	bool deeper = false;

	for (unsigned i = 0; i < p->source_count; i++) {
		struct node *n = p->sources[i].node;

		if (p->sources[i].primary || gate_is_empty(&n->in.gate))
			continue;
		append(text, sizeof(text), ", it is in the read of node %s",
		       n->name);
		append_hooks(text, sizeof(text), n->in.hooks);
	}
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (gate_is_empty(&n->out.gate))
			continue;
		deeper = true;
		append(text, sizeof(text), ", it is in the write of node %s",
		       n->name);
		append_hooks(text, sizeof(text), n->out.hooks);
	}
	if (!deeper && !gate_is_empty(&p->gate)) {
		append(text, sizeof(text), ", it is in the path itself");
		append_hooks(text, sizeof(text), p->hooks);
	}
	log_error("path %s: a thread of it does not end%s", p->name, text);
}

/* Joins a thread that may sit in a node's read: asks until it has left, or the end
 * of the process leaves no more time. */
static void join(struct path *p, pthread_t t, bool reading)
{
	while (!p->stuck) {
		if (ending_is_past(ENDING_JOIN_MS)) {
			p->stuck = true;
			tell_stuck(p);
			return;
		}

		interrupt_hooks(p);
		if (reading)
			interrupt_nodes(p);
		if (thread_join_soon(t))
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
		p->has_thread = p->stuck;
	}
	path_carry_withdraw(p);
}

void path_stop(struct path *p)
{
	atomic_store(&p->stop, true);
	waker_wake(&p->waker);
	if (p->has_thread)
		join(p, p->thread, false);
	/* Its thread is still among what would be taken away. */
	if (p->stuck)
		return;
	p->has_thread = false;
	if (p->started) {
		hook_list_interrupt(p->hooks);
		hook_list_stop(p->hooks);
	}
	p->started = false;
	if (p->event_fd >= 0)
		close(p->event_fd);
	p->event_fd = -1;
}

