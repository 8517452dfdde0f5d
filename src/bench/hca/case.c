/* SPDX-License-Identifier: BSD-2-Clause */
/* A case from its parameters, and what does not go together. */
#define LOG_ROOM "bench/hca"
#include "bench/hca/case.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "util/log.h"

#define UD_SIZE_MAX 4096
#define BUFFER_GAP 64 /* between the pieces of a scatter list */

const struct bench_parameter hca_parameters[] = {
	{ "type", 's', "RC|UC|UD", "RC", "service type" },
	{ "mode", 's', "oneway|roundtrip|throughput", "oneway", "what is measured" },
	{ "op", 's', "send|write", "send",
	  "SEND or RDMA WRITE, both with immediate data (SEND over iWARP without)" },
	{ "size", 'i', "8..1048576", "32", "bytes of a message" },
	{ "burst", 'i', "1..1048576", "8000", "messages that follow each other" },
	{ "repetitions", 'i', "1..100000", "10", "number of bursts" },
	{ "pause", 'd', NULL, "5us", "between two messages; 0: none" },
	{ "warmup", 'i', "0..1000000", "1000",
	  "messages before the first burst, which do not count" },
	{ "poll_recv", 's', "busy|event|mixed", "busy", "how the receive queue is watched" },
	{ "poll_send", 's', "busy|event|mixed", "busy", "how the send queue is watched" },
	{ "inline", 'b', NULL, "false", "the request holds the data" },
	{ "unsignaled", 'b', NULL, "false",
	  "completions only as often as the queue needs them" },
	{ "stamp", 's', "subm|send", "subm",
	  "the time in a message: of posting, or when the adapter reads it" },
	{ "batch", 'i', "1..64", "1", "requests in a list that is posted at once" },
	{ "sges", 'i', "1..16", "1", "pieces of a message (scatter/gather list)" },
	{ "buffers", 'i', "0..1048576", "0",
	  "message buffers of each side; 0: one for each message of a burst, within 64 MiB" },
	{ "mtu", 'i', "0|256|512|1024|2048|4096", "0", "path MTU in bytes; 0: the adapter's" },
	{ "connect", 's', "cm|plain", "cm",
	  "by the connection manager, or by the program itself" },
	{ "device", 's', NULL, "soft0", "adapter, or those of sender and receiver: A,B" },
	{ "address", 's', NULL, "",
	  "IP address of the receiver, or of sender and receiver: A,B; else the adapter's" },
	{ "gid", 'i', "-1..255", "-1", "index of the GID (connect = plain); -1: the first that fits" },
	{ "cpus", 's', NULL, "",
	  "CPUs of sender and receiver, and of the thread of stamp = send: A,B[,C]; else the first that may be used" },
	{ "ends", 's', "processes|threads", "processes",
	  "sender and receiver are processes, or threads of one" },
	{ "clock", 's', "monotonic|ticks", "monotonic",
	  "CLOCK_MONOTONIC, or busbar's clock, which is read faster" },
	{ "spin", 'd', NULL, "50us", "mixed: how long to poll before sleeping" },
	{ "lost_after", 'd', NULL, "100ms",
	  "what has not come so long after all others is lost" },
	{ "peer", 's', NULL, "",
	  "HOST[:PORT] of 'busbar bench hca --server' on another host, which receives (roundtrip, throughput)" },
	{ .name = NULL },
};

/* The place of a value in its list of words. The caller has checked all values. */
static int word_of(const json_t *parameters, const char *name)
{
	const struct bench_parameter *p = hca_parameters;
	const char *value = bench_text(parameters, name);
	size_t len = value ? strlen(value) : 0;
	int place = 0;

	while (strcmp(p->name, name))
		p++;
	for (const char *v = p->values; v && len; v = strchr(v, '|'), place++) {
		v += *v == '|';
		if (!strncmp(v, value, len) && (!v[len] || v[len] == '|'))
			return place;
	}
	return 0;
}

