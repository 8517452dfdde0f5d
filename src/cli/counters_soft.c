/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of busbar's adapter: sums over the processes that use a device, which are read from their
 * shared memory as `busbar devices` does it; no process is asked more than once. What a process has
 * done since the last look is lost when it ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/counters.h"
#include "cli/processes.h"
#include "util/container_of.h"
#include "util/log.h"

static const struct {
	enum hca_qp_counter at;
	enum analyzer_counter means;
} own_counters[] = {
	{ HCA_TX_TIMEOUTS, ANALYZER_COUNT_TIMEOUTS },
	{ HCA_TX_RNR_RECEIVED, ANALYZER_COUNT_RNR_NAKS },
	{ HCA_TX_GAPS, ANALYZER_COUNT_SEQUENCE },
	{ HCA_TX_REPEATED, ANALYZER_COUNT_REPEATS },
	{ HCA_TX_GIVEN_UP, ANALYZER_COUNT_GIVEN_UP },
	{ HCA_PAGE_FAULTS, ANALYZER_COUNT_PAGE_FAULTS },
};
/* Behind them. */
enum { MESSAGES = ARRAY_SIZE(own_counters), BYTES, COUNTERS };
_Static_assert(COUNTERS <= COUNTERS_MAX, "room for all counters");

struct soft {
	struct processes processes;
	char name[32];   /* of the device */
	uint32_t pid;    /* instead of a device; 0: none */
	struct hca_view *before;
};

/* What is counted of a process since `b`; NULL: since its start. */
static void add(struct counters *c, const struct hca_process_view *p, const struct hca_process_view *b)
{
	static const uint64_t none[HCA_QP_COUNTERS];
	const uint64_t *from = b ? b->totals : none;
	struct traffic now, before;

	for (size_t i = 0; i < ARRAY_SIZE(own_counters); i++)
		c->counter[i].value += p->totals[own_counters[i].at] - from[own_counters[i].at];
	now = traffic_sum(&traffic_sent, p->totals);
	before = traffic_sum(&traffic_sent, from);
	c->counter[MESSAGES].value += now.messages - before.messages;
	c->counter[BYTES].value += now.bytes - before.bytes;
}

static bool is_meant(const struct soft *s, const struct hca_process_view *p)
{
	return s->pid ? p->pid == s->pid : process_uses(p, s->name);
}

static bool has_process(const struct hca_view *v, uint32_t pid)
{
	for (size_t i = 0; i < v->process_count; i++)
		if (v->processes[i].pid == pid && !*v->processes[i].problem)
			return true;
	return false;
}

static int look(struct counters *c)
{
	struct soft *s = c->own;
	struct hca_view *now;
	int ret = s->processes.look(s->processes.inspector, &now);

	if (!ret && s->pid && !has_process(now, s->pid)) {
		s->processes.view_free(now);
		ret = -ESRCH;
	}
	for (size_t i = 0; !ret && i < now->process_count; i++) {
		const struct hca_process_view *p = &now->processes[i];
		const struct hca_process_view *b = s->before ? process_find(s->before, p) : NULL;

		if (!s->before || *p->problem || (b && *b->problem))
			continue;
		/* One that has destroyed its last queue pair has used the device until now. */
		if (is_meant(s, p) || (b && is_meant(s, b)))
			add(c, p, b);
	}
	if (ret)
		return ret;
	if (s->before)
		s->processes.view_free(s->before);
	s->before = now;
	return 0;
}

static void end(struct counters *c)
{
	struct soft *s = c->own;

	if (s->before)
		s->processes.view_free(s->before);
	processes_close(&s->processes);
	free(s);
	c->own = NULL;
}

int cli_counters_soft(struct counters *c, const char *device)
{
	struct soft *s = calloc(1, sizeof(*s));
	int ret = s ? processes_open(&s->processes) : -ENOMEM;

	if (ret) {
		free(s);
		return ret;
	}
	memset(c, 0, sizeof(*c));
	snprintf(s->name, sizeof(s->name), "%s", device);
	s->pid = *device >= '0' && *device <= '9' ? (uint32_t)strtoul(device, NULL, 10) : 0;
	snprintf(c->name, sizeof(c->name), "%s%s", s->pid ? "process " : "", device);
	c->own = s;
	c->read = look;
	c->close = end;
	c->count = COUNTERS;
	ret = look(c);
	if (ret == -ESRCH)
		log_error("no process %s uses busbar's adapter: it can be watched from its first queue pair on",
			  device);
	else if (ret)
		log_error("processes on busbar's adapter cannot be looked at: %s", strerror(-ret));
	if (ret) {
		end(c);
		return ret;
	}
	for (size_t i = 0; i < ARRAY_SIZE(own_counters); i++)
		c->counter[i] = (struct counter){ s->before->qp_counter_names[own_counters[i].at],
						  own_counters[i].means, 0 };
	c->counter[MESSAGES] = (struct counter){ "tx_messages", ANALYZER_COUNT_REQUESTS, 0 };
	c->counter[BYTES] = (struct counter){ "tx_bytes", ANALYZER_COUNT_BYTES, 0 };
	return 0;
}
