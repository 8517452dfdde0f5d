/* SPDX-License-Identifier: BSD-2-Clause */
/* The gateways of a case as configurations, and where they run; see medium.h. */
#define LOG_ROOM "bench/node"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "bench/kind/process.h"
#include "bench/node/medium.h"
#include "bench/result/files.h"
#include "bench/tune/tree.h"
#include "gateway/sample/sample.h"
#include "util/log.h"

/* Pieces in which a recording in memory grows; the first 8 are there from the start. */
#define PIECE_BYTES (64u << 10)
#define BUFFER_MIN (8u << 20)
/* Of the memory that is free: what one recording may take ahead. */
#define MEMORY_PARTS 8

size_t bench_node_record_bytes(const struct bench_node_settings *s)
{
	size_t bytes = sizeof(struct sample) + s->values * sizeof(union signal_data);

	return (bytes + 15) & ~(size_t)15;
}

/* Memory that this machine has left. */
static uint64_t memory_bytes(void)
{
	long long kib = tune_tree_amount(&tune_here, "/proc/meminfo", "MemAvailable");

	return kib < 0 ? UINT64_MAX : (uint64_t)kib << 10;
}

/*
 * All of a run, twice: when less than half is left the file node sees to more memory, on the
 * processor of the generator.
 */
static json_int_t buffer_bytes(const struct bench_node_settings *s)
{
	uint64_t bytes = 2 * s->steps * bench_node_record_bytes(s) + BUFFER_MIN;
	uint64_t limit = memory_bytes() / MEMORY_PARTS;

	if (strcmp(s->recording, "memory"))
		return BUFFER_MIN;
	if (bytes > limit)
		bytes = limit > BUFFER_MIN ? limit : BUFFER_MIN;
	return (json_int_t)((bytes / PIECE_BYTES + 1) * PIECE_BYTES);
}

/* A name relative to the folder in which the gateways run. */
static json_t *recording(const struct bench_node_settings *s, const char *file)
{
	return json_pack("{ss ss ss s{sb ss sI}}", "type", "file", "uri", file,
			 "format", "busbar.binary", "out", "append", 0,
			 "buffering", s->recording, "buffer_size",
			 buffer_bytes(s));
}

static json_t *generator(const struct bench_node_settings *s)
{
	/* Its origin is when the step was planned; beside it the recording has when the
	 * step was taken. */
	json_t *o = json_pack("{ss ss si sf sI sb ss}", "type", "signal",
			      "signal", "mixed", "values", (int)s->values,
			      "rate", s->rate_hz, "limit", (json_int_t)s->steps,
			      "monitor_missed", 1, "origin", "planned");

	if (strcmp(s->timer, "default"))
		json_object_set_new(o, "timer", json_string(s->timer));
	if (s->catch_up_ns >= 0)
		json_object_set_new(o, "catch_up",
				    json_real((double)s->catch_up_ns / 1e9));
	return o;
}

/* What the user wants otherwise, `group` NULL: on the node itself. */
static void overlay(json_t *node, const char *group, const json_t *more)
{
	json_t *g = group ? json_object_get(node, group) : node;

	if (!more)
		return;
	if (!g) {
		g = json_object();
		json_object_set_new(node, group, g);
	}
	json_object_update_recursive(g, (json_t *)more);
}

/* A key of ours that fits another one of ours, and not what the user gives in its place, is left
 * to the node. */
static void let_go(json_t *node, const char *group, const json_t *more, const char *given,
		   const char *dependent)
{
	if (json_object_get(more, given) && !json_object_get(more, dependent))
		json_object_del(json_object_get(node, group), dependent);
}

static json_t *medium_end(const struct bench_node_settings *s,
			  enum bench_node_end end)
{
	const struct bench_node_medium *m = s->medium;
	const char *type = m->node ? m->node : m->type ? m->type : s->node;
	json_t *o = bench_node_keys(s, type, end == BENCH_NODE_TARGET ? m->target : m->source);

	if (s->budget)
		json_object_set_new(o, "budget",
				    json_string(end == BENCH_NODE_SOURCE ? "source.budget" :
									   "target.budget"));
	let_go(o, "out", s->out, "max_wrs", "periodic_signaling");
	let_go(o, "in", s->in, "buffer_subtraction", "vectorize");
	if (m->logs)
		return o; /* keys are those of the file */
	overlay(o, NULL, s->keys);
	if (end == BENCH_NODE_SOURCE || m->both_ends)
		overlay(o, "out", s->out);
	if (end == BENCH_NODE_TARGET || m->both_ends)
		overlay(o, "in", s->in);
	return o;
}

