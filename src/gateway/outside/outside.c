/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of a connection, its start and its end; see outside.h. */
#define LOG_ROOM "gateway/outside"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/outside/outside_private.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

#define MS UINT64_C(1000000)
/* The longest sleep at a time. */
#define SLEEP_NS (100 * MS)
/* Until the super-node has started the node its state cannot be told. */
#define TELL_NS (20 * MS)
/* The first attempt waits so long for it. */
#define START_MS 20
/* At the end, for what still waits, and for closing the connection after it. */
#define FLUSH_MS 1000
#define CLOSE_MS 200
/* A connection that lasted for so long is no attempt in vain. */
#define LASTED_NS NSEC_PER_SEC

void outside_init(struct node *n, const struct outside_ops *ops)
{
	struct outside *o = outside_of(n);

	o->ops = ops;
	o->node = n;
	o->faults.node = n;
	o->inbox.event_fd = -1;
	o->node_fd = o->pump_fd = -1;
	o->target = "the server";
	pthread_mutex_init(&o->pump, NULL);
	pthread_mutex_init(&o->lock, NULL);
	pthread_mutex_init(&o->entry, NULL);
}

void outside_destroy(struct node *n)
{
	struct outside *o = outside_of(n);

	/* The thread hangs in its library, and the process ends. */
	if (o->has_thread)
		return;
	format_destroy(o->scan);
	format_destroy(o->print);
	pthread_mutex_destroy(&o->entry);
	pthread_mutex_destroy(&o->lock);
	pthread_mutex_destroy(&o->pump);
}

int outside_parse(struct node *n, struct config *c, json_t *cfg, const char *fallback)
{
	struct outside *o = outside_of(n);
	int ret;

	if (!fallback)
		return 0;
	ret = format_new(&o->scan, c, o->format_cfg, fallback, n->in.signals) ?:
	      format_new(&o->print, c, o->format_cfg, fallback, n->out.signals);
	if (ret)
		return ret;
	o->scan->message = o->print->message = true;
	if (!o->scan->type->scan || !o->print->type->print) {
		config_fail(c, cfg, "format", "the format '%s' cannot be %s",
			    o->print->type->name, o->scan->type->scan ? "written" : "read");
		return -EINVAL;
	}
	return 0;
}

int outside_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct outside *o = outside_of(n);

	return o->print ? format_check_signals(o->print, c, cfg, n->out.hooked) : 0;
}

/* ---- the thread ---- */

/* Sleeps until something happens to the node. */
static void rest(struct outside *o, uint64_t until_ns)
{
	struct pollfd fd = { .fd = o->node_fd, .events = POLLIN };

	outside_wait(&fd, 1, until_ns);
	if (fd.revents)
		wakeup_drain(o->node_fd);
}

/* Returns until when the thread may sleep. */
static uint64_t tell_state(struct outside *o)
{
	enum node_state s = outside_is_connected(o) ? NODE_CONNECTED : NODE_PENDING_CONNECT;

	if (!node_is_running(o->node))
		return clock_now_ns() + TELL_NS;
	if (node_state(o->node) != s)
		node_set_state(o->node, s);
	return clock_now_ns() + SLEEP_NS;
}

static void say_unreachable(struct outside *o)
{
	/* The stop of the node, or the end of the process, has cut the attempt short. */
	if (outside_is_ending(o) || ending_has_begun())
		return;
	node_figure_add(o->node, OUTSIDE_UNREACHABLE, 1);
	/* Once for each reason. */
	if (strcmp(o->said, o->why) && fault_may_log(&o->faults))
		log_warn("node %s: cannot connect to %s: %s; trying again every %lld ms",
			 o->node->name, o->target, o->why, (long long)o->reconnect_ms);
	memcpy(o->said, o->why, sizeof(o->said));
}

static void plan_attempt(struct outside *o)
{
	backoff_plan(&o->backoff, (uint64_t)o->reconnect_ms * MS, clock_now_ns());
}

static void close_connection(struct outside *o)
{
	bool was_up;

	/* Whoever waits for the server comes out. */
	wakeup_post(o->pump_fd);
	pthread_mutex_lock(&o->pump);
	outside_hold(o);
	was_up = atomic_exchange(&o->up, false);
	o->was_up = was_up && !atomic_load(&o->broken);
	node_figure_set(o->node, OUTSIDE_CONNECTED, 0);
	if (o->opened)
		o->ops->close(o);
	o->opened = false;
	if (atomic_exchange(&o->broken, false) && was_up) {
		node_figure_add(o->node, OUTSIDE_LOST, 1);
		if (fault_may_log(&o->faults))
			log_warn("node %s: the connection to %s is lost: %s", o->node->name,
				 o->target, o->why);
		memcpy(o->said, o->why, sizeof(o->said));
	} else if (!was_up && !outside_is_ending(o)) {
		say_unreachable(o);
	}
	outside_send_lost(o);
	pthread_mutex_unlock(&o->lock);
	pthread_mutex_unlock(&o->pump);
}

