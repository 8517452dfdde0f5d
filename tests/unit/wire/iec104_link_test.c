/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A master and a slave of IEC 60870-5-104 in virtual time, over streams that cut and join what is
 * sent and may fall silent. Each run is of one seed: settings, numbers near their wrap, starts,
 * stops and data at random. A watcher with a decoder of its own sees all frames and knows what has to
 * be: numbers in order, no more than k without an acknowledgement, one after w or t2, tests after t3,
 * the end exactly when t1 is over, and each ASDU once and in order.
 *
 * usage: wire_iec104_link_test [RUNS [SEED]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/prng.h"
#include "wire/grid/iec104_link.h"

#define MS UINT64_C(1000000)
#define PIPE 65536u
#define EVENTS 400

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
	unsigned long full, wraps, by_w, by_t2, tests, stops, busy_stops, silent_data, silent_test,
		silent_confirm, cut_frames;
} met;

/* One end and what it has sent that has not arrived. */
struct side {
	struct iec104_link link;
	uint64_t sent_ns[32];
	uint8_t pipe[PIPE];
	uint64_t arrives_ns[PIPE];   /* of each byte */
	unsigned head, tail;
	bool silent;                 /* what it sends is lost */
	/* Of the watcher */
	uint8_t frame[256];          /* that has arrived in part */
	unsigned frame_len;
	unsigned next_send;          /* N(S) of its next I frame */
	unsigned told;               /* highest N(R) that has arrived here */
	unsigned open;               /* I frames sent and not acknowledged, as it can know */
	unsigned got, owed;          /* I frames arrived; without an acknowledgement */
	uint64_t owed_ns[64];        /* when each arrived */
	uint64_t heard_ns, test_ns;  /* test_ns 0: no test is open */
	uint64_t open_ns[32];        /* when each open one was sent */
	uint64_t asked_ns;           /* STARTDT or STOPDT; 0: none is open */
	uint32_t put, taken;         /* ASDUs, which are numbered */
};

static struct side sides[2];         /* the master, the slave */
static struct iec104_settings settings;
static struct prng random_numbers;
static uint64_t now, latency;

static struct side *other(struct side *s)
{
	return s == &sides[0] ? &sides[1] : &sides[0];
}

static unsigned below(unsigned n)
{
	return (unsigned)prng_below(&random_numbers, n);
}

/* ---- the watcher ---- */

static unsigned number(const uint8_t *at)
{
	return (unsigned)(at[0] | at[1] << 8) >> 1;
}

static void watch_sent(struct side *s, const uint8_t *f, size_t len)
{
	bool data = !(f[2] & 1), function = (f[2] & 3) == 3;

	must(len >= 6 && f[0] == 0x68 && f[1] + 2u == len);
	if (!function) {
		/* It tells all that it has got. */
		must(number(f + 4) == s->got);
		if (s->owed && !data && s->owed >= settings.w)
			met.by_w++;
		else if (s->owed && !data && now == s->owed_ns[0] + settings.t2_ns)
			met.by_t2++;
		s->owed = 0;
	}
	if (data) {
		must(number(f + 2) == s->next_send);
		must(s->open < settings.k);
		s->open_ns[s->open++] = now;
		met.full += s->open == settings.k;
		s->next_send = (s->next_send + 1) % IEC104_MODULO;
		met.wraps += !s->next_send;
	}
	if (function && f[2] & 0x40) {
		must(!s->test_ns && now == s->heard_ns + settings.t3_ns);
		s->test_ns = now;
		met.tests++;
	}
	if (function && f[2] & 0x14) {
		must(!s->asked_ns && s == &sides[0]);
		s->asked_ns = now;
		met.stops += f[2] >> 4 & 1;
	}
	if (function && f[2] & 0x20)
		must(!s->open && s == &sides[1]);
	/* Before a stop all is acknowledged. */
	if (function && f[2] & 0x30)
		must(!s->owed);
}

static void watch_arrived(struct side *s, const uint8_t *f)
{
	unsigned acknowledged = (number(f + 4) - s->told + IEC104_MODULO) % IEC104_MODULO;
	bool function = (f[2] & 3) == 3;

	s->heard_ns = now;
	if (!function) {
		must(acknowledged <= s->open);
		s->open -= acknowledged;
		memmove(s->open_ns, s->open_ns + acknowledged, s->open * sizeof(s->open_ns[0]));
		s->told = number(f + 4);
	}
	if (!(f[2] & 1)) {
		must(number(f + 2) == s->got);
		s->got = (s->got + 1) % IEC104_MODULO;
		s->owed_ns[s->owed++] = now;
	}
	if (function && f[2] & 0x80)
		s->test_ns = 0;
	if (function && f[2] & 0x28)
		s->asked_ns = 0;
}

