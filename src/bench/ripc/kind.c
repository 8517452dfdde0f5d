/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters, the two processes, and what comes out; see ripc.h. */
#define LOG_ROOM "bench/ripc"
#include "bench/ripc/ripc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "gateway/plugin/plugin.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/spawn.h"

#define START_SECONDS 0.1
#define PATIENCE_NS UINT64_C(5000000000) /* of the processes, once they are to stop */
#define LOOK_NS 5000000
#define MESSAGES_MIN 20
#define FETCHES_MIN 3

static const struct bench_parameter parameters[] = {
	{ "mode", 's', "pingpong|fetch", "pingpong", "round trips of messages, or of files" },
	{ "by", 's', "short|datagram|long|pushed|tcp", "short",
	  "short messages by connection or datagram, long ones, long ones into return buffers, or plain TCP sockets" },
	{ "transport", 's', "any|shm|roce", "any",
	  "of the software adapter: BUSBAR_TRANSPORTS; any: as in the environment" },
	{ "size", 'i', "1..1073741824", "50", "bytes of a message or file" },
	{ "repetitions", 'i', "1..10000000", "10000", "round trips or fetches that count" },
	{ "warmup", 'i', "1..1000000", "100", "before them; the first connects" },
	{ "poll", 'd', NULL, "50us", "how long who waits polls before it sleeps" },
	{ .name = NULL },
};

static bool fetches(const json_t *p)
{
	return !strcmp(bench_text(p, "mode"), "fetch");
}

static int check(const json_t *p)
{
	const char *by = bench_text(p, "by");

	if (fetches(p) && strcmp(by, "long") && strcmp(by, "tcp"))
		return log_fail(-EINVAL, "by '%s' is not usable, files come long or by tcp", by);
	if (!strcmp(by, "tcp") && strcmp(bench_text(p, "transport"), "any"))
		return log_fail(-EINVAL, "transport '%s' is not usable, tcp has none",
				bench_text(p, "transport"));
	if (bench_number(p, "poll") < 0 || bench_number(p, "poll") > INT64_C(1000000000))
		return log_fail(-EINVAL, "poll is not usable, expected at most a second");
	return 0;
}

static uint64_t scaled(const json_t *p, const char *name, double scale)
{
	uint64_t n = (uint64_t)((double)bench_number(p, name) * scale);
	uint64_t least = fetches(p) ? FETCHES_MIN : MESSAGES_MIN;
	uint64_t all = (uint64_t)bench_number(p, name);

	if (n < least)
		n = least;
	return n < all ? n : all;
}

/* Guesses: a round trip over packets, and a byte there and back. */
static double seconds(const json_t *p, double scale)
{
	double each = 4e-5 + (double)bench_number(p, "size") * 1e-9;

	return START_SECONDS + each * (double)(scaled(p, "repetitions", scale) +
					       scaled(p, "warmup", scale));
}

/* ---- the processes ---- */

static void run_child(struct ripc_bench *b, enum ripc_side side, const char *transport)
{
	ripc_bench_end *end = bench_ripc_tcp;

	/* The parent tells them to end. */
	signal(SIGINT, SIG_IGN);
	if (strcmp(transport, "any"))
		setenv("BUSBAR_TRANSPORTS", transport, 1);
	if (!b->tcp)
		end = (ripc_bench_end *)plugin_symbol("bench_ripc", "bench_ripc_end");
	b->error[side] = end ? end(b, side) : -EOPNOTSUPP;
	_exit(0);
}

struct process_pair {
	pid_t pid[2]; /* by side; 0: has ended */
};

static int start(struct process_pair *all, struct ripc_bench *b, enum ripc_side side,
		 const char *transport)
{
	pid_t pid = spawn_copy(SIGKILL);

	if (pid < 0)
		return log_fail(-errno, "cannot start a process: %s", strerror(errno));
	if (!pid)
		run_child(b, side, transport);
	all->pid[side] = pid;
	return 0;
}

static void reap(struct process_pair *all, struct ripc_bench *b)
{
	for (int side = 0; side < 2; side++) {
		int status;

		if (!all->pid[side] || !spawn_has_ended(all->pid[side], 0, &status))
			continue;
		all->pid[side] = 0;
		if (status) {
			log_error("the process that %s died", side ? "answers" : "asks");
			b->error[side] = -EIO;
		}
		/* The other one has nothing to do any more. */
		if (side == RIPC_ASKS || b->error[side])
			atomic_store(&b->stop, true);
	}
}

static void kill_all(const struct process_pair *all)
{
	for (int side = 0; side < 2; side++)
		if (all->pid[side])
			kill(all->pid[side], SIGKILL);
}

/* Until both have ended. */
static void look_after(struct process_pair *all, struct ripc_bench *b,
		       const struct bench_context *context)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t stopped = 0;

	while (reap(all, b), all->pid[0] || all->pid[1]) {
		nanosleep(&pause, NULL);
		if (context->stop && atomic_load(context->stop))
			atomic_store(&b->stop, true);
		if (atomic_load(&b->stop) && !stopped)
			stopped = ripc_bench_now();
		if (stopped && ripc_bench_now() - stopped > PATIENCE_NS)
			kill_all(all);
		if (context->progress)
			context->progress(context, (double)atomic_load(&b->done) /
						   (double)(b->count + b->warmup));
	}
}

