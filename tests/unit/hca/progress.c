/* SPDX-License-Identifier: BSD-2-Clause */
/* Timers of the progress thread: which time counts, and where they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "util/clock.h"
#include "util/container_of.h"

enum { ROUNDS = 2000, LIMIT_S = 20 };
#define LATER_NS (60 * NSEC_PER_SEC)

struct timed {
	struct progress_timer timer;
	sem_t ran;
	uint32_t depth; /* of hca_enter(), when it ran */
};

static void on_time(struct progress_timer *t)
{
	struct timed *timed = container_of(t, struct timed, timer);

	timed->depth = hca_self.depth;
	sem_post(&timed->ran);
}

static void make(struct timed *t)
{
	progress_timer_init(&t->timer, on_time);
	sem_init(&t->ran, 0, 0);
}

static void assert_runs(struct timed *t)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LIMIT_S;
	assert_int_equal(sem_timedwait(&t->ran, &until), 0);
}

static void a_later_time_does_not_count(void **state)
{
	uint64_t now = progress_now_ns();
	struct timed t;

	make(&t);
	progress_timer_hasten(&t.timer, now + NSEC_PER_SEC / 100);
	progress_timer_hasten(&t.timer, now + LATER_NS);
	assert_runs(&t);
	progress_timer_hasten(&t.timer, now + LATER_NS);
	progress_timer_hasten(&t.timer, now);
	assert_runs(&t);
	/* To arm it is to decide. */
	progress_timer_arm(&t.timer, now + LATER_NS);
	progress_timer_arm(&t.timer, now + 2 * LATER_NS);
	assert_true(t.timer.timer.deadline_ns == now + 2 * LATER_NS);
	progress_timer_cancel(&t.timer);
}

static struct timed shared;
static pthread_barrier_t barrier;

static void *hasten_later(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		progress_timer_hasten(&shared.timer, progress_now_ns() + LATER_NS);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void of_two_threads_the_earlier_time_counts(void **state)
{
	pthread_t other;

	make(&shared);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&other, NULL, hasten_later, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		progress_timer_hasten(&shared.timer, progress_now_ns());
		pthread_barrier_wait(&barrier);
		assert_runs(&shared);
		progress_timer_cancel(&shared.timer);
	}
	pthread_join(other, NULL);
}

static void a_light_timer_is_not_inside(void **state)
{
	struct timed light, ordinary;

	make(&light);
	light.timer.light = true;
	make(&ordinary);
	for (int i = 0; i < 10; i++) {
		progress_timer_arm(&light.timer, progress_now_ns() + 1000000);
		progress_timer_arm(&ordinary.timer, progress_now_ns() + 2000000);
		assert_runs(&light);
		assert_int_equal(light.depth, 0);
		assert_runs(&ordinary);
		assert_int_equal(ordinary.depth, 1);
	}
}

static int setup(void **state)
{
	return progress_hold();
}

static int teardown(void **state)
{
	progress_release();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_later_time_does_not_count),
		cmocka_unit_test(of_two_threads_the_earlier_time_counts),
		cmocka_unit_test(a_light_timer_is_not_inside),
	};

	return cmocka_run_group_tests_name("progress", tests, setup, teardown);
}