static void pin(json_t *node, int cpu)
{
	if (cpu >= 0 && cpu < 63)
		json_object_set_new(node, "affinity",
				    json_integer((json_int_t)1 << cpu));
}

/* The file under test, ahead of all others in the generator's path. */
static void add_logger(const struct bench_node_settings *s, json_t *nodes, json_t *path)
{
	json_t *logger = json_pack("{ss ss ss s{sb}}", "type", "file", "uri", BENCH_NODE_LOGGED,
				   "format", "csv", "out", "append", 0);

	overlay(logger, NULL, s->keys);
	overlay(logger, "out", s->out);
	json_object_set_new(nodes, "logger", logger);
	json_array_insert_new(json_object_get(path, "out"), 0, json_string("logger"));
}

json_t *bench_node_configuration(const struct bench_node_settings *s,
				 enum bench_node_end end)
{
	const struct bench_node_medium *m = s->medium;
	const char *out = m->both_ends ? "peer" : "source", *in = m->both_ends ? "peer" : "target";
	json_t *nodes = json_object(), *paths = json_array();
	bool source = end == BENCH_NODE_SOURCE, one = s->processes == 1;
	bool sends = source || one, receives = !source || one;

	if (sends)
		json_object_set_new(nodes, "sent", recording(s, "sent.bin"));
	if (receives)
		json_object_set_new(nodes, "received", recording(s, "received.bin"));
	if (sends)
		json_object_set_new(nodes, out, medium_end(s, BENCH_NODE_SOURCE));
	if (receives && !m->both_ends)
		json_object_set_new(nodes, in, medium_end(s, BENCH_NODE_TARGET));
	if (sends) {
		/* The last one to start, because its steps begin then. */
		json_object_set_new(nodes, "generator", generator(s));
		json_array_append_new(paths, json_pack("{ss s[ss]}", "in", "generator", "out", out,
						       "sent"));
	}
	if (one && m->logs)
		add_logger(s, nodes, json_array_get(paths, 0));
	if (receives)
		json_array_append_new(paths, json_pack("{ss ss}", "in", in, "out", "received"));
	/* The threads of one gateway are pinned by their nodes. The mark behind a file runs in the
	 * generator's thread, as its node is not pinned. */
	if (one || (source && !strcmp(s->recording, "stream")))
		pin(json_object_get(nodes, "generator"), s->cpus[BENCH_NODE_SOURCE]);
	if (one ? !m->logs : !source && !strcmp(s->recording, "stream"))
		pin(json_object_get(nodes, in), s->cpus[BENCH_NODE_TARGET]);
	return json_pack("{sb si si so so}", "idle_stop",
			 source && s->processes == 2, "priority", s->priority,
			 "nice", source ? s->nice : 0, "nodes", nodes, "paths", paths);
}

/* ---- where a case runs ---- */

/* Two recordings, in memory as a rule and then in files; rather no run than one that ends with
 * a full disk, or with all other programs pushed out. */
static int check_room(const struct bench_node_settings *s, const char *dir)
{
	uint64_t need = 2 * s->steps * bench_node_record_bytes(s);
	uint64_t memory = memory_bytes();
	struct statvfs v;

	/* As text. */
	if (s->medium->logs)
		need += s->steps * (64 + 20 * (uint64_t)s->values);
	if (!strcmp(s->recording, "memory") && need > memory / 4 * 3)
		return log_fail(-EOPNOTSUPP, "node: %ju steps of %u values take %ju MiB of memory, there are %ju MiB; fewer samples, or recording stream",
				(uintmax_t)s->steps, s->values, (uintmax_t)(need >> 20),
				(uintmax_t)(memory >> 20));
	if (!statvfs(dir, &v) && need > v.f_bavail * v.f_frsize)
		return log_fail(-EOPNOTSUPP, "node: the recordings take %ju MiB, '%s' has %ju MiB left; fewer samples, or another TMPDIR",
				(uintmax_t)(need >> 20), dir, (uintmax_t)(v.f_bavail * v.f_frsize >> 20));
	return 0;
}

int bench_node_place_make(struct bench_node_settings *s, char dir[PATH_MAX])
{
	int ret = process_free_ports(s->port, BENCH_NODE_ENDS);
	char *made;

	if (ret)
		return log_fail(ret, "cannot find a free port: %s", strerror(-ret));
	ret = files_make_temporary(&made);
	if (ret)
		return ret;
	snprintf(dir, PATH_MAX, "%s", made);
	free(made);
	return check_room(s, dir);
}
