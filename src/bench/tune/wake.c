/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does /dev/cpu_dma_latency make things better here? A thread that sleeps and two that
 * poll are measured without and with it, block by block in turn, so that a slow change of
 * the machine's speed meets both.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/floor/floor.h"
#include "bench/tune/measure.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/order.h"

#define WAKES 80
#define WAKE_NS 500000
#define BATCHES 200
#define BATCH 50 /* round trips of one figure */

int tune_latency_request(const char *root, int32_t latency_us)
{
	const struct tune_tree t = { .root = root };
	char *path = tune_tree_path(&t, "/dev/cpu_dma_latency");
	int fd = path ? open(path, O_WRONLY | O_CLOEXEC) : -1, err = path ? -errno : -ENOMEM;

	free(path);
	if (fd < 0)
		return err;
	if (write(fd, &latency_us, sizeof(latency_us)) != sizeof(latency_us)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static double median_of(double *values, size_t count)
{
	order_doubles(values, count);
	return values[count / 2];
}

double tune_flag_median(const struct tune_latency *l, enum tune_flag flag)
{
	double sorted[TUNE_BLOCKS];

	memcpy(sorted, l->median_ns[flag], sizeof(sorted));
	return median_of(sorted, TUNE_BLOCKS);
}

enum tune_flag_verdict tune_flag_judge(const struct tune_latency *l)
{
	double off = tune_flag_median(l, TUNE_FLAG_OFF), on = tune_flag_median(l, TUNE_FLAG_ON);
	int lower = 0, higher = 0;

	for (int i = 0; i < TUNE_BLOCKS; i++)
		for (int k = 0; k < TUNE_BLOCKS; k++) {
			lower += l->median_ns[TUNE_FLAG_ON][i] < l->median_ns[TUNE_FLAG_OFF][k];
			higher += l->median_ns[TUNE_FLAG_ON][i] > l->median_ns[TUNE_FLAG_OFF][k];
		}
	/* Mann-Whitney U of 5 and 5: at most 2, two-sided level 0.03. */
	if (lower >= TUNE_BLOCKS * TUNE_BLOCKS - 2 && on < off * 0.98)
		return TUNE_FLAG_HELPS;
	if (higher >= TUNE_BLOCKS * TUNE_BLOCKS - 2 && off < on * 0.98)
		return TUNE_FLAG_HARMS;
	return TUNE_FLAG_EQUAL;
}

/* How late a thread is that sleeps until a time. */
static void timer_block(double *late)
{
	uint64_t due = clock_now_ns() + WAKE_NS;

	for (int i = 0; i < WAKES; i++, due += WAKE_NS) {
		struct timespec until, now;
		uint64_t at;

		/* After a long delay, times in the past would be no sleep. */
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = timespec_to_ns(now);
		due = MAX(due, at + WAKE_NS / 2);
		until = timespec_from_ns(due);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = timespec_to_ns(now);
		late[i] = at > due ? (double)(at - due) : 0;
	}
}

struct table_tennis {
	cache_aligned _Atomic uint64_t ping;
	cache_aligned _Atomic uint64_t pong;
	cache_aligned atomic_bool end;
	pthread_t thread;
	int cpu;
};

static void *answer(void *arg)
{
	struct table_tennis *t = arg;
	uint64_t seen = 0;

	floor_pin(t->cpu);
	while (!atomic_load_explicit(&t->end, memory_order_relaxed)) {
		uint64_t ping = atomic_load_explicit(&t->ping, memory_order_acquire);

		if (ping != seen) {
			seen = ping;
			atomic_store_explicit(&t->pong, seen, memory_order_release);
		}
	}
	return NULL;
}

static void poll_block(struct table_tennis *t, double *round_ns)
{
	uint64_t ball = atomic_load(&t->ping);

	for (int i = 0; i < BATCHES; i++) {
		uint64_t begin = clock_ticks();

		for (int k = 0; k < BATCH; k++) {
			atomic_store_explicit(&t->ping, ++ball, memory_order_release);
			while (atomic_load_explicit(&t->pong, memory_order_acquire) != ball)
				;
		}
		round_ns[i] = (double)clock_ticks_to_ns(clock_ticks() - begin) / BATCH;
	}
}

static void keep_block(struct tune_latency *l, enum tune_flag flag, int block, double *values,
		       size_t count)
{
	double median = median_of(values, count);

	l->median_ns[flag][block] = median;
	l->worst_ns[flag] = MAX(l->worst_ns[flag], values[count - 1]);
}

static void measure_blocks(struct tune_wake *w, struct table_tennis *t)
{
	double values[BATCHES > WAKES ? BATCHES : WAKES];

	for (int i = 0; i < TUNE_BLOCKS * TUNE_FLAGS; i++) {
		enum tune_flag flag = i % 2 ? TUNE_FLAG_ON : TUNE_FLAG_OFF;
		int fd = flag ? tune_latency_request("", 0) : -1;

		if (flag && fd < 0) {
			w->flag_err = fd;
			continue;
		}
		timer_block(values);
		keep_block(&w->timer, flag, i / 2, values, WAKES);
		if (t) {
			atomic_store(&t->end, false);
			w->poll.err = -pthread_create(&t->thread, NULL, answer, t);
			if (!w->poll.err) {
				poll_block(t, values);
				atomic_store(&t->end, true);
				pthread_join(t->thread, NULL);
				keep_block(&w->poll, flag, i / 2, values, BATCHES);
			} else {
				t = NULL;
			}
		}
		if (fd >= 0)
			close(fd);
	}
}

void tune_wake_measure(struct tune_wake *w)
{
	cpu_set_t allowed;
	struct floor_cpus cpus = { -1, -1 };
	struct table_tennis *t = NULL;
	int slack = prctl(PR_GET_TIMERSLACK);

	*w = (struct tune_wake){ .poll.err = -ENODEV };
	clock_init();
	if (!sched_getaffinity(0, sizeof(allowed), &allowed))
		floor_default_cpus(&cpus);
	if (cpus.second >= 0)
		t = aligned_alloc(CACHE_LINE, sizeof(*t));
	if (t) {
		memset(t, 0, sizeof(*t));
		t->cpu = cpus.second;
		floor_pin(cpus.first);
	}
	/* Ordinary threads otherwise wake up to 50 us late on purpose, to save energy. */
	prctl(PR_SET_TIMERSLACK, 1UL);
	measure_blocks(w, t);
	prctl(PR_SET_TIMERSLACK, (unsigned long)MAX(slack, 1));
	free(t);
	if (cpus.first >= 0)
		pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
	w->timer.verdict = w->flag_err ? TUNE_FLAG_UNKNOWN : tune_flag_judge(&w->timer);
	w->poll.verdict = w->flag_err || w->poll.err ? TUNE_FLAG_UNKNOWN :
						      tune_flag_judge(&w->poll);
}
