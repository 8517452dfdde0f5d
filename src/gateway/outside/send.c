/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples become messages, which are sent or wait; see outside.h. */
#define LOG_ROOM "gateway/outside"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/outside/outside_private.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

#define BUF_FIRST 16384

int outside_send_start(struct outside *o)
{
	int ret;

	if (!o->node->is_destination)
		return 0;
	o->buf_size = MIN((size_t)o->message_max, (size_t)BUF_FIRST);
	o->buf = malloc(o->buf_size);
	ret = o->buf ? 0 : -ENOMEM;
	/* Half of a ring may be left over before a long message. */
	if (!ret)
		ret = outbox_init(&o->waiting, MAX((size_t)o->backlog, 2 * (size_t)o->message_max + 128));
	if (!ret)
		ret = outbox_init(&o->unconfirmed, o->waiting.size);
	return ret;
}

static void show_figures(struct outside *o)
{
	node_figure_set(o->node, OUTSIDE_WAITING, o->waiting.samples);
	node_figure_set(o->node, OUTSIDE_UNCONFIRMED_SAMPLES, o->unconfirmed.samples);
}

/* Why there is no room. */
static enum node_loss cause_of(const struct outside *o, bool was_up)
{
	return !was_up ? NODE_LOSS_ABSENT :
	       o->full == OUTSIDE_BLOCK ? NODE_LOSS_STUCK : NODE_LOSS_FULL;
}

void outside_send_stop(struct outside *o)
{
	struct node *n = o->node;

	node_lose(n, cause_of(o, o->was_up), o->waiting.samples, "%s %s", o->target,
		  o->was_up ? "takes them too slowly, and the node stops" : "is not connected");
	node_figure_add(n, OUTSIDE_UNSURE, o->unconfirmed.samples);
	node_lose(n, NODE_LOSS_ABSENT, o->unconfirmed.samples,
		  "%s has not confirmed them before the node stopped; they may have arrived",
		  o->target);
	outbox_destroy(&o->waiting);
	outbox_destroy(&o->unconfirmed);
	show_figures(o);
	free(o->buf);
	o->buf = NULL;
}

/* ---- with the lock ---- */

void outside_tell_room(struct outside *o)
{
	if (o->made_room && o->full == OUTSIDE_BLOCK)
		waker_wake(&o->room);
	o->made_room = false;
}

void outside_send_lost(struct outside *o)
{
	if (o->ops->flags & OUTSIDE_REPEATS)
		node_figure_add(o->node, OUTSIDE_REPEATED, o->unconfirmed.samples);
	else
		outbox_repeat(&o->unconfirmed);
}

/* As ops->send(), but never without room for a message that will be confirmed. */
static int send_one(struct outside *o, struct outbox_message *m)
{
	if (!outbox_has_room(&o->unconfirmed, m->len))
		return -EAGAIN;
	o->why[0] = 0;
	return o->ops->send(o, m);
}

static bool is_refused(int ret)
{
	return ret == -EMSGSIZE || ret == -EBADMSG;
}

static enum node_loss refusal_of(int ret)
{
	return ret == -EMSGSIZE ? NODE_LOSS_TOO_LONG : NODE_LOSS_REFUSED;
}

/* Messages of the last connection that were not confirmed. 0 when all of them went. */
static int repeat(struct outside *o)
{
	struct outbox_message m;
	int ret;

	while (outbox_next(&o->unconfirmed, &m)) {
		o->why[0] = 0;
		ret = o->ops->send(o, &m);
		if (is_refused(ret)) {
			/* This server takes less than the one before; the others go on. */
			node_lose(o->node, refusal_of(ret), m.samples, "%s", o->why);
			outbox_give_up(&o->unconfirmed);
			continue;
		}
		if (ret < 0)
			return ret;
		outbox_repeated(&o->unconfirmed, m.tag);
		node_figure_add(o->node, OUTSIDE_REPEATED, m.samples);
	}
	return 0;
}

int outside_flush(struct outside *o)
{
	struct outbox_message m;
	int ret = repeat(o);

	while (!ret && outbox_first(&o->waiting, &m)) {
		ret = send_one(o, &m);
		if (is_refused(ret)) {
			node_lose(o->node, refusal_of(ret), m.samples, "%s", o->why);
			ret = 0;
		} else if (ret < 0) {
			break;
		} else if (ret == OUTSIDE_UNCONFIRMED) {
			outbox_put(&o->unconfirmed, &m);
			ret = 0;
		}
		outbox_drop(&o->waiting);
		o->made_room = true;
	}
	show_figures(o);
	return ret == -EAGAIN ? 0 : ret;
}

void outside_confirm(struct outside *o, uint64_t tag, bool all_before)
{
	node_figure_add(o->node, OUTSIDE_CONFIRMED,
			outbox_confirm(&o->unconfirmed, tag, all_before));
	show_figures(o);
}

void outside_repeat(struct outside *o)
{
	outbox_repeat(&o->unconfirmed);
}

void outside_reject(struct outside *o, uint64_t tag, const char *why)
{
	node_lose(o->node, NODE_LOSS_REFUSED, outbox_confirm(&o->unconfirmed, tag, false),
		  "%s: %s", o->target, why);
	show_figures(o);
}

void outside_reject_all(struct outside *o, uint64_t tag, const char *why)
{
	node_lose(o->node, NODE_LOSS_REFUSED, outbox_confirm(&o->unconfirmed, tag, true),
		  "%s: %s", o->target, why);
	show_figures(o);
}

/* ---- writing ---- */

