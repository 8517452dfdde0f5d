/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that use the adapter: as text, from which most zeros are left out, or as JSON, with
 * all counters. */
#include "cli/processes.h"

#include <inttypes.h>


static void print_traffic(FILE *out, const struct traffic_classes *c, const uint64_t *counters)
{
	const char *between = "";
	char text[32];

	for (size_t i = 0; i < c->count; i++) {
		struct traffic t = traffic_of(&c->list[i], counters);

		if (!t.messages)
			continue;
		fprintf(out, "%s%s %" PRIu64 " (%s)", between, c->list[i].name,
			t.messages, bytes_text(text, sizeof(text), (double)t.bytes));
		between = ", ";
	}
	if (!*between)
		fprintf(out, "nothing");
}

static bool is_traffic(unsigned place)
{
	return place < HCA_TX_RETRIES ||
	       (place >= HCA_RX_SENDS && place <= HCA_RX_ATOMICS);
}

/* Retries, refusals and errors: a line only if there are any. */
static void print_rare(FILE *out, const char *indent, const char *const *names,
		       const uint64_t *counters)
{
	const char *before = indent;

	for (unsigned i = 0; i < HCA_QP_COUNTERS; i++) {
		if (is_traffic(i) || !names[i] || !counters[i])
			continue;
		fprintf(out, "%s%s %" PRIu64, before, names[i], counters[i]);
		before = ", ";
	}
	if (before != indent)
		fprintf(out, "\n");
}

/* "RC RTS 3, UD RTS 1". */
static void print_states(FILE *out, const struct hca_process_view *p)
{
	unsigned counts[QP_TYPES][QP_STATES];
	const char *between = "";

	qp_states_count(p, counts);
	for (unsigned t = 0; t < QP_TYPES; t++)
		for (unsigned s = 0; s < QP_STATES; s++) {
			if (!counts[t][s])
				continue;
			fprintf(out, "%s%s %s %u", between, qp_type_name(t),
				qp_state_name(s), counts[t][s]);
			between = ", ";
		}
	if (!*between)
		fprintf(out, "none");
}

static void print_qp(FILE *out, const struct hca_view *v,
		     const struct hca_qp_view *q)
{
	fprintf(out, "    qp 0x%06x  soft%u %s %s", q->qpn, q->device,
		qp_type_name(q->type), qp_state_name(q->state));
	if (q->peer_qpn)
		fprintf(out, ", peer 0x%06x", q->peer_qpn);
	if (q->peer_pid)
		fprintf(out, " of pid %u by %s", q->peer_pid, q->transport);
	fprintf(out, "\n      sent ");
	print_traffic(out, &traffic_sent, q->counters);
	fprintf(out, "; received ");
	print_traffic(out, &traffic_received, q->counters);
	fprintf(out, "\n");
	print_rare(out, "      ", v->qp_counter_names, q->counters);
}

static void print_links(FILE *out, const struct hca_process_view *p)
{
	fprintf(out, "    links        ");
	if (!p->link_count)
		fprintf(out, "none");
	for (size_t i = 0; i < p->link_count; i++)
		fprintf(out, "%spid %u%s", i ? ", " : "", p->links[i].pid,
			!p->links[i].accesses ? " (memory by target)" :
			p->links[i].procmem   ? " (memory by procmem)" :
						"");
	fprintf(out, "\n");
}

/* What BUSBAR_FAULTS has done to streams. */
static void print_faults(FILE *out, const uint64_t *c)
{
	if (c[HCA_FPDUS_DELAYED] || c[HCA_FPDUS_CORRUPTED] || c[HCA_STREAMS_STALLED] ||
	    c[HCA_STREAMS_CUT] || c[HCA_STREAMS_RESET])
		fprintf(out, "    faults       FPDUs delayed %" PRIu64 ", corrupted %" PRIu64
			     ", streams stalled %" PRIu64 ", cut %" PRIu64 ", reset %" PRIu64 "\n",
			c[HCA_FPDUS_DELAYED], c[HCA_FPDUS_CORRUPTED], c[HCA_STREAMS_STALLED],
			c[HCA_STREAMS_CUT], c[HCA_STREAMS_RESET]);
}

