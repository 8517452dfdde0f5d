/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a subnet manager takes after the cut of a cable between two switches: from the command
 * that cuts until the sweep that follows has ended, which the fabric's own manager shows in `busbar
 * fabric show --json` and opensm writes into its log. The state is looked at each few milliseconds,
 * so a time is that much too long at most. Of the own manager there is also the time of the sweep
 * alone, as it measures it.
 */
#define LOG_ROOM "bench/fabric"
#include "bench/fabric/fabric.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define PATIENCE_NS (60 * NSEC_PER_SEC) /* of a manager */
#define QUIET_NS (NSEC_PER_SEC * 3 / 10)  /* without another sweep: a change has no more effect */
#define SWEEPS_FEW 2

struct sweep {
	const struct bench_context *context;
	const char *dir;
	bool own;                  /* the fabric's manager; else opensm */
	struct process fabric, opensm;
	struct process_words fabric_words, opensm_words;
	char name[40], cable[300]; /* the port that is cut: NODE:PORT */
	char fabric_output[PATH_MAX], opensm_output[PATH_MAX], opensm_log[PATH_MAX];
	char answer[PATH_MAX];
	/* As last seen. */
	uint64_t sweeps, took_ns;
	bool whole;                /* all ports with a link that is up are active */
	unsigned down;             /* ports whose link is down */
	/* One row for each cut. */
	unsigned count;
	int64_t *cut, *done, *began, *ended;
};

unsigned fabric_bench_sweeps(const json_t *p, double scale)
{
	return (unsigned)bench_scaled(p, "repetitions", scale, SWEEPS_FEW);
}

/* "busbar fabric WORDS...", which end with NULL, and waits for its end. What it prints is in
 * `answer`. */
static int command(struct sweep *w, const char *const *words)
{
	struct process_words line = { .count = 0 };
	struct process p = { .argv = line.argv, .output = w->answer, .cpu = -1 };
	uint64_t until = clock_monotonic_ns_slow() + PATIENCE_NS;
	int ret;

	process_words_self(&line, "fabric");
	while (*words)
		process_words_add(&line, *words++);
	ret = line.failed ? -ENOMEM : process_run(&p, until, w->context->stop);
	if (!ret && p.status)
		ret = process_failed(&p, "busbar fabric");
	process_words_free(&line);
	return ret;
}

static void look_at_port(struct sweep *w, const json_t *node, const json_t *port)
{
	const char *state = bench_text(port, "state"), *peer = bench_text(port, "peer");

	if (!bench_flag(port, "up"))
		w->down++;
	else if (!state || strcmp(state, "active"))
		w->whole = false;
	/* The first one between two switches. */
	if (!*w->cable && peer && strncmp(peer, "host", 4) && bench_is(node, "kind", "switch"))
		snprintf(w->cable, sizeof(w->cable), "%s:%lld", bench_text(node, "name"),
			 bench_number(port, "port"));
}

/* Sweeps that opensm's log tells of. */
static uint64_t count_opensm(const struct sweep *w)
{
	char *text = NULL;
	uint64_t count = 0;

	tune_tree_read(&tune_here, w->opensm_log, &text);
	for (const char *at = text; at && (at = strstr(at, "SUBNET UP")); at++)
		count++;
	free(text);
	return count;
}

static int look(struct sweep *w)
{
	json_t *shown, *nodes, *node, *port, *manager;
	size_t i, k;
	int ret = command(w, (const char *const[]){ "show", "--json", w->name, NULL });

	if (ret)
		return ret;
	shown = json_load_file(w->answer, 0, NULL);
	nodes = json_object_get(shown, "nodes");
	if (!nodes) {
		json_decref(shown);
		return log_fail(-EPROTO, "busbar fabric show gave no nodes");
	}
	w->whole = true;
	w->down = 0;
	json_array_foreach(nodes, i, node)
		json_array_foreach(json_object_get(node, "ports"), k, port)
			look_at_port(w, node, port);
	manager = json_object_get(shown, "manager");
	w->took_ns = (uint64_t)bench_number(manager, "took_ns");
	w->sweeps = w->own ? (uint64_t)bench_number(manager, "sweeps") : count_opensm(w);
	json_decref(shown);
	return 0;
}

/* A process that is to run has ended: -EIO, logged; else 0. */
static int check_running(struct process *p, const char *program, const char *who)
{
	if (!p->argv || !process_has_ended(p))
		return 0;
	process_show_end(program, p->output);
	return process_failed(p, who);
}

/* Until another sweep than the `before` first ones has ended, and `down` ports have no link. */
static int await_sweep(struct sweep *w, uint64_t before, unsigned down)
{
	uint64_t until = clock_monotonic_ns_slow() + PATIENCE_NS;
	int ret;

	while (!(ret = look(w)) && (w->sweeps <= before || !w->whole || w->down != down)) {
		ret = check_running(&w->fabric, "busbar fabric", "busbar fabric run") ?:
		      check_running(&w->opensm, "opensm", "opensm");
		if (ret)
			return ret;
		if (clock_monotonic_ns_slow() > until)
			return log_fail(-ETIMEDOUT,
					"the subnet manager has not finished a sweep within %llu s",
					(unsigned long long)(PATIENCE_NS / NSEC_PER_SEC));
		process_pause();
	}
	return ret;
}

/* Until no further sweep follows. */
static int await_quiet(struct sweep *w)
{
	uint64_t last = w->sweeps, since = clock_monotonic_ns_slow();
	int ret = 0;

	while (!ret && clock_monotonic_ns_slow() - since < QUIET_NS) {
		process_pause();
		ret = look(w);
		if (w->sweeps != last) {
			last = w->sweeps;
			since = clock_monotonic_ns_slow();
		}
	}
	return ret;
}

/* A command, and the sweep that follows. */
static int change(struct sweep *w, const char *const *words, unsigned down)
{
	uint64_t before = w->sweeps;

	return command(w, words) ?: await_sweep(w, before, down);
}

static int measure_one(struct sweep *w)
{
	const unsigned i = w->count;
	const char *const cut[] = { "cut", w->cable, "--name", w->name, NULL };
	const char *const join[] = { "join", w->cable, "--name", w->name, NULL };
	int ret;

	w->cut[i] = (int64_t)clock_monotonic_ns_slow();
	ret = change(w, cut, 2);
	if (ret)
		return ret;
	w->done[i] = (int64_t)clock_monotonic_ns_slow();
	w->ended[i] = w->own ? w->done[i] : RESULT_ABSENT;
	w->began[i] = w->own ? w->done[i] - (int64_t)w->took_ns : RESULT_ABSENT;
	w->count++;
	return await_quiet(w) ?: change(w, join, 0) ?: await_quiet(w);
}

static int start_fabric(struct sweep *w, const json_t *p)
{
	struct process_words *line = &w->fabric_words;

	process_words_self(line, w->own ? "fabric run --name" : "fabric run --sm none --name");
	process_words_list(line, w->name, bench_text(p, "topology"), NULL);
	w->fabric = (struct process){ .argv = line->argv, .output = w->fabric_output, .cpu = -1 };
	return line->failed ? -ENOMEM : process_start(&w->fabric);
}

/* The fabric is there when it can be asked. */
static int await_fabric(struct sweep *w)
{
	uint64_t until = clock_monotonic_ns_slow() + PATIENCE_NS;
	char text[200];
	int ret;

	while (clock_monotonic_ns_slow() < until && !atomic_load(w->context->stop)) {
		if (!tune_tree_line(&tune_here, w->fabric_output, text, sizeof(text)) &&
		    !strncmp(text, "fabric ", 7))
			return 0;
		ret = check_running(&w->fabric, "busbar fabric", "busbar fabric run");
		if (ret)
			return ret;
		process_pause();
	}
	return atomic_load(w->context->stop) ? -EINTR : -ETIMEDOUT;
}

/* Its option -d2: each line of the log is written at once. */
static int start_opensm(struct sweep *w)
{
	const struct spawn_variable set[] = {
		{ "OSM_CACHE_DIR", w->dir, false }, { "OSM_TMP_DIR", w->dir, false },
		{ .name = NULL },
	};
	struct process_words *line = &w->opensm_words;

	process_words_self(line, "exec --quiet --fabric");
	process_words_add(line, w->name);
	process_words_split(line, "--port host-1 -- opensm -d2 -D 3 -f");
	process_words_add(line, w->opensm_log);
	w->opensm = (struct process){ .argv = line->argv, .output = w->opensm_output, .set = set,
				      .cpu = -1 };
	return line->failed ? -ENOMEM : process_start(&w->opensm);
}

static int measure_all(struct sweep *w, unsigned wanted)
{
	int ret = await_fabric(w) ?: (w->own ? 0 : start_opensm(w)) ?: await_sweep(w, 0, 0);

	if (!ret && !*w->cable)
		ret = log_fail(-EINVAL,
			       "the topology has no cable between two switches that could be cut");
	ret = ret ?: await_quiet(w);
	while (!ret && w->count < wanted) {
		ret = measure_one(w);
		w->context->progress(w->context, (double)w->count / wanted);
	}
	return ret;
}

static int add_rows(struct sweep *w)
{
	const struct result_column columns[] = {
		{ "cut", "ns", w->cut }, { "done", "ns", w->done },
		{ "sweep_begin", "ns", w->began }, { "sweep_end", "ns", w->ended },
	};
	static const struct result_latency latencies[] = {
		{ "t_routes", "from the cut to the end of the sweep", "cut", "done" },
		{ "t_sweep", "the sweep alone", "sweep_begin", "sweep_end" },
	};

	return result_case_rows(w->context->result, columns, ARRAY_SIZE(columns), w->count,
				latencies, w->own ? 2 : 1);
}

static void set_names(struct sweep *w)
{
	snprintf(w->name, sizeof(w->name), "bench-%d", getpid());
	snprintf(w->fabric_output, sizeof(w->fabric_output), "%s/fabric", w->dir);
	snprintf(w->opensm_output, sizeof(w->opensm_output), "%s/opensm", w->dir);
	snprintf(w->opensm_log, sizeof(w->opensm_log), "%s/opensm.log", w->dir);
	snprintf(w->answer, sizeof(w->answer), "%s/answer", w->dir);
}

int fabric_bench_sweep(const json_t *p, const struct bench_context *context)
{
	const unsigned wanted = fabric_bench_sweeps(p, context->scale);
	struct sweep w = { .context = context, .own = bench_is(p, "manager", "own") };
	/* The paths in command lines have to hold in other folders. */
	char *dir = realpath(result_case_dir(context->result), NULL);
	int64_t *values = calloc(4 * (size_t)wanted, sizeof(*values));
	int ret = dir && values ? 0 : -ENOMEM;

	if (!ret) {
		w.dir = dir;
		w.cut = values;
		w.done = values + wanted;
		w.began = values + 2 * (size_t)wanted;
		w.ended = values + 3 * (size_t)wanted;
		set_names(&w);
		ret = start_fabric(&w, p) ?: measure_all(&w, wanted);
		process_end(&w.opensm, 5);
		process_end(&w.fabric, 5);
		ret = ret ?: add_rows(&w);
		unlink(w.answer);
	}
	process_words_free(&w.fabric_words);
	process_words_free(&w.opensm_words);
	free(values);
	free(dir);
	return ret;
}