/* Waits for room, with the lock, which others have meanwhile. False: not any longer. */
static bool wait_for_room(struct outside *o, uint64_t end_ns)
{
	unsigned generation = waker_prepare(&o->room);
	uint64_t now = clock_monotonic_ns_slow();

	if (atomic_load(&o->write_interrupted) || outside_is_ending(o) || now >= end_ns)
		return false;
	wakeup_post(o->pump_fd);
	pthread_mutex_unlock(&o->lock);
	waker_wait(&o->room, generation, end_ns - now);
	outside_hold(o);
	return true;
}

/* Puts a message to those that wait, by the policy. -1, or why it is lost. */
static int queue(struct outside *o, const struct outbox_message *m)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + (uint64_t)(o->block_timeout_s * 1e9);
	struct outbox_message oldest;

	while (!outbox_put(&o->waiting, m)) {
		bool up = atomic_load(&o->up);

		if (!outbox_could_hold(&o->waiting, m->len)) {
			snprintf(o->refusal, sizeof(o->refusal),
				 "a message has %zu bytes, out.backlog %lld", m->len,
				 (long long)o->backlog);
			return NODE_LOSS_TOO_LONG;
		}
		snprintf(o->refusal, sizeof(o->refusal),
			 up ? "%s takes them too slowly" : "%s is not connected", o->target);
		if (o->full == OUTSIDE_DROP_NEWEST)
			return (int)cause_of(o, up);
		if (o->full == OUTSIDE_BLOCK && !wait_for_room(o, end_ns))
			return (int)cause_of(o, up);
		if (o->full == OUTSIDE_DROP_OLDEST && outbox_first(&o->waiting, &oldest)) {
			node_lose(o->node, cause_of(o, up), oldest.samples, "%s", o->refusal);
			outbox_drop(&o->waiting);
		}
	}
	return -1;
}

/* Sends a message at once, if it can. -1: it is on its way; or why it is lost. */
static int post(struct outside *o, struct outbox_message *m)
{
	bool direct = !(o->ops->flags & OUTSIDE_MAY_WAIT) && atomic_load(&o->up) &&
		      !atomic_load(&o->broken) && !o->waiting.messages &&
		      o->unconfirmed.sent == o->unconfirmed.head;
	int ret = direct ? send_one(o, m) : -EAGAIN;

	if (ret == OUTSIDE_UNCONFIRMED) {
		outbox_put(&o->unconfirmed, m);
		show_figures(o);
	}
	if (likely(ret >= 0))
		return -1;
	if (is_refused(ret)) {
		memcpy(o->refusal, o->why, sizeof(o->refusal));
		return (int)refusal_of(ret);
	}
	if (ret != -EAGAIN) {
		if (!o->why[0])
			outside_fail(o, ret, "%s", strerror(-ret));
		outside_break(o);
	}
	ret = queue(o, m);
	show_figures(o);
	wakeup_post(o->pump_fd);
	return ret;
}

/* Prints samples into o->buf, which grows as long as it may. As format_type.print(). */
static int print(struct outside *o, struct sample *const smps[], unsigned cnt, size_t *used)
{
	for (;;) {
		size_t size = MIN(2 * o->buf_size, (size_t)o->message_max);
		int n = o->ops->print ?
				o->ops->print(o, o->buf, o->buf_size, used, smps, cnt) :
				o->print->type->print(o->print, o->buf, o->buf_size, used, smps, cnt);
		char *buf;

		if (n || size == o->buf_size)
			return n;
		buf = realloc(o->buf, size);
		if (!buf)
			return -ENOMEM;
		o->buf = buf;
		o->buf_size = size;
	}
}

/* Says why the first of smps[] cannot be printed. */
static void refuse_print(struct outside *o, int n)
{
	const char *why = o->ops->print ? o->refusal : format_error(o->print);

	if (n < 0)
		node_refuse(o->node, NODE_LOSS_FORMAT, 1, "%s", *why ? why : strerror(-n));
	else
		node_refuse(o->node, NODE_LOSS_TOO_LONG, 1,
			    "a sample needs more than out.max_message, %lld bytes",
			    (long long)o->message_max);
}

int outside_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct outside *o = outside_of(n);
	unsigned done = 0, sent = 0;

	o->refusal[0] = 0;
	while (done < cnt) {
		struct outbox_message m = { 0 };
		size_t used = 0;
		int count = print(o, smps + done, cnt - done, &used), loss;

		if (unlikely(count <= 0)) {
			refuse_print(o, count);
			done++;
			continue;
		}
		done += (unsigned)count;
		m = (struct outbox_message){ o->buf, used, (unsigned)count, 0 };
		if (unlikely(pthread_mutex_trylock(&o->lock)))
			outside_hold(o);
		loss = post(o, &m);
		if (unlikely(loss >= 0))
			node_refuse(n, (enum node_loss)loss, (unsigned)count, "%s",
				    o->refusal);
		else
			sent += (unsigned)count;
		pthread_mutex_unlock(&o->lock);
	}
	return (int)sent;
}

bool outside_may_wait(struct node *n)
{
	struct outside *o = outside_of(n);

	return o->full == OUTSIDE_BLOCK || o->ops->flags & OUTSIDE_MAY_WAIT;
}

void outside_interrupt(struct node *n)
{
	struct outside *o = outside_of(n);

	atomic_store(&o->write_interrupted, true);
	inbox_interrupt(&o->inbox, true);
	wakeup_post(o->pump_fd);
	waker_wake(&o->room);
}

void outside_rearm(struct node *n)
{
	struct outside *o = outside_of(n);

	atomic_store(&o->write_interrupted, false);
	inbox_interrupt(&o->inbox, false);
}
