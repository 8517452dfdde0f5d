/* SPDX-License-Identifier: BSD-2-Clause */
/* See launch.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/launch.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "bench/mpi/output.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define END_SECONDS 5 /* for mpirun to end its processes */
/* From the table of results to the program's end, which frees its memory and closes connections;
 * and how often it is looked for. */
#define FINISH_NS (20 * NSEC_PER_SEC)
#define LOOK_NS NSEC_PER_SEC

/* ---- the counters; the command is asked, as only it knows how to look into other processes ---- */

#define LOOK_SECONDS 10

static const json_t *process_of(const json_t *devices, pid_t pid)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(devices, "processes"), i, p)
		if (json_number_value(json_object_get(p, "pid")) == pid)
			return p;
	return NULL;
}

/* "tx_send_messages" and "tx_send_imm_messages" are messages of one operation. */
static const struct {
	const char *names;
	size_t sum;
} sums[] = {
	{ "tx_*_bytes", offsetof(struct mpi_counters, bytes) },
	{ "tx_send*_messages", offsetof(struct mpi_counters, sends) },
	{ "tx_write*_messages", offsetof(struct mpi_counters, writes) },
	{ "tx_atomic_write*_messages", offsetof(struct mpi_counters, writes) },
	{ "tx_read*_messages", offsetof(struct mpi_counters, reads) },
	{ "tx_compare_swap*_messages", offsetof(struct mpi_counters, atomics) },
	{ "tx_fetch_add*_messages", offsetof(struct mpi_counters, atomics) },
};

int mpi_counters_sum(const json_t *devices, const pid_t *pids, size_t count,
		     struct mpi_counters *out)
{
	*out = (struct mpi_counters){ 0 };
	for (size_t i = 0; i < count; i++) {
		const json_t *p = process_of(devices, pids[i]);
		json_t *traffic = json_object_get(p, "traffic"), *value;
		const char *name;

		if (!p)
			return -ENOENT;
		if (!json_is_object(traffic))
			return -EBADMSG;
		json_object_foreach(traffic, name, value)
			for (size_t k = 0; k < ARRAY_SIZE(sums); k++)
				if (!fnmatch(sums[k].names, name, 0))
					*(uint64_t *)(void *)((char *)out + sums[k].sum) +=
						(uint64_t)json_number_value(value);
	}
	return 0;
}

static int run_command(const char *file)
{
	struct process_words words = { .count = 0 };
	struct process p = { .argv = words.argv, .output = file, .errors = "/dev/null", .cpu = -1 };
	uint64_t until = clock_monotonic_ns_slow() + LOOK_SECONDS * NSEC_PER_SEC;
	int ret;

	process_words_self(&words, "devices --json");
	ret = process_run(&p, until, NULL) ?: (p.status ? -EIO : 0);
	process_words_free(&words);
	return ret;
}

int mpi_counters_read(const char *file, const pid_t *pids, size_t count,
		      struct mpi_counters *out)
{
	int ret = run_command(file);
	/* A limit of an adapter may be larger than the integers of this library. */
	json_t *devices = ret ? NULL : json_load_file(file, JSON_DECODE_INT_AS_REAL, NULL);

	if (!ret)
		ret = devices ? mpi_counters_sum(devices, pids, count, out) : -EBADMSG;
	json_decref(devices);
	unlink(file);
	if (ret == -ENOENT)
		log_warn("a process of the program uses the adapter for nothing");
	else if (ret)
		log_warn("the adapter's counters cannot be read: %s", strerror(-ret));
	return ret;
}

/* ---- the program ---- */

static const char *const mark_names[] = { "begin", "end" };

struct watch {
	const struct mpi_plan *plan;
	struct mpi_marks *marks;
	size_t passed;             /* marks that the program has gone on from */
	uint64_t whole_ns;         /* since when the table is whole; 0: it is not */
	uint64_t looked_ns;
};

