/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of more than one MAD leave by RMPP (wire/mad/rmpp.h). */
#define LOG_ROOM "manager"
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/mad/rmpp.h"
#include "wire/mad/sa.h"

#define ANSWERS_MAX 128

struct manager_long {
	struct list entry;
	struct manager_address to;
	uint64_t tid;
	struct mad_rmpp_sender sender;
	uint8_t *mad;
};

static void end(struct manager *m, struct manager_long *l)
{
	list_remove(&l->entry);
	m->answer_count--;
	free(l->mad);
	free(l);
}

static void turn(struct manager *m, struct manager_long *l)
{
	uint8_t mad[MAD_BYTES];

	while (mad_rmpp_send_next(&l->sender, m->now_ns, mad))
		m->ops.send(m->ops.arg, &l->to, mad);
	if (l->sender.state == MAD_RMPP_FAILED)
		log_debug("an answer to lid %u is given up, RMPP status %u", l->to.lid,
			  l->sender.status);
	if (l->sender.state != MAD_RMPP_RUNNING)
		end(m, l);
}

/* A query that is repeated while its answer is on the way gets no second one. */
static struct manager_long *find(struct manager *m, const struct manager_address *to, uint64_t tid)
{
	list_for_each(l, &m->answers, struct manager_long, entry)
		if (l->tid == tid && l->to.lid == to->lid && l->to.remote_qpn == to->remote_qpn)
			return l;
	return NULL;
}

void manager_long_send(struct manager *m, const struct manager_address *to, uint8_t *mad, size_t bytes)
{
	static const struct mad_rmpp_config config = MAD_RMPP_CONFIG_SA;
	struct manager_long *l = NULL;
	struct mad_header header;

	mad_header_unpack(mad, &header);
	if (m->answer_count < ANSWERS_MAX && !find(m, to, header.tid))
		l = calloc(1, sizeof(*l));
	if (!l) {
		free(mad); /* as a query that was lost: it is repeated */
		return;
	}
	l->to = *to;
	l->tid = header.tid;
	l->mad = mad;
	list_push(&m->answers, &l->entry);
	m->answer_count++;
	if (mad_rmpp_send_begin(&l->sender, &config, mad, mad + MAD_SA_DATA_AT,
				bytes - MAD_SA_DATA_AT, m->now_ns))
		end(m, l);
	else
		turn(m, l);
}

bool manager_long_receive(struct manager *m, const struct manager_address *from,
			  const uint8_t mad[MAD_BYTES])
{
	struct manager_long *l;
	struct mad_header header;
	struct mad_rmpp rmpp;

	mad_rmpp_unpack(mad + MAD_RMPP_AT, &rmpp);
	if (!(rmpp.flags & MAD_RMPP_ACTIVE) || rmpp.type == MAD_RMPP_DATA)
		return false;
	mad_header_unpack(mad, &header);
	l = find(m, from, header.tid);
	if (l) {
		mad_rmpp_send_receive(&l->sender, mad, m->now_ns);
		turn(m, l);
	}
	return true;
}

void manager_long_turn(struct manager *m)
{
	struct list all, *entry;

	list_init(&all);
	list_splice(&all, &m->answers);
	while ((entry = list_pop(&all))) {
		struct manager_long *l = list_entry(entry, struct manager_long, entry);

		list_push(&m->answers, &l->entry);
		turn(m, l);
	}
}

uint64_t manager_long_due_ns(const struct manager *m)
{
	uint64_t due = UINT64_MAX;

	list_for_each(l, (struct list *)&m->answers, struct manager_long, entry)
		due = MIN(due, mad_rmpp_send_due_ns(&l->sender));
	return due;
}

void manager_long_forget(struct manager *m)
{
	struct list *entry;

	while ((entry = list_pop(&m->answers))) {
		struct manager_long *l = list_entry(entry, struct manager_long, entry);

		free(l->mad);
		free(l);
	}
}