static uint64_t duration_of(const json_t *parameters, const char *name)
{
	return (uint64_t)MAX(bench_number(parameters, name), 0);
}

/* "A,B" into both, "A" into one of them, or both. */
static bool split_pair(const json_t *parameters, const char *name, bool both,
		       char out[2][HCA_NAME_MAX])
{
	const char *text = bench_text(parameters, name);
	const char *comma = strchr(text, ',');
	size_t len = comma ? (size_t)(comma - text) : strlen(text);

	out[0][0] = out[1][0] = '\0';
	if (len >= HCA_NAME_MAX || (comma && strlen(comma + 1) >= HCA_NAME_MAX) ||
	    (comma && strchr(comma + 1, ',')))
		return log_fail(false, "%s = '%.80s' is not usable, expected A or A,B", name, text);
	if (comma || both)
		memcpy(out[HCA_SENDER], text, len + 1);
	out[HCA_SENDER][comma || both ? len : 0] = '\0';
	strcpy(out[HCA_RECEIVER], comma ? comma + 1 : text);
	return true;
}

/* The first three that this process may use, as far as there are so many. */
static void default_cpus(int cpu[3])
{
	cpu_set_t set;
	int n = 0;

	cpu[0] = cpu[1] = cpu[2] = -1;
	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int i = 0; i < CPU_SETSIZE && n < 3; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	if (n == 1)
		cpu[1] = cpu[0];
}

static bool read_cpus(const json_t *parameters, int cpu[3])
{
	const char *text = bench_text(parameters, "cpus");
	int end = 0, n;

	default_cpus(cpu);
	if (!*text)
		return true;
	cpu[2] = -1;
	n = sscanf(text, "%d,%d%n,%d%n", &cpu[0], &cpu[1], &end, &cpu[2], &end);
	if (n >= 2 && !text[end] && cpu[0] >= 0 && cpu[1] >= 0 && cpu[2] >= -1 &&
	    cpu[0] < CPU_SETSIZE && cpu[1] < CPU_SETSIZE && cpu[2] < CPU_SETSIZE)
		return true;
	return log_fail(false, "cpus = '%.80s' is not usable, expected numbers of CPUs such as 0,1 or 0,1,2",
			text);
}

static bool fail(const char *why)
{
	return log_fail(false, "%s", why);
}

static bool agrees(const struct hca_case *c)
{
	if (c->type == HCA_UD && c->op == HCA_WRITE)
		return fail("op = write is not possible with type = UD, which has no RDMA operations");
	if (c->type == HCA_UD && c->size > (c->mtu ?: UD_SIZE_MAX))
		return fail("size is more than a datagram takes: with type = UD at most mtu, 4096 bytes");
	if (c->remote && c->mode == HCA_ONEWAY)
		return fail("mode = oneway needs one clock: with peer only roundtrip and throughput are possible");
	if (c->remote && c->threads)
		return fail("ends = threads is not for two hosts");
	if (c->size < 8 * c->sges)
		return fail("size is less than 8 bytes for each of sges pieces");
	if (c->batch > c->burst)
		return fail("batch is more than burst");
	if (c->mode == HCA_ROUNDTRIP && c->batch > 1)
		return fail("batch > 1 has no meaning with mode = roundtrip: each message waits for its reply");
	if (c->buffers && c->buffers < c->batch)
		return fail("buffers is less than batch, whose messages need one each");
	if (c->stamp_send && c->mode != HCA_ONEWAY)
		return fail("stamp = send is for mode = oneway only");
	if (c->stamp_send && c->send_inline)
		return fail("stamp = send has no meaning with inline: the processor reads the message when it is posted");
	if (c->stamp_send && c->cpu[2] < 0 && c->poll_recv != HCA_BUSY)
		return fail("stamp = send needs a third CPU (cpus = A,B,C) unless poll_recv is busy: somebody has to overwrite the time");
	if ((uint64_t)c->buffers * (c->size + c->sges * BUFFER_GAP) > UINT64_C(1) << 32)
		return fail("buffers times size is more than 4 GiB");
	return true;
}

