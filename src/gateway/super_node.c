/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The super-node's life: start and stop of types, nodes, paths, and the
 * statistics thread.
 *
 * Destinations start before sources and stop after them, so that whatever is
 * read finds an open way out.
 */
#define LOG_ROOM "gateway"
#include "gateway/super_node.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/hook.h"
#include "gateway/node_life.h"
#include "gateway/path.h"
#include "gateway/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

static bool is_destination(struct super_node *sn, const struct node *n)
{
	list_for_each(p, &sn->paths, struct path, entry)
		for (unsigned d = 0; p->enabled && d < p->destination_count;
		     d++)
			if (p->destinations[d].node == n)
				return true;
	return false;
}

static bool is_source(struct super_node *sn, const struct node *n)
{
	list_for_each(p, &sn->paths, struct path, entry)
		for (unsigned i = 0; p->enabled && i < p->source_count; i++)
			if (p->sources[i].node == n)
				return true;
	return false;
}

/* A path whose sources other paths write must be there before those. */
static bool is_fed(struct super_node *sn, const struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (is_destination(sn, p->sources[i].node))
			return true;
	return false;
}

/* Calls `each` on used nodes, destinations first or last. */
static int for_nodes(struct super_node *sn, bool destinations_first,
		     int (*each)(struct node *n))
{
	for (int pass = 0; pass < 2; pass++) {
		list_for_each(n, &sn->nodes, struct node, entry) {
			bool destination = is_destination(sn, n);
			int ret;

			if (!destination && !is_source(sn, n))
				continue;
			if (destination != (destinations_first == (pass == 0)))
				continue;
			ret = each(n);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int for_paths(struct super_node *sn, bool fed_first,
		     int (*each)(struct super_node *sn, struct path *p))
{
	for (int pass = 0; pass < 2; pass++) {
		list_for_each(p, &sn->paths, struct path, entry) {
			int ret;

			if (!p->enabled ||
			    is_fed(sn, p) != (fed_first == (pass == 0)))
				continue;
			ret = each(sn, p);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int start_types(struct super_node *sn)
{
	list_for_each(n, &sn->nodes, struct node, entry) {
		bool started = !n->enabled;
		int ret;

		for (unsigned t = 0; t < sn->type_count; t++)
			started |= sn->types[t] == n->type;
		if (started)
			continue;
		ret = n->type->type_start ? n->type->type_start(sn) : 0;
		if (ret)
			return ret;
		sn->types[sn->type_count++] = n->type;
	}
	return 0;
}

static void stop_types(struct super_node *sn)
{
	while (sn->type_count) {
		const struct node_type *type = sn->types[--sn->type_count];

		if (type->type_stop)
			type->type_stop();
	}
}

/* Settings of the process; a refusal is said and does no harm. */
static void apply_process_settings(const struct super_node *sn)
{
	if (sn->affinity) {
		cpu_set_t set;

		CPU_ZERO(&set);
		for (unsigned i = 0; i < 63; i++)
			if (sn->affinity >> i & 1)
				CPU_SET(i, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			log_warn("affinity 0x%llx refused: %s",
				 (unsigned long long)sn->affinity,
				 strerror(errno));
	}
	if (sn->priority) {
		struct sched_param param = {
			.sched_priority = (int)sn->priority
		};

		if (sched_setscheduler(0, SCHED_FIFO, &param))
			log_warn("priority %d (SCHED_FIFO) refused: %s; give CAP_SYS_NICE or raise the limit with `ulimit -r`",
				 (int)sn->priority, strerror(errno));
	}
}

static int start_node_hooks(struct node *n)
{
	int ret = hook_list_start(n->in.hooks);

	if (ret)
		return ret;
	ret = hook_list_start(n->out.hooks);
	if (ret)
		hook_list_stop(n->in.hooks);
	return ret;
}

static int stop_node_hooks(struct node *n)
{
	hook_list_stop(n->in.hooks);
	hook_list_stop(n->out.hooks);
	return 0;
}

/* Hooks stand and fall with the node, so that one state tells of both. */
int super_node_start_node(struct node *n)
{
	int ret = start_node_hooks(n);

	if (ret)
		return ret;
	ret = node_start(n);
	if (ret)
		stop_node_hooks(n);
	return ret;
}

int super_node_stop_node(struct node *n)
{
	if (!node_is_running(n))
		return 0;
	/* What one node fails to do must not keep the others running. */
	node_stop(n);
	node_set_state(n, NODE_STOPPED);
	stop_node_hooks(n);
	return 0;
}

static void log_node(struct node *n)
{
	char text[256] = "";

	if (n->type->print)
		n->type->print(n, text, sizeof(text));
	log_debug("node %s: type %s%s%s", n->name, n->type->name,
		  *text ? ", " : "", text);
}

static int prepare_path(struct super_node *sn, struct path *p)
{
	return path_prepare(p);
}

static int start_path(struct super_node *sn, struct path *p)
{
	return path_start(p, sn->event_fd);
}

static int stop_reading_path(struct super_node *sn, struct path *p)
{
	path_stop_reading(p);
	return 0;
}

static int stop_path(struct super_node *sn, struct path *p)
{
	path_stop(p);
	return 0;
}

static int release_path(struct super_node *sn, struct path *p)
{
	path_release(p);
	return 0;
}

static void *run_stats(void *arg)
{
	struct super_node *sn = arg;
	struct pollfd pfd = { .fd = sn->stats_fd, .events = POLLIN };
	struct timespec period =
		timespec_from_ns((uint64_t)(1e9 / sn->stats_hz));

	while (ppoll(&pfd, 1, &period, NULL) <= 0) {
		pthread_mutex_lock(&sn->control);
		list_for_each(n, &sn->nodes, struct node, entry) {
			if (!node_is_running(n))
				continue;
			hook_list_periodic(n->in.hooks);
			hook_list_periodic(n->out.hooks);
		}
		list_for_each(p, &sn->paths, struct path, entry)
			if (p->started)
				hook_list_periodic(p->hooks);
		pthread_mutex_unlock(&sn->control);
	}
	return NULL;
}

static int start_stats(struct super_node *sn)
{
	int ret;

	if (sn->stats_hz == 0)
		return 0;
	sn->stats_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sn->stats_fd < 0)
		return -errno;
	ret = pthread_create(&sn->stats_thread, NULL, run_stats, sn);
	sn->has_stats_thread = !ret;
	return -ret;
}

static void stop_stats(struct super_node *sn)
{
	uint64_t one = 1;

	if (sn->has_stats_thread &&
	    write(sn->stats_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(sn->stats_thread, NULL);
	sn->has_stats_thread = false;
	if (sn->stats_fd >= 0)
		close(sn->stats_fd);
	sn->stats_fd = -1;
}

static int start_all(struct super_node *sn)
{
	int ret;

	list_for_each(n, &sn->nodes, struct node, entry) {
		n->is_source = is_source(sn, n);
		n->is_destination = is_destination(sn, n);
		if (n->enabled && !n->is_destination && !n->is_source)
			log_warn("node %s is in no path and is not started",
				 n->name);
		log_node(n);
	}
	apply_process_settings(sn);
	sn->state = SUPER_NODE_STARTED;
	sn->started_ns = sn->progress_ns = clock_now_ns();
	ret = start_types(sn);
	if (!ret)
		ret = for_nodes(sn, true, node_prepare);
	if (!ret)
		ret = for_paths(sn, true, prepare_path);
	if (!ret)
		ret = for_nodes(sn, true, super_node_start_node);
	sn->started_ns = sn->progress_ns = clock_now_ns();
	if (!ret)
		ret = for_paths(sn, true, start_path);
	if (!ret)
		ret = start_stats(sn);
	return ret;
}

int super_node_start(struct super_node *sn)
{
	int ret;

	pthread_mutex_lock(&sn->control);
	ret = start_all(sn);
	pthread_mutex_unlock(&sn->control);
	if (ret)
		super_node_stop(sn);
	return ret;
}

void super_node_request_stop(struct super_node *sn)
{
	int saved_errno = errno;
	uint64_t one = 1;

	atomic_store(&sn->stop_requested, true);
	if (write(sn->event_fd, &one, sizeof(one)) < 0) {
		/* The wait looks at the flag now and then. */
	}
	errno = saved_errno;
}

static bool all_ended(struct super_node *sn)
{
	list_for_each(p, &sn->paths, struct path, entry)
		if (p->enabled && !atomic_load(&p->ended))
			return false;
	return true;
}

bool super_node_wait(struct super_node *sn, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000;
	struct pollfd pfd = { .fd = sn->event_fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_now_ns(), count;
		int wait_ms = 500;

		if (atomic_load(&sn->stop_requested) ||
		    (sn->idle_stop && all_ended(sn)))
			return true;
		if (timeout_ms >= 0) {
			if (now >= end)
				return false;
			wait_ms = (int)MIN((end - now) / 1000000 + 1, 500);
		}
		if (poll(&pfd, 1, wait_ms) > 0 &&
		    read(sn->event_fd, &count, sizeof(count)) < 0) {
			/* Somebody else has emptied it. */
		}
	}
}

void super_node_stop(struct super_node *sn)
{
	bool running;

	/* A command that is under way comes to its end first; later ones find
	 * that it is too late. */
	pthread_mutex_lock(&sn->control);
	running = sn->state == SUPER_NODE_STARTED;
	sn->state = SUPER_NODE_STOPPED;
	pthread_mutex_unlock(&sn->control);
	if (!running)
		return;
	stop_stats(sn);
	for_paths(sn, false, stop_reading_path);
	for_paths(sn, false, stop_path);
	sn->stopped_ns = clock_now_ns();
	for_nodes(sn, false, super_node_stop_node);
	for_paths(sn, false, release_path);
	stop_types(sn);
}

void super_node_destroy(struct super_node *sn)
{
	if (!sn)
		return;
	super_node_stop(sn);
	/* Paths first: their memory is registered with the nodes. */
	list_for_each_safe(p, &sn->paths, struct path, entry)
		path_destroy(p);
	list_for_each_safe(n, &sn->nodes, struct node, entry)
		node_destroy(n);
	if (sn->event_fd >= 0)
		close(sn->event_fd);
	pthread_mutex_destroy(&sn->control);
	free(sn->types);
	free(sn);
}
