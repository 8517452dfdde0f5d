/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a subnet's JSON and keeps what a page shows, by tables of members; see subnet.h. It checks types
 * and bounds numbers of rows, so that the page gets nothing else, whatever the file has. It judges
 * nothing.
 */
#define LOG_ROOM "bench/report"
#include "bench/report/subnet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/log.h"
#include "util/container_of.h"

#define FILE_MAX (256u << 20)
#define NODES_MAX 4096
#define LINKS_MAX 8192
/* Rows of flows take the most room: a page stays below 1.5 MB. */
#define FLOWS_MAX 4000
#define ROWS_MAX 2000

/* A member of an object: "key", or "key.member". */
struct member {
	const char *path;
	char type; /* s: string, n: number, b: boolean */
};

static const struct member node_members[] = {
	{ "name", 's' }, { "description", 's' }, { "kind", 's' }, { "guid", 's' },
};

static const struct member link_members[] = {
	{ "from", 's' },     { "to", 's' },	 { "load", 'n' },	{ "wait", 'n' },
	{ "packets", 'n' },  { "marked", 'n' },	 { "discards", 'n' },	{ "errors", 'n' },
	{ "up", 'b' },	     { "state", 's' },	 { "bit_rate", 'n' },	{ "sent_bytes", 'n' },
	{ "xmit_wait", 'n' }, { "sent_packets", 'n' }, { "link_downed", 'n' },
	{ "lid", 'n' },
};

static const struct member traffic_members[] = {
	{ "name", 's' },      { "pattern", 's' },     { "senders", 'n' },	{ "flows", 'n' },
	{ "from_ns", 'n' },   { "to_ns", 'n' },	      { "sent", 'n' },		{ "delivered", 'n' },
	{ "lost", 'n' },      { "reordered", 'n' },   { "messages", 'n' },	{ "rate_bps", 'n' },
	{ "fair_bps", 'n' },  { "share", 'n' },	      { "least_share", 'n' },	{ "most_share", 'n' },
	{ "packet_latency_ns.min", 'n' },   { "packet_latency_ns.p50", 'n' },
	{ "packet_latency_ns.p90", 'n' },   { "packet_latency_ns.p99", 'n' },
	{ "packet_latency_ns.p99.9", 'n' }, { "packet_latency_ns.max", 'n' },
	{ "message_latency_ns.p50", 'n' },  { "message_latency_ns.p99", 'n' },
};

static const struct member flow_members[] = {
	{ "traffic", 's' },   { "from", 's' },	{ "to", 's' },	      { "sl", 'n' },
	{ "delivered", 'n' }, { "lost", 'n' },	{ "reordered", 'n' }, { "rate_bps", 'n' },
	{ "fair_bps", 'n' },  { "packet_latency_ns.p50", 'n' }, { "packet_latency_ns.p99", 'n' },
};

static const struct member congestion_members[] = {
	{ "port", 's' }, { "lane", 'n' }, { "root", 'b' }, { "from_ns", 'n' }, { "to_ns", 'n' },
	{ "peak_bytes", 'n' },
};

static const struct member lane_members[] = { { "port", 's' }, { "lane", 'n' } };

static const struct member expect_members[] = {
	{ "text", 's' }, { "value", 'n' }, { "holds", 'b' },
};

/* The member as a new reference; null where it is missing or of another type. */
static json_t *member_get(const json_t *o, const struct member *m)
{
	const char *dot = strchr(m->path, '.');
	char first[40];
	json_t *v;

	if (dot) {
		snprintf(first, sizeof(first), "%.*s", (int)(dot - m->path), m->path);
		v = json_object_get(json_object_get(o, first), dot + 1);
	} else {
		v = json_object_get(o, m->path);
	}
	if ((m->type == 's' && json_is_string(v)) || (m->type == 'n' && json_is_number(v)) ||
	    (m->type == 'b' && json_is_boolean(v)))
		return json_incref(v);
	return json_null();
}

/* A TABLE of an array of objects, at most `most` of them; an array that is missing has no rows. */
static json_t *table(const json_t *rows, const struct member *members, size_t count, size_t most)
{
	json_t *keys = json_array(), *out = json_array(), *o;
	size_t i;

	for (size_t k = 0; k < count; k++)
		json_array_append_new(keys, json_string(members[k].path));
	json_array_foreach((json_t *)rows, i, o) {
		json_t *row = json_array();

		if (i == most) {
			json_decref(row);
			break;
		}
		for (size_t k = 0; k < count; k++)
			json_array_append_new(row, member_get(o, &members[k]));
		json_array_append_new(out, row);
	}
	return json_pack("{s:o, s:o}", "keys", keys, "rows", out);
}

#define TABLE(rows, members, most) table(rows, members, ARRAY_SIZE(members), most)

/* Members that are numbers. */
static json_t *numbers(const json_t *o)
{
	json_t *out = json_object(), *v;
	const char *key;

	json_object_foreach((json_t *)o, key, v)
		if (json_is_number(v) && json_object_size(out) < 100)
			json_object_set(out, key, v);
	return out;
}

static double share_of(const json_t *flow)
{
	double fair = json_number_value(json_object_get(flow, "fair_bps"));
	double rate = json_number_value(json_object_get(flow, "rate_bps"));

	return fair > 0 ? rate / fair : rate;
}

static int compare_flows(const void *a, const void *b)
{
	double x = share_of(*(json_t *const *)a), y = share_of(*(json_t *const *)b);

	return (x > y) - (x < y);
}

