/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starting, stopping and pausing parts of a running super-node. A node is only
 * touched once its gates are shut and empty: then no path is in its read, its
 * write or its hooks, while all else goes on.
 */
#define LOG_ROOM "gateway/control"
#include "gateway/super_node/super_node_control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/base/ending.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node_life.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

/* A node that is not out of read and write by then has to be left alone. */
#define EMPTY_NS (10 * NSEC_PER_SEC)
/* Reads that take less come out without being interrupted. */
#define PATIENCE_NS (NSEC_PER_SEC / 500)
#define LOOK_NS 200000

static const char *const verb_names[] = {
	[CONTROL_START] = "start",   [CONTROL_STOP] = "stop",
	[CONTROL_PAUSE] = "pause",   [CONTROL_RESUME] = "resume",
	[CONTROL_RESTART] = "restart",
};

int control_verb_parse(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verb_names); i++)
		if (!strcmp(name, verb_names[i]))
			return (int)i;
	return -EINVAL;
}

const char *control_verb_name(unsigned verb)
{
	return verb < ARRAY_SIZE(verb_names) ? verb_names[verb] : NULL;
}

struct node *super_node_node_by_id(struct super_node *sn, const char *id)
{
	list_for_each(n, &sn->nodes, struct node, entry)
		if (!strcmp(n->name, id) || !strcasecmp(n->uuid, id))
			return n;
	return NULL;
}

struct path *super_node_path_by_id(struct super_node *sn, const char *id)
{
	unsigned index = 0;
	char *end;
	unsigned long wanted = strtoul(id, &end, 10);
	bool number = *id && !*end;

	list_for_each(p, &sn->paths, struct path, entry) {
		if (!strcmp(p->name, id) || !strcasecmp(p->uuid, id) ||
		    (number && wanted == index))
			return p;
		index++;
	}
	return NULL;
}

