/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reader and writer at full speed while the owner opens and closes the channel:
 * no sample is lost, and the thread sanitizer finds nothing. The mock has no
 * lock of its own, so only the channel keeps the threads apart.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>

#include <cmocka.h>

#include "mock.h"
#include "util/clock.h"

#define ROUNDS 100
#define VECTOR 4

static struct mock m;
static atomic_bool stop;
static atomic_ulong received, sent;

static void *read_all(void *arg)
{
	struct sample *smps[VECTOR];
	unsigned cnt, release;

	while (!atomic_load(&stop)) {
		cnt = sample_alloc_many(&m.pool, smps, VECTOR);
		if (cnt == 0)
			continue;
		atomic_fetch_add(&received,
				 (unsigned long)ib_channel_read(
					 &m.channel, smps, cnt, &release));
		sample_put_many(smps, release);
	}
	return NULL;
}

static void *write_all(void *arg)
{
	struct sample *smps[VECTOR];
	unsigned cnt, release;

	while (!atomic_load(&stop)) {
		cnt = sample_alloc_many(&m.pool, smps, VECTOR);
		for (unsigned i = 0; i < cnt; i++)
			smps[i]->length = i;
		if (cnt == 0)
			continue;
		atomic_fetch_add(&sent, (unsigned long)ib_channel_write(
						&m.channel, smps, cnt,
						&release));
		sample_put_many(smps, release);
	}
	return NULL;
}

static void the_owner_may_open_and_close_at_any_time(void **state)
{
	const struct mock_setup s = { .rx_depth = 32, .rx_threshold = 16,
				      .inline_limit = 40, .samples = 400,
				      .capacity = 8 };
	pthread_t reader, writer;

	mock_init(&m, &s);
	m.automatic = true;
	assert_int_equal(pthread_create(&reader, NULL, read_all, NULL), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned long r = atomic_load(&received), w = atomic_load(&sent);
		uint64_t end = clock_now_ns() + NSEC_PER_SEC / 100;

		while ((atomic_load(&received) < r + 10 ||
			atomic_load(&sent) < w + 10) && clock_now_ns() < end)
			sched_yield();
		ib_channel_close_tx(&m.channel);
		ib_channel_close_rx(&m.channel);
		ib_channel_drain(&m.channel, 50000);
		ib_channel_detach(&m.channel);
		m.rq.open = m.rq.wc_count = 0;
		m.sq.open = m.sq.wc_count = 0;
		mock_open(&m, &s);
	}
	atomic_store(&stop, true);
	ib_channel_interrupt(&m.channel);
	pthread_join(reader, NULL);
	pthread_join(writer, NULL);
	assert_true(received > ROUNDS);
	assert_true(sent > ROUNDS);
	mock_destroy(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_may_open_and_close_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
