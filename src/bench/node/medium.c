/* SPDX-License-Identifier: BSD-2-Clause */
/* The node-types under test; see medium.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/medium.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "util/container_of.h"
#include "util/log.h"

/* Samples that the target takes at a time: with one it falls behind where they come in
 * bursts. */
#define TARGET_VECTORIZE 16
#define QUEUE_SAMPLES 8192

static json_t *address(const struct bench_node_settings *s, enum bench_node_end end)
{
	return json_sprintf("%s:%u", s->host[end], s->port[end]);
}

static json_t *signals(const struct bench_node_settings *s)
{
	return json_pack("{si ss}", "count", (int)s->values, "type", "float");
}

/* In the words of the nodes that wait for other processes, or for the network. */
static const char *waiting_mode(const struct bench_node_settings *s)
{
	if (!strcmp(s->polling, "busy"))
		return "polling";
	return !strcmp(s->polling, "event") ? "pthread" : "auto";
}

static json_t *infiniband_source(const struct bench_node_settings *s)
{
	/* It receives nothing, so its receive queue is as short as can be. */
	return json_pack("{ss ss s{so si si si} s{so si sb si sb si si si}}",
			 "type", "infiniband", "rdma_transport_mode", s->service,
			 "in", "address", address(s, BENCH_NODE_SOURCE),
			 "max_wrs", 4, "cq_size", 4, "buffer_subtraction", 2,
			 "out", "address", address(s, BENCH_NODE_TARGET),
			 "resolution_timeout", 1000, "send_inline", 1,
			 "max_inline_data", 128, "use_fallback", 1,
			 "max_wrs", 4096, "cq_size", 4096,
			 "periodic_signaling", 2048);
}

static json_t *infiniband_target(const struct bench_node_settings *s)
{
	return json_pack("{ss ss s{so si si si si ss so}}",
			 "type", "infiniband", "rdma_transport_mode", s->service,
			 "in", "address", address(s, BENCH_NODE_TARGET),
			 "max_wrs", 512, "cq_size", 512,
			 "buffer_subtraction", 64, "vectorize",
			 TARGET_VECTORIZE, "polling", s->polling,
			 "signals", signals(s));
}

static json_t *shmem_source(const struct bench_node_settings *s)
{
	return json_pack("{ss ss si s{so}}", "type", "shmem", "mode",
			 waiting_mode(s), "queuelen", QUEUE_SAMPLES, "out",
			 "name", json_sprintf("/%s", s->tag));
}

static json_t *shmem_target(const struct bench_node_settings *s)
{
	return json_pack("{ss ss si s{so si so}}", "type", "shmem", "mode",
			 waiting_mode(s), "queuelen", QUEUE_SAMPLES, "in",
			 "name", json_sprintf("/%s", s->tag), "vectorize",
			 TARGET_VECTORIZE, "signals", signals(s));
}

/* Its program gets absolute paths: gateways run in a folder of their own. */
static json_t *simulator(const struct bench_node_settings *s)
{
	char path[PATH_MAX];
	const char *program = s->simulator;
	const char *mode = !strcmp(s->polling, "event") ? "pthread" : "polling";

	if (strchr(program, '/') && realpath(program, path))
		program = path;
	return json_pack("{ss ss si s[sooss] s{so si so} s{so}}", "type", "shmem", "mode",
			 waiting_mode(s), "queuelen", QUEUE_SAMPLES, "exec", program,
			 json_sprintf("/%s-in", s->tag), json_sprintf("/%s-out", s->tag),
			 "16", mode, "in", "name",
			 json_sprintf("/%s-in", s->tag), "vectorize", TARGET_VECTORIZE,
			 "signals", signals(s), "out", "name",
			 json_sprintf("/%s-out", s->tag));
}

static json_t *loopback(const struct bench_node_settings *s)
{
	return json_pack("{ss ss si}", "type", "loopback", "mode",
			 waiting_mode(s), "queuelen", QUEUE_SAMPLES);
}

/* Behind the file under test: it leaves the processors to that. */
static json_t *mark(const struct bench_node_settings *s)
{
	return json_pack("{ss ss si}", "type", "loopback", "mode",
			 strcmp(s->polling, "event") ? "auto" : "pthread", "queuelen",
			 QUEUE_SAMPLES);
}

static json_t *exec(const struct bench_node_settings *s)
{
	return json_pack("{ss ss s[s] s{so}}", "type", "exec", "format",
			 "busbar.binary", "exec", "cat", "in", "signals",
			 signals(s));
}

static json_t *socket_source(const char *layer, json_t *to)
{
	return json_pack("{ss ss ss s{so}}", "type", "socket", "layer", layer,
			 "format", "busbar.binary", "out", "address", to);
}

static json_t *socket_target(const struct bench_node_settings *s,
			     const char *layer, json_t *at)
{
	return json_pack("{ss ss ss s{so ss si so}}", "type", "socket", "layer",
			 layer, "format", "busbar.binary", "in", "address", at,
			 "polling", s->polling, "vectorize", TARGET_VECTORIZE,
			 "signals", signals(s));
}

static json_t *udp_source(const struct bench_node_settings *s)
{
	return socket_source("udp", address(s, BENCH_NODE_TARGET));
}

