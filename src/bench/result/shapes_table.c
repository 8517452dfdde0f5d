/* SPDX-License-Identifier: BSD-2-Clause */
/* The shapes: section by section what an independent measurement should show again. */
#include "bench/result/shapes_private.h"
#include "util/container_of.h"

#define SAME 1.07 /* the source's bound of "no effect" */

static const char *const types[] = { "RC", "UC", "UD" };

static const struct shape_value *burst_of(struct shape_run *r, const char *scenario,
					  const char *type)
{
	return shape_latency(r, scenario, "t_lat", "p50", "type=%s", type);
}

static void busy_or_event(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		shape_compare(a, types[i], burst_of(r, "B1", types[i]),
			      burst_of(r, "A1", types[i]), SHAPE_ABOVE, 1);
}

/* Compares factors, not times. */
static void gaps(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const char *type = types[i];

		shape_compare(a, type,
			      shape_ratio(r, burst_of(r, "B2", type), burst_of(r, "B1", type)),
			      shape_ratio(r, burst_of(r, "A2", type), burst_of(r, "A1", type)),
			      SHAPE_ABOVE, 1);
	}
}

static void inline_small(struct shape_run *r, struct shape_answer *a)
{
	shape_compare(a, "32 B", shape_latency(r, "D", "t_lat", "p50", "inline=yes"),
		      shape_latency(r, "D", "t_lat", "p50", "inline=no"), SHAPE_ABOVE, 1);
}

static const struct shape_value *of_size(struct shape_run *r, const char *inlined, int size)
{
	return shape_latency(r, "G", "t_lat", "p50", "type=RC op=send inline=%s size=%d",
			     inlined, size);
}

static void inline_large(struct shape_run *r, struct shape_answer *a)
{
	for (int size = 256; size <= 512; size *= 2)
		shape_compare(a, size == 256 ? "256 B" : "512 B", of_size(r, "yes", size),
			      of_size(r, "no", size), SHAPE_AT_MOST, 1);
}

static void unsignaled(struct shape_run *r, struct shape_answer *a)
{
	shape_compare(a, "", shape_latency(r, "F", "t_lat", "p50", "unsignaled=yes"),
		      shape_latency(r, "F", "t_lat", "p50", "unsignaled=no"), SHAPE_ABOVE, 1);
}

static void send_stamp(struct shape_run *r, struct shape_answer *a)
{
	shape_compare(a, "", shape_latency(r, "C", "t_lat_send", "p50", "stamp=send"),
		      shape_latency(r, "C", "t_lat", "p50", "stamp=subm"), SHAPE_ABOVE, 1);
}

/* Lowest and highest of the values that a sweep has. */
struct range {
	const struct shape_value *low, *high;
	int count;
};

static void widen(struct range *r, const struct shape_value *v)
{
	if (!v)
		return;
	r->low = r->low && r->low->value <= v->value ? r->low : v;
	r->high = r->high && r->high->value >= v->value ? r->high : v;
	r->count++;
}

static void flat(struct shape_run *r, struct shape_answer *a)
{
	struct range sizes = { .count = 0 };

	for (int size = 8; size <= 256; size *= 2)
		widen(&sizes, of_size(r, "no", size));
	/* The source itself has 1.36 us and 0.91 us there. */
	if (sizes.count > 1)
		shape_compare(a, "8 to 256 B", sizes.low, sizes.high, SHAPE_AT_MOST, 1.5);
	shape_compare(a, "256 B to 32 KiB", of_size(r, "no", 256), of_size(r, "no", 32768),
		      SHAPE_ABOVE, 1.5);
}

static void mtu(struct shape_run *r, struct shape_answer *a)
{
	struct range mtus = { .count = 0 };

	for (int size = 256; size <= 4096; size *= 2)
		widen(&mtus, shape_latency(r, "P2", "t_lat", "p50",
					   "type=RC size=4096 mtu=%d", size));
	if (mtus.count > 1)
		shape_compare(a, "RC 4 KiB", mtus.low, mtus.high, SHAPE_AT_MOST, SAME);
}

static void manager(struct shape_run *r, struct shape_answer *a)
{
	for (int size = 32; size <= 512; size *= 4)
		shape_compare(a, size == 32 ? "32 B" : size == 128 ? "128 B" : "512 B",
			      shape_latency(r, "P3", "t_lat", "p50",
					    "type=RC connect=plain size=%d", size),
			      shape_latency(r, "P3", "t_lat", "p50",
					    "type=RC connect=cm size=%d", size),
			      SHAPE_ALIKE, SAME);
}