/* The watcher sees a frame as arrived when its last byte is given to the link, before the link
 * does. */
static void watch_bytes(struct side *s, const uint8_t *data, unsigned len)
{
	for (unsigned i = 0; i < len; i++) {
		s->frame[s->frame_len++] = data[i];
		if (s->frame_len >= 2 && s->frame_len == 2u + s->frame[1]) {
			s->frame_len = 0;
			watch_arrived(s, s->frame);
		}
	}
}

/* After all that was due is done. */
static void watch_state(const struct side *s)
{
	if (s->link.why)
		return;
	must(s->owed < settings.w);
	must(!s->owed || now < s->owed_ns[0] + settings.t2_ns);
	must(!s->open || now < s->open_ns[0] + settings.t1_ns);
	must(!s->test_ns || now < s->test_ns + settings.t1_ns);
	must(!s->asked_ns || now < s->asked_ns + settings.t1_ns);
	must(s->test_ns || now < s->heard_ns + settings.t3_ns);
}

/* ---- the links' owner ---- */

static void side_send(void *arg, const uint8_t *frame, size_t len)
{
	struct side *s = arg;
	uint64_t at = now + 1 + prng_below(&random_numbers, latency);

	watch_sent(s, frame, len);
	if (s->silent)
		return;
	if (s->tail && s->tail != s->head && s->arrives_ns[(s->tail - 1) % PIPE] > at)
		at = s->arrives_ns[(s->tail - 1) % PIPE];
	must(s->tail - s->head + len <= PIPE);
	for (size_t i = 0; i < len; i++, s->tail++) {
		s->pipe[s->tail % PIPE] = frame[i];
		s->arrives_ns[s->tail % PIPE] = at;
	}
}

static void side_asdu(void *arg, const uint8_t *asdu, size_t len)
{
	struct side *s = arg;
	uint32_t n;

	must(len >= sizeof(n));
	memcpy(&n, asdu, sizeof(n));
	must(n == s->taken);
	s->taken++;
}

static unsigned acknowledged[2];

static void side_acknowledged(void *arg, unsigned count)
{
	acknowledged[arg == &sides[1]] += count;
}

static void side_changed(void *arg)
{
}

static const struct iec104_link_ops ops = {
	.send = side_send, .asdu = side_asdu, .acknowledged = side_acknowledged,
	.changed = side_changed,
};

static void side_put(struct side *s)
{
	uint8_t asdu[IEC104_ASDU_MAX] = { 0 };
	size_t len = sizeof(s->put) + below(IEC104_ASDU_MAX - sizeof(s->put) + 1);
	bool can;

	memcpy(asdu, &s->put, sizeof(s->put));
	can = !s->link.why && s->link.state == IEC104_STARTED && s->open < settings.k;
	must(iec104_link_send(&s->link, asdu, len, now) == can);
	s->put += can;
}

static void side_take(struct side *to)
{
	struct side *from = other(to);
	uint8_t bytes[600];
	unsigned len = 0, most = 1 + below(sizeof(bytes));

	while (from->head != from->tail && from->arrives_ns[from->head % PIPE] <= now) {
		for (len = 0; len < most && from->head != from->tail &&
			      from->arrives_ns[from->head % PIPE] <= now; from->head++)
			bytes[len++] = from->pipe[from->head % PIPE];
		/* The watcher goes ahead by one frame at most, as the link takes them one by one. */
		for (unsigned at = 0; at < len && !to->link.why;) {
			unsigned want = to->frame_len < 2 ? 2 - to->frame_len :
							    2u + to->frame[1] - to->frame_len;
			unsigned part = MIN(want, len - at);

			met.cut_frames += part < want;
			watch_bytes(to, bytes + at, part);
			iec104_link_receive(&to->link, bytes + at, part, now);
			at += part;
		}
	}
}

static void begin_side(struct side *s, unsigned first, unsigned peers_first)
{
	memset(s, 0, sizeof(*s));
	s->heard_ns = now;
	iec104_link_begin(&s->link, s == &sides[0], &settings, s->sent_ns, &ops, s, now);
	/* As if so many had been sent before. */
	s->link.sent = s->link.acknowledged = (uint16_t)first;
	s->link.received = (uint16_t)peers_first;
	s->next_send = s->told = first;
	s->got = peers_first;
}

/* ---- runs ---- */

static uint64_t next_due(uint64_t until)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct side *s = &sides[i];

		until = MIN(until, iec104_link_due_ns(&s->link));
		if (s->head != s->tail)
			until = MIN(until, s->arrives_ns[s->head % PIPE]);
	}
	return MAX(until, now);
}

