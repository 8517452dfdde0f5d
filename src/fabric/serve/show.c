/* SPDX-License-Identifier: BSD-2-Clause */
/* The fabric as JSON; see show.h. */
#include "fabric/serve/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/agent/agent.h"
#include "fabric/manager/manager.h"
#include "fabric/serve/manager.h"
#include "fabric/serve/nodes.h"
#include "fabric/serve/packet.h"

static const char *const drop_names[] = {
	[FABRIC_DROP_NO_ROUTE] = "no_route",   [FABRIC_DROP_LINK_DOWN] = "link_down",
	[FABRIC_DROP_CORRUPT] = "corrupt",     [FABRIC_DROP_TOO_LONG] = "too_long",
	[FABRIC_DROP_LIFETIME] = "lifetime",   [FABRIC_DROP_LANE] = "lane",
	[FABRIC_DROP_STATE] = "state",	       [FABRIC_DROP_PARTITION] = "partition",
	[FABRIC_DROP_MANAGEMENT] = "management",
};

static const char *state_name(uint8_t state)
{
	static const char *const names[] = { "?", "down", "init", "armed", "active" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

/* A string; bytes that JSON does not take as they are become '?'. */
static void put_string(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putc('\\', out);
		putc(*text < ' ' || *text > '~' ? '?' : *text, out);
	}
	putc('"', out);
}

static void put_counts(FILE *out, const struct serve_counts *c)
{
	fprintf(out, "\"taken\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"slow\":%" PRIu64
		     ",\"refused\":{", c->taken, c->delivered, c->slow);
	for (unsigned i = 0; i < SERVE_REFUSED_KINDS; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "",
			serve_packet_refused_name((enum serve_refused)i), c->refused[i]);
	putc('}', out);
}

static void put_client(FILE *out, const struct serve_client *c)
{
	static const char *const purposes[] = { "verbs", "management" };

	fprintf(out, "{\"number\":%u,\"process\":%d,\"program\":", c->number, (int)c->pid);
	put_string(out, c->program);
	fprintf(out, ",\"purpose\":\"%s\",\"queue_pairs\":%u,\"groups\":%u,\"flows\":%u,\"waiting\":%u,",
		purposes[c->purpose], c->qp_count, c->group_count, c->flow_count, c->waiting);
	put_counts(out, &c->counts);
	putc('}', out);
}

static void put_host(FILE *out, const struct serve_host *h)
{
	bool first = true;

	fprintf(out, ",\"lid\":%u,\"sm_lid\":%u,\"no_owner\":%" PRIu64 ",\"partition\":%" PRIu64
		     ",\"malformed\":%" PRIu64 ",\"notified\":%" PRIu64 ",\"clients\":[",
		h->state.lid, h->state.sm_lid, h->no_owner, h->partition, h->malformed, h->notified);
	list_for_each (c, &h->clients, struct serve_client, in_host) {
		if (!first)
			putc(',', out);
		first = false;
		put_client(out, c);
	}
	putc(']', out);
}

static void put_counters(FILE *out, const struct fabric_counters *c)
{
	fprintf(out, ",\"sent_bytes\":%" PRIu64 ",\"received_bytes\":%" PRIu64
		     ",\"sent_packets\":%" PRIu64 ",\"received_packets\":%" PRIu64
		     ",\"xmit_wait\":%" PRIu64 ",\"discards\":%" PRIu64 ",\"errors\":%" PRIu64
		     ",\"no_route\":%" PRIu64 ",\"partition_drops\":%" PRIu64 ",\"marked\":%" PRIu64
		     ",\"link_downed\":%" PRIu64,
		c->xmit_words * 4, c->rcv_words * 4, c->xmit_packets, c->rcv_packets, c->xmit_wait,
		c->xmit_discards, c->rcv_errors + c->symbol_errors, c->rcv_switch_relay,
		c->rcv_constraint + c->xmit_constraint, c->marked, c->link_downed);
}

static void put_port(FILE *out, struct serve *s, uint32_t node, uint8_t port)
{
	const struct topology *t = s->topology;
	const struct topology_link *link = &t->links[t->nodes[node].ports[port].link];
	struct serve_host *h = serve_nodes_host(s, node, port);
	struct fabric_port_setting set = { 0 };
	struct fabric_counters c = { 0 };
	struct topology_end peer;

	fabric_get_port(s->fabric, node, port, &set);
	fabric_get_counters(s->fabric, node, port, &c);
	fprintf(out, "{\"port\":%u,\"up\":%s,\"state\":\"%s\",\"bit_rate\":%" PRIu64, port,
		fabric_link_is_up(s->fabric, node, port) ? "true" : "false", state_name(set.state),
		topology_link_bit_rate(link));
	if (topology_peer(t, node, port, &peer)) {
		fputs(",\"peer\":", out);
		put_string(out, t->nodes[peer.node].id);
		fprintf(out, ",\"peer_port\":%u", peer.port);
	}
	put_counters(out, &c);
	if (h)
		put_host(out, h);
	putc('}', out);
}

static void put_node(FILE *out, struct serve *s, uint32_t node)
{
	const struct topology_node *n = &s->topology->nodes[node];
	bool first = true;

	fputs("{\"name\":", out);
	put_string(out, n->id);
	fputs(",\"description\":", out);
	put_string(out, n->name);
	fprintf(out, ",\"kind\":\"%s\",\"guid\":\"0x%016" PRIx64 "\",\"ports\":[",
		n->kind == TOPOLOGY_HCA ? "host" : "switch", n->guid);
	for (unsigned p = 1; p <= n->port_count; p++) {
		if (n->ports[p].link == TOPOLOGY_NONE)
			continue;
		if (!first)
			putc(',', out);
		first = false;
		put_port(out, s, node, (uint8_t)p);
	}
	fputs("]}", out);
}

static void put_totals(FILE *out, struct serve *s)
{
	struct fabric_agents_counts a;

	fabric_agents_get_counts(s->agents, &a);
	fputs(",\"drops\":{", out);
	for (unsigned i = 0; i < sizeof(drop_names) / sizeof(drop_names[0]); i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", drop_names[i], s->drops[i]);
	fprintf(out, "},\"agents\":{\"received\":%" PRIu64 ",\"answered\":%" PRIu64
		     ",\"forwarded\":%" PRIu64 ",\"discarded\":%" PRIu64 ",\"traps\":%" PRIu64
		     ",\"lost\":%" PRIu64 "},\"gone\":{",
		a.received, a.answered, a.forwarded, a.bad_mad + a.bad_route + a.bad_lid + a.bad_key,
		a.traps, s->mads_lost);
	put_counts(out, &s->gone_counts);
	fprintf(out, "},\"buffers\":%u,\"no_buffer\":%" PRIu64 ",\"inside\":%" PRIu64
		     ",\"deadlocks\":%" PRIu64, s->pool.used,
		s->no_buffer, fabric_packets_inside(s->fabric), s->deadlocks);
}

static void put_manager(FILE *out, const struct serve *s)
{
	struct manager_report r;
	uint64_t sweeps;

	if (!s->manager)
		return;
	sweeps = serve_manager_sweeps(s->manager, &r);
	fprintf(out, ",\"manager\":{\"sweeps\":%" PRIu64 ",\"up\":%s,\"requests\":%u,\"unanswered\":%u"
		     ",\"took_ns\":%" PRIu64 "}",
		sweeps, r.up ? "true" : "false", r.requests, r.unanswered, r.took_ns);
}

int serve_show(struct serve *s, char **text, size_t *bytes)
{
	FILE *out;
	bool bad;

	*text = NULL;
	out = open_memstream(text, bytes);
	if (!out)
		return -ENOMEM;
	fputs("{\"name\":", out);
	put_string(out, s->set.name);
	fprintf(out, ",\"seconds\":%.6f,\"seed\":%" PRIu64, (double)(s->now_ns - s->origin_ns) / 1e9,
		s->set.seed);
	put_totals(out, s);
	put_manager(out, s);
	fputs(",\"nodes\":[", out);
	for (uint32_t i = 0; i < s->topology->node_count; i++) {
		if (i)
			putc(',', out);
		put_node(out, s, i);
	}
	fputs("]}\n", out);
	bad = ferror(out);
	if (fclose(out) || bad) {
		free(*text);
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}
