/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of frames that clients of WebSocket share: every format, every client in its own
 * time, and those that are too slow. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/base/memory.h"
#include "gateway/ws/feed.h"
#include "gateway/ws/inlet.h"
#include "gateway/plugin/format.h"
#include "gateway/sample/signals.h"
#include "util/container_of.h"

#define VALUES 3
#define SAMPLES 1000

static struct signal_list *signals;
static struct pool pool;
static struct sample *smps[SAMPLES];
static char why[200];

static int setup(void **state)
{
	signals = signal_list_intern(signal_list_new(VALUES, SIGNAL_FLOAT));
	assert_int_equal(pool_init(&pool, SAMPLES, VALUES, &memory_heap), 0);
	for (unsigned i = 0; i < SAMPLES; i++) {
		struct sample *s = smps[i] = sample_alloc(&pool);

		s->signals = signals;
		s->sequence = i;
		s->origin = s->received = (struct timespec){ 1700000000 + i, 250000000 };
		s->length = VALUES;
		s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED |
			   SAMPLE_HAS_DATA;
		for (unsigned v = 0; v < VALUES; v++)
			s->data[v].f = i + v * 0.25;
	}
	return 0;
}

static int teardown(void **state)
{
	sample_put_many(smps, SAMPLES);
	pool_destroy(&pool);
	signal_list_put(signals);
	return 0;
}

/* What came out, in order. */
struct got {
	unsigned count;
	double last;
	bool right;
};

static void note(void *arg, struct sample *const got[], unsigned count)
{
	struct got *g = arg;

	for (unsigned i = 0; i < count; i++, g->count++) {
		double value = got[i]->data[0].f;

		g->right &= value == g->last + 1;
		g->last = value;
	}
}

struct client {
	struct ws_place place;
	struct ws_inlet inlet;
	struct format *scan;
	struct got got;
	uint64_t lost;
	unsigned messages;
};

static void client_open(struct client *k, struct ws_feed *f, double before)
{
	memset(k, 0, sizeof(*k));
	k->got = (struct got){ .last = before, .right = true };
	assert_int_equal(ws_inlet_init(&k->inlet, VALUES, note, &k->got), 0);
	assert_int_equal(format_new(&k->scan, NULL, NULL, ws_feed_name(f), signals), 0);
	k->scan->message = true;
	ws_place_init(f, &k->place);
}

static void client_close(struct client *k)
{
	ws_inlet_destroy(&k->inlet);
	format_destroy(k->scan);
}

/* Takes messages until there are none, or `max`. */
static void client_take(struct client *k, struct ws_feed *f, unsigned max)
{
	struct ws_piece pieces[WS_FRAME_SAMPLES];

	while (max--) {
		struct ws_batch b = ws_feed_take(f, &k->place, pieces);
		char *whole, *at;
		unsigned count;

		k->lost += b.lost;
		k->got.last += (double)b.lost;
		if (!b.pieces)
			return;
		assert_in_range(b.samples, 1, WS_FRAME_SAMPLES);
		whole = at = malloc(b.len);
		for (unsigned i = 0; i < b.pieces; i++) {
			memcpy(at, pieces[i].data, pieces[i].len);
			at += pieces[i].len;
			/* The head of a frame goes there. */
			memset(pieces[i].data - WS_HEAD_MAX, 0xff, WS_HEAD_MAX);
		}
		assert_ptr_equal(at, whole + b.len);
		if (ws_inlet_take(&k->inlet, k->scan, whole, b.len, &count))
			fail_msg("%s: %s", ws_feed_name(f), format_error(k->scan));
		assert_int_equal(count, b.samples);
		k->messages++;
		free(whole);
	}
}

static struct ws_feed *open_feed(const char *format, size_t backlog)
{
	struct ws_feed *f;

	if (ws_feed_new(&f, format, signals, backlog, why, sizeof(why)))
		fail_msg("%s: %s", format, why);
	return f;
}

/* Puts samples [from..to) in calls of 1, 2, 3 ... */
static void put(struct ws_feed *f, unsigned from, unsigned to)
{
	for (unsigned n = 1; from < to; from += n, n = n % 200 + 1) {
		struct ws_feed_put result;

		n = MIN(n, to - from);
		result = ws_feed_put(f, smps + from, n);
		assert_int_equal(result.lost, 0);
		assert_int_equal(result.refused, 0);
	}
}

/* Formats of files only. */
static bool is_for_messages(const struct plugin *p)
{
	const struct format_type *t = format_type_find(p->name);

	return t && t->print && t->scan && strcmp(t->name, "comtrade");
}

