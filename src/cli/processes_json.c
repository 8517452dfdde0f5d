/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that use the adapter, as JSON, with all counters. */
#include <string.h>

#include "cli/processes.h"

static void counters(struct json_out *j, const char *key,
		     const char *const *names, const uint64_t *values,
		     size_t count)
{
	json_out_open(j, key, '{');
	for (size_t i = 0; i < count; i++)
		if (names[i])
			json_out_uint(j, names[i], values[i]);
	json_out_close(j, '}');
}

/* A value may be smaller than before: a gauge, or a process that was started again. */
static void rates(struct json_out *j, const char *key, const char *const *names,
		  const uint64_t *now, const uint64_t *before, size_t count,
		  double seconds)
{
	json_out_open(j, key, '{');
	for (size_t i = 0; i < count; i++)
		if (names[i])
			json_out_number(j, names[i],
				    (double)(int64_t)(now[i] - before[i]) /
					    seconds);
	json_out_close(j, '}');
}

static void qp(struct json_out *j, const struct hca_view *v,
	       const struct hca_qp_view *q, const struct hca_qp_view *before,
	       double seconds)
{
	char device[32];

	snprintf(device, sizeof(device), "soft%u", q->device);
	json_out_open(j, NULL, '{');
	json_out_uint(j, "qpn", q->qpn);
	json_out_string(j, "device", device);
	json_out_string(j, "type", qp_type_name(q->type));
	json_out_string(j, "state", qp_state_name(q->state));
	json_out_string(j, "transport", q->transport);
	if (q->peer_qpn)
		json_out_uint(j, "peer_qpn", q->peer_qpn);
	if (q->peer_pid)
		json_out_uint(j, "peer_pid", q->peer_pid);
	counters(j, "counters", v->qp_counter_names, q->counters,
		 HCA_QP_COUNTERS);
	if (before)
		rates(j, "per_second", v->qp_counter_names, q->counters,
		      before->counters, HCA_QP_COUNTERS, seconds);
	json_out_close(j, '}');
}

/* The number of QPs of each type in each state. */
static void states(struct json_out *j, const struct hca_process_view *p)
{
	unsigned counts[QP_TYPES][QP_STATES];

	qp_states_count(p, counts);
	json_out_open(j, "queue_pairs", '[');
	for (unsigned t = 0; t < QP_TYPES; t++)
		for (unsigned s = 0; s < QP_STATES; s++) {
			if (!counts[t][s])
				continue;
			json_out_open(j, NULL, '{');
			json_out_string(j, "type", qp_type_name(t));
			json_out_string(j, "state", qp_state_name(s));
			json_out_uint(j, "count", counts[t][s]);
			json_out_close(j, '}');
		}
	json_out_close(j, ']');
}

static void links(struct json_out *j, const struct hca_process_view *p)
{
	json_out_open(j, "links", '[');
	for (size_t i = 0; i < p->link_count; i++) {
		json_out_open(j, NULL, '{');
		json_out_uint(j, "pid", p->links[i].pid);
		json_out_bool(j, "pulls", p->links[i].pulls);
		json_out_bool(j, "accesses", p->links[i].accesses);
		json_out_bool(j, "procmem", p->links[i].procmem);
		json_out_close(j, '}');
	}
	json_out_close(j, ']');
}

static void process(struct json_out *j, const struct hca_view *v,
		    const struct hca_process_view *p,
		    const struct hca_process_view *before, double seconds,
		    bool qps)
{
	json_out_open(j, NULL, '{');
	json_out_uint(j, "pid", p->pid);
	json_out_uint(j, "uid", p->uid);
	json_out_string(j, "command", p->command);
	if (*p->problem) {
		json_out_string(j, "problem", p->problem);
		json_out_close(j, '}');
		return;
	}
	json_out_string(j, "transports", p->transports);
	states(j, p);
	links(j, p);
	counters(j, "counters", v->process_counter_names, p->counters,
		 HCA_PROCESS_COUNTERS);
	counters(j, "traffic", v->qp_counter_names, p->totals, HCA_QP_COUNTERS);
	if (before) {
		rates(j, "counters_per_second", v->process_counter_names,
		      p->counters, before->counters, HCA_PROCESS_COUNTERS,
		      seconds);
		rates(j, "traffic_per_second", v->qp_counter_names, p->totals,
		      before->totals, HCA_QP_COUNTERS, seconds);
	}
	if (qps) {
		json_out_open(j, "queue_pair_list", '[');
		for (size_t q = 0; q < p->qp_count; q++)
			qp(j, v, &p->qps[q],
			   process_find_qp(before, p->qps[q].qpn), seconds);
		json_out_close(j, ']');
	}
	json_out_close(j, '}');
}

static void totals(struct json_out *j, const struct hca_view *v)
{
	struct traffic_totals t;

	traffic_total(v, &t);
	json_out_open(j, "totals", '{');
	json_out_uint(j, "processes", t.processes);
	json_out_uint(j, "queue_pairs", t.qps);
	json_out_uint(j, "memory_regions", t.mrs);
	json_out_uint(j, "registered_bytes", t.mr_bytes);
	counters(j, "traffic", v->qp_counter_names, t.counters, HCA_QP_COUNTERS);
	json_out_close(j, '}');
}

void processes_json(struct json_out *j, const struct hca_view *v,
		    const struct hca_view *before, double seconds, bool qps)
{
	if (before)
		json_out_number(j, "seconds", seconds);
	json_out_open(j, "processes", '[');
	for (size_t i = 0; i < v->process_count; i++)
		process(j, v, &v->processes[i],
			process_find(before, &v->processes[i]), seconds, qps);
	json_out_close(j, ']');
	totals(j, v);
}