size_t mpi_marks_parse(const char *text, pid_t *pids, size_t max)
{
	size_t count = 0;

	while (count < max) {
		char *end;
		long pid = strtol(text, &end, 10);

		if (end == text || *end != '\n' || pid <= 0 || pid > INT_MAX)
			break;
		pids[count++] = (pid_t)pid;
		text = end + 1;
	}
	return count;
}

/* All processes stand at the mark, and none of them is in MPI. */
static bool all_are_at(const char *path, unsigned processes, pid_t *pids)
{
	char *text = NULL;
	bool there = !tune_tree_read(&tune_here, path, &text) &&
		     mpi_marks_parse(text, pids, processes) == processes;

	free(text);
	return there;
}

static void mark_path(const struct mpi_plan *plan, size_t number, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s.%s", plan->marks, mark_names[number]);
}

/* Reads the counters when the program has come to its next mark, and lets it go on. */
static void look_at_mark(struct watch *w)
{
	pid_t pids[MPI_PROCESSES_MAX];
	char path[PATH_MAX];
	struct timespec now;

	if (!w->plan->marks || w->passed == ARRAY_SIZE(mark_names))
		return;
	mark_path(w->plan, w->passed, path);
	if (all_are_at(path, w->plan->processes, pids)) {
		clock_gettime(CLOCK_REALTIME, &now);
		w->marks->when_ns[w->passed] = timespec_to_ns(now);
		/* Without counters the case has its times. */
		if (w->marks->count == w->passed &&
		    !mpi_counters_read(w->plan->counters, pids, w->plan->processes,
				       &w->marks->at[w->passed]))
			w->marks->count++;
		w->passed++;
		unlink(path);
	}
}

/* Has the program measured all, and hangs since then? Some do in MPI_Finalize. */
static bool hangs_at_end(struct watch *w, uint64_t now_ns, bool late)
{
	if (now_ns - w->looked_ns >= LOOK_NS || late) {
		w->looked_ns = now_ns;
		if (!w->whole_ns && mpi_table_is_whole(w->plan->output))
			w->whole_ns = now_ns;
	}
	return w->whole_ns && (late || now_ns - w->whole_ns >= FINISH_NS);
}

static int watch(struct watch *w, struct process *p, uint64_t until, const atomic_bool *stop)
{
	while (!process_has_ended(p)) {
		uint64_t now_ns = clock_monotonic_ns_slow();

		if (atomic_load(stop))
			return -EINTR;
		if (hangs_at_end(w, now_ns, now_ns > until)) {
			log_info("the program has measured all and does not end: what it measured "
				 "is kept");
			w->marks->hung = true;
			return 0;
		}
		if (now_ns > until)
			return log_fail(-ETIMEDOUT, "%s does not end", p->argv[0]);
		look_at_mark(w);
		process_pause();
	}
	return p->status ? process_failed(p, "program") : 0;
}

/* Of a program that did not come so far. */
static void remove_marks(const struct mpi_plan *plan)
{
	char path[PATH_MAX];

	for (size_t i = 0; plan->marks && i < ARRAY_SIZE(mark_names); i++) {
		mark_path(plan, i, path);
		unlink(path);
	}
}

int mpi_launch(const struct mpi_plan *plan, double seconds_max, const atomic_bool *stop,
	       struct mpi_marks *marks)
{
	struct process p = { .argv = plan->words.argv, .output = plan->output,
			     .errors = plan->errors, .set = plan->variables, .cpu = -1 };
	struct watch w = { .plan = plan, .marks = marks };
	uint64_t until = clock_monotonic_ns_slow() + (uint64_t)(seconds_max * 1e9);
	int ret = process_start(&p);

	*marks = (struct mpi_marks){ .count = 0 };
	if (!ret)
		ret = watch(&w, &p, until, stop);
	/* mpirun ends its processes itself; some of them are in groups of their own. */
	process_end(&p, END_SECONDS);
	remove_marks(plan);
	return ret;
}
