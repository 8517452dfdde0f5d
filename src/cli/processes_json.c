/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that use the adapter, as JSON, with all counters. */

#include "cli/processes.h"

/* `before` NULL: the values, else their differences per second. A value may be smaller than before: a
 * gauge, or a process that was started again. */
static void counters(struct cli_json *j, const char *key, const char *const *names, const uint64_t *now,
		     const uint64_t *before, size_t count, double seconds)
{
	cli_json_open(j, key, '{');
	for (size_t i = 0; i < count; i++)
		if (names[i] && before)
			cli_json_put(j, j_number(names[i], (double)(int64_t)(now[i] - before[i]) / seconds));
		else if (names[i])
			cli_json_put(j, j_uint(names[i], now[i]));
	cli_json_close(j, '}');
}

static void qp(struct cli_json *j, const struct hca_view *v,
	       const struct hca_qp_view *q, const struct hca_qp_view *before,
	       double seconds)
{
	char device[32];

	snprintf(device, sizeof(device), "soft%u", q->device);
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_uint("qpn", q->qpn), j_text("device", device),
			j_text("type", qp_type_name(q->type)), j_text("state", qp_state_name(q->state)),
			j_text("transport", q->transport));
	if (q->peer_qpn)
		cli_json_put(j, j_uint("peer_qpn", q->peer_qpn));
	if (q->peer_pid)
		cli_json_put(j, j_uint("peer_pid", q->peer_pid));
	counters(j, "counters", v->qp_counter_names, q->counters, NULL, HCA_QP_COUNTERS, 0);
	if (before)
		counters(j, "per_second", v->qp_counter_names, q->counters, before->counters, HCA_QP_COUNTERS,
			 seconds);
	cli_json_close(j, '}');
}

/* The number of QPs of each type in each state. */
static void states(struct cli_json *j, const struct hca_process_view *p)
{
	unsigned counts[QP_TYPES][QP_STATES];

	qp_states_count(p, counts);
	cli_json_open(j, "queue_pairs", '[');
	for (unsigned t = 0; t < QP_TYPES; t++)
		for (unsigned s = 0; s < QP_STATES; s++) {
			if (!counts[t][s])
				continue;
			cli_json_object(j, NULL, j_text("type", qp_type_name(t)),
						 j_text("state", qp_state_name(s)),
						 j_uint("count", counts[t][s]));
		}
	cli_json_close(j, ']');
}

static void links(struct cli_json *j, const struct hca_process_view *p)
{
	cli_json_list(j, "links", i, p->link_count)
		cli_json_object(j, NULL, j_uint("pid", p->links[i].pid),
					 j_bool("pulls", p->links[i].pulls),
					 j_bool("accesses", p->links[i].accesses),
					 j_bool("procmem", p->links[i].procmem));
}

static void process(struct cli_json *j, const struct hca_view *v,
		    const struct hca_process_view *p,
		    const struct hca_process_view *before, double seconds,
		    bool qps)
{
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_uint("pid", p->pid), j_uint("uid", p->uid), j_text("command", p->command));
	if (*p->problem) {
		cli_json_put(j, j_text("problem", p->problem));
		cli_json_close(j, '}');
		return;
	}
	cli_json_put(j, j_text("transports", p->transports));
	states(j, p);
	links(j, p);
	counters(j, "counters", v->process_counter_names, p->counters, NULL, HCA_PROCESS_COUNTERS, 0);
	counters(j, "traffic", v->qp_counter_names, p->totals, NULL, HCA_QP_COUNTERS, 0);
	if (before) {
		counters(j, "counters_per_second", v->process_counter_names, p->counters, before->counters,
			 HCA_PROCESS_COUNTERS, seconds);
		counters(j, "traffic_per_second", v->qp_counter_names, p->totals, before->totals,
			 HCA_QP_COUNTERS, seconds);
	}
	if (qps)
		cli_json_list(j, "queue_pair_list", q, p->qp_count)
			qp(j, v, &p->qps[q], process_find_qp(before, p->qps[q].qpn), seconds);
	cli_json_close(j, '}');
}

static void totals(struct cli_json *j, const struct hca_view *v)
{
	struct traffic_totals t;

	traffic_total(v, &t);
	cli_json_open(j, "totals", '{');
	cli_json_put(j, j_uint("processes", t.processes), j_uint("queue_pairs", t.qps),
			j_uint("memory_regions", t.mrs), j_uint("registered_bytes", t.mr_bytes));
	counters(j, "traffic", v->qp_counter_names, t.counters, NULL, HCA_QP_COUNTERS, 0);
	cli_json_close(j, '}');
}

void processes_json(struct cli_json *j, const struct hca_view *v,
		    const struct hca_view *before, double seconds, bool qps)
{
	if (before)
		cli_json_put(j, j_number("seconds", seconds));
	cli_json_list(j, "processes", i, v->process_count)
		process(j, v, &v->processes[i], process_find(before, &v->processes[i]), seconds, qps);
	totals(j, v);
}
