/* SPDX-License-Identifier: BSD-2-Clause */
/* The shapes: section by section what an independent measurement should show again. */
#include <math.h>

#include "bench/result/shapes_private.h"
#include "util/container_of.h"

#define SAME 1.07 /* the source's bound of "no effect" */

static const char *const types[] = { "RC", "UC", "UD" };

static void busy_or_event(const struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		double busy = shape_latency(r, "B1", "t_lat", "p50", "type=%s", types[i]);
		double event = shape_latency(r, "A1", "t_lat", "p50", "type=%s", types[i]);

		shape_compare(a, types[i], busy, event, busy < event);
	}
}

/* Compares factors, not times. */
static void gaps(const struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		double busy = shape_latency(r, "B2", "t_lat", "p50", "type=%s", types[i]) /
			      shape_latency(r, "B1", "t_lat", "p50", "type=%s", types[i]);
		double event = shape_latency(r, "A2", "t_lat", "p50", "type=%s", types[i]) /
			       shape_latency(r, "A1", "t_lat", "p50", "type=%s", types[i]);

		if (isnan(busy) || isnan(event))
			continue;
		shape_say(a, "%s%s busy %+.0f %%, event %+.0f %%", a->checked ? "; " : "",
			  types[i], 100 * (busy - 1), 100 * (event - 1));
		a->checked++;
		a->holds += event > busy;
	}
}

static void inline_small(const struct shape_run *r, struct shape_answer *a)
{
	double with = shape_latency(r, "D", "t_lat", "p50", "inline=yes");
	double without = shape_latency(r, "D", "t_lat", "p50", "inline=no");

	shape_compare(a, "32 B", with, without, with < without);
}

static void inline_large(const struct shape_run *r, struct shape_answer *a)
{
	for (int size = 256; size <= 512; size *= 2) {
		double with = shape_latency(r, "G", "t_lat", "p50",
					    "type=RC op=send inline=yes size=%d", size);
		double without = shape_latency(r, "G", "t_lat", "p50",
					       "type=RC op=send inline=no size=%d", size);

		shape_compare(a, size == 256 ? "256 B" : "512 B", without, with,
			      with >= without);
	}
}

static void unsignaled(const struct shape_run *r, struct shape_answer *a)
{
	double without = shape_latency(r, "F", "t_lat", "p50", "unsignaled=yes");
	double with = shape_latency(r, "F", "t_lat", "p50", "unsignaled=no");

	shape_compare(a, "", without, with, without < with);
}

static void send_stamp(const struct shape_run *r, struct shape_answer *a)
{
	double fetched = shape_latency(r, "C", "t_lat_send", "p50", "stamp=send");
	double posted = shape_latency(r, "C", "t_lat", "p50", "stamp=subm");

	shape_compare(a, "", fetched, posted, fetched < posted);
}

static double of_size(const struct shape_run *r, int size)
{
	return shape_latency(r, "G", "t_lat", "p50", "type=RC op=send inline=no size=%d", size);
}

/* Lowest and highest of the values that a sweep has. */
struct range {
	double low, high;
	int count;
};

static void widen(struct range *r, double v)
{
	if (isnan(v))
		return;
	r->low = r->count ? fmin(r->low, v) : v;
	r->high = r->count ? fmax(r->high, v) : v;
	r->count++;
}

static void flat(const struct shape_run *r, struct shape_answer *a)
{
	struct range sizes = { .count = 0 };
	double low, high;

	for (int size = 8; size <= 256; size *= 2)
		widen(&sizes, of_size(r, size));
	low = sizes.low;
	high = sizes.high;
	/* The source itself has 1.36 us and 0.91 us there. */
	if (sizes.count > 1)
		shape_compare(a, "8 to 256 B", low, high, high / low < 1.5);
	low = of_size(r, 256);
	high = of_size(r, 32768);
	shape_compare(a, "256 B to 32 KiB", low, high, high > 1.5 * low);
}