/* Behind the scale, which may be anything. */
static bool fits(const struct hca_case *c)
{
	if (hca_case_rows(c) > HCA_ROWS_MAX)
		return fail(c->mode == HCA_THROUGHPUT ?
				    "repetitions times the scale is more than 16777216" :
				    "burst times repetitions times the scale is more than 16777216 messages");
	/* Sequence numbers have 32 bits. */
	if ((uint64_t)c->burst * c->repetitions + c->warmup > UINT32_MAX)
		return fail("burst times repetitions times the scale, and warmup, are more than 4294967295 messages");
	return true;
}

/* More repetitions. Fewer repetitions first, then shorter bursts, which is something else to
 * measure. */
static void apply_scale(struct hca_case *c, double scale)
{
	double repetitions = c->repetitions * scale;

	if (scale > 1)
		c->repetitions = (uint32_t)fmin(round(repetitions), UINT32_MAX);
	if (scale >= 1 || scale <= 0)
		return;
	c->warmup = (uint32_t)ceil(c->warmup * scale);
	c->repetitions = repetitions < 1 ? 1 : (uint32_t)lround(repetitions);
	if (repetitions < 1)
		c->burst = MAX((uint32_t)lround(c->burst * repetitions),
			       MIN(c->burst, 10u));
	c->batch = MIN(c->batch, c->burst);
}

int hca_case_read(const json_t *parameters, double scale, struct hca_case *c)
{
	*c = (struct hca_case){
		.type = (enum hca_service)word_of(parameters, "type"),
		.mode = (enum hca_mode)word_of(parameters, "mode"),
		.op = (enum hca_operation)word_of(parameters, "op"),
		.poll_recv = (enum hca_polling)word_of(parameters, "poll_recv"),
		.poll_send = (enum hca_polling)word_of(parameters, "poll_send"),
		.clock = (enum hca_clock)word_of(parameters, "clock"),
		.send_inline = bench_flag(parameters, "inline"),
		.unsignaled = bench_flag(parameters, "unsignaled"),
		.remote = *bench_text(parameters, "peer"),
		.stamp_send = bench_is(parameters, "stamp", "send"),
		.plain = bench_is(parameters, "connect", "plain"),
		.threads = bench_is(parameters, "ends", "threads"),
		.size = (uint32_t)bench_number(parameters, "size"),
		.burst = (uint32_t)bench_number(parameters, "burst"),
		.repetitions = (uint32_t)bench_number(parameters, "repetitions"),
		.warmup = (uint32_t)bench_number(parameters, "warmup"),
		.batch = (uint32_t)bench_number(parameters, "batch"),
		.sges = (uint32_t)bench_number(parameters, "sges"),
		.buffers = (uint32_t)bench_number(parameters, "buffers"),
		.mtu = (uint32_t)bench_number(parameters, "mtu"),
		.pause_ns = duration_of(parameters, "pause"),
		.spin_ns = duration_of(parameters, "spin"),
		.lost_after_ns = duration_of(parameters, "lost_after"),
		.gid_index = (int)bench_number(parameters, "gid"),
	};
	if (!split_pair(parameters, "device", true, c->device) ||
	    !split_pair(parameters, "address", false, c->address) ||
	    !read_cpus(parameters, c->cpu) || !agrees(c))
		return -EINVAL;
	apply_scale(c, scale);
	return fits(c) ? 0 : -EINVAL;
}

double hca_case_seconds(const struct hca_case *c)
{
	double messages = (double)c->burst * c->repetitions;
	double each_ns = (double)c->pause_ns + 500 + c->size * 0.3;

	if (c->mode == HCA_ROUNDTRIP)
		each_ns = 2 * each_ns;
	if (c->poll_recv != HCA_BUSY)
		each_ns += 5000;
	return 0.2 + messages * each_ns * 1e-9;
}
