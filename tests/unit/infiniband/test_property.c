/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Over any sequence of calls: samples passed in = samples released + samples
 * owned by the channel, and no pointer occurs twice on either side.
 *
 * Runs from seeds; a failing one is printed, and given as the first argument it
 * is run alone.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mock.h"
#include "util/log.h"

#define SEEDS 400
#define STEPS 600
#define SAMPLES 256
#define CNT_MAX 80 /* more than one chain */

enum owner { POOL, CALLER, CHANNEL };

struct model {
	struct mock m;
	struct mock_setup setup;
	uint64_t random;
	enum owner owner[SAMPLES];
	bool open;
};

static unsigned long first_seed = 1, last_seed = SEEDS;

static unsigned draw(struct model *x, unsigned below)
{
	x->random ^= x->random << 13;
	x->random ^= x->random >> 7;
	x->random ^= x->random << 17;
	return (unsigned)(x->random >> 33) % below;
}

static unsigned index_of(struct model *x, const struct sample *s)
{
	const char *base = x->m.pool.block->addr;
	size_t offset = (size_t)((const char *)s - base);

	assert_int_equal(offset % x->m.pool.stride, 0);
	assert_true(offset / x->m.pool.stride < SAMPLES);
	return (unsigned)(offset / x->m.pool.stride);
}

static struct sample *sample_at(struct model *x, unsigned i)
{
	return (struct sample *)((char *)x->m.pool.block->addr +
				 i * x->m.pool.stride);
}

/* The channel may release by itself what it owns, never anything else. */
static void check(struct model *x)
{
	unsigned owned = 0;

	for (unsigned i = 0; i < SAMPLES; i++) {
		int refs = atomic_load(&sample_at(x, i)->refcnt);

		if (x->owner[i] == CHANNEL && refs == 0)
			x->owner[i] = POOL;
		assert_int_equal(refs, x->owner[i] == POOL ? 0 : 1);
		owned += x->owner[i] == CHANNEL;
	}
	assert_int_equal(owned, ib_channel_held(&x->m.channel));
	assert_int_equal(owned, SAMPLES - x->m.pool.available);
}

static void call(struct model *x, bool write)
{
	struct sample *smps[CNT_MAX], *in[CNT_MAX];
	unsigned want = 1 + draw(x, draw(x, 8) ? 8 : CNT_MAX);
	unsigned cnt, release = 0;
	int ret;

	cnt = sample_alloc_many(&x->m.pool, smps, want);
	if (cnt == 0)
		return;
	for (unsigned i = 0; i < cnt; i++) {
		smps[i]->length = write ? draw(x, 32) : 0;
		x->owner[index_of(x, smps[i])] = CALLER;
		in[i] = smps[i];
	}
	if (write) {
		ret = ib_channel_write(&x->m.channel, smps, cnt, &release);
	} else {
		/* So that it comes back when nothing is there. */
		ib_channel_interrupt(&x->m.channel);
		ret = ib_channel_read(&x->m.channel, smps, cnt, &release);
	}
	assert_in_range(ret, 0, cnt);
	assert_in_range(release, 0, cnt);
	if (!write)
		assert_true(ret <= (int)release);
	for (unsigned i = 0; i < cnt; i++)
		if (x->owner[index_of(x, in[i])] == CALLER)
			x->owner[index_of(x, in[i])] = CHANNEL;
	for (unsigned i = 0; i < release; i++) {
		/* Twice in the array would fail here. */
		assert_int_equal(x->owner[index_of(x, smps[i])], CHANNEL);
		x->owner[index_of(x, smps[i])] = POOL;
		sample_put(smps[i]);
	}
}

static void reopen(struct model *x)
{
	ib_channel_close_rx(&x->m.channel);
	ib_channel_close_tx(&x->m.channel);
	if (x->open) {
		if (draw(x, 4))
			mock_flush(&x->m);
		ib_channel_drain(&x->m.channel, draw(x, 20) * 1000);
		ib_channel_detach(&x->m.channel);
		x->m.rq.open = x->m.sq.open = 0;
		x->m.rq.wc_count = x->m.sq.wc_count = 0;
		x->open = false;
	}
	if (draw(x, 3)) {
		mock_open(&x->m, &x->setup);
		x->open = true;
	}
}

static void complete(struct model *x)
{
	unsigned n = 1 + draw(x, 12);

	while (n--) {
		if (draw(x, 2))
			mock_sent(&x->m, draw(x, 400) ? IBV_WC_SUCCESS :
							IBV_WC_RETRY_EXC_ERR);
		else if (draw(x, 12))
			mock_receive(&x->m, draw(x, 32));
		else
			mock_receive_raw(&x->m, draw(x, 300),
					 draw(x, 40) ? IBV_WC_SUCCESS :
						       IBV_WC_LOC_LEN_ERR);
	}
}

static void fail_posts(struct mock_queue *q, struct model *x)
{
	static const int errors[] = { 0, 0, ENOMEM, ENOMEM, EINVAL };

	q->error = errors[draw(x, ARRAY_SIZE(errors))];
	q->accept = q->error ? draw(x, 6) : 0;
}

static void step(struct model *x)
{
	switch (draw(x, 16)) {
	case 0 ... 4:
		call(x, false);
		break;
	case 5 ... 9:
		call(x, true);
		break;
	case 10 ... 13:
		complete(x);
		break;
	case 14:
		fail_posts(draw(x, 2) ? &x->m.rq : &x->m.sq, x);
		break;
	case 15:
		if (draw(x, 8) == 0)
			reopen(x);
		break;
	}
	check(x);
}

static void run(unsigned long seed)
{
	static struct model x;

	x = (struct model){ .random = seed * 0x9e3779b97f4a7c15u | 1 };
	x.setup = (struct mock_setup){
		.rx_depth = 8u << draw(&x, 5), .tx_depth = 4u << draw(&x, 5),
		.samples = SAMPLES, .capacity = 32, .ud = draw(&x, 4) == 0,
	};
	x.setup.rx_threshold = 1 + draw(&x, x.setup.rx_depth);
	x.setup.signal_every = 1 + draw(&x, x.setup.tx_depth / 2);
	x.setup.inline_limit = draw(&x, 3) ? draw(&x, 280) : 0;
	mock_init(&x.m, &x.setup);
	x.open = true;
	for (unsigned i = 0; i < STEPS; i++)
		step(&x);
	mock_destroy(&x.m);
}

static unsigned long running;

static int tell_seed(void **state)
{
	if (running)
		fprintf(stderr, "failed with seed %lu\n", running);
	return 0;
}

static void no_sample_is_lost_or_released_twice(void **state)
{
	log_set_level(LOG_ERROR);
	for (running = first_seed; running <= last_seed; running++)
		run(running);
	running = 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(no_sample_is_lost_or_released_twice,
					  tell_seed),
	};

	if (argc > 1)
		first_seed = last_seed = strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
