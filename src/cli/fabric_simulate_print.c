/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of a scenario as tables; see fabric_simulate.h. */
#include "cli/fabric_simulate.h"

#include <stdlib.h>

#define ROWS 20u /* of a table, without --all */

static const char *port_text(const struct simulate_scenario *s, struct topology_end end, char *text, size_t size)
{
	const struct topology_node *n = &s->topology->nodes[end.node];

	if (n->port_count == 1)
		snprintf(text, size, "%s", n->id);
	else
		snprintf(text, size, "%s:%u", n->id, end.port);
	return text;
}

static void print_share(double share)
{
	if (share < 0)
		printf(" %8s", "-");
	else
		printf(" %7.1f%%", 100 * share);
}

static double us(const struct hist *h, double percent)
{
	return (double)hist_percentile(h, percent) * 1e-3;
}

/* ---- traffic ---- */

static void print_groups(const struct simulate_scenario *s, const struct simulate_result *r)
{
	printf("\n%-16s %8s %12s %8s %8s %8s   packets in us: %7s %9s %9s\n", "traffic", "flows", "Gbit/s", "of fair",
	       "least", "most", "50%", "99%", "max");
	for (uint32_t i = 0; i < r->group_count; i++) {
		const struct simulate_group *g = &r->groups[i];

		printf("%-16s %8u %12.3f", s->traffic[i].name, g->flow_count, g->rate_bps * 1e-9);
		print_share(g->share);
		print_share(g->least_share);
		print_share(g->most_share);
		printf("   %-14s %7.2f %9.2f %9.2f\n", "", us(&g->packets, 50), us(&g->packets, 99),
		       us(&g->packets, 100));
	}
}

static void print_flows(const struct simulate_scenario *s, const struct simulate_result *r, bool all)
{
	uint32_t rows = all || r->flow_count <= ROWS ? r->flow_count : ROWS;
	char from[TOPOLOGY_NAME_MAX + 8], to[TOPOLOGY_NAME_MAX + 8];

	if (!all && r->flow_count > SIMULATE_HISTS)
		return;
	printf("\n%-16s %-16s    %-16s %10s %10s %8s %10s %10s\n", "flow", "from", "to", "packets", "Gbit/s", "of fair",
	       "50% us", "99% us");
	for (uint32_t i = 0; i < rows; i++) {
		const struct simulate_flow *w = &r->flows[i];

		printf("%-16s %-16s -> %-16s %10llu %10.3f", s->traffic[w->traffic].name,
		       port_text(s, w->source, from, sizeof(from)), port_text(s, w->target, to, sizeof(to)),
		       (unsigned long long)w->delivered, w->rate_bps * 1e-9);
		print_share(w->fair_bps > 0 ? w->rate_bps / w->fair_bps : -1);
		if (w->latency)
			printf(" %10.2f %10.2f", us(w->latency, 50), us(w->latency, 99));
		putchar('\n');
	}
	if (rows < r->flow_count)
		printf("%u more with --all\n", r->flow_count - rows);
}

/* ---- links ---- */

static const struct simulate_link *sorted_links;

