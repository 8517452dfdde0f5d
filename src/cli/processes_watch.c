/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that use the adapter and their rates, printed at an interval. The
 * processes are not disturbed: their segments are read without a request to them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cli/processes.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

static void sleep_until(uint64_t ns)
{
	const struct timespec t = timespec_from_ns(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return (double)(int64_t)(now - before) / seconds;
}

/* Messages and bytes per second in both directions, retransmissions, refusals. */
static void print_rates(FILE *out, const uint64_t *now, const uint64_t *before,
			double seconds)
{
	static const struct traffic_classes *const ways[] = { &traffic_sent, &traffic_received };
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct traffic n = traffic_sum(ways[i], now), b = traffic_sum(ways[i], before);

		fprintf(out, " %10.0f %9s", rate(n.messages, b.messages, seconds),
			bytes_text(text, sizeof(text), rate(n.bytes, b.bytes, seconds)));
	}
	fprintf(out, " %8.0f %8.0f",
		rate(now[HCA_TX_REPEATED], before[HCA_TX_REPEATED], seconds),
		rate(now[HCA_RX_RNR_SENT], before[HCA_RX_RNR_SENT], seconds));
}

static void print_process(FILE *out, const struct hca_process_view *p,
			  const struct hca_process_view *b, double seconds,
			  bool qps)
{
	fprintf(out, "  %-10u", p->pid);
	if (*p->problem || !b) {
		fprintf(out, " %s  %.40s\n", *p->problem ? p->problem : "is new",
			p->command);
		return;
	}
	print_rates(out, p->totals, b->totals, seconds);
	fprintf(out, " %10.0f %8.0f  %.40s\n",
		rate(p->counters[HCA_POLLS], b->counters[HCA_POLLS], seconds),
		rate(p->counters[HCA_KICKS_RECEIVED],
		     b->counters[HCA_KICKS_RECEIVED], seconds),
		p->command);
	for (size_t i = 0; qps && i < p->qp_count; i++) {
		const struct hca_qp_view *q = &p->qps[i];
		const struct hca_qp_view *qb = process_find_qp(b, q->qpn);

		fprintf(out, "    0x%06x", q->qpn);
		if (qb)
			print_rates(out, q->counters, qb->counters, seconds);
		fprintf(out, "  %s %s\n", qp_type_name(q->type),
			qp_state_name(q->state));
	}
}

static void print_table(FILE *out, const struct hca_view *v,
			const struct hca_view *before, double seconds, bool qps)
{
	fprintf(out, "  %-10s %10s %9s %10s %9s %8s %8s %10s %8s\n", "pid",
		"sent/s", "bytes/s", "received/s", "bytes/s", "repeated",
		"RNR sent", "polls/s", "woken/s");
	for (size_t i = 0; i < v->process_count; i++)
		print_process(out, &v->processes[i],
			      process_find(before, &v->processes[i]), seconds,
			      qps);
	for (size_t i = 0; i < before->process_count; i++)
		if (!*before->processes[i].problem &&
		    !process_find(v, &before->processes[i]))
			fprintf(out, "  %-10u has ended\n",
				before->processes[i].pid);
	fprintf(out, "\n");
}

static void show(FILE *out, const struct hca_view *v,
		 const struct hca_view *before, double seconds, bool qps,
		 bool json)
{
	struct cli_json j = { .out = out };

	if (!json) {
		print_table(out, v, before, seconds, qps);
	} else {
		cli_json_open(&j, NULL, '{');
		processes_json(&j, v, before, seconds, qps);
		cli_json_close(&j, '}');
	}
	fflush(out);
}

int processes_watch(struct processes *p, double interval_s, unsigned count,
		    bool qps, bool json, FILE *out)
{
	uint64_t interval_ns = (uint64_t)(interval_s * (double)NSEC_PER_SEC);
	uint64_t taken = clock_monotonic_ns_slow(), next = taken;
	struct hca_view *before = NULL, *now;
	int ret = p->look(p->inspector, &before);

	for (unsigned i = 0; !ret && (count == 0 || i < count); i++) {
		uint64_t last = taken;

		next += interval_ns;
		sleep_until(next);
		taken = clock_monotonic_ns_slow();
		ret = p->look(p->inspector, &now);
		if (ret)
			break;
		show(out, now, before,
		     (double)(taken - last) / (double)NSEC_PER_SEC, qps, json);
		p->view_free(before);
		before = now;
		if (ferror(out))
			break; /* the reader has closed the pipe */
	}
	if (ret)
		log_error("processes cannot be looked at: %s", strerror(-ret));
	if (before)
		p->view_free(before);
	return ret;
}