static void look_later(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

/*
 * Keeps the paths of `n` out of it. *interrupted says that reads and writes
 * were asked to return, which some nodes remember. 0, or -EBUSY and all is as
 * it was.
 */
int super_node_close_node(struct node *n, unsigned reasons, bool *interrupted)
{
	uint64_t start = clock_now_ns(), asked = 0;

	*interrupted = false;
	gate_shut(&n->in.gate, reasons);
	gate_shut(&n->out.gate, reasons);
	while (!gate_is_empty(&n->in.gate) || !gate_is_empty(&n->out.gate)) {
		uint64_t now = clock_now_ns();

		if (now - start > EMPTY_NS || ending_is_past(ENDING_HOOKS_MS)) {
			log_error("node %s: a read or write does not return, the node is left as it is",
				  n->name);
			if (n->type->rearm && *interrupted)
				n->type->rearm(n);
			super_node_repeat_end(n);
			gate_open(&n->in.gate, reasons);
			gate_open(&n->out.gate, reasons);
			return -EBUSY;
		}
		if (n->type->interrupt && now - start > PATIENCE_NS &&
		    now - asked > PATIENCE_NS) {
			n->type->interrupt(n);
			*interrupted = true;
			asked = now;
		}
		hook_list_interrupt(n->in.hooks);
		hook_list_interrupt(n->out.hooks);
		look_later();
	}
	return 0;
}

void super_node_open_node(struct node *n, unsigned reasons)
{
	gate_open(&n->in.gate, reasons);
	gate_open(&n->out.gate, reasons);
	waker_wake(&n->revival);
}

void super_node_repeat_end(struct node *n)
{
	if (!node_follows_writer(n) || !n->type->interrupt ||
	    !(atomic_load(&n->feed) & 1))
		return;
	n->type->interrupt(n);
	/* The writer counts first and rearms then: one of us is the last. */
	if (!(atomic_load(&n->feed) & 1) && n->type->rearm)
		n->type->rearm(n);
}

/* Its readers forget where they were. The gates are shut and empty. */
static void revive_readers(struct super_node *sn, struct node *n)
{
	list_for_each(p, &sn->paths, struct path, entry) {
		for (unsigned i = 0; p->enabled && i < p->source_count; i++) {
			struct path_source *s = &p->sources[i];

			if (s->node != n)
				continue;
			if (!s->primary)
				s->sequence = (struct sequence){ 0 };
			atomic_store(&s->ended, false);
			waker_wake(&p->waker);
		}
	}
}

static int start_node(struct super_node *sn, struct node *n)
{
	int ret;

	if (node_is_running(n))
		return -EALREADY;
	if (node_state(n) != NODE_PREPARED && node_state(n) != NODE_STOPPED)
		return -EPERM;
	ret = super_node_start_node(n);
	if (ret) {
		log_error("node %s: cannot be started: %s", n->name,
			  strerror(-ret));
		return ret;
	}
	super_node_repeat_end(n);
	revive_readers(sn, n);
	super_node_open_node(n, GATE_STOPPED | GATE_PAUSED);
	log_info("node %s: started", n->name);
	return 0;
}

static int stop_node(struct node *n)
{
	bool interrupted;
	int ret;

	if (!node_is_running(n))
		return -EALREADY;
	ret = super_node_close_node(n, GATE_STOPPED, &interrupted);
	if (ret)
		return ret;
	super_node_stop_node(n);
	gate_open(&n->in.gate, GATE_PAUSED);
	gate_open(&n->out.gate, GATE_PAUSED);
	log_info("node %s: stopped", n->name);
	return 0;
}

static int pause_node(struct node *n)
{
	if (!node_is_running(n))
		return -EPERM;
	if (gate_reasons(&n->in.gate) & GATE_PAUSED)
		return -EALREADY;
	/* A thread in a read may finish it: the path holds back the samples. */
	gate_shut(&n->in.gate, GATE_PAUSED);
	gate_shut(&n->out.gate, GATE_PAUSED);
	log_info("node %s: paused", n->name);
	return 0;
}

static int resume_node(struct node *n)
{
	if (!(gate_reasons(&n->in.gate) & GATE_PAUSED))
		return node_is_running(n) ? -EALREADY : -EPERM;
	super_node_open_node(n, GATE_PAUSED);
	log_info("node %s: goes on", n->name);
	return 0;
}

static int control_node(struct super_node *sn, struct node *n,
			enum control_verb verb)
{
	int ret;

	switch (verb) {
	case CONTROL_START:
		return start_node(sn, n);
	case CONTROL_STOP:
		return stop_node(n);
	case CONTROL_PAUSE:
		return pause_node(n);
	case CONTROL_RESUME:
		return resume_node(n);
	case CONTROL_RESTART:
		ret = stop_node(n);
		return ret && ret != -EALREADY ? ret : start_node(sn, n);
	}
	return -EINVAL;
}

/* Hooks of the output that wait for a reader of what they print. */
static void interrupt_output(struct path *p)
{
	hook_list_interrupt(p->hooks);
	for (unsigned d = 0; d < p->destination_count; d++)
		hook_list_interrupt(p->destinations[d].node->out.hooks);
}

/* Shuts the output of the path and waits until its thread is outside. */
static int close_path(struct path *p, unsigned reasons)
{
	uint64_t start = clock_now_ns();

	gate_shut(&p->gate, reasons);
	while (!gate_is_empty(&p->gate)) {
		if (clock_now_ns() - start > EMPTY_NS ||
		    ending_is_past(ENDING_HOOKS_MS)) {
			log_error("path %s: a write does not return, the path is left as it is",
				  p->name);
			gate_open(&p->gate, reasons);
			return -EBUSY;
		}
		interrupt_output(p);
		look_later();
	}
	return 0;
}

static int start_path(struct path *p)
{
	int ret;

	if (!(gate_reasons(&p->gate) & GATE_STOPPED))
		return -EALREADY;
	ret = hook_list_start(p->hooks);
	if (ret)
		return ret;
	p->started = true;
	gate_open(&p->gate, GATE_STOPPED | GATE_PAUSED);
	log_info("path %s: started", p->name);
	return 0;
}

static int stop_path(struct path *p)
{
	int ret;

	if (gate_reasons(&p->gate) & GATE_STOPPED)
		return -EALREADY;
	ret = close_path(p, GATE_STOPPED);
	if (ret)
		return ret;
	hook_list_interrupt(p->hooks);
	hook_list_stop(p->hooks);
	p->started = false;
	gate_open(&p->gate, GATE_PAUSED);
	log_info("path %s: stopped", p->name);
	return 0;
}

static int control_path(struct path *p, enum control_verb verb)
{
	unsigned why = gate_reasons(&p->gate);
	int ret;

	/* As a node that is disabled. */
	if (!p->enabled)
		return verb == CONTROL_STOP ? -EALREADY : -EPERM;
	if (!p->has_thread)
		return -EPERM;
	switch (verb) {
	case CONTROL_START:
		return start_path(p);
	case CONTROL_STOP:
		return stop_path(p);
	case CONTROL_PAUSE:
		if (why & GATE_STOPPED)
			return -EPERM;
		return why & GATE_PAUSED ? -EALREADY :
					   close_path(p, GATE_PAUSED);
	case CONTROL_RESUME:
		if (!(why & GATE_PAUSED))
			return why & GATE_STOPPED ? -EPERM : -EALREADY;
		gate_open(&p->gate, GATE_PAUSED);
		return 0;
	case CONTROL_RESTART:
		ret = stop_path(p);
		return ret && ret != -EALREADY ? ret : start_path(p);
	}
	return -EINVAL;
}

int super_node_node_control(struct super_node *sn, const char *id,
			    enum control_verb verb)
{
	int ret = -ESHUTDOWN;
	struct node *n;

	pthread_mutex_lock(&sn->control);
	if (sn->state == SUPER_NODE_STARTED) {
		n = super_node_node_by_id(sn, id);
		super_node_doing(sn, verb_names[verb], id);
		ret = n ? control_node(sn, n, verb) : -ENOENT;
		/* Its threads have inherited from this one. */
		if (!ret && (verb == CONTROL_START || verb == CONTROL_RESTART))
			super_node_settings_spread(&sn->settings, &sn->settings,
						   NULL);
		super_node_doing(sn, NULL, NULL);
	}
	pthread_mutex_unlock(&sn->control);
	return ret;
}

int super_node_path_control(struct super_node *sn, const char *id,
			    enum control_verb verb)
{
	int ret = -ESHUTDOWN;
	struct path *p;

	pthread_mutex_lock(&sn->control);
	if (sn->state == SUPER_NODE_STARTED) {
		p = super_node_path_by_id(sn, id);
		super_node_doing(sn, verb_names[verb], id);
		ret = p ? control_path(p, verb) : -ENOENT;
		super_node_doing(sn, NULL, NULL);
	}
	pthread_mutex_unlock(&sn->control);
	return ret;
}

int super_node_node_reset(struct super_node *sn, const char *id)
{
	int ret = id ? -ENOENT : 0;

	pthread_mutex_lock(&sn->control);
	super_node_take_losses(sn);
	list_for_each(n, &sn->nodes, struct node, entry) {
		if (id && n != super_node_node_by_id(sn, id))
			continue;
		node_reset_counters(n);
		ret = 0;
	}
	pthread_mutex_unlock(&sn->control);
	return ret;
}

/* With its output closed for a moment, because it has the one writer. */
static int reset_path(struct path *p)
{
	int ret = close_path(p, GATE_HOLD);

	if (ret)
		return ret;
	path_reset_counters(p);
	gate_open(&p->gate, GATE_HOLD);
	return 0;
}

int super_node_path_reset(struct super_node *sn, const char *id)
{
	int ret = id ? -ENOENT : 0;

	pthread_mutex_lock(&sn->control);
	super_node_take_losses(sn);
	list_for_each(p, &sn->paths, struct path, entry)
		if (!id || p == super_node_path_by_id(sn, id))
			ret = reset_path(p);
	pthread_mutex_unlock(&sn->control);
	return ret;
}

static int rewind_node(struct super_node *sn, struct node *n)
{
	bool interrupted;
	int ret;

	if (!n->type->rewind)
		return -ENOTSUP;
	if (!node_is_running(n))
		return -EPERM;
	ret = super_node_close_node(n, GATE_HOLD, &interrupted);
	if (ret)
		return ret;
	ret = n->type->rewind(n);
	if (interrupted && n->type->rearm)
		n->type->rearm(n);
	if (!ret)
		revive_readers(sn, n);
	super_node_open_node(n, GATE_HOLD);
	return ret;
}

int super_node_node_rewind(struct super_node *sn, const char *id)
{
	int ret = -ESHUTDOWN;
	struct node *n;

	pthread_mutex_lock(&sn->control);
	if (sn->state == SUPER_NODE_STARTED) {
		n = super_node_node_by_id(sn, id);
		ret = n ? rewind_node(sn, n) : -ENOENT;
	}
	pthread_mutex_unlock(&sn->control);
	return ret;
}