static void every_format_comes_out_as_it_went_in(void **state)
{
	unsigned formats = 0;

	for (const struct plugin *p = format_plugins; p->name; p++) {
		struct client soon, late;
		struct ws_feed *f;

		if (!is_for_messages(p))
			continue;
		formats++;
		f = open_feed(p->name, 4 << 20);
		client_open(&soon, f, -1);
		client_open(&late, f, -1);
		for (unsigned i = 0; i < SAMPLES; i += 100) {
			put(f, i, i + 100);
			ws_feed_trim(f);
			client_take(&soon, f, 10000);
		}
		client_take(&late, f, 10000);
		assert_int_equal(soon.got.count, SAMPLES);
		assert_int_equal(late.got.count, SAMPLES);
		if (!soon.got.right || !late.got.right)
			fail_msg("%s: other values", p->name);
		/* Who is behind gets more at once, where messages can be put together. */
		assert_true(late.messages <= soon.messages);
		client_close(&soon);
		client_close(&late);
		ws_feed_free(f);
	}
	assert_true(formats > 10);
}

static void clients_get_what_comes_behind_them(void **state)
{
	struct ws_feed *f = open_feed("villas.binary", 1 << 20);
	struct client k;

	put(f, 0, 17);
	client_open(&k, f, 16);
	client_take(&k, f, 100);
	assert_int_equal(k.got.count, 0);
	put(f, 17, 50);
	client_take(&k, f, 100);
	assert_int_equal(k.got.count, 33);
	assert_true(k.got.right);
	client_close(&k);
	ws_feed_free(f);
}

static void who_falls_behind_loses_the_oldest_and_is_told_how_many(void **state)
{
	struct ws_feed *f = open_feed("villas.human", 1);
	struct client quick, slow;
	unsigned rounds = 40, sent = 0;

	client_open(&quick, f, -1);
	client_open(&slow, f, -1);
	for (unsigned i = 0; i < rounds; i++) {
		/* The values of each round go on from those of the last. */
		for (unsigned k = 0; k < SAMPLES; k++)
			smps[k]->data[0].f = sent++;
		put(f, 0, SAMPLES);
		ws_feed_trim(f);
		client_take(&quick, f, 1000);
		client_take(&slow, f, 1);
		assert_true(ws_feed_behind(f, &quick.place) == 0);
	}
	client_take(&slow, f, 10000);
	assert_int_equal(quick.got.count, sent);
	assert_int_equal(quick.lost, 0);
	assert_true(slow.lost > 0);
	assert_int_equal(slow.lost + slow.got.count, sent);
	assert_true(quick.got.right && slow.got.right);
	for (unsigned k = 0; k < SAMPLES; k++)
		smps[k]->data[0].f = k;
	client_close(&quick);
	client_close(&slow);
	ws_feed_free(f);
}

static void a_full_ring_takes_no_more_and_says_so(void **state)
{
	struct ws_feed *f = open_feed("villas.binary", 1);
	struct ws_feed_put result = { 0 };
	struct client k;
	unsigned good = 0;

	client_open(&k, f, -1);
	while (!result.lost) {
		result = ws_feed_put(f, smps, 100);
		good += 100 - result.lost;
	}
	/* Nobody was there to make room; the newest half is still to be had afterwards. */
	ws_feed_trim(f);
	k.got.right = true;
	client_take(&k, f, 100000);
	assert_int_equal(k.lost + k.got.count, good);
	assert_true(k.got.count >= good / 3);
	result = ws_feed_put(f, smps, 100);
	assert_int_equal(result.lost, 0);
	client_close(&k);
	ws_feed_free(f);
}

static void formats_that_do_not_fit_are_refused_with_the_reason(void **state)
{
	struct signal_list *z = signal_list_new(1, SIGNAL_COMPLEX);
	struct ws_feed *f;

	assert_int_equal(ws_feed_new(&f, "jsno", signals, 1, why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "did you mean 'json'"));
	assert_int_equal(ws_feed_new(&f, "villas.web", z, 1, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'signal0' is complex"));
	signal_list_put(z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_comes_out_as_it_went_in),
		cmocka_unit_test(clients_get_what_comes_behind_them),
		cmocka_unit_test(who_falls_behind_loses_the_oldest_and_is_told_how_many),
		cmocka_unit_test(a_full_ring_takes_no_more_and_says_so),
		cmocka_unit_test(formats_that_do_not_fit_are_refused_with_the_reason),
	};

	return cmocka_run_group_tests_name("feed", tests, setup, teardown);
}
