/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of a scenario as JSON; see fabric_simulate.h. */
#include "cli/fabric_simulate.h"

#include "cli/json_out.h"

#define FLOWS_MAX 20000u

static void put_port(struct cli_json *j, const struct simulate_scenario *s, const char *key, struct topology_end end)
{
	char text[TOPOLOGY_NAME_MAX + 8];

	snprintf(text, sizeof(text), "%s:%u", s->topology->nodes[end.node].id, end.port);
	cli_json_string(j, key, text);
}

static void put_lanes(struct cli_json *j, const struct simulate_scenario *s, const char *key,
		      const struct simulate_lane *lanes, uint32_t count)
{
	cli_json_open(j, key, '[');
	for (uint32_t i = 0; i < count; i++) {
		cli_json_open(j, NULL, '{');
		put_port(j, s, "port", lanes[i].at);
		cli_json_uint(j, "lane", lanes[i].lane);
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
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
	cli_json_uint(j, "count", h->count);
	cli_json_uint(j, "min", h->min);
	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		cli_json_uint(j, points[i].key, hist_percentile(h, points[i].percent));
	cli_json_uint(j, "max", h->max);
	cli_json_number(j, "mean", hist_mean(h));
	cli_json_close(j, '}');
}

static void put_group(struct cli_json *j, const struct simulate_traffic *f, const struct simulate_group *g)
{
	cli_json_open(j, NULL, '{');
	cli_json_string(j, "name", f->name);
	cli_json_string(j, "pattern", simulate_pattern_name(f->pattern));
	cli_json_uint(j, "senders", g->sender_count);
	cli_json_uint(j, "flows", g->flow_count);
	cli_json_uint(j, "from_ns", g->from_ps / 1000);
	cli_json_uint(j, "to_ns", g->to_ps / 1000);
	cli_json_uint(j, "sent", g->sent);
	cli_json_uint(j, "delivered", g->delivered);
	cli_json_uint(j, "lost", g->lost);
	cli_json_uint(j, "reordered", g->reordered);
	cli_json_uint(j, "messages", g->messages);
	cli_json_number(j, "rate_bps", g->rate_bps);
	if (g->share >= 0) {
		cli_json_number(j, "fair_bps", g->fair_bps);
		cli_json_number(j, "share", g->share);
		cli_json_number(j, "least_share", g->least_share);
		cli_json_number(j, "most_share", g->most_share);
	}
	put_latency(j, "packet_latency_ns", &g->packets);
	put_latency(j, "message_latency_ns", &g->whole);
	cli_json_close(j, '}');
}

static void put_flow(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_flow *w)
{
	cli_json_open(j, NULL, '{');
	cli_json_string(j, "traffic", s->traffic[w->traffic].name);
	put_port(j, s, "from", w->source);
	put_port(j, s, "to", w->target);
	cli_json_uint(j, "sl", w->sl);
	cli_json_uint(j, "sent", w->sent);
	cli_json_uint(j, "delivered", w->delivered);
	cli_json_uint(j, "lost", w->lost);
	cli_json_uint(j, "reordered", w->reordered);
	cli_json_number(j, "rate_bps", w->rate_bps);
	if (w->fair_bps > 0)
		cli_json_number(j, "fair_bps", w->fair_bps);
	put_latency(j, "packet_latency_ns", w->latency);
	cli_json_close(j, '}');
}

/* All of them, so that the topology can be drawn from the result alone. */
static void put_nodes(struct cli_json *j, const struct topology *t)
{
	cli_json_open(j, "nodes", '[');
	for (uint32_t i = 0; i < t->node_count; i++) {
		cli_json_open(j, NULL, '{');
		cli_json_string(j, "name", t->nodes[i].id);
		cli_json_string(j, "description", t->nodes[i].name);
		cli_json_string(j, "kind", t->nodes[i].kind == TOPOLOGY_HCA ? "host" : "switch");
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
}

static void put_links(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_open(j, "links", '[');
	for (uint32_t i = 0; i < r->link_count; i++) {
		const struct simulate_link *l = &r->links[i];

		cli_json_open(j, NULL, '{');
		put_port(j, s, "from", l->from);
		put_port(j, s, "to", l->to);
		cli_json_number(j, "load", l->load);
		cli_json_number(j, "wait", l->wait);
		cli_json_uint(j, "packets", l->packets);
		cli_json_uint(j, "marked", l->marked);
		cli_json_uint(j, "discards", l->discards);
		cli_json_uint(j, "errors", l->errors);
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
}

static void put_congestion(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_open(j, "congestion", '[');
	for (uint32_t i = 0; i < r->congested_count; i++) {
		const struct simulate_congested *c = &r->congested[i];

		cli_json_open(j, NULL, '{');
		put_port(j, s, "port", c->at);
		cli_json_uint(j, "lane", c->lane);
		cli_json_bool(j, "root", c->root);
		cli_json_uint(j, "from_ns", c->from_ps / 1000);
		cli_json_uint(j, "to_ns", c->to_ps / 1000);
		cli_json_uint(j, "peak_bytes", c->peak_bytes);
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
	cli_json_uint(j, "congestion_left_out", r->congested_left_out);
}

static void put_deadlocks(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	put_lanes(j, s, "circle", r->circle, r->circle_count);
	cli_json_open(j, "deadlocks", '[');
	for (uint32_t i = 0; i < r->deadlock_count; i++) {
		cli_json_open(j, NULL, '{');
		cli_json_uint(j, "at_ns", r->deadlocks[i].at_ps / 1000);
		put_lanes(j, s, "lanes", r->deadlocks[i].lanes, r->deadlocks[i].count);
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
}

static void put_expect(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_open(j, "expect", '[');
	for (uint32_t i = 0; i < s->expect_count; i++) {
		cli_json_open(j, NULL, '{');
		cli_json_string(j, "text", s->expect[i].text);
		if (r->verdicts[i].known)
			cli_json_number(j, "value", r->verdicts[i].value);
		cli_json_bool(j, "holds", r->verdicts[i].holds);
		cli_json_close(j, '}');
	}
	cli_json_close(j, ']');
}

static void put_sums(struct cli_json *j, const struct simulate_result *r)
{
	cli_json_uint(j, "end_ns", r->end_ps / 1000);
	cli_json_bool(j, "interrupted", r->interrupted);
	cli_json_uint(j, "hops", r->hops);
	cli_json_uint(j, "sent", r->sent);
	cli_json_uint(j, "delivered", r->delivered);
	cli_json_uint(j, "inside", r->inside);
	cli_json_uint(j, "lost", r->lost);
	cli_json_open(j, "lost_why", '{');
	for (unsigned i = 0; simulate_loss_name(i); i++)
		if (r->lost_why[i])
			cli_json_uint(j, simulate_loss_name(i), r->lost_why[i]);
	cli_json_close(j, '}');
	cli_json_uint(j, "reordered", r->reordered);
	cli_json_uint(j, "marked", r->marked);
	cli_json_uint(j, "notifications", r->notifications);
	cli_json_number(j, "carried", r->carried);
	cli_json_uint(j, "layers", r->layers);
}

void fabric_simulate_json(const struct simulate_scenario *s, const struct simulate_result *r, FILE *out)
{
	struct cli_json j = { .out = out };

	cli_json_open(&j, NULL, '{');
	cli_json_string(&j, "title", s->title);
	cli_json_string(&j, "topology", s->topology_name);
	cli_json_string(&j, "routing", simulate_routing_name(s->routing));
	cli_json_uint(&j, "seed", s->seed);
	put_sums(&j, r);
	cli_json_open(&j, "traffic", '[');
	for (uint32_t i = 0; i < r->group_count; i++)
		put_group(&j, &s->traffic[i], &r->groups[i]);
	cli_json_close(&j, ']');
	cli_json_open(&j, "flows", '[');
	for (uint32_t i = 0; i < r->flow_count && i < FLOWS_MAX; i++)
		put_flow(&j, s, &r->flows[i]);
	cli_json_close(&j, ']');
	cli_json_uint(&j, "flows_left_out", r->flow_count > FLOWS_MAX ? r->flow_count - FLOWS_MAX : 0);
	put_nodes(&j, s->topology);
	put_links(&j, s, r);
	put_congestion(&j, s, r);
	put_deadlocks(&j, s, r);
	put_expect(&j, s, r);
	cli_json_close(&j, '}');
	fputc('\n', out);
}
