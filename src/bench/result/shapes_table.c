/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shapes: section by section what an independent measurement should show again; then those of
 * the suite tutorial: what a message of MPI is, and what the ways to send cost.
 */
#include "bench/result/shapes_private.h"

#define SAME 1.07     /* the source's bound of "no effect" */
#define SAME_MPI 1.15 /* its medians of Send and Ssend by rendezvous differ by 1 % */
/* Messages that an MPI sends for itself, and counts at the edges of what is measured. */
#define ALMOST 0.15

#define TYPES "RC|UC|UD"
#define LIBRARIES "openmpi|mpich"
/* Values of cases: the medians of most latencies. */
#define MEDIAN(scenario, latency, wanted) { scenario, latency, "p50", wanted }
#define LARGEST(scenario, latency, wanted) { scenario, latency, "max", wanted }
#define MISSED(scenario, wanted) { scenario, NULL, "missed_share", wanted }
#define RC_SEND(inlined, size) \
	MEDIAN("G", "t_lat", "type=RC op=send inline=" inlined " size=" size)
#define THROUGH(node) MEDIAN("N8", "from_step", "node=" node " rate=25000")
#define BY_SERVICE(service) \
	MEDIAN("N4", "from_step", "service=" service " rate=25000 values=8")
/* Messages of the adapter for each of MPI. */
#define MESSAGES(scenario, wanted, expected) \
	.rule = SHAPE_COUNT, .bound = expected, .tolerance = ALMOST, \
	.low = { scenario, NULL, "wire_messages", wanted }
#define EAGER " rendezvous_from=16384"
#define RENDEZVOUS " rendezvous_from=4096"
#define ADAPTER "library=* transport=adapter call="
#define COLLECTIVE(operation, processes, expected) \
	{ .what = operation " of " processes, \
	  MESSAGES("E1-algorithms", "library=openmpi operation=" operation " processes=" processes, \
		   expected) }

