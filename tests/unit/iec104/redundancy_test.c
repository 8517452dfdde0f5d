/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A redundancy group in virtual time: a slave, three connections and the masters at their other ends.
 * Each run is of one seed: samples, starts, stops, connections that are cut with what is under way
 * in them, and masters that fall silent, at random. One connection at a time sends data. Each
 * sample arrives, or was dropped because too many waited; it arrives the first time in the order in
 * which it was written, and again only if a connection took over from another one or ended.
 *
 * usage: iec104_redundancy_test [RUNS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/iec60870-5-104/flow.h"
#include "util/container_of.h"
#include "util/prng.h"

#define MS UINT64_C(1000000)
#define CONNECTIONS 3
#define PIPE 65536u
#define SAMPLES_MAX 4000
#define EVENTS 300

static uint64_t seed;

#define must(condition)                                                                           \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			printf("seed %llu, line %d: %s\n", (unsigned long long)seed, __LINE__,    \
			       #condition);                                                       \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* What runs have met, all of which has to have happened in the end. */
static struct {
	unsigned long taken_over, dropped, repeated, cut_busy, stopped, timed_out, waited;
} met;

/* One direction of a connection. */
struct pipe {
	uint8_t bytes[PIPE];
	uint64_t arrives_ns[PIPE];
	unsigned head, tail;
};

static struct connection {
	struct iec104_link slave, master;
	struct station_flow flow;
	uint64_t slave_ns[16], master_ns[16];
	struct pipe to_master, to_slave;
	bool open, silent;           /* silent: what the master sends is lost */
} connections[CONNECTIONS];

static struct station_group group;
static struct iec104_settings settings;
static struct prng numbers;
static uint64_t now;
static uint32_t written, first_missing;
static unsigned asdus_of_sample;
/* Of each ASDU: how often it has arrived; dropped ones have `dropped`. */
static unsigned arrived[SAMPLES_MAX];
static bool dropped[SAMPLES_MAX];
static bool may_repeat;

static unsigned below(unsigned n)
{
	return (unsigned)prng_below(&numbers, n);
}

/* ---- links ---- */

static void put(struct pipe *p, const uint8_t *data, size_t len)
{
	uint64_t at = now + 1 + prng_below(&numbers, 20 * MS);

	if (p->tail != p->head && p->arrives_ns[(p->tail - 1) % PIPE] > at)
		at = p->arrives_ns[(p->tail - 1) % PIPE];
	must(p->tail - p->head + len <= PIPE);
	for (size_t i = 0; i < len; i++, p->tail++) {
		p->bytes[p->tail % PIPE] = data[i];
		p->arrives_ns[p->tail % PIPE] = at;
	}
}

static void slave_send(void *arg, const uint8_t *frame, size_t len)
{
	put(&((struct connection *)arg)->to_master, frame, len);
}

static void master_send(void *arg, const uint8_t *frame, size_t len)
{
	struct connection *c = arg;

	if (!c->silent)
		put(&c->to_slave, frame, len);
}

static void no_asdu(void *arg, const uint8_t *asdu, size_t len)
{
	must(false);
}

/* The first time in order, without gaps but for those that were dropped. */
static void master_asdu(void *arg, const uint8_t *asdu, size_t len)
{
	uint32_t n;

	must(len == sizeof(n));
	memcpy(&n, asdu, sizeof(n));
	must(n < written && !dropped[n]);
	if (arrived[n]++) {
		must(may_repeat);
		met.repeated++;
		return;
	}
	while (first_missing < n) {
		must(arrived[first_missing] || dropped[first_missing]);
		first_missing++;
	}
}

static void slave_acknowledged(void *arg, unsigned count)
{
	station_flow_acknowledged(&((struct connection *)arg)->flow, count);
}

static void no_acknowledgement(void *arg, unsigned count)
{
	must(!count);
}

static void slave_changed(void *arg)
{
	struct connection *c = arg;

	if (c->slave.state != IEC104_STARTED) {
		station_flow_stopped(&c->flow);
		return;
	}
	if (!station_flow_started(&c->flow))
		return;
	met.taken_over++;
	may_repeat = true;
}

static void master_changed(void *arg)
{
}

static const struct iec104_link_ops slave_ops = { slave_send, no_asdu, slave_acknowledged, slave_changed };
static const struct iec104_link_ops master_ops = { master_send, master_asdu, no_acknowledgement,
						   master_changed };

/* ---- connections ---- */

static void open_connection(struct connection *c)
{
	c->open = true;
	c->silent = false;
	c->to_master.head = c->to_master.tail = c->to_slave.head = c->to_slave.tail = 0;
	station_flow_begin(&c->flow, &group);
	iec104_link_begin(&c->slave, false, &settings, c->slave_ns, &slave_ops, c, now);
	iec104_link_begin(&c->master, true, &settings, c->master_ns, &master_ops, c, now);
}

static void close_connection(struct connection *c)
{
	if (c->flow.flight_count) {
		met.cut_busy++;
		may_repeat = true;
	}
	must(!station_flow_end(&c->flow, false));
	c->open = false;
}

static void take(struct pipe *p, struct iec104_link *l)
{
	while (p->head != p->tail && p->arrives_ns[p->head % PIPE] <= now && !l->why) {
		iec104_link_receive(l, &p->bytes[p->head % PIPE], 1, now);
		p->head++;
	}
}

static void turn(struct connection *c)
{
	if (!c->open)
		return;
	take(&c->to_slave, &c->slave);
	take(&c->to_master, &c->master);
	iec104_link_tick(&c->slave, now);
	iec104_link_tick(&c->master, now);
	while (station_flow_send(&c->flow, now))
		;
	/* A master that was told nothing of the end of its turn breaks no rule. */
	must(!c->master.why || c->silent);
	must(!c->slave.why || c->silent);
	if (c->slave.why || c->master.why) {
		met.timed_out++;
		close_connection(c);
	}
}

static void check_group(void)
{
	unsigned started = 0;

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		const struct connection *c = &connections[i];

		if (!c->open || c->slave.state != IEC104_STARTED)
			continue;
		started++;
		must(group.active == &c->flow);
	}
	must(started <= 1 && (started || !group.active));
	met.waited += !started && group.low.count;
}