static int await_ready(struct process_pair *all, struct ripc_bench *b,
		       const struct bench_context *context)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS / 5 };

	while (!atomic_load(&b->ready)) {
		reap(all, b);
		if (!all->pid[RIPC_ANSWERS])
			return b->error[RIPC_ANSWERS] ? b->error[RIPC_ANSWERS] : -EIO;
		if (context->stop && atomic_load(context->stop))
			return -EINTR;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int run_pair(struct ripc_bench *b, const char *transport,
		    const struct bench_context *context)
{
	struct process_pair all = { { 0, 0 } };
	int ret = start(&all, b, RIPC_ANSWERS, transport);

	if (!ret)
		ret = await_ready(&all, b, context);
	if (!ret)
		ret = start(&all, b, RIPC_ASKS, transport);
	if (ret)
		atomic_store(&b->stop, true);
	look_after(&all, b, context);
	if (!ret && context->stop && atomic_load(context->stop))
		ret = -EINTR;
	if (!ret)
		ret = b->error[RIPC_ASKS] ? b->error[RIPC_ASKS] : b->error[RIPC_ANSWERS];
	return ret;
}

/* ---- a case ---- */

/* Random, so that nothing on the way can make it shorter. */
static int make_file(const struct ripc_bench *b, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), ret = 0;
	size_t left = b->size;

	if (fd < 0)
		ret = -errno;
	while (!ret && left) {
		char bytes[65536];
		size_t n = left < sizeof(bytes) ? left : sizeof(bytes);
		ssize_t got = getrandom(bytes, n, 0);

		if (got > 0)
			got = write(fd, bytes, (size_t)got);
		if (got > 0)
			left -= (size_t)got;
		else if (errno != EINTR)
			ret = -errno;
	}
	if (ret)
		log_error("%s: %s", path, strerror(-ret));
	if (fd >= 0)
		close(fd);
	return ret;
}

static int file(const struct ripc_bench *b, struct result_case *result)
{
	static const struct result_latency latency = {
		"t_rtt", "round trip", "sent", "received" };
	const struct result_column columns[] = {
		{ "sent", "ns", b->times }, { "received", "ns", b->times + b->count } };
	double sum = 0;
	int ret = result_case_rows(result, columns, 2, b->count, &latency, 1);

	for (uint64_t i = 0; i < b->count; i++)
		sum += (double)(b->times[b->count + i] - b->times[i]);
	sum /= (double)b->count;
	const struct result_figure figures[] = {
		{ "mean_ns", "mean round trip", "ns", sum },
		{ "first_ns", "first one, with finding and connecting", "ns",
		  (double)b->first_ns },
		{ b->fetch ? "rate_mbs" : NULL, "bytes fetched in that time", "MB/s",
		  (double)b->size * 1e3 / sum },
		{ b->tcp ? NULL : "registrations", "registrations of memory behind the warm-up", "",
		  (double)(b->registrations + b->server_registrations - b->server_warm) },
		{ b->pushed ? "returned" : NULL, "answers that came in return buffers", "", (double)b->returned },
	};

	return ret ? ret : result_case_figures(result, figures, ARRAY_SIZE(figures));
}

static struct ripc_bench *make(const json_t *p, double scale, size_t *bytes)
{
	uint64_t count = scaled(p, "repetitions", scale);
	const char *by = bench_text(p, "by");
	struct ripc_bench *b;

	*bytes = sizeof(*b) + 2 * count * sizeof(b->times[0]);
	b = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		 -1, 0);
	if (b == MAP_FAILED)
		return NULL;
	b->fetch = fetches(p);
	b->tcp = !strcmp(by, "tcp");
	b->pushed = !strcmp(by, "pushed");
	b->is_long = b->pushed || !strcmp(by, "long");
	b->datagram = !strcmp(by, "datagram");
	b->size = (size_t)bench_number(p, "size");
	b->count = count;
	b->warmup = scaled(p, "warmup", scale);
	b->poll_us = (unsigned)(bench_number(p, "poll") / 1000);
	if (!b->poll_us)
		b->poll_us = 1; /* 0 is the library's default */
	return b;
}

static int run(const json_t *p, const struct bench_context *context)
{
	char path[PATH_MAX + sizeof(RIPC_BENCH_FILE) + 1];
	size_t bytes;
	struct ripc_bench *b = make(p, context->scale, &bytes);
	int ret = 0;

	if (!b)
		return -ENOMEM;
	snprintf(b->folder, sizeof(b->folder), "%s", result_case_dir(context->result));
	snprintf(path, sizeof(path), "%s/" RIPC_BENCH_FILE, b->folder);
	if (b->fetch && !b->tcp) {
		const struct timespec pause = { .tv_nsec = 25000000 };

		/* The server keeps no file that was written within 20 ms. */
		ret = make_file(b, path);
		nanosleep(&pause, NULL);
	}
	if (!ret)
		ret = run_pair(b, bench_text(p, "transport"), context);
	if (!ret)
		ret = file(b, context->result);
	if (b->fetch && !b->tcp)
		unlink(path);
	munmap(b, bytes);
	return ret;
}

const struct bench_kind bench_kind_ripc = {
	.name = "ripc",
	.summary = "messages and files by ripc, or by plain TCP",
	.parameters = parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