static void print_known(FILE *out, const struct hca_view *v,
			const struct hca_process_view *p)
{
	const uint64_t *c = p->counters;
	char text[32];

	fprintf(out, "    transport    %s\n    queue pairs  ", p->transports);
	print_states(out, p);
	fprintf(out, "\n    memory       %" PRIu64 " regions, %s\n", c[HCA_MRS],
		bytes_text(text, sizeof(text), (double)c[HCA_MR_BYTES]));
	print_links(out, p);
	fprintf(out, "    sent         ");
	print_traffic(out, &traffic_sent, p->totals);
	fprintf(out, "\n    received     ");
	print_traffic(out, &traffic_received, p->totals);
	fprintf(out, "\n    attention    %" PRIu64 " polls, %" PRIu64
		     " progress ticks, woken %" PRIu64 ", woke others %" PRIu64
		     "\n    events       %" PRIu64 " completion, %" PRIu64
		     " asynchronous\n",
		c[HCA_POLLS], c[HCA_TICKS], c[HCA_KICKS_RECEIVED],
		c[HCA_KICKS_SENT], c[HCA_CQ_EVENTS],
		c[HCA_PROCESS_ASYNC_EVENTS]);
	print_rare(out, "    trouble      ", v->qp_counter_names, p->totals);
	if (c[HCA_CQ_OVERRUNS] || c[HCA_UNKNOWN_QP] || c[HCA_LINKS_BROKEN])
		fprintf(out, "    trouble      CQs overrun %" PRIu64
			     ", messages to no queue pair %" PRIu64
			     ", links broken %" PRIu64 "\n",
			c[HCA_CQ_OVERRUNS], c[HCA_UNKNOWN_QP],
			c[HCA_LINKS_BROKEN]);
	if (c[HCA_BAD_ICRC] || c[HCA_BAD_PACKETS] || c[HCA_STRANGERS] ||
	    c[HCA_WRONG_QKEYS])
		fprintf(out, "    dropped      packets with a bad ICRC %" PRIu64
			     ", malformed %" PRIu64 ", from strangers %" PRIu64
			     ", with a wrong Q_Key %" PRIu64 "\n",
			c[HCA_BAD_ICRC], c[HCA_BAD_PACKETS], c[HCA_STRANGERS],
			c[HCA_WRONG_QKEYS]);
	print_faults(out, c);
}

static void print_totals(FILE *out, const struct hca_view *v)
{
	struct traffic_totals t;
	char text[32];

	traffic_total(v, &t);
	fprintf(out, "in all  %" PRIu64 " processes, %" PRIu64
		     " queue pairs, %" PRIu64
		     " memory regions (%s)\n    sent         ",
		t.processes, t.qps, t.mrs,
		bytes_text(text, sizeof(text), (double)t.mr_bytes));
	print_traffic(out, &traffic_sent, t.counters);
	fprintf(out, "\n    received     ");
	print_traffic(out, &traffic_received, t.counters);
	fprintf(out, "\n");
}

void processes_print(const struct hca_view *v, bool qps, FILE *out)
{
	if (!v->process_count) {
		fprintf(out, "no process here uses busbar's adapter\n");
		return;
	}
	fprintf(out, "processes on busbar's adapter\n");
	for (size_t i = 0; i < v->process_count; i++) {
		const struct hca_process_view *p = &v->processes[i];

		fprintf(out, "  pid %u  uid %u  %s\n", p->pid, p->uid,
			*p->command ? p->command : "(command unknown)");
		if (*p->problem) {
			fprintf(out, "    not shown: it %s\n", p->problem);
			continue;
		}
		print_known(out, v, p);
		for (size_t q = 0; qps && q < p->qp_count; q++)
			print_qp(out, v, &p->qps[q]);
	}
	print_totals(out, v);
}

/* `before` NULL: the values, else their differences per second. A value may be smaller than before:
 * a gauge, or a process that was started again. */
static void counters(struct cli_json *j, const char *key, const char *const *names,
		     const uint64_t *now, const uint64_t *before, size_t count, double seconds)
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
		counters(j, "per_second", v->qp_counter_names, q->counters, before->counters,
			 HCA_QP_COUNTERS, seconds);
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
	counters(j, "counters", v->process_counter_names, p->counters, NULL,
		 HCA_PROCESS_COUNTERS, 0);
	counters(j, "traffic", v->qp_counter_names, p->totals, NULL, HCA_QP_COUNTERS, 0);
	if (before) {
		counters(j, "counters_per_second", v->process_counter_names, p->counters,
			 before->counters, HCA_PROCESS_COUNTERS, seconds);
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
		process(j, v, &v->processes[i], process_find(before, &v->processes[i]), seconds,
			qps);
	totals(j, v);
}