/* The flows with the least share first, a new reference; NULL without memory. */
static json_t *flows_by_share(const json_t *flows)
{
	size_t count = json_array_size(flows);
	json_t **order = calloc(count + 1, sizeof(*order)), *out = order ? json_array() : NULL;

	for (size_t i = 0; out && i < count; i++)
		order[i] = json_array_get(flows, i);
	if (out)
		qsort(order, count, sizeof(*order), compare_flows);
	for (size_t i = 0; out && i < count && i < FLOWS_MAX; i++)
		json_array_append(out, order[i]);
	free(order);
	return out;
}

static void add_end(json_t *port, const char *key, const json_t *node, const json_t *number)
{
	char text[128];

	snprintf(text, sizeof(text), "%.100s:%lld", json_string_value(node), (long long)json_integer_value(number));
	json_object_set_new(port, key, json_string(text));
}

/* The ports of a state that have a cable, as links from the port to its peer; a new reference. */
static json_t *links_of_nodes(const json_t *nodes)
{
	json_t *out = json_array(), *n, *p;
	size_t i, k;

	json_array_foreach((json_t *)nodes, i, n) {
		const json_t *name = json_object_get(n, "name");

		json_array_foreach(json_object_get(n, "ports"), k, p) {
			const json_t *peer = json_object_get(p, "peer");

			if (!json_is_string(name) || !json_is_string(peer))
				continue;
			add_end(p, "from", name, json_object_get(p, "port"));
			add_end(p, "to", peer, json_object_get(p, "peer_port"));
			json_array_append(out, p);
		}
	}
	return out;
}

static json_t *deadlocks(const json_t *all)
{
	json_t *out = json_array(), *o;
	size_t i;

	json_array_foreach((json_t *)all, i, o)
		if (i < 20)
			json_array_append_new(out, json_pack("{s:o, s:o}",
				"at_ns", member_get(o, &(struct member){ "at_ns", 'n' }), "lanes",
				TABLE(json_object_get(o, "lanes"), lane_members, ROWS_MAX)));
	return out;
}

/* What both kinds have in the same form. */
static json_t *head(const json_t *in, const char *of, const char *path, const char *title)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "file", path, "of", of,
		"title", member_get(in, &(struct member){ title, 's' }),
		"topology", member_get(in, &(struct member){ "topology", 's' }),
		"routing", member_get(in, &(struct member){ "routing", 's' }),
		"seed", member_get(in, &(struct member){ "seed", 'n' }), "sums", numbers(in));
}

static json_t *state(const json_t *in, const char *path)
{
	const json_t *nodes = json_object_get(in, "nodes");
	json_t *out = head(in, "state", path, "name"), *links = links_of_nodes(nodes);

	json_object_set_new(out, "seconds", member_get(in, &(struct member){ "seconds", 'n' }));
	json_object_set_new(out, "lost", numbers(json_object_get(in, "drops")));
	json_object_set_new(out, "nodes", TABLE(nodes, node_members, NODES_MAX));
	json_object_set_new(out, "links", TABLE(links, link_members, LINKS_MAX));
	json_decref(links);
	return out;
}

static json_t *experiment(const json_t *in, const char *path)
{
	json_t *out = head(in, "experiment", path, "title"), *flows = flows_by_share(json_object_get(in, "flows"));
	size_t all = json_array_size(json_object_get(in, "flows"));

	json_object_set_new(out, "seconds", json_real(
		json_number_value(json_object_get(in, "end_ns")) * 1e-9));
	json_object_set_new(out, "lost", numbers(json_object_get(in, "lost_why")));
	json_object_set_new(out, "nodes", TABLE(json_object_get(in, "nodes"), node_members, NODES_MAX));
	json_object_set_new(out, "links", TABLE(json_object_get(in, "links"), link_members, LINKS_MAX));
	json_object_set_new(out, "traffic", TABLE(json_object_get(in, "traffic"), traffic_members, 200));
	json_object_set_new(out, "flows", TABLE(flows, flow_members, FLOWS_MAX));
	json_object_set_new(out, "flows_left_out", json_real((double)(all - json_array_size(flows)) +
		json_number_value(json_object_get(in, "flows_left_out"))));
	json_object_set_new(out, "congestion",
		TABLE(json_object_get(in, "congestion"), congestion_members, ROWS_MAX));
	json_object_set_new(out, "circle", TABLE(json_object_get(in, "circle"), lane_members, ROWS_MAX));
	json_object_set_new(out, "deadlocks", deadlocks(json_object_get(in, "deadlocks")));
	json_object_set_new(out, "expect", TABLE(json_object_get(in, "expect"), expect_members, 200));
	json_decref(flows);
	return out;
}

/* Does the file begin as an object does, and can it be read again from its start? */
static bool may_be_object(const char *path)
{
	struct stat st;
	FILE *in = fopen(path, "re");
	char begin = '\0';
	bool fits;

	if (!in)
		return false;
	fits = !fstat(fileno(in), &st) && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX &&
	       fscanf(in, " %c", &begin) == 1 && begin == '{';
	fclose(in);
	return fits;
}

int subnet_add(json_t *data, const char *path)
{
	json_error_t error;
	json_t *in = may_be_object(path) ? json_load_file(path, 0, &error) : NULL, *out = NULL;
	bool is_experiment = json_is_array(json_object_get(in, "links")) &&
			     json_is_array(json_object_get(in, "traffic"));
	bool is_state = json_is_array(json_object_get(in, "nodes")) &&
			json_is_object(json_object_get(in, "drops"));
	int ret;

	if (is_experiment)
		out = experiment(in, path);
	else if (is_state)
		out = state(in, path);
	json_decref(in);
	if (!is_experiment && !is_state)
		return -ENOENT;
	if (!json_object_get(data, "subnets"))
		json_object_set_new(data, "subnets", json_array());
	ret = json_array_append_new(json_object_get(data, "subnets"), out) ? -ENOMEM : 0;
	if (ret)
		log_error("%s: there is not enough memory for the subnet", path);
	return ret;
}
