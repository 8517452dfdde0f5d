/* SPDX-License-Identifier: BSD-2-Clause */
#define LOG_ROOM "bench/mpi"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/kind.h"
#include "bench/mpi/launch.h"
#include "bench/mpi/output.h"
#include "util/container_of.h"
#include "util/log.h"

/* Guesses for the time left: mpirun's start and end, a message, a byte of it, and an operation
 * for each process that has no processor of its own. */
#define START_SECONDS 0.45
#define MESSAGE_SECONDS 6e-6
#define BYTE_SECONDS 4e-10
#define CROWD_SECONDS 5e-5
#define SECONDS_FACTOR 8

static const struct bench_parameter parameters[] = {
	{ "program", 's', "pingpong|rate|collective|overlap", "pingpong",
	  "there and back; one way in windows; all processes; beside a computation" },
	{ "library", 's', "openmpi|mpich", "openmpi", "the MPI" },
	{ "transport", 's', "adapter|shared|tcp", "adapter",
	  "busbar's adapter, the MPI's own shared memory, or TCP by loopback" },
	{ "call", 's',
	  "send|ssend|bsend|rsend|isend|issend|ibsend|irsend|persistent", "send",
	  "how pingpong sends" },
	{ "operation", 's',
	  "barrier|bcast|reduce|allreduce|gather|scatter|allgather|alltoall", "barrier",
	  "of collective" },
	{ "progress", 's', "none|test", "none", "what the computation of overlap calls" },
	{ "processes", 'i', "2..64", "2", "of collective; the others have two" },
	{ "size", 'i', "0..67108864", "8", "bytes of a message, or of what each process gives" },
	{ "messages", 'i', "1..100000000", "10000",
	  "round trips, windows or operations that are measured" },
	{ "window", 'i', "1..4096", "64", "messages of rate before it waits for an answer" },
	{ "rendezvous_from", 'i', "0..67108864", "0",
	  "bytes from which on a message goes by rendezvous; 0: the MPI decides" },
	{ "device", 's', NULL, "soft0",
	  "adapter of transport adapter; soft0 is busbar's own, others are hardware" },
	{ "between", 's', NULL, "",
	  "network namespaces of the processes' two halves with an address of each: A=10.77.0.1,B=10.77.0.2" },
	{ "environment", 's', NULL, "", "further variables, NAME=VALUE NAME=VALUE" },
	{ "counters", 'b', NULL, "true", "read the adapter's counters before and behind" },
	{ "capture", 'b', NULL, "false", "count the packets that go over the wire as well" },
	{ .name = NULL },
};

static bool assigns(const char *text)
{
	for (; text += strspn(text, " "), *text; text += strcspn(text, " ")) {
		size_t name = strcspn(text, "= ");

		if (!name || text[name] != '=')
			return false;
	}
	return true;
}

static int check(const json_t *p)
{
	const char *program = bench_text(p, "program"), *operation = bench_text(p, "operation");
	bool collective = bench_is(p, "program", "collective");
	struct mpi_hosts hosts;

	if (!collective && bench_number(p, "processes") != 2)
		return log_fail(-EINVAL, "processes %lld is not usable, %s has 2",
				bench_number(p, "processes"), program);
	if (collective && strstr(operation, "reduce") &&
	    bench_number(p, "size") % 8)
		return log_fail(-EINVAL, "size %lld is not usable, %s needs a multiple of 8",
				bench_number(p, "size"), operation);
	if (mpi_hosts_read(p, &hosts))
		return -EINVAL;
	if (hosts.between && bench_is(p, "transport", "shared"))
		return log_fail(-EINVAL, "transport shared is not usable between two hosts");
	if (!assigns(bench_text(p, "environment")))
		return log_fail(-EINVAL,
				"environment '%s' is not usable, expected NAME=VALUE NAME=VALUE",
				bench_text(p, "environment"));
	return 0;
}

static double seconds(const json_t *p, double scale)
{
	double messages = (double)mpi_messages(p, scale), size = (double)bench_number(p, "size");
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double each = MESSAGE_SECONDS + BYTE_SECONDS * size;

	if (bench_is(p, "program", "rate"))
		messages *= (double)bench_number(p, "window");
	if (bench_number(p, "processes") > processors)
		each += CROWD_SECONDS * (double)bench_number(p, "processes");
	return START_SECONDS + messages * each;
}