static uint64_t due(void)
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		const struct connection *c = &connections[i];

		if (!c->open)
			continue;
		at = MIN(at, MIN(iec104_link_due_ns(&c->slave), iec104_link_due_ns(&c->master)));
		if (c->to_master.head != c->to_master.tail)
			at = MIN(at, c->to_master.arrives_ns[c->to_master.head % PIPE]);
		if (c->to_slave.head != c->to_slave.tail)
			at = MIN(at, c->to_slave.arrives_ns[c->to_slave.head % PIPE]);
	}
	return MAX(at, now);
}

static void advance(uint64_t until)
{
	do {
		now = MIN(due(), until);
		for (unsigned i = 0; i < CONNECTIONS; i++)
			turn(&connections[i]);
		check_group();
	} while (now < until);
}

/* ---- runs ---- */

/* The oldest sample that waits gives way, as the slave does it. */
static void drop_oldest(void)
{
	uint32_t n;

	for (bool last = false; !last;) {
		const struct station_slot *slot = &group.low.slots[group.low.head];

		memcpy(&n, slot->asdu, sizeof(n));
		/* One that was taken back may have arrived. */
		dropped[n] = !arrived[n];
		last = slot->last;
		if (last)
			break;
		group.low.head = (group.low.head + 1) % group.low.size;
		group.low.count--;
	}
	station_queue_drop(&group.low);
	met.dropped++;
}

static void write_sample(void)
{
	if (written + asdus_of_sample > SAMPLES_MAX)
		return;
	while (station_queue_room(&group.low) < asdus_of_sample)
		drop_oldest();
	for (unsigned i = 0; i < asdus_of_sample; i++, written++)
		must(station_queue_put(&group.low, (const uint8_t *)&written, sizeof(written),
				       i + 1 == asdus_of_sample));
}

static void random_event(void)
{
	struct connection *c = &connections[below(CONNECTIONS)];
	unsigned what = below(40);

	if (what < 28) {
		for (unsigned n = below(5); n; n--)
			write_sample();
	} else if (what < 33 && c->open) {
		iec104_link_start(&c->master, now);
	} else if (what < 35 && c->open) {
		met.stopped += c->master.state == IEC104_STARTED;
		iec104_link_stop(&c->master, now);
	} else if (what == 35 && c->open) {
		close_connection(c);
	} else if (what == 36 && c->open) {
		c->silent = true;
	} else if (what > 36 && !c->open) {
		open_connection(c);
	}
}

/* All that was not dropped arrives over a connection that is started at last. */
static void finish(void)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (connections[i].open)
			close_connection(&connections[i]);
	open_connection(&connections[0]);
	iec104_link_start(&connections[0].master, now);
	for (unsigned i = 0; i < 200 && (group.low.count || connections[0].flow.flight_count || !i); i++)
		advance(now + settings.t2_ns + 50 * MS);
	must(!group.low.count && !connections[0].flow.flight_count);
	for (uint32_t n = 0; n < written; n++)
		must(arrived[n] || dropped[n]);
	close_connection(&connections[0]);
	must(!group.members);
}

static void run(uint64_t of_seed)
{
	seed = of_seed;
	numbers = prng_from(seed);
	now = 1000 * MS;
	written = first_missing = 0;
	may_repeat = false;
	asdus_of_sample = 1 + below(3);
	memset(arrived, 0, sizeof(arrived));
	memset(dropped, 0, sizeof(dropped));
	settings.k = 1 + below(12);
	settings.w = 1 + below(settings.k);
	settings.t1_ns = (200 + below(500)) * MS;
	settings.t2_ns = (20 + below(100)) * MS;
	settings.t3_ns = (300 + below(1000)) * MS;
	group = (struct station_group){ 0 };
	must(!station_queue_init(&group.low, 5 + below(60), settings.k));
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		connections[i].open = false;
		must(!station_flow_init(&connections[i].flow, &connections[i].slave, 10, 10, settings.k));
	}
	for (unsigned i = 0; i < EVENTS; i++) {
		random_event();
		advance(now + prng_below(&numbers, 60 * MS));
	}
	finish();
	for (unsigned i = 0; i < CONNECTIONS; i++)
		station_flow_free(&connections[i].flow);
	free(group.low.slots);
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 300;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (unsigned long i = 0; i < runs; i++)
		run(first + i);
	printf("taken over %lu, dropped %lu, repeated %lu, cut while busy %lu, stopped %lu, timed out %lu, waited %lu\n",
	       met.taken_over, met.dropped, met.repeated, met.cut_busy, met.stopped, met.timed_out,
	       met.waited);
	if (runs >= 100)
		must(met.taken_over && met.dropped && met.repeated && met.cut_busy && met.stopped &&
		     met.timed_out && met.waited);
	return 0;
}
