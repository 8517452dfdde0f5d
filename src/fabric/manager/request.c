/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of subnet management: a window of them is on its way, what gets no answer is repeated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"

#define TIMEOUT_NS UINT64_C(200000000)
#define WINDOW 32

static uint64_t timeout_ns(const struct manager *m)
{
	return m->config.timeout_ns ? m->config.timeout_ns : TIMEOUT_NS;
}

static void transmit(struct manager *m, struct manager_request *r)
{
	const struct manager_address to = { .lid = MAD_LID_PERMISSIVE };
	uint8_t mad[MAD_BYTES];

	r->due_ns = m->now_ns + timeout_ns(m);
	if (mad_smp_pack(&r->smp, mad))
		m->ops.send(m->ops.arg, &to, mad);
}

static void fill_window(struct manager *m)
{
	const unsigned window = m->config.window ? m->config.window : WINDOW;

	while (m->in_flight < window && !list_empty(&m->queue)) {
		struct manager_request *r =
			list_entry(list_pop(&m->queue), struct manager_request, entry);

		list_push(&m->flight, &r->entry);
		m->in_flight++;
		m->report.requests++;
		transmit(m, r);
	}
}

static struct manager_request *request_new(struct manager *m, uint8_t method, uint16_t attr_id,
					   uint32_t attr_mod)
{
	struct manager_request *r = calloc(1, sizeof(*r));

	if (!r) {
		m->report.unanswered++; /* the sweep says that it is not complete */
		return NULL;
	}
	r->number = ++m->next_number;
	r->tries = m->config.retries;
	r->smp = (struct mad_smp){
		.mgmt_class = MAD_CLASS_SUBN_DIRECTED,
		.class_version = MAD_VERSION_SUBN,
		.method = method,
		.tid = (uint64_t)MANAGER_TID << 32 | r->number,
		.attr_id = attr_id,
		.attr_mod = attr_mod,
		.dr_slid = MAD_LID_PERMISSIVE,
		.dr_dlid = MAD_LID_PERMISSIVE,
	};
	return r;
}

static void enqueue(struct manager *m, struct manager_request *r, const uint8_t *path, uint8_t hops)
{
	r->smp.hop_count = hops;
	memcpy(r->smp.initial_path, path, sizeof(r->smp.initial_path));
	list_push(&m->queue, &r->entry);
}

void manager_get(struct manager *m, uint32_t node, const uint8_t *path, uint8_t hops, uint16_t attr_id,
		 uint32_t attr_mod, uint8_t port,
		 void (*done)(struct manager *, const struct manager_request *, const struct mad_smp *))
{
	struct manager_request *r = request_new(m, MAD_GET, attr_id, attr_mod);

	if (!r)
		return;
	r->node = node;
	r->port = port;
	r->done = done;
	enqueue(m, r, path, hops);
}

void manager_set(struct manager *m, uint32_t node, uint16_t attr_id, uint32_t attr_mod, uint8_t port,
		 const uint8_t *data,
		 void (*done)(struct manager *, const struct manager_request *, const struct mad_smp *))
{
	struct manager_request *r = request_new(m, MAD_SET, attr_id, attr_mod);
	const struct manager_node *n = &m->nodes[node];
	const struct manager_port *p = &n->ports[port];

	if (!r)
		return;
	r->node = node;
	r->port = port;
	r->done = done;
	memcpy(r->smp.data, data, sizeof(r->smp.data));
	if (p->reached)
		enqueue(m, r, p->path, p->hops);
	else
		enqueue(m, r, n->path, n->hops);
}

static void finish(struct manager *m, struct manager_request *r, const struct mad_smp *answer)
{
	list_remove(&r->entry);
	m->in_flight--;
	if (!answer)
		m->report.unanswered++;
	if (r->done)
		r->done(m, r, answer);
	free(r);
}

void manager_requests_answer(struct manager *m, const struct mad_smp *answer)
{
	list_for_each(r, &m->flight, struct manager_request, entry) {
		if (r->number != (uint32_t)answer->tid || r->smp.attr_id != answer->attr_id ||
		    r->smp.attr_mod != answer->attr_mod)
			continue;
		finish(m, r, answer->status ? NULL : answer);
		break;
	}
	fill_window(m);
}

void manager_requests_turn(struct manager *m)
{
	struct list due, *entry;

	list_init(&due);
	list_splice(&due, &m->flight);
	while ((entry = list_pop(&due))) {
		struct manager_request *r = list_entry(entry, struct manager_request, entry);

		list_push(&m->flight, &r->entry);
		if (r->due_ns > m->now_ns)
			continue;
		if (!r->tries) {
			finish(m, r, NULL);
			continue;
		}
		r->tries--;
		transmit(m, r);
	}
	fill_window(m);
}

uint64_t manager_requests_due_ns(const struct manager *m)
{
	uint64_t due = UINT64_MAX;

	list_for_each(r, (struct list *)&m->flight, struct manager_request, entry)
		due = MIN(due, r->due_ns);
	return due;
}

bool manager_requests_idle(const struct manager *m)
{
	return list_empty(&m->queue) && list_empty(&m->flight);
}

void manager_requests_forget(struct manager *m)
{
	struct list *entry;

	list_splice(&m->flight, &m->queue);
	while ((entry = list_pop(&m->flight)))
		free(list_entry(entry, struct manager_request, entry));
	m->in_flight = 0;
}