/* For each message, or operation, of MPI. */
static int add_counters(const struct mpi_marks *marks, double counted, struct result_case *c)
{
	const struct mpi_counters *a = &marks->at[0], *b = &marks->at[1];
	const double sends = (double)(b->sends - a->sends);
	const double writes = (double)(b->writes - a->writes);
	const double reads = (double)(b->reads - a->reads);
	const double messages = sends + writes + reads + (double)(b->atomics - a->atomics);
	const struct result_figure figures[] = {
		{ "wire_messages", "adapter messages for each of MPI", "", messages / counted },
		{ "wire_sends", "SENDs for each of MPI", "", sends / counted },
		{ "wire_writes", "RDMA WRITEs for each of MPI", "", writes / counted },
		{ "wire_reads", "RDMA READs for each of MPI", "", reads / counted },
		{ "wire_bytes", "adapter bytes for each of MPI", "B",
		  (double)(b->bytes - a->bytes) / counted },
	};

	if (messages > 0)
		return result_case_figures(c, figures, ARRAY_SIZE(figures));
	return log_fail(-EIO, "no message of the program went over the adapter");
}

static int add_packets(const struct mpi_marks *marks, double counted, struct result_case *c)
{
	struct mpi_packets p;
	int ret = mpi_packets_read(result_case_dir(c), marks->when_ns[0], marks->when_ns[1], &p);
	const uint64_t all = p.sends + p.writes + p.read_requests + p.read_responses + p.acks +
			     p.others;
	const struct result_figure figures[] = {
		{ "packets", "packets for each of MPI", "", (double)all / counted },
		{ "packets_send", "packets of SEND", "", (double)p.sends / counted },
		{ "packets_write", "packets of RDMA WRITE", "", (double)p.writes / counted },
		{ "packets_request", "requests of RDMA READ", "",
		  (double)p.read_requests / counted },
		{ "packets_response", "responses of RDMA READ", "",
		  (double)p.read_responses / counted },
		{ "packets_ack", "acknowledgements", "", (double)p.acks / counted },
		{ "packets_bytes", "bytes on the wire", "B", (double)p.bytes / counted },
		{ "packets_dropped", "packets that the capture lacks", "", (double)p.dropped },
	};

	return ret ?: result_case_figures(c, figures, ARRAY_SIZE(figures));
}

static int read_results(const struct mpi_plan *plan, const struct mpi_marks *marks,
			struct result_case *c)
{
	double counted;
	int ret = mpi_read_times(plan->times, c);

	/* raw.bin has them now. */
	unlink(plan->times);
	ret = ret ?: mpi_read_table(plan->output, c, &counted);
	if (!ret && marks->count == ARRAY_SIZE(marks->at) && counted > 0)
		ret = add_counters(marks, counted, c);
	if (!ret && plan->capture && counted > 0)
		ret = add_packets(marks, counted, c);
	return ret;
}

static int run(const json_t *p, const struct bench_context *context)
{
	double limit = process_patience(seconds(p, context->scale), SECONDS_FACTOR,
					context->scale);
	struct mpi_marks marks;
	struct mpi_plan plan;
	int ret = mpi_plan_make(&plan, p, context->scale, result_case_dir(context->result));

	if (!ret) {
		ret = mpi_launch(&plan, limit, context->stop, &marks);
		if (ret && ret != -EINTR) {
			process_show_end("output", plan.output);
			process_show_end("mpirun", plan.errors);
		}
	}
	ret = ret ?: read_results(&plan, &marks, context->result);
	if (!ret && marks.hung)
		ret = result_case_figure(context->result, &(struct result_figure){
			"hung", "measured all and did not end", "", 1 });
	mpi_plan_free(&plan);
	return ret;
}

const struct bench_kind bench_kind_mpi = {
	.name = "mpi",
	.summary = "a program of MPI, over the adapter, shared memory or TCP",
	.parameters = parameters,
	.check = check,
	.lacks = mpi_lacks,
	.seconds = seconds,
	.run = run,
};
