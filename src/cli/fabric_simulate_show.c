/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of a scenario as tables, or as JSON; see fabric_simulate.h. */
#include "cli/fabric_simulate.h"

#include <stdlib.h>

#include "cli/json_out.h"
#include "util/container_of.h"

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

#define FLOWS_MAX 20000u

#define PLACE_BYTES (TOPOLOGY_NAME_MAX + 8)

static const char *place(const struct simulate_scenario *s, struct topology_end end, char text[PLACE_BYTES])
{
	snprintf(text, PLACE_BYTES, "%s:%u", s->topology->nodes[end.node].id, end.port);
	return text;
}

/* The text is in a buffer of the block around it. */
#define j_place(key, s, end) j_text(key, place(s, end, (char[PLACE_BYTES]){ "" }))

static void put_lanes(struct cli_json *j, const struct simulate_scenario *s, const char *key,
		      const struct simulate_lane *lanes, uint32_t count)
{
	cli_json_list(j, key, i, count)
		cli_json_object(j, NULL, j_place("port", s, lanes[i].at), j_uint("lane", lanes[i].lane));
}

static void put_latency(struct cli_json *j, const char *key, const struct hist *h)
{
	static const struct {
		const char *key;
		double percent;
	} points[] = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p99.9", 99.9 } };

	if (!h || !h->count)
		return;
	cli_json_open(j, key, '{');
	cli_json_put(j, j_uint("count", h->count), j_uint("min", h->min));
	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		cli_json_put(j, j_uint(points[i].key, hist_percentile(h, points[i].percent)));
	cli_json_put(j, j_uint("max", h->max), j_number("mean", hist_mean(h)));
	cli_json_close(j, '}');
}

static void put_group(struct cli_json *j, const struct simulate_traffic *f, const struct simulate_group *g)
{
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_text("name", f->name), j_text("pattern", simulate_pattern_name(f->pattern)),
			j_uint("senders", g->sender_count), j_uint("flows", g->flow_count),
			j_uint("from_ns", g->from_ps / 1000), j_uint("to_ns", g->to_ps / 1000),
			j_uint("sent", g->sent), j_uint("delivered", g->delivered),
			j_uint("lost", g->lost), j_uint("reordered", g->reordered),
			j_uint("messages", g->messages), j_number("rate_bps", g->rate_bps));
	if (g->share >= 0) {
		cli_json_put(j, j_number("fair_bps", g->fair_bps), j_number("share", g->share),
				j_number("least_share", g->least_share),
				j_number("most_share", g->most_share));
	}
	put_latency(j, "packet_latency_ns", &g->packets);
	put_latency(j, "message_latency_ns", &g->whole);
	cli_json_close(j, '}');
}

static void put_flow(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_flow *w)
{
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_text("traffic", s->traffic[w->traffic].name),
			j_place("from", s, w->source), j_place("to", s, w->target),
			j_uint("sl", w->sl), j_uint("sent", w->sent), j_uint("delivered", w->delivered),
			j_uint("lost", w->lost), j_uint("reordered", w->reordered),
			j_number("rate_bps", w->rate_bps));
	if (w->fair_bps > 0)
		cli_json_put(j, j_number("fair_bps", w->fair_bps));
	put_latency(j, "packet_latency_ns", w->latency);
	cli_json_close(j, '}');
}

/* All of them, so that the topology can be drawn from the result alone. */
static void put_nodes(struct cli_json *j, const struct topology *t)
{
	cli_json_list(j, "nodes", i, t->node_count) {
		cli_json_object(j, NULL, j_text("name", t->nodes[i].id),
					 j_text("description", t->nodes[i].name),
					 j_text("kind", t->nodes[i].kind == TOPOLOGY_HCA ? "host" : "switch"));
	}
}

static void put_links(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_list(j, "links", i, r->link_count) {
		const struct simulate_link *l = &r->links[i];

		cli_json_object(j, NULL, j_place("from", s, l->from), j_place("to", s, l->to),
				j_number("load", l->load), j_number("wait", l->wait),
				j_uint("packets", l->packets), j_uint("marked", l->marked),
				j_uint("discards", l->discards), j_uint("errors", l->errors));
	}
}

static void put_congestion(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_list(j, "congestion", i, r->congested_count) {
		const struct simulate_congested *c = &r->congested[i];

		cli_json_object(j, NULL, j_place("port", s, c->at), j_uint("lane", c->lane),
				j_bool("root", c->root), j_uint("from_ns", c->from_ps / 1000),
				j_uint("to_ns", c->to_ps / 1000), j_uint("peak_bytes", c->peak_bytes));
	}
	cli_json_put(j, j_uint("congestion_left_out", r->congested_left_out));
}

static void put_deadlocks(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	put_lanes(j, s, "circle", r->circle, r->circle_count);
	cli_json_list(j, "deadlocks", i, r->deadlock_count) {
		cli_json_open(j, NULL, '{');
		cli_json_put(j, j_uint("at_ns", r->deadlocks[i].at_ps / 1000));
		put_lanes(j, s, "lanes", r->deadlocks[i].lanes, r->deadlocks[i].count);
		cli_json_close(j, '}');
	}
}

static void put_expect(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_list(j, "expect", i, s->expect_count) {
		cli_json_open(j, NULL, '{');
		cli_json_put(j, j_text("text", s->expect[i].text));
		if (r->verdicts[i].known)
			cli_json_put(j, j_number("value", r->verdicts[i].value));
		cli_json_put(j, j_bool("holds", r->verdicts[i].holds));
		cli_json_close(j, '}');
	}
}

static void put_sums(struct cli_json *j, const struct simulate_result *r)
{
	cli_json_put(j, j_uint("end_ns", r->end_ps / 1000), j_bool("interrupted", r->interrupted),
			j_uint("hops", r->hops), j_uint("sent", r->sent),
			j_uint("delivered", r->delivered), j_uint("inside", r->inside),
			j_uint("lost", r->lost));
	cli_json_open(j, "lost_why", '{');
	for (unsigned i = 0; simulate_loss_name(i); i++)
		if (r->lost_why[i])
			cli_json_put(j, j_uint(simulate_loss_name(i), r->lost_why[i]));
	cli_json_close(j, '}');
	cli_json_put(j, j_uint("reordered", r->reordered), j_uint("marked", r->marked),
			j_uint("notifications", r->notifications), j_number("carried", r->carried),
			j_uint("layers", r->layers));
}

void fabric_simulate_json(const struct simulate_scenario *s, const struct simulate_result *r, FILE *out)
{
	struct cli_json j = { .out = out };

	cli_json_open(&j, NULL, '{');
	cli_json_put(&j, j_text("title", s->title), j_text("topology", s->topology_name),
			 j_text("routing", simulate_routing_name(s->routing)), j_uint("seed", s->seed));
	put_sums(&j, r);
	cli_json_list(&j, "traffic", i, r->group_count)
		put_group(&j, &s->traffic[i], &r->groups[i]);
	cli_json_list(&j, "flows", i, MIN(r->flow_count, FLOWS_MAX))
		put_flow(&j, s, &r->flows[i]);
	cli_json_put(&j, j_uint("flows_left_out", r->flow_count > FLOWS_MAX ? r->flow_count - FLOWS_MAX : 0));
	put_nodes(&j, s->topology);
	put_links(&j, s, r);
	put_congestion(&j, s, r);
	put_deadlocks(&j, s, r);
	put_expect(&j, s, r);
	cli_json_close(&j, '}');
}