/* As pump, but only while the connection is being made. */
static void await_connection(struct outside *o)
{
	uint64_t end_ns = o->ops->flags & OUTSIDE_PATIENT ? UINT64_MAX :
			  clock_now_ns() + (uint64_t)(o->connect_timeout_s * 1e9);

	pthread_mutex_lock(&o->pump);
	while (!atomic_load(&o->up) && !atomic_load(&o->broken) && !outside_is_ending(o) &&
	       clock_now_ns() < end_ns)
		outside_pump(o, MIN(end_ns, tell_state(o)));
	pthread_mutex_unlock(&o->pump);
	if (atomic_load(&o->up) || atomic_load(&o->broken))
		return;
	outside_hold(o);
	outside_fail_silent(o);
	outside_break(o);
	pthread_mutex_unlock(&o->lock);
}

/* open() may take long, and the state of the node is to be true meanwhile. */
static void await_start(struct outside *o)
{
	for (unsigned i = 0; i < START_MS && !node_is_running(o->node) && !outside_is_ending(o); i++)
		rest(o, clock_now_ns() + MS);
	tell_state(o);
}

static void attempt(struct outside *o)
{
	int ret;

	await_start(o);
	o->why[0] = 0;
	ret = o->ops->open(o);
	if (ret < 0) {
		if (!o->why[0])
			outside_fail(o, ret, "%s", strerror(-ret));
		if (!outside_is_ending(o))
			say_unreachable(o);
		plan_attempt(o);
		return;
	}
	outside_hold(o);
	o->opened = true;
	if (!ret)
		outside_is_up(o);
	pthread_mutex_unlock(&o->lock);
	if (ret)
		await_connection(o);
}

static bool is_led(const struct outside *o)
{
	return atomic_load_explicit(&o->led_ns, memory_order_relaxed) > clock_now_ns();
}

/* While the connection lasts. */
static void serve(struct outside *o)
{
	uint64_t since_ns = clock_now_ns();

	while (!atomic_load(&o->broken) && !outside_is_ending(o)) {
		uint64_t until_ns = tell_state(o);

		if (is_led(o) || pthread_mutex_trylock(&o->pump)) {
			rest(o, until_ns);
			continue;
		}
		outside_pump(o, until_ns);
		pthread_mutex_unlock(&o->pump);
	}
	if (clock_now_ns() - since_ns > LASTED_NS)
		backoff_reset(&o->backoff);
}

/* The node stops: for a while, what waits is still sent. */
static void finish(struct outside *o)
{
	int left_ms = ending_left_ms(ENDING_JOIN_MS, FLUSH_MS + CLOSE_MS) - CLOSE_MS;
	uint64_t end_ns = clock_now_ns() + (uint64_t)MAX(left_ms, 0) * MS;

	pthread_mutex_lock(&o->pump);
	while (atomic_load(&o->up) && !atomic_load(&o->broken) && clock_now_ns() < end_ns) {
		bool empty;

		outside_work(o);
		outside_hold(o);
		empty = !o->waiting.messages && !o->unconfirmed.messages;
		pthread_mutex_unlock(&o->lock);
		if (empty)
			break;
		outside_pump(o, end_ns);
	}
	pthread_mutex_unlock(&o->pump);
}

static void *run(void *arg)
{
	struct outside *o = arg;

	while (!outside_is_ending(o)) {
		attempt(o);
		if (o->opened) {
			serve(o);
			if (outside_is_ending(o))
				finish(o);
			close_connection(o);
			plan_attempt(o);
		}
		while (!outside_is_ending(o) && !backoff_is_due(&o->backoff, clock_now_ns())) {
			uint64_t until_ns = tell_state(o);

			rest(o, MIN(until_ns, o->backoff.at_ns));
		}
	}
	return NULL;
}

/* ---- start and stop ---- */

static int start_parts(struct outside *o)
{
	int ret;

	o->node_fd = wakeup_open_signal();
	o->pump_fd = wakeup_open_signal();
	if (o->node_fd < 0 || o->pump_fd < 0)
		return MIN(o->node_fd, o->pump_fd);
	ret = outside_receive_start(o) ?: outside_send_start(o);
	if (!ret)
		ret = thread_start(&o->thread, "outside", THREAD_AS_CALLER, run, o);
	o->has_thread = !ret;
	return ret;
}

int outside_start(struct node *n)
{
	struct outside *o = outside_of(n);
	int ret;

	o->said[0] = 0;
	o->was_up = false;
	backoff_reset(&o->backoff);
	atomic_store(&o->ending, false);
	atomic_store(&o->broken, false);
	atomic_store(&o->partial, false);
	atomic_store(&o->led_ns, 0);
	ret = start_parts(o);
	if (ret) {
		log_error("node %s: %s", n->name, strerror(-ret));
		outside_stop(n);
	}
	return ret;
}

int outside_stop(struct node *n)
{
	struct outside *o = outside_of(n);

	atomic_store(&o->ending, true);
	if (o->has_thread) {
		wakeup_post(o->node_fd);
		wakeup_post(o->pump_fd);
		/* One that hangs in its library keeps what it uses. */
		if (!thread_join_in_time(o->thread)) {
			log_warn("node %s: %s does not let go of the node", n->name, o->target);
			return 0;
		}
	}
	o->has_thread = false;
	outside_send_stop(o);
	outside_receive_stop(o);
	fault_finish(&o->faults);
	if (o->node_fd >= 0)
		close(o->node_fd);
	if (o->pump_fd >= 0)
		close(o->pump_fd);
	o->node_fd = o->pump_fd = -1;
	return 0;
}
