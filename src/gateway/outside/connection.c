/* SPDX-License-Identifier: BSD-2-Clause */
/* What node-types say about their connection; see outside.h. */
#define LOG_ROOM "gateway/outside"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/outside/outside_private.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

const char *const outside_full_names[] = { "block", "drop_newest", "drop_oldest", NULL };

void outside_set_target(struct outside *o, const char *target)
{
	o->target = target;
}

int outside_fail(struct outside *o, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->why, sizeof(o->why), fmt, ap);
	va_end(ap);
	return ret;
}

int outside_fail_silent(struct outside *o)
{
	return outside_fail(o, -ETIMEDOUT, "it does not answer within %g s (connect_timeout)",
			    o->connect_timeout_s);
}

const char *outside_tls_reason(const char *reason)
{
	static const char *const closed[] = { "unexpected eof", "SSL_ERROR_SYSCALL" };
	static const char *const no_tls[] = {
		"wrong version number", "packet length too long", "http request",
	};

	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (strstr(reason, closed[i]))
			return "the server has closed it";
	for (size_t i = 0; i < ARRAY_SIZE(no_tls); i++)
		if (strstr(reason, no_tls[i]))
			return "the server answers without TLS";
	return reason;
}

struct dial_limit outside_limit(const struct outside *o, uint64_t until_ns)
{
	return (struct dial_limit){ until_ns, &o->ending, o->node_fd };
}

int outside_dial(struct outside *o, const char *host, int port, uint64_t until_ns)
{
	const struct dial_limit limit = outside_limit(o, until_ns);
	char text[16];
	int fd;

	snprintf(text, sizeof(text), "%d", port);
	fd = dial_host(host, text, &limit, o->why, sizeof(o->why));
	return fd == -ETIMEDOUT ? outside_fail_silent(o) : fd;
}

int outside_unprintable(struct outside *o, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(o->refusal, sizeof(o->refusal), fmt, ap);
	va_end(ap);
	return ret;
}

bool outside_is_ending(const struct outside *o)
{
	return atomic_load_explicit(&o->ending, memory_order_relaxed);
}

void outside_lock(struct outside *o)
{
	outside_hold(o);
	o->taken = 0;
	o->unconfirmed.looks = 0;
}

void outside_unlock(struct outside *o)
{
	pthread_mutex_unlock(&o->lock);
}

void outside_wake(struct outside *o)
{
	wakeup_post(o->pump_fd);
}

bool outside_is_connected(const struct outside *o)
{
	return atomic_load(&o->up) && !atomic_load(&o->partial);
}

void outside_set_partial(struct outside *o, bool partial)
{
	if (atomic_exchange(&o->partial, partial) == partial)
		return;
	node_figure_set(o->node, OUTSIDE_CONNECTED, outside_is_connected(o));
	wakeup_post(o->node_fd);
}

void outside_is_up(struct outside *o)
{
	o->said[0] = 0;
	atomic_store_explicit(&o->up, true, memory_order_release);
	node_figure_set(o->node, OUTSIDE_CONNECTED, outside_is_connected(o));
	node_figure_add(o->node, OUTSIDE_CONNECTIONS, 1);
	if (fault_may_log(&o->faults))
		log_info("node %s: connected to %s", o->node->name, o->target);
	wakeup_post(o->node_fd);
}

void outside_break(struct outside *o)
{
	if (atomic_exchange(&o->broken, true))
		return;
	wakeup_post(o->node_fd);
	wakeup_post(o->pump_fd);
}
