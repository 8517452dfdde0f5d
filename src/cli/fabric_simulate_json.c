/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of a scenario as JSON; see fabric_simulate.h. */
#include "cli/fabric_simulate.h"

#include "cli/json_out.h"
#include "util/container_of.h"

#define FLOWS_MAX 20000u

static void put_port(struct cli_json *j, const struct simulate_scenario *s, const char *key, struct topology_end end)
{
	char text[TOPOLOGY_NAME_MAX + 8];

	snprintf(text, sizeof(text), "%s:%u", s->topology->nodes[end.node].id, end.port);
	cli_json_put(j, j_text(key, text));
}

static void put_lanes(struct cli_json *j, const struct simulate_scenario *s, const char *key,
		      const struct simulate_lane *lanes, uint32_t count)
{
	cli_json_list(j, key, i, count) {
		cli_json_open(j, NULL, '{');
		put_port(j, s, "port", lanes[i].at);
		cli_json_put(j, j_uint("lane", lanes[i].lane));
		cli_json_close(j, '}');
	}
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
	cli_json_put(j, j_text("traffic", s->traffic[w->traffic].name));
	put_port(j, s, "from", w->source);
	put_port(j, s, "to", w->target);
	cli_json_put(j, j_uint("sl", w->sl), j_uint("sent", w->sent), j_uint("delivered", w->delivered),
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

		cli_json_open(j, NULL, '{');
		put_port(j, s, "from", l->from);
		put_port(j, s, "to", l->to);
		cli_json_put(j, j_number("load", l->load), j_number("wait", l->wait),
				j_uint("packets", l->packets), j_uint("marked", l->marked),
				j_uint("discards", l->discards), j_uint("errors", l->errors));
		cli_json_close(j, '}');
	}
}

static void put_congestion(struct cli_json *j, const struct simulate_scenario *s, const struct simulate_result *r)
{
	cli_json_list(j, "congestion", i, r->congested_count) {
		const struct simulate_congested *c = &r->congested[i];

		cli_json_open(j, NULL, '{');
		put_port(j, s, "port", c->at);
		cli_json_put(j, j_uint("lane", c->lane), j_bool("root", c->root),
				j_uint("from_ns", c->from_ps / 1000), j_uint("to_ns", c->to_ps / 1000),
				j_uint("peak_bytes", c->peak_bytes));
		cli_json_close(j, '}');
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
	fputc('\n', out);
}
