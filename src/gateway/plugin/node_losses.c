/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples that a node could not send or store: how many, why, and whether anything
 * allowed it. Counters live in the node; the log gets the first sample of each
 * cause and, when the node stops, the numbers.
 */
#define LOG_ROOM "gateway/node"
#include "gateway/plugin/node_losses.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"
#include "gateway/plugin/stats.h"
#include "util/log.h"

static const struct {
	const char *name, *text;
} causes[NODE_LOSSES] = {
	[NODE_LOSS_FULL] = { "full", "dropped for want of room, as configured" },
	[NODE_LOSS_ABSENT] = { "absent", "for a peer that is not there" },
	[NODE_LOSS_CLOSED] = { "closed", "while it was paused or stopped" },
	[NODE_LOSS_STUCK] = { "stuck", "waited for room in vain" },
	[NODE_LOSS_TOO_LONG] = { "too_long", "too long" },
	[NODE_LOSS_FORMAT] = { "format", "not possible in the format" },
	[NODE_LOSS_REFUSED] = { "refused", "refused" },
	[NODE_LOSS_UNKNOWN] = { "unknown", "of unknown cause" },
};

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add(_Atomic uint64_t *counter, uint64_t count)
{
	atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}

const char *node_loss_name(enum node_loss cause)
{
	return causes[cause].name;
}

const char *node_loss_text(enum node_loss cause)
{
	return causes[cause].text;
}

/* The first one of its cause is logged. */
__attribute__((format(printf, 4, 0)))
static void lose(struct node *n, enum node_loss cause, uint64_t count,
		 const char *fmt, va_list ap)
{
	unsigned bit = 1u << (cause % NODE_LOSSES);
	char text[300];

	assert(cause < NODE_LOSSES);
	add(&n->counters.losses[cause], count);
	if (cause >= NODE_LOSS_ALLOWED)
		services_note_losses(n->services, count);
	if (atomic_load_explicit(&n->said_losses, memory_order_relaxed) & bit ||
	    atomic_fetch_or(&n->said_losses, bit) & bit)
		return;
	vsnprintf(text, sizeof(text), fmt, ap);
	LOG_AT(cause == NODE_LOSS_CLOSED ? LOG_INFO : LOG_WARN,
	       "node %s: a sample is lost (%s): %s; further ones are counted",
	       n->name, causes[cause].text, text);
}

/* A command takes it out of a write that waits. */
static bool is_closed(struct node *n)
{
	unsigned why = gate_reasons(&n->out.gate) |
		       (n->path_gate ? gate_reasons(n->path_gate) : 0);

	return why & (GATE_PAUSED | GATE_STOPPED);
}

void node_refuse(struct node *n, enum node_loss cause, uint64_t count,
		 const char *fmt, ...)
{
	va_list ap;

	if (!count)
		return;
	n->told += count;
	if (cause == NODE_LOSS_STUCK && is_closed(n))
		cause = NODE_LOSS_CLOSED;
	va_start(ap, fmt);
	lose(n, cause, count, fmt, ap);
	va_end(ap);
}

void node_lose(struct node *n, enum node_loss cause, uint64_t count,
	       const char *fmt, ...)
{
	va_list ap;

	if (!count)
		return;
	add(&n->counters.not_stored, count);
	va_start(ap, fmt);
	lose(n, cause, count, fmt, ap);
	va_end(ap);
}

void node_skip_write(struct node *n, uint64_t count)
{
	add(&n->counters.not_sent, count);
	node_refuse(n, NODE_LOSS_CLOSED, count, "%s",
		    gate_reasons(&n->out.gate) & GATE_PAUSED ?
			    "it is paused" : "it is stopped");
}

void node_count_unsent(struct node *n, int ret, uint64_t count)
{
	add(&n->counters.not_sent, count);
	if (count <= n->told)
		return;
	node_refuse(n, NODE_LOSS_UNKNOWN, count - n->told, "%s",
		    ret < 0 ? strerror(-ret) : "the node-type does not say why");
}

void node_log_losses(struct node *n)
{
	char text[400] = "";
	uint64_t all = 0;
	size_t used = 0;

	for (int c = 0; c < NODE_LOSSES; c++) {
		uint64_t now = get(&n->counters.losses[c]);
		uint64_t was = n->summed_losses[c], more;

		/* Counters may have been set to zero meanwhile. */
		more = now >= was ? now - was : now;
		n->summed_losses[c] = now;
		all += more;
		if (more && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%ju %s", all > more ? ", " : "",
						 (uintmax_t)more, causes[c].text);
	}
	if (all)
		log_warn("node %s: %ju samples were lost: %s", n->name,
			 (uintmax_t)all, text);
}

uint64_t node_losses_not_allowed(const struct node *n)
{
	uint64_t sum = 0;

	for (int c = NODE_LOSS_ALLOWED; c < NODE_LOSSES; c++)
		sum += get(&n->counters.losses[c]);
	return sum;
}

/* Not what others go on from: sequence numbers, causes that were logged. */
void node_reset_counters(struct node *n)
{
	struct node_counters *k = &n->counters;

	atomic_store(&k->received, 0);
	atomic_store(&k->sent, 0);
	atomic_store(&k->not_sent, 0);
	atomic_store(&k->not_stored, 0);
	for (int c = 0; c < NODE_LOSSES; c++)
		atomic_store(&k->losses[c], 0);
	atomic_store(&k->missed, 0);
	atomic_store(&k->left_out, 0);
	atomic_store(&k->made_up, 0);
	atomic_store(&k->lost, 0);
	atomic_store(&k->reordered, 0);
	atomic_store(&n->step_late_reset, n->step_late_ns != NULL);
	for (size_t i = 0; n->figures && i < n->type->figure_count; i++)
		if (n->type->figures[i].kind == NODE_COUNTER)
			atomic_store(&n->figures[i], 0);
	hook_list_reset(n->in.hooks);
	hook_list_reset(n->out.hooks);
}