static void completion(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct shape_value *received = burst_of(r, "B1", types[i]);
		const struct shape_value *completed =
			shape_latency(r, "B1", "t_lat_comp", "p50", "type=%s", types[i]);

		shape_compare(a, types[i], i ? completed : received, i ? received : completed,
			      SHAPE_ABOVE, 1);
	}
}

static const struct shape_value *through(struct shape_run *r, const char *node)
{
	return shape_latency(r, "N8", "from_step", "p50", "node=%s rate=25000", node);
}

/* zeromq and nanomsg, where the gateway has them; udp and tcp are no part of the source's
 * claim and stand there for comparison only. */
static void media(struct shape_run *r, struct shape_answer *a)
{
	static const char *const others[] = { "zeromq", "nanomsg" }, *const more[] = { "udp",
											"tcp" };
	const struct shape_value *ib = through(r, "infiniband");

	shape_compare(a, "shmem, infiniband", through(r, "shmem"), ib, SHAPE_ABOVE, 1);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		shape_compare(a, others[i], ib, through(r, others[i]), SHAPE_ABOVE, 5);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		const struct shape_value *v = through(r, more[i]);

		if (v && ib)
			shape_say(a, "%s%s %.1f times infiniband", *a->figures ? "; " : "",
				  more[i], v->value / ib->value);
	}
}

static void services(struct shape_run *r, struct shape_answer *a)
{
	const struct shape_value *v[3];

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		v[i] = shape_latency(r, "N4", "from_step", "p50",
				     "service=%s rate=25000 values=8", types[i]);
	/* Medians that differ by the noise of a run are the same. */
	shape_compare(a, "RC, UC", v[0], v[1], SHAPE_AT_MOST, SAME);
	shape_compare(a, "UD, RC", v[2], v[0], SHAPE_AT_MOST, SAME);
}

static void falls(struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i += 2)
		shape_compare(a, i ? "UD, 100 kHz and 100 Hz" : "RC, 100 kHz and 100 Hz",
			      shape_latency(r, "N2", "from_step", "p50",
					    "service=%s rate=100000", types[i]),
			      shape_latency(r, "N2", "from_step", "p50", "service=%s rate=100",
					    types[i]), SHAPE_ABOVE, 1);
}

static void timers(struct shape_run *r, struct shape_answer *a)
{
	shape_compare(a, "percent of tsc and timerfd", shape_missed(r, "N1", "timer=tsc"),
		      shape_missed(r, "N1", "timer=timerfd"), SHAPE_ABOVE, 1);
}

/* By their labels: the sizes stand in a text of further keys. */
static void depth(struct shape_run *r, struct shape_answer *a)
{
	shape_compare(a, "largest, 512 and 8192 receives",
		      shape_latency(r, "N9", "from_step", "max", "case=receive-queue-512"),
		      shape_latency(r, "N9", "from_step", "max", "case=receive-queue-8192"),
		      SHAPE_ABOVE, 1);
}

const struct shape shapes_table[] = {
	{ "1", "busy polling is faster than sleeping until an event (2.8 times there)",
	  busy_or_event },
	{ "1", "pauses cost more with events than with busy polling (120 % and 20 % there)",
	  gaps },
	{ "2", "inline data is faster for small messages (28 % there)", inline_small },
	{ "2", "inline data is no gain from 256 bytes on", inline_large },
	{ "2", "messages without a completion of their own are faster (13 % there)",
	  unsignaled },
	{ "3", "part of the time passes before the adapter fetches the data (42 % there)",
	  send_stamp },
	{ "4", "the size has no effect up to 256 bytes, then the time grows", flat },
	{ "5", "the path MTU has no effect", mtu },
	{ "5", "queue pairs of the connection manager are as fast (7 % there)", manager },
	{ "6", "RC completes after the message was received; UC and UD before", completion },
	{ "7", "shmem is faster than infiniband, which is far faster than zeromq and nanomsg",
	  media },
	{ "7", "UC is no slower than RC, and RC no slower than UD", services },
	{ "8", "the median falls as the rate rises", falls },
	{ "9", "the TSC misses fewer steps than timerfd at 100 kHz (0.50 and 0.68 % there)",
	  timers },
	{ "10", "a receive queue that is too deep makes the largest latency larger", depth },
	{ .claim = NULL },
};