static json_t *udp_target(const struct bench_node_settings *s)
{
	return socket_target(s, "udp", address(s, BENCH_NODE_TARGET));
}

static json_t *tcp_source(const struct bench_node_settings *s)
{
	return socket_source("tcp-client", address(s, BENCH_NODE_TARGET));
}

static json_t *tcp_target(const struct bench_node_settings *s)
{
	return socket_target(s, "tcp-server", address(s, BENCH_NODE_TARGET));
}

static json_t *unix_source(const struct bench_node_settings *s)
{
	return socket_source("unix", json_sprintf("@%s", s->tag));
}

static json_t *unix_target(const struct bench_node_settings *s)
{
	return socket_target(s, "unix", json_sprintf("@%s", s->tag));
}

/* zeromq and nanomsg by the keys that VILLASnode's have. The publisher of zeromq binds. */
static json_t *zeromq_source(const struct bench_node_settings *s)
{
	return json_pack("{ss ss s{so}}", "type", "zeromq", "format",
			 "busbar.binary", "out", "publish",
			 json_sprintf("tcp://%s:%u", s->host[BENCH_NODE_SOURCE],
				      s->port[BENCH_NODE_SOURCE]));
}

static json_t *zeromq_target(const struct bench_node_settings *s)
{
	return json_pack("{ss ss s{so so}}", "type", "zeromq", "format",
			 "busbar.binary", "in", "subscribe",
			 json_sprintf("tcp://%s:%u", s->host[BENCH_NODE_SOURCE],
				      s->port[BENCH_NODE_SOURCE]),
			 "signals", signals(s));
}

static json_t *nanomsg_end(const struct bench_node_settings *s, const char *side,
			   json_t *more)
{
	json_t *o = json_pack("{ss ss s{s[o]}}", "type", "nanomsg", "format",
			      "busbar.binary", side, "endpoints",
			      json_sprintf("tcp://%s:%u",
					   s->host[BENCH_NODE_TARGET],
					   s->port[BENCH_NODE_TARGET]));

	if (more)
		json_object_set_new(json_object_get(o, side), "signals", more);
	return o;
}

static json_t *nanomsg_source(const struct bench_node_settings *s)
{
	return nanomsg_end(s, "out", NULL);
}

static json_t *nanomsg_target(const struct bench_node_settings *s)
{
	return nanomsg_end(s, "in", signals(s));
}

static const struct bench_node_medium media[] = {
	{ .name = "infiniband", .type = "infiniband", .ready = "listening on",
	  .addressed = true, .services = true,
	  .source = infiniband_source, .target = infiniband_target },
	{ .name = "shmem", .type = "shmem", .removable = true,
	  .source = shmem_source, .target = shmem_target },
	{ .name = "simulator", .type = "shmem", .both_ends = true, .removable = true,
	  .source = simulator },
	{ .name = "loopback", .type = "loopback", .both_ends = true,
	  .source = loopback },
	{ .name = "file", .type = "file", .both_ends = true, .logs = true,
	  .source = mark },
	{ .name = "udp", .type = "socket", .addressed = true,
	  .source = udp_source, .target = udp_target },
	{ .name = "tcp", .type = "socket", .addressed = true,
	  .source = tcp_source, .target = tcp_target },
	{ .name = "unix", .type = "socket",
	  .source = unix_source, .target = unix_target },
	{ .name = "exec", .type = "exec", .both_ends = true, .source = exec },
	/* Named by the sources; not every build has them. */
	{ .name = "zeromq", .type = "zeromq", .addressed = true,
	  .source = zeromq_source, .target = zeromq_target },
	{ .name = "nanomsg", .type = "nanomsg", .addressed = true,
	  .source = nanomsg_source, .target = nanomsg_target },
};

/* Any other node-type, of which only the user knows the keys. */
static const struct bench_node_medium any = { .addressed = true };

const struct bench_node_medium *bench_node_medium_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(media); i++)
		if (!strcmp(media[i].name, name))
			return &media[i];
	return plugin_is_there(node_plugins, name) ? &any : NULL;
}

void bench_node_medium_list(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(media) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s",
					 i ? " " : "", media[i].name);
	for (const struct plugin *p = node_plugins; p->name && used < size; p++) {
		bool known = false;

		for (size_t i = 0; i < ARRAY_SIZE(media); i++)
			known |= !strcmp(media[i].name, p->name);
		if (!known)
			used += (size_t)snprintf(text + used, size - used, " %s",
						 p->name);
	}
}

int bench_node_medium_is_there(const struct bench_node_settings *s)
{
	const char *name = s->medium->type ? s->medium->type : s->node;
	const struct node_type *type;

	if (!plugin_is_there(node_plugins, name)) {
		log_error("node: this gateway has no node-type '%s'", name);
		return -EOPNOTSUPP;
	}
	type = node_type_find(name);
	if (!type) {
		log_error("node: the module of node-type '%s' cannot be loaded", name);
		return -EOPNOTSUPP;
	}
	if (!(type->flags & NODE_CAN_WRITE) || !(type->flags & NODE_CAN_READ)) {
		log_error("node: '%s' cannot be %s, so nothing can go through it", name,
			  type->flags & NODE_CAN_WRITE ? "read" : "written");
		return -EOPNOTSUPP;
	}
	return 0;
}
