/* SPDX-License-Identifier: BSD-2-Clause */
/* Floor measurements with one process: copies, clocks, system calls; and where it runs. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/floor/floor_method.h"
#include "util/clock.h"
#include "util/spin.h"

#define PACED_NS (800 * UINT64_C(1000000))

int floor_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* Keeps the compiler from removing or merging the operation that is measured. */
static inline void keep(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

/* The ns per call of `op`, called in batches until the round's time is over. */
static double time_op(void (*op)(void *arg), void *arg, uint64_t round_ns)
{
	const unsigned batch = 256;
	uint64_t start = clock_ticks(), elapsed_ns, count = 0;

	do {
		for (unsigned i = 0; i < batch; i++)
			op(arg);
		count += batch;
		elapsed_ns = clock_ticks_to_ns(clock_ticks() - start);
	} while (elapsed_ns < round_ns);
	return (double)elapsed_ns / (double)count;
}

static int time_calls(const struct floor_measure *m, const struct floor_setting *setting,
		      struct floor_rounds *rounds)
{
	for (unsigned i = 0; i < FLOOR_ROUNDS; i++)
		rounds->value[i] = time_op(m->method->operation, NULL, setting->round_ns);
	return 0;
}

static void op_clock_gettime(void *arg)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	keep(&now);
}

static void op_clock_ticks(void *arg)
{
	uint64_t now = clock_now_ns();

	keep(&now);
}

static void op_system_call(void *arg)
{
	syscall(SYS_getppid);
}

struct copy {
	char *to, *from;
	size_t size_bytes;
};

static void op_memcpy(void *arg)
{
	struct copy *c = arg;

	memcpy(c->to, c->from, c->size_bytes);
	keep(c->to);
}

static int time_copies(const struct floor_measure *m, const struct floor_setting *setting,
		       struct floor_rounds *rounds)
{
	size_t bytes = m->size_bytes;
	struct copy c = { aligned_alloc(4096, bytes), aligned_alloc(4096, bytes), bytes };
	int err = c.to && c.from ? 0 : -ENOMEM;

	if (!err) {
		/* Written to, so that page faults are not measured. */
		memset(c.to, 1, bytes);
		memset(c.from, 2, bytes);
		for (unsigned i = 0; i < FLOOR_ROUNDS; i++) /* B/ns = GB/s */
			rounds->value[i] = (double)bytes /
					   time_op(op_memcpy, &c, setting->round_ns);
	}
	free(c.to);
	free(c.from);
	return err;
}

/*
 * The share of steps that a loop which only reads the clock misses at this rate: the time
 * that the host, its other guests and the kernel take. One figure over all rounds,
 * because such pauses come only a few times a second.
 */
static int pace(const struct floor_measure *m, const struct floor_setting *setting,
		struct floor_rounds *rounds)
{
	uint64_t period = clock_ns_to_ticks(NSEC_PER_SEC / m->size_bytes);
	uint64_t start = clock_ticks(), next = start + period;
	uint64_t end = start + clock_ns_to_ticks(PACED_NS);
	uint64_t steps = 0, missed = 0;

	while (next < end) {
		uint64_t now, passed;

		while ((now = clock_ticks()) < next)
			;
		passed = (now - next) / period + 1;
		next += passed * period;
		steps += passed;
		missed += passed - 1;
	}
	for (unsigned i = 0; i < FLOOR_ROUNDS; i++)
		rounds->value[i] = 100.0 * (double)missed / (double)steps;
	return 0;
}

struct spinner {
	int cpu, err;
	atomic_bool started, stop;
};

static void *spin(void *arg)
{
	struct spinner *s = arg;

	s->err = floor_pin(s->cpu);
	atomic_store(&s->started, true);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
		cpu_relax();
	return NULL;
}

/* The same while the other CPU is busy, as with two gateways that poll. */
static int pace_beside_spinner(const struct floor_measure *m, const struct floor_setting *setting,
			       struct floor_rounds *rounds)
{
	struct spinner s = { .cpu = setting->cpus.second };
	pthread_t thread;
	int err;

	if (setting->cpus.second < 0)
		return -ENODEV;
	err = -pthread_create(&thread, NULL, spin, &s);
	if (err)
		return err;
	while (!atomic_load(&s.started))
		cpu_relax();
	err = pace(m, setting, rounds);
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	return s.err ? s.err : err;
}

const struct floor_method floor_clock_gettime = { time_calls, .operation = op_clock_gettime };
const struct floor_method floor_clock_ticks = { time_calls, .operation = op_clock_ticks };
const struct floor_method floor_system_call = { time_calls, .operation = op_system_call };
const struct floor_method floor_memcpy = { .run = time_copies };
const struct floor_method floor_paced = { .run = pace };
const struct floor_method floor_paced_busy = { .run = pace_beside_spinner };