/* Goes on until `until`, with all that is due meanwhile. */
static void advance(uint64_t until)
{
	do {
		now = next_due(until);
		for (unsigned i = 0; i < 2; i++) {
			side_take(&sides[i]);
			iec104_link_tick(&sides[i].link, now);
		}
		for (unsigned i = 0; i < 2; i++)
			watch_state(&sides[i]);
	} while (now < until);
}

static void random_action(void)
{
	struct side *master = &sides[0];
	unsigned what = below(20);

	if (what == 0) {
		met.busy_stops += master->link.state == IEC104_STARTED && sides[1].open;
		iec104_link_stop(&master->link, now);
	} else if (what < 4) {
		iec104_link_start(&master->link, now);
	} else {
		for (unsigned n = below(what < 12 ? 4 : 2 * settings.k + 2); n; n--)
			side_put(&sides[below(8) == 0 ? 0 : 1]);
	}
}

/* The peer of `s` is silent from now on: when the link has to end. */
static void check_end(struct side *s)
{
	uint64_t end = UINT64_MAX;
	unsigned long *why = &met.silent_test;

	/* What has been sent is lost. */
	other(s)->silent = true;
	other(s)->tail = other(s)->head;
	if (s->open)
		end = s->open_ns[0] + settings.t1_ns, why = &met.silent_data;
	if (s->asked_ns && s->asked_ns + settings.t1_ns < end)
		end = s->asked_ns + settings.t1_ns, why = &met.silent_confirm;
	end = MIN(end, (s->test_ns ? s->test_ns : s->heard_ns + settings.t3_ns) + settings.t1_ns);
	/* The other one hears on. */
	while (now < end) {
		must(!s->link.why);
		advance(MIN(end, now + 1 + prng_below(&random_numbers, settings.t1_ns)));
	}
	must(s->link.why);
	must(iec104_link_due_ns(&s->link) == IEC104_NEVER);
	++*why;
}

static void random_settings(void)
{
	settings.t2_ns = (100 + below(5000)) * MS;
	settings.t1_ns = settings.t2_ns + (100 + below(5000)) * MS;
	settings.t3_ns = (100 + below(20000)) * MS;
	settings.k = 1 + below(20);
	settings.w = 1 + below(settings.k);
	must(!iec104_settings_check(&settings));
	/* An acknowledgement that is sent after t2, and a stop that waits for data on the way, have to
	 * be there before t1. */
	latency = (settings.t1_ns - settings.t2_ns) / 5;
}

static void run(void)
{
	unsigned first[2];

	random_numbers = prng_from(seed);
	random_settings();
	for (unsigned i = 0; i < 2; i++)
		first[i] = below(2) ? IEC104_MODULO - 1 - below(100) : 0;
	now = prng_next(&random_numbers) >> 8;
	begin_side(&sides[0], first[0], first[1]);
	begin_side(&sides[1], first[1], first[0]);
	acknowledged[0] = acknowledged[1] = 0;
	for (unsigned i = 0; i < EVENTS; i++) {
		random_action();
		advance(now + prng_below(&random_numbers, below(10) ? 100 * MS : 2 * settings.t3_ns));
	}
	for (unsigned i = 0; i < 2; i++) {
		if (sides[i].link.why)
			printf("%s: %s\n", i ? "slave" : "master", sides[i].link.why);
		must(!sides[i].link.why);
	}
	if (below(2)) {
		check_end(&sides[below(2)]);
		return;
	}
	advance(now + settings.t1_ns + settings.t3_ns);
	for (unsigned i = 0; i < 2; i++) {
		must(sides[i].put == sides[1 - i].taken && !sides[i].open);
		must(acknowledged[i] == sides[i].put && !iec104_link_waiting(&sides[i].link));
	}
}

/* ---- breaches ---- */

/* What a link of that state must not get: bytes, and a word of the reason. */
static const struct {
	bool master, started;
	uint8_t bytes[16];
	unsigned len;
	const char *word;
} breaches[] = {
	{ false, false, { 0x68, 6, 0, 0, 0, 0, 1, 1 }, 8, "not started" },
	{ false, true, { 0x68, 6, 2, 0, 0, 0, 1, 1 }, 8, "N(S)" },
	{ false, true, { 0x68, 6, 0, 0, 4, 0, 1, 1 }, 8, "N(R)" },
	{ false, true, { 0x68, 4, 1, 0, 4, 0 }, 6, "N(R)" },
	{ false, true, { 0x68, 4, 1, 0, 0xfe, 0xff }, 6, "N(R)" },
	{ false, true, { 0x68, 4, 0x0b, 0, 0, 0 }, 6, "not asked" },
	{ false, false, { 0x68, 4, 0x23, 0, 0, 0 }, 6, "not asked" },
	{ true, true, { 0x68, 4, 7, 0, 0, 0 }, 6, "only a master" },
	{ true, true, { 0x68, 4, 0x13, 0, 0, 0 }, 6, "only a master" },
	{ true, true, { 0x68, 4, 0x0b, 0, 0, 0 }, 6, "not asked" },
	{ true, false, { 0x68, 6, 0, 0, 0, 0, 1, 1 }, 8, "not started" },
	{ true, true, { 0x67 }, 1, "68h" },
	{ true, true, { 0x68, 3 }, 2, "length" },
	{ true, true, { 0x68, 4, 0xc3, 0, 0, 0 }, 6, "no format" },
};