const struct shape_row shapes_table[] = {
	{ "1", "busy polling is faster than sleeping until an event (2.8 times there)",
	  .each = TYPES, .what = "*", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("B1", "t_lat", "type=*"), .high = MEDIAN("A1", "t_lat", "type=*") },
	/* Compares factors, not times. */
	{ "1", "pauses cost more with events than with busy polling (120 % and 20 % there)",
	  .each = TYPES, .what = "*", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("B2/B1", "t_lat", "type=*"), .high = MEDIAN("A2/A1", "t_lat", "type=*") },
	{ "2", "inline data is faster for small messages (28 % there)",
	  .what = "32 B", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("D", "t_lat", "inline=yes"), .high = MEDIAN("D", "t_lat", "inline=no") },
	{ "2", "inline data is no gain from 256 bytes on",
	  .each = "256|512", .what = "* B", .rule = SHAPE_AT_MOST, .bound = 1,
	  .low = RC_SEND("yes", "*"), .high = RC_SEND("no", "*") },
	{ "2", "messages without a completion of their own are faster (13 % there)",
	  .rule = SHAPE_ABOVE, .bound = 1, .low = MEDIAN("F", "t_lat", "unsignaled=yes"),
	  .high = MEDIAN("F", "t_lat", "unsignaled=no") },
	{ "3", "part of the time passes before the adapter fetches the data (42 % there)",
	  .rule = SHAPE_ABOVE, .bound = 1, .low = MEDIAN("C", "t_lat_send", "stamp=send"),
	  .high = MEDIAN("C", "t_lat", "stamp=subm") },
	/* The source itself has 1.36 us and 0.91 us there. */
	{ "4", "the size has no effect up to 256 bytes, then the time grows",
	  .each = "8|16|32|64|128|256", .range = true, .what = "8 to 256 B", .rule = SHAPE_AT_MOST,
	  .bound = 1.5, .low = RC_SEND("no", "*") },
	{ .what = "256 B to 32 KiB", .rule = SHAPE_ABOVE, .bound = 1.5,
	  .low = RC_SEND("no", "256"), .high = RC_SEND("no", "32768") },
	{ "5", "the path MTU has no effect",
	  .each = "256|512|1024|2048|4096", .range = true, .what = "RC 4 KiB", .rule = SHAPE_AT_MOST,
	  .bound = SAME, .low = MEDIAN("P2", "t_lat", "type=RC size=4096 mtu=*") },
	{ "5", "queue pairs of the connection manager are as fast (7 % there)",
	  .each = "32|128|512", .what = "* B", .rule = SHAPE_ALIKE, .bound = SAME,
	  .low = MEDIAN("P3", "t_lat", "type=RC connect=plain size=*"),
	  .high = MEDIAN("P3", "t_lat", "type=RC connect=cm size=*") },
	{ "6", "RC completes after the message was received; UC and UD before",
	  .what = "RC", .rule = SHAPE_ABOVE, .bound = 1, .low = MEDIAN("B1", "t_lat", "type=RC"),
	  .high = MEDIAN("B1", "t_lat_comp", "type=RC") },
	{ .each = "UC|UD", .what = "*", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("B1", "t_lat_comp", "type=*"), .high = MEDIAN("B1", "t_lat", "type=*") },
	/* zeromq and nanomsg, where the gateway has them; udp and tcp are no part of the source's
	 * claim and stand there for comparison only. */
	{ "7", "shmem is faster than infiniband, which is far faster than zeromq and nanomsg",
	  .what = "shmem, infiniband", .rule = SHAPE_ABOVE, .bound = 1, .low = THROUGH("shmem"),
	  .high = THROUGH("infiniband") },
	{ .each = "zeromq|nanomsg", .what = "*", .rule = SHAPE_ABOVE, .bound = 5,
	  .low = THROUGH("infiniband"), .high = THROUGH("*") },
	{ .each = "udp|tcp", .rule = SHAPE_SAID,
	  .low = THROUGH("infiniband"), .high = THROUGH("*") },
	/* Medians that differ by the noise of a run are the same. */
	{ "7", "UC is no slower than RC, and RC no slower than UD",
	  .what = "RC, UC", .rule = SHAPE_AT_MOST, .bound = SAME, .low = BY_SERVICE("RC"),
	  .high = BY_SERVICE("UC") },
	{ .what = "UD, RC", .rule = SHAPE_AT_MOST, .bound = SAME, .low = BY_SERVICE("UD"),
	  .high = BY_SERVICE("RC") },
	{ "8", "the median falls as the rate rises",
	  .each = "RC|UD", .what = "*, 100 kHz and 100 Hz", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("N2", "from_step", "service=* rate=100000"),
	  .high = MEDIAN("N2", "from_step", "service=* rate=100") },
	{ "9", "the TSC misses fewer steps than timerfd at 100 kHz (0.50 and 0.68 % there)",
	  .what = "percent of tsc and timerfd", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MISSED("N1", "timer=tsc"), .high = MISSED("N1", "timer=timerfd") },
	/* By their labels: the sizes stand in a text of further keys. */
	{ "10", "a receive queue that is too deep makes the largest latency larger",
	  .what = "largest, 512 and 8192 receives", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = LARGEST("N9", "from_step", "case=receive-queue-512"),
	  .high = LARGEST("N9", "from_step", "case=receive-queue-8192") },

	{ "E1", "an eager message is one message of the adapter, a synchronous one two",
	  .what = "openmpi send", MESSAGES("E1-messages", "library=openmpi call=send" EAGER, 1) },
	{ .what = "openmpi ssend", MESSAGES("E1-messages", "library=openmpi call=ssend" EAGER, 2) },
	{ .what = "mpich send", MESSAGES("E1-messages", "library=mpich call=send" EAGER, 1) },
	{ .what = "mpich ssend", MESSAGES("E1-messages", "library=mpich call=ssend" EAGER, 2) },
	{ "E1", "rendezvous by READ is three transfers",
	  .each = LIBRARIES, .what = "*",
	  MESSAGES("E1-messages", "library=* call=send environment=UCX_RNDV_SCHEME=get_zcopy", 3) },
	{ "E1", "rendezvous by WRITE is four transfers",
	  .each = LIBRARIES, .what = "*",
	  MESSAGES("E1-messages", "library=* call=send environment=UCX_RNDV_SCHEME=put_zcopy", 4) },
	{ "E1", "operations of all processes take as many messages as their algorithms say",
	  .what = "barrier of 4",
	  MESSAGES("E1-algorithms", "library=openmpi operation=barrier processes=4", 8) },
	COLLECTIVE("barrier", "6", 18), COLLECTIVE("barrier", "8", 24),
	COLLECTIVE("reduce", "4", 3), COLLECTIVE("reduce", "6", 5), COLLECTIVE("reduce", "8", 7),
	COLLECTIVE("allreduce", "4", 8), COLLECTIVE("allreduce", "6", 12),
	COLLECTIVE("allreduce", "8", 24),
	{ "E2", "WRITE is no slower than SEND, and SEND no slower than READ",
	  .what = "SEND, WRITE", .rule = SHAPE_AT_MOST, .bound = SAME_MPI,
	  .low = MEDIAN("E2-latency", "t_lat", "program=ib_send_lat size=8"),
	  .high = MEDIAN("E2-latency", "t_lat", "program=ib_write_lat size=8") },
	{ .what = "READ, SEND", .rule = SHAPE_AT_MOST, .bound = SAME_MPI,
	  .low = MEDIAN("E2-latency", "t_lat", "program=ib_read_lat size=8"),
	  .high = MEDIAN("E2-latency", "t_lat", "program=ib_send_lat size=8") },
	{ "E3", "eager: Ssend takes far longer than Send (6.8 times there)",
	  .each = LIBRARIES, .what = "*", .rule = SHAPE_ABOVE, .bound = 2,
	  .low = MEDIAN("E3", "t_call", ADAPTER "send" EAGER),
	  .high = MEDIAN("E3", "t_call", ADAPTER "ssend" EAGER) },
	{ "E3", "Isend returns earlier by rendezvous than eagerly (0.61 times there)",
	  .each = LIBRARIES, .what = "*", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("E3", "t_call", ADAPTER "isend" RENDEZVOUS),
	  .high = MEDIAN("E3", "t_call", ADAPTER "isend" EAGER) },
	{ "E3", "rendezvous: Send and Ssend take the same time",
	  .each = LIBRARIES, .what = "*", .rule = SHAPE_ALIKE, .bound = SAME_MPI,
	  .low = MEDIAN("E3", "t_call", ADAPTER "send" RENDEZVOUS),
	  .high = MEDIAN("E3", "t_call", ADAPTER "ssend" RENDEZVOUS) },
	{ "E3", "8192 bytes take longer by rendezvous than eagerly",
	  .each = LIBRARIES, .what = "*", .rule = SHAPE_ABOVE, .bound = 1,
	  .low = MEDIAN("E3", "t_lat", ADAPTER "send" EAGER),
	  .high = MEDIAN("E3", "t_lat", ADAPTER "send" RENDEZVOUS) },
	{ .rule = SHAPE_END },
};
