/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The super-node's life: start and stop of types, nodes, paths, and the
 * statistics thread.
 *
 * Destinations start before sources and stop after them, so that whatever is
 * read finds an open way out.
 */
#define LOG_ROOM "gateway"
#include "gateway/super_node/super_node.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node_life.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/timed.h"

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
bool super_node_is_fed(struct super_node *sn, const struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (is_destination(sn, p->sources[i].node))
			return true;
	return false;
}

/* Calls `each` on used nodes, destinations first or last. */
static int for_nodes(struct super_node *sn, bool destinations_first,
		     int (*each)(struct super_node *sn, struct node *n))
{
	for (int pass = 0; pass < 2; pass++) {
		list_for_each(n, &sn->nodes, struct node, entry) {
			bool destination = is_destination(sn, n);
			int ret;

			if (!destination && !is_source(sn, n))
				continue;
			if (destination != (destinations_first == (pass == 0)))
				continue;
			ret = each(sn, n);
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
			    super_node_is_fed(sn, p) != (fed_first == (pass == 0)))
				continue;
			ret = each(sn, p);
			if (ret)
				return ret;
		}
	}
	return 0;
}

int super_node_start_types(struct super_node *sn)
{
	list_for_each(n, &sn->nodes, struct node, entry) {
		const struct node_type **more;
		bool started = !n->enabled;
		int ret;

		for (unsigned t = 0; t < sn->type_count; t++)
			started |= sn->types[t] == n->type;
		if (started)
			continue;
		/* A reload may bring types of modules, and variants of types. */
		more = reallocarray(sn->types, sn->type_count + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		sn->types = more;
		ret = n->type->type_start ? n->type->type_start(&sn->services) : 0;
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

/* Hooks start and stop with their node, so that one state holds for both. */
int super_node_start_node(struct node *n)
{
	int ret = start_node_hooks(n);

	if (ret)
		return ret;
	ret = node_start(n);
	if (ret)
		super_node_stop_hooks(n);
	return ret;
}

static void log_node(struct node *n)
{
	char text[256] = "";

	if (n->type->print)
		n->type->print(n, text, sizeof(text));
	log_debug("node %s: type %s%s%s", n->name, n->type->name,
		  *text ? ", " : "", text);
}

static int prepare_node(struct super_node *sn, struct node *n)
{
	super_node_doing(sn, "preparation of node", n->name);
	return node_prepare(n);
}

static int start_node(struct super_node *sn, struct node *n)
{
	super_node_doing(sn, "start of node", n->name);
	return super_node_start_node(n);
}

static int prepare_path(struct super_node *sn, struct path *p)
{
	return path_prepare(p);
}

static int start_path(struct super_node *sn, struct path *p)
{
	super_node_doing(sn, "start of path", p->name);
	return path_start(p, sn->event_fd);
}

static int stop_left_node(struct super_node *sn, struct node *n)
{
	super_node_doing(sn, "stop of node", n->name);
	return super_node_stop_left_node(n);
}

static bool goes(struct node *n)
{
	(void)n;
	return true;
}

static int stop_reading_path(struct super_node *sn, struct path *p)
{
	super_node_doing(sn, "end of reading of path", p->name);
	path_stop_reading(p);
	return 0;
}

static int stop_path(struct super_node *sn, struct path *p)
{
	super_node_doing(sn, "stop of path", p->name);
	path_stop(p);
	return 0;
}

static int release_path(struct super_node *sn, struct path *p)
{
	path_release(p);
	return 0;
}

static void periodic(struct super_node *sn)
{
	list_for_each(n, &sn->nodes, struct node, entry) {
		if (!node_is_running(n))
			continue;
		hook_list_periodic(n->in.hooks);
		hook_list_periodic(n->out.hooks);
	}
	list_for_each(p, &sn->paths, struct path, entry)
		if (p->started)
			hook_list_periodic(p->hooks);
}

/* The descriptor says that the rate is another one, or that it is the end. */
static void *run_stats(void *arg)
{
	struct super_node *sn = arg;
	struct pollfd pfd = { .fd = sn->stats_fd, .events = POLLIN };
	uint64_t count;
	double hz;

	while (!atomic_load(&sn->stats_end)) {
		struct timespec period;
		int ret;

		pthread_mutex_lock(&sn->control);
		hz = sn->settings.stats_hz;
		pthread_mutex_unlock(&sn->control);
		period = timespec_from_ns((uint64_t)(1e9 / MAX(hz, 1e-3)));
		ret = ppoll(&pfd, 1, &period, NULL);
		if (ret > 0 && read(sn->stats_fd, &count, sizeof(count)) < 0)
			continue;
		if (ret != 0 || hz == 0)
			continue;
		pthread_mutex_lock(&sn->control);
		periodic(sn);
		pthread_mutex_unlock(&sn->control);
	}
	return NULL;
}

static void wake_stats(struct super_node *sn)
{
	uint64_t one = 1;

	if (write(sn->stats_fd, &one, sizeof(one)) < 0)
		log_debug("statistics: %s", strerror(errno));
}

int super_node_update_stats(struct super_node *sn)
{
	int ret;

	if (sn->has_stats_thread) {
		wake_stats(sn);
		return 0;
	}
	if (sn->settings.stats_hz == 0)
		return 0;
	sn->stats_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sn->stats_fd < 0)
		return -errno;
	ret = pthread_create(&sn->stats_thread, NULL, run_stats, sn);
	if (!ret)
		pthread_setname_np(sn->stats_thread, "stats");
	sn->has_stats_thread = !ret;
	return -ret;
}

/* True once it has ended; false: the end of the process leaves no more time. */
static bool join_stats(struct super_node *sn)
{
	if (thread_join_in_time(sn->stats_thread))
		return true;
	log_error("the statistics thread does not end, a hook does not come out of its periodic work");
	return false;
}

static void stop_stats(struct super_node *sn)
{
	if (sn->has_stats_thread) {
		atomic_store(&sn->stats_end, true);
		wake_stats(sn);
		if (!join_stats(sn)) {
			sn->stuck = true;
			return;
		}
	}
	sn->has_stats_thread = false;
	if (sn->stats_fd >= 0)
		close(sn->stats_fd);
	sn->stats_fd = -1;
}

void super_node_mark_roles(struct super_node *sn)
{
	list_for_each(n, &sn->nodes, struct node, entry) {
		bool source = is_source(sn, n);
		bool destination = is_destination(sn, n);

		/* Nodes that stay through a reload keep their roles, and have
		 * threads that read them meanwhile. */
		if (n->is_source != source)
			n->is_source = source;
		if (n->is_destination != destination)
			n->is_destination = destination;
	}
}

static int start_all(struct super_node *sn)
{
	int ret;

	super_node_mark_roles(sn);
	list_for_each(n, &sn->nodes, struct node, entry) {
		if (n->enabled && !n->is_destination && !n->is_source)
			log_warn("node %s is in no path and is not started",
				 n->name);
		log_node(n);
	}
	super_node_settings_apply(&sn->settings, NULL, sn->keep_log_level);
	super_node_clock_start(sn);
	sn->state = SUPER_NODE_STARTED;
	sn->started_ns = sn->progress_ns = clock_now_ns();
	ret = super_node_start_types(sn);
	if (!ret)
		ret = for_nodes(sn, true, prepare_node);
	if (!ret)
		ret = for_paths(sn, true, prepare_path);
	if (!ret)
		ret = for_nodes(sn, true, start_node);
	sn->started_ns = sn->progress_ns = clock_now_ns();
	sn->started_at = clock_realtime();
	if (!ret)
		ret = for_paths(sn, true, start_path);
	if (!ret)
		ret = super_node_update_stats(sn);
	return ret;
}

int super_node_start(struct super_node *sn)
{
	int ret;

	pthread_mutex_lock(&sn->control);
	ret = start_all(sn);
	super_node_doing(sn, NULL, NULL);
	pthread_mutex_unlock(&sn->control);
	if (ret)
		super_node_stop(sn);
	return ret;
}

void super_node_keep_log_level(struct super_node *sn)
{
	sn->keep_log_level = true;
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

void super_node_request_shutdown(struct super_node *sn)
{
	atomic_store(&sn->shutdown, true);
	super_node_request_stop(sn);
}

bool super_node_must_end_soon(struct super_node *sn)
{
	return atomic_load(&sn->shutdown);
}

bool super_node_is_stuck(struct super_node *sn)
{
	return sn->stuck;
}

void super_node_doing(struct super_node *sn, const char *what, const char *name)
{
	spin_lock(&sn->doing_lock);
	snprintf(sn->doing, sizeof(sn->doing), "%s%s%s", what ? what : "",
		 what ? " " : "", what ? name : "");
	spin_unlock(&sn->doing_lock);
}

void super_node_tell_unfinished(struct super_node *sn)
{
	char text[sizeof(sn->doing)];

	spin_lock(&sn->doing_lock);
	memcpy(text, sn->doing, sizeof(text));
	spin_unlock(&sn->doing_lock);
	log_error("the gateway has not ended in time%s%s",
		  *text ? ", it is busy with the " : "", text);
}

void super_node_note_failure(struct super_node *sn)
{
	atomic_store(&sn->failed, true);
}

bool super_node_has_failed(struct super_node *sn)
{
	return atomic_load(&sn->failed);
}

uint64_t super_node_losses(struct super_node *sn)
{
	return atomic_load(&sn->losses);
}

void super_node_take_losses(struct super_node *sn)
{
	uint64_t n = 0;

	list_for_each(p, &sn->paths, struct path, entry)
		n += path_take_losses(p);
	list_for_each(node, &sn->nodes, struct node, entry)
		n += hook_list_take_losses(node->in.hooks) +
		     hook_list_take_losses(node->out.hooks);
	atomic_fetch_add(&sn->losses, n);
}

/* Without any path there is nothing that has ended, and paths may yet be given:
 * only a configuration that says so itself ends the gateway then. */
static bool all_ended(struct super_node *sn)
{
	bool ended = true, any = false;

	/* A command is under way, perhaps one that hangs. The caller asks again. */
	if (pthread_mutex_trylock(&sn->control))
		return false;
	list_for_each(p, &sn->paths, struct path, entry) {
		any |= p->enabled;
		if (p->enabled && !atomic_load(&p->ended))
			ended = false;
	}
	ended &= sn->settings.idle_stop &&
		 (any || sn->settings.idle_stop_given);
	pthread_mutex_unlock(&sn->control);
	return ended;
}

bool super_node_wait(struct super_node *sn, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000;
	struct pollfd pfd = { .fd = sn->event_fd, .events = POLLIN };

	for (;;) {
		uint64_t now = clock_now_ns(), count;
		int wait_ms = MIN(500, super_node_clock_tick(sn));

		if (atomic_load(&sn->stop_requested) ||
		    all_ended(sn))
			return true;
		if (timeout_ms >= 0) {
			if (now >= end)
				return false;
			wait_ms = (int)MIN((end - now) / 1000000 + 1,
					   (uint64_t)wait_ms);
		}
		switch (poll(&pfd, 1, wait_ms)) {
		case -1: /* a signal: the caller may have something to do */
			return atomic_load(&sn->stop_requested);
		case 1:
			if (read(sn->event_fd, &count, sizeof(count)) < 0) {
				/* Somebody else has emptied it. */
			}
		}
	}
}

/* False: who has it does not come back before the end of the process. */
static bool lock_control(struct super_node *sn)
{
	struct timespec until;

	/* Also late in the end, when nobody has it. */
	if (!pthread_mutex_trylock(&sn->control))
		return true;
	do {
		if (ending_is_past(ENDING_WRITERS_MS))
			return false;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until = timespec_from_ns(timespec_to_ns(until) + 20000000);
	} while (timed_lock(&sn->control, &until) == ETIMEDOUT);
	return true;
}

void super_node_stop(struct super_node *sn)
{
	bool running;

	/* A command that is under way comes to its end first; later ones find
	 * that it is too late. */
	if (!lock_control(sn)) {
		sn->stuck = true;
		super_node_tell_unfinished(sn);
		return;
	}
	running = sn->state == SUPER_NODE_STARTED;
	sn->state = SUPER_NODE_STOPPED;
	pthread_mutex_unlock(&sn->control);
	if (!running)
		return;
	stop_stats(sn);
	for_paths(sn, false, stop_reading_path);
	for_paths(sn, false, stop_path);
	sn->stopped_ns = clock_now_ns();
	list_for_each(p, &sn->paths, struct path, entry)
		sn->stuck |= p->stuck;
	list_for_each(p, &sn->retired_paths, struct path, entry)
		sn->stuck |= p->stuck;
	super_node_doing(sn, "stop of nodes", "that wait for their peers");
	super_node_stop_waiting(sn, goes);
	for_nodes(sn, false, stop_left_node);
	for_paths(sn, false, release_path);
	if (!sn->stuck)
		stop_types(sn);
	super_node_take_losses(sn);
	if (super_node_losses(sn))
		log_error("%ju samples were lost though nothing in the configuration allows that; the lines above say where, and the summary how many",
			  (uintmax_t)super_node_losses(sn));
	super_node_clock_stop(sn);
	super_node_doing(sn, NULL, NULL);
}

void super_node_destroy(struct super_node *sn)
{
	if (!sn)
		return;
	super_node_stop(sn);
	if (sn->stuck)
		return;
	super_node_sweep_all(sn);
	/* Paths first: their memory is registered with the nodes. */
	list_for_each_safe(p, &sn->paths, struct path, entry)
		path_destroy(p);
	super_node_sweep_nodes(sn);
	list_for_each_safe(n, &sn->nodes, struct node, entry)
		node_destroy(n);
	if (sn->event_fd >= 0)
		close(sn->event_fd);
	pthread_mutex_destroy(&sn->control);
	pthread_mutex_destroy(&sn->loading);
	super_node_settings_clear(&sn->settings);
	for (unsigned i = 0; i < sn->config_count; i++)
		config_destroy(sn->configs[i]);
	free(sn->configs);
	free(sn->file);
	json_decref(sn->restart_config);
	free(sn->types);
	free(sn);
}