static void quiet_send(void *arg, const uint8_t *frame, size_t len)
{
}

static void quiet_asdu(void *arg, const uint8_t *asdu, size_t len)
{
}

static void quiet_acknowledged(void *arg, unsigned count)
{
}

static const struct iec104_link_ops quiet_ops = {
	.send = quiet_send, .asdu = quiet_asdu, .acknowledged = quiet_acknowledged,
	.changed = side_changed,
};

static void check_breaches(void)
{
	static const uint8_t start[2][6] = { { 0x68, 4, 7, 0, 0, 0 }, { 0x68, 4, 0x0b, 0, 0, 0 } };
	uint64_t sent_ns[12];

	settings = (struct iec104_settings){ 15000 * MS, 10000 * MS, 20000 * MS, 12, 8 };
	for (unsigned i = 0; i < ARRAY_SIZE(breaches); i++) {
		bool master = breaches[i].master;
		struct iec104_link l;

		seed = i;
		iec104_link_begin(&l, master, &settings, sent_ns, &quiet_ops, NULL, 0);
		iec104_link_start(&l, 0);
		if (breaches[i].started)
			iec104_link_receive(&l, start[master], 6, 0);
		if (breaches[i].started)
			must(l.state == IEC104_STARTED &&
			     iec104_link_send(&l, (const uint8_t *)"x", 1, 0));
		must(!l.why);
		iec104_link_receive(&l, breaches[i].bytes, breaches[i].len, 0);
		must(l.why && strstr(l.why, breaches[i].word));
		must(!iec104_link_room(&l) && iec104_link_due_ns(&l) == IEC104_NEVER);
	}
}

static void check_settings(void)
{
	static const struct {
		struct iec104_settings s;
		const char *word;
	} bad[] = {
		{ { 15000 * MS, 15000 * MS, 20000 * MS, 12, 8 }, "t2" },
		{ { 10000 * MS, 15000 * MS, 20000 * MS, 12, 8 }, "t2" },
		{ { 50 * MS, 20 * MS, 20000 * MS, 12, 8 }, "0.1 s" },
		{ { 15000 * MS, 10000 * MS, 0, 12, 8 }, "0.1 s" },
		{ { 15000 * MS, 0, 20000 * MS, 12, 8 }, "0.1 s" },
		{ { UINT64_MAX, 10000 * MS, 20000 * MS, 12, 8 }, "48 h" },
		{ { 15000 * MS, 10000 * MS, 20000 * MS, 0, 8 }, "k and w" },
		{ { 15000 * MS, 10000 * MS, 20000 * MS, 32768, 8 }, "k and w" },
		{ { 15000 * MS, 10000 * MS, 20000 * MS, 12, 0 }, "k and w" },
		{ { 15000 * MS, 10000 * MS, 20000 * MS, 8, 12 }, "w has" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *why = iec104_settings_check(&bad[i].s);

		seed = i;
		must(why && strstr(why, bad[i].word));
	}
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 400;
	uint64_t from = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	check_settings();
	check_breaches();
	printf("seed %llu, %lu runs\n", (unsigned long long)from, runs);
	for (unsigned long i = 0; i < runs; i++) {
		seed = from + i;
		run();
	}
	printf("full windows %lu, wraps %lu, acknowledged by w %lu, by t2 %lu, tests %lu, stops %lu, of them with data on the way %lu, cut frames %lu; silent with data %lu, with a test %lu, with a request %lu\n",
	       met.full, met.wraps, met.by_w, met.by_t2, met.tests, met.stops, met.busy_stops,
	       met.cut_frames, met.silent_data, met.silent_test, met.silent_confirm);
	if (runs < 400)
		return 0;
	must(met.full && met.wraps && met.by_w && met.by_t2 && met.tests && met.stops &&
	     met.busy_stops && met.cut_frames && met.silent_data && met.silent_test &&
	     met.silent_confirm);
	return 0;
}
