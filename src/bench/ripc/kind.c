/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters, the two processes, and what comes out; see ripc.h. */
#define LOG_ROOM "bench/ripc"
#include "bench/ripc/ripc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "gateway/plugin/plugin.h"
#include "util/log.h"

#define START_SECONDS 0.1
#define PATIENCE_NS UINT64_C(5000000000) /* of the processes, once they are to stop */
#define READY_NS 1000000
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
	return bench_is(p, "mode", "fetch");
}

static int check(const json_t *p)
{
	const char *by = bench_text(p, "by");

	if (fetches(p) && !bench_is(p, "by", "long") && !bench_is(p, "by", "tcp"))
		return log_fail(-EINVAL, "by '%s' is not usable, files come long or by tcp", by);
	if (bench_is(p, "by", "tcp") && !bench_is(p, "transport", "any"))
		return log_fail(-EINVAL, "transport '%s' is not usable, tcp has none",
				bench_text(p, "transport"));
	if (bench_number(p, "poll") < 0 || bench_number(p, "poll") > INT64_C(1000000000))
		return log_fail(-EINVAL, "poll is not usable, expected at most a second");
	return 0;
}

static uint64_t scaled(const json_t *p, const char *name, double scale)
{
	return bench_scaled(p, name, scale, fetches(p) ? FETCHES_MIN : MESSAGES_MIN);
}

/* Guesses: a round trip over packets, and a byte there and back. */
static double seconds(const json_t *p, double scale)
{
	double each = 4e-5 + (double)bench_number(p, "size") * 1e-9;

	return START_SECONDS + each * (double)(scaled(p, "repetitions", scale) +
					       scaled(p, "warmup", scale));
}

/* ---- the processes ---- */

struct end {
	struct ripc_bench *b;
	enum ripc_side side;
	const char *transport;
	struct process process;
};

static void run_child(void *arg)
{
	struct end *e = arg;
	ripc_bench_end *end = bench_ripc_tcp;

	if (strcmp(e->transport, "any"))
		setenv("BUSBAR_TRANSPORTS", e->transport, 1);
	if (!e->b->tcp)
		end = (ripc_bench_end *)plugin_symbol("bench_ripc", "bench_ripc_end");
	e->b->error[e->side] = end ? end(e->b, e->side) : -EOPNOTSUPP;
}

/* Does an end still run? */
static bool reap(struct end ends[2], struct ripc_bench *b)
{
	for (int side = 0; side < 2; side++) {
		struct process *p = &ends[side].process;

		if (!p->pid || !process_has_ended(p))
			continue;
		if (p->status) {
			log_error("the process that %s died", side ? "answers" : "asks");
			b->error[side] = -EIO;
		}
		/* The other one has nothing to do any more. */
		if (side == RIPC_ASKS || b->error[side])
			atomic_store(&b->stop, true);
	}
	return ends[0].process.pid || ends[1].process.pid;
}

/* Until both have ended. */
static void look_after(struct end ends[2], struct ripc_bench *b,
		       const struct bench_context *context)
{
	uint64_t stopped = 0;

	while (reap(ends, b)) {
		process_pause();
		if (atomic_load(context->stop))
			atomic_store(&b->stop, true);
		if (atomic_load(&b->stop) && !stopped)
			stopped = clock_monotonic_ns_slow();
		for (int side = 0; side < 2; side++)
			if (stopped && clock_monotonic_ns_slow() - stopped > PATIENCE_NS)
				process_kill(&ends[side].process);
		context->progress(context, (double)atomic_load(&b->done) /
					   (double)(b->count + b->warmup));
	}
}

static int await_ready(struct end ends[2], struct ripc_bench *b,
		       const struct bench_context *context)
{
	const struct timespec pause = { .tv_nsec = READY_NS };

	while (!atomic_load(&b->ready)) {
		reap(ends, b);
		if (!ends[RIPC_ANSWERS].process.pid)
			return b->error[RIPC_ANSWERS] ?: -EIO;
		if (atomic_load(context->stop))
			return -EINTR;
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int run_pair(struct ripc_bench *b, const char *transport,
		    const struct bench_context *context)
{
	struct end ends[2] = { { b, RIPC_ASKS, transport, { .pid = 0 } },
			       { b, RIPC_ANSWERS, transport, { .pid = 0 } } };
	struct end *asks = &ends[RIPC_ASKS], *answers = &ends[RIPC_ANSWERS];
	int ret = process_copy(&answers->process, run_child, answers) ?:
		  await_ready(ends, b, context) ?: process_copy(&asks->process, run_child, asks);

	if (ret)
		atomic_store(&b->stop, true);
	look_after(ends, b, context);
	if (!ret && atomic_load(context->stop))
		ret = -EINTR;
	return ret ?: b->error[RIPC_ASKS] ?: b->error[RIPC_ANSWERS];
}

/* ---- a case ---- */

/* Random, so that nothing on the way can make it shorter. */
static int make_file(const struct ripc_bench *b, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), ret = 0;
	size_t left = b->size;
	char bytes[65536];

	if (fd < 0)
		ret = -errno;
	while (!ret && left) {
		ssize_t got = getrandom(bytes, MIN(left, sizeof(bytes)), 0);

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
		{ b->pushed ? "returned" : NULL, "answers that came in return buffers", "",
		  (double)b->returned },
	};

	return result_case_rows(result, columns, 2, b->count, &latency, 1) ?:
	       result_case_figures(result, figures, ARRAY_SIZE(figures));
}

static struct ripc_bench *make(const json_t *p, double scale, size_t *bytes)
{
	uint64_t count = scaled(p, "repetitions", scale);
	struct ripc_bench *b;

	*bytes = sizeof(*b) + 2 * count * sizeof(b->times[0]);
	b = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
		 -1, 0);
	if (b == MAP_FAILED)
		return NULL;
	b->fetch = fetches(p);
	b->tcp = bench_is(p, "by", "tcp");
	b->pushed = bench_is(p, "by", "pushed");
	b->is_long = b->pushed || bench_is(p, "by", "long");
	b->datagram = bench_is(p, "by", "datagram");
	b->size = (size_t)bench_number(p, "size");
	b->count = count;
	b->warmup = scaled(p, "warmup", scale);
	b->poll_us = (unsigned)(bench_number(p, "poll") / 1000) ?: 1; /* 0: the library's default */
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
	ret = ret ?: run_pair(b, bench_text(p, "transport"), context) ?: file(b, context->result);
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