static void mtu(const struct shape_run *r, struct shape_answer *a)
{
	struct range mtus = { .count = 0 };

	for (int size = 256; size <= 4096; size *= 2)
		widen(&mtus, shape_latency(r, "P2", "t_lat", "p50",
					   "type=RC size=4096 mtu=%d", size));
	if (mtus.count > 1)
		shape_compare(a, "RC 4 KiB", mtus.low, mtus.high,
			      mtus.high <= SAME * mtus.low);
}

static void manager(const struct shape_run *r, struct shape_answer *a)
{
	for (int size = 32; size <= 512; size *= 4) {
		double plain = shape_latency(r, "P3", "t_lat", "p50",
					     "type=RC connect=plain size=%d", size);
		double cm = shape_latency(r, "P3", "t_lat", "p50", "type=RC connect=cm size=%d",
					  size);

		shape_compare(a, size == 32 ? "32 B" : size == 128 ? "128 B" : "512 B", plain,
			      cm, fmax(plain, cm) <= SAME * fmin(plain, cm));
	}
}

static void completion(const struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		double lat = shape_latency(r, "B1", "t_lat", "p50", "type=%s", types[i]);
		double comp = shape_latency(r, "B1", "t_lat_comp", "p50", "type=%s", types[i]);

		shape_compare(a, types[i], lat, comp, i ? comp < lat : comp > lat);
	}
}

/* zeromq and nanomsg, where the gateway has them; udp and tcp are no part of the source's
 * claim and stand there for comparison only. */
static void media(const struct shape_run *r, struct shape_answer *a)
{
	static const char *const others[] = { "zeromq", "nanomsg" }, *const more[] = { "udp",
											"tcp" };
	double shmem = shape_latency(r, "N8", "from_step", "p50", "node=shmem rate=25000");
	double ib = shape_latency(r, "N8", "from_step", "p50", "node=infiniband rate=25000");

	shape_compare(a, "shmem, infiniband", shmem, ib, shmem < ib);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		double v = shape_latency(r, "N8", "from_step", "p50", "node=%s rate=25000",
					 others[i]);

		shape_compare(a, others[i], ib, v, v > 5 * ib);
	}
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		double v = shape_latency(r, "N8", "from_step", "p50", "node=%s rate=25000",
					 more[i]);

		if (!isnan(v) && !isnan(ib))
			shape_say(a, "%s%s %.1f times infiniband", *a->figures ? "; " : "",
				  more[i], v / ib);
	}
}

static void services(const struct shape_run *r, struct shape_answer *a)
{
	double v[3];

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		v[i] = shape_latency(r, "N4", "from_step", "p50",
				     "service=%s rate=25000 values=8", types[i]);
	/* Medians that differ by the noise of a run are the same. */
	shape_compare(a, "UC, RC", v[1], v[0], v[1] <= SAME * v[0]);
	shape_compare(a, "RC, UD", v[0], v[2], v[0] <= SAME * v[2]);
}

static void falls(const struct shape_run *r, struct shape_answer *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i += 2) {
		double fast = shape_latency(r, "N2", "from_step", "p50",
					    "service=%s rate=100000", types[i]);
		double slow = shape_latency(r, "N2", "from_step", "p50", "service=%s rate=100",
					    types[i]);

		shape_compare(a, i ? "UD, 100 kHz and 100 Hz" : "RC, 100 kHz and 100 Hz", fast,
			      slow, fast < slow);
	}
}

static void timers(const struct shape_run *r, struct shape_answer *a)
{
	double tsc = shape_figure(r, "N1", "missed_share", "timer=tsc");
	double timerfd = shape_figure(r, "N1", "missed_share", "timer=timerfd");

	if (isnan(tsc) || isnan(timerfd))
		return;
	shape_say(a, "tsc %.3f %%, timerfd %.3f %%", tsc, timerfd);
	a->checked++;
	a->holds += tsc < timerfd;
}

/* By their labels: the sizes stand in a text of further keys. */
static void depth(const struct shape_run *r, struct shape_answer *a)
{
	double shallow = shape_latency(r, "N9", "from_step", "max", "case=receive-queue-512");
	double deep = shape_latency(r, "N9", "from_step", "max", "case=receive-queue-8192");

	shape_compare(a, "largest, 512 and 8192 receives", shallow, deep, deep > shallow);
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