static int by_load(const void *a, const void *b)
{
	const struct simulate_link *x = &sorted_links[*(const uint32_t *)a], *y = &sorted_links[*(const uint32_t *)b];

	if (x->load + x->wait < y->load + y->wait || x->load + x->wait > y->load + y->wait)
		return x->load + x->wait < y->load + y->wait ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void print_link(const struct simulate_scenario *s, const struct simulate_link *l)
{
	char from[TOPOLOGY_NAME_MAX + 8], to[TOPOLOGY_NAME_MAX + 8];

	printf("%-16s -> %-16s %7.1f%% %7.1f%% %10llu %8llu", port_text(s, l->from, from, sizeof(from)),
	       port_text(s, l->to, to, sizeof(to)), 100 * l->load, 100 * l->wait, (unsigned long long)l->packets,
	       (unsigned long long)l->marked);
	if (l->discards + l->errors)
		printf("  lost %llu", (unsigned long long)(l->discards + l->errors));
	putchar('\n');
}

static void print_links(const struct simulate_scenario *s, const struct simulate_result *r, bool all)
{
	uint32_t *order = malloc((r->link_count + 1u) * sizeof(*order)), used = 0;

	if (!order)
		return;
	for (uint32_t i = 0; i < r->link_count; i++)
		if (r->links[i].packets || r->links[i].wait > 0)
			order[used++] = i;
	sorted_links = r->links;
	qsort(order, used, sizeof(*order), by_load);
	printf("\n%-16s    %-16s %8s %8s %10s %8s\n", "link", "", "load", "wait", "packets", "marked");
	for (uint32_t i = 0; i < used && (all || i < ROWS); i++)
		print_link(s, &r->links[order[i]]);
	if (!all && used > ROWS)
		printf("%u more with --all\n", used - ROWS);
	free(order);
}

/* ---- what went wrong ---- */

static void print_lanes(const struct simulate_scenario *s, const struct simulate_lane *lanes, uint32_t count)
{
	char text[TOPOLOGY_NAME_MAX + 8];

	for (uint32_t i = 0; i < count; i++)
		printf("%s%s lane %u", i ? " -> " : "  ", port_text(s, lanes[i].at, text, sizeof(text)), lanes[i].lane);
	putchar('\n');
}

static void print_deadlocks(const struct simulate_scenario *s, const struct simulate_result *r)
{
	if (r->circle_count) {
		printf("\nthe paths may deadlock: a circle of %u lanes\n", r->circle_count);
		print_lanes(s, r->circle, r->circle_count);
	}
	for (uint32_t i = 0; i < r->deadlock_count; i++) {
		printf("\ndeadlock found at %.3f us: each lane waits for credits of the next\n",
		       (double)r->deadlocks[i].at_ps * 1e-6);
		print_lanes(s, r->deadlocks[i].lanes, r->deadlocks[i].count);
	}
}

static void print_congestion(const struct simulate_scenario *s, const struct simulate_result *r, bool all)
{
	char text[TOPOLOGY_NAME_MAX + 8];
	uint32_t rows = all || r->congested_count < ROWS ? r->congested_count : ROWS;

	if (!r->congested_count)
		return;
	printf("\n%-20s %4s %-7s %12s %12s %10s\n", "congested", "lane", "", "from us", "to us", "bytes");
	for (uint32_t i = 0; i < rows; i++) {
		const struct simulate_congested *c = &r->congested[i];

		printf("%-20s %4u %-7s %12.1f %12.1f %10u\n", port_text(s, c->at, text, sizeof(text)), c->lane,
		       c->root ? "root" : "branch", (double)c->from_ps * 1e-6, (double)c->to_ps * 1e-6, c->peak_bytes);
	}
	if (rows < r->congested_count)
		printf("%u more with --all\n", r->congested_count - rows);
}

static void print_sums(const struct simulate_result *r)
{
	printf("\n%.3f us%s: %llu packets sent, %llu delivered, %llu inside, %llu lost, %llu out of order, %llu marked, "
	       "%llu notifications\n", (double)r->end_ps * 1e-6, r->interrupted ? " (interrupted)" : "",
	       (unsigned long long)r->sent, (unsigned long long)r->delivered, (unsigned long long)r->inside,
	       (unsigned long long)r->lost, (unsigned long long)r->reordered, (unsigned long long)r->marked,
	       (unsigned long long)r->notifications);
	for (unsigned i = 0; simulate_loss_name(i); i++)
		if (r->lost_why[i])
			printf("lost: %s %llu\n", simulate_loss_name(i), (unsigned long long)r->lost_why[i]);
	printf("carried: %.1f%% of what the senders' links can\n", 100 * r->carried);
	if (r->layers)
		printf("layers: %u\n", r->layers);
}

static void print_expect(const struct simulate_scenario *s, const struct simulate_result *r)
{
	if (s->expect_count)
		putchar('\n');
	for (uint32_t i = 0; i < s->expect_count; i++) {
		const struct simulate_verdict *v = &r->verdicts[i];

		printf("%-14s expect %s", v->holds ? "holds" : "does not hold", s->expect[i].text);
		if (v->known)
			printf("  (%.4g)\n", v->value);
		else
			printf("  (not known)\n");
	}
}

void fabric_simulate_print(const struct simulate_scenario *s, const struct simulate_result *r, bool all)
{
	if (*s->title)
		puts(s->title);
	printf("%s, %s, seed %llu\n", s->topology_name, simulate_routing_name(s->routing), (unsigned long long)s->seed);
	print_groups(s, r);
	print_flows(s, r, all);
	print_links(s, r, all);
	print_congestion(s, r, all);
	print_deadlocks(s, r);
	print_sums(r);
	print_expect(s, r);
}
