/* SPDX-License-Identifier: BSD-2-Clause */
/* Floor measurements between two processes on two CPUs; see floor_method.h. */
#include "bench/floor/floor_method.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/hist.h"
#include "util/spawn.h"

static int wait_for(const _Atomic uint64_t *word, uint64_t value)
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;
	unsigned spins = 0;

	while (atomic_load_explicit(word, memory_order_acquire) != value)
		if (overdue(&spins, deadline_ns))
			return -ETIMEDOUT;
	return 0;
}

static void partner_run(struct pair *p, void (*partner)(struct pair *))
{
	if (floor_pin(p->cpu))
		_exit(1);
	if (p->buffer)
		memset(p->buffer, 1, p->size_bytes); /* makes the pages its own */
	atomic_store(&p->shared->ready, true);
	partner(p);
	_exit(0);
}

int pair_start(struct pair *p, const struct floor_cpus *cpus, void (*partner)(struct pair *))
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;

	if (cpus->second < 0)
		return -ENODEV;
	p->cpu = cpus->second;
	p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->shared == MAP_FAILED)
		return -errno;
	p->partner = spawn_copy(SIGKILL);
	if (p->partner < 0) {
		int err = -errno;

		munmap(p->shared, sizeof(*p->shared));
		return err;
	}
	if (p->partner == 0)
		partner_run(p, partner);
	while (!atomic_load(&p->shared->ready) && clock_now_ns() < deadline_ns)
		sched_yield();
	return 0;
}

void pair_stop(struct pair *p)
{
	atomic_store(&p->shared->stop, true);
	/* Killed, because it may sleep in a system call; it has nothing to clean up. */
	kill(p->partner, SIGKILL);
	spawn_wait(p->partner);
	munmap(p->shared, sizeof(*p->shared));
}

/* Fills `rounds` with ns per call of `trip`, after one round to warm up. */
static int pair_rounds(struct pair *p, int (*trip)(struct pair *), uint64_t round_ns,
		       struct floor_rounds *rounds)
{
	for (int i = -1; i < FLOOR_ROUNDS; i++) {
		uint64_t start = clock_ticks(), elapsed_ns = 0, count = 0;

		do {
			uint64_t before_ns = elapsed_ns;
			int err = trip(p);

			if (err)
				return err;
			count++;
			elapsed_ns = clock_ticks_to_ns(clock_ticks() - start);
			if (i >= 0 && p->each)
				hist_record(rounds->trips, elapsed_ns - before_ns);
		} while (elapsed_ns < round_ns);
		if (i >= 0)
			rounds->value[i] = (double)elapsed_ns / (double)count;
	}
	return 0;
}

int pair_measure(struct pair *p, const struct floor_method *method,
		 const struct floor_setting *setting, struct floor_rounds *rounds)
{
	int err = pair_start(p, &setting->cpus, method->partner);

	if (err)
		return err;
	err = pair_rounds(p, method->trip, setting->round_ns, rounds);
	pair_stop(p);
	return err;
}

/* ---- cache line: each side writes one line and spins on the other ---- */

#define CACHELINE_BATCH 512

static void cacheline_partner(struct pair *p)
{
	struct shared *s = p->shared;
	uint64_t seen = 0;

	for (;;) {
		uint64_t now = atomic_load_explicit(&s->ping,
						    memory_order_acquire);

		if (now != seen) {
			seen = now;
			atomic_store_explicit(&s->pong, now,
					      memory_order_release);
		}
	}
}

/* Many trips between two readings of the clock, which take as long as one trip. */
static int cacheline_trips(struct pair *p)
{
	struct shared *s = p->shared;

	for (unsigned i = 0; i < CACHELINE_BATCH; i++) {
		uint64_t n = ++p->count;
		unsigned spins = 0;

		atomic_store_explicit(&s->ping, n, memory_order_release);
		while (atomic_load_explicit(&s->pong, memory_order_acquire) != n) {
			if (++spins == 1u << 20 && wait_for(&s->pong, n))
				return -ETIMEDOUT;
		}
	}
	return 0;
}

static int time_cacheline(const struct floor_measure *m, const struct floor_setting *setting,
			  struct floor_rounds *rounds)
{
	struct pair p = { 0 };
	int err = pair_measure(&p, m->method, setting, rounds);

	for (unsigned i = 0; i < FLOOR_ROUNDS && !err; i++)
		rounds->value[i] /= 2.0 * CACHELINE_BATCH;
	return err;
}

const struct floor_method floor_cacheline = { time_cacheline, .partner = cacheline_partner,
					      .trip = cacheline_trips };

/* ---- process_vm_writev into the partner's memory, process_vm_readv out of it ---- */

static void sleeping_partner(struct pair *p)
{
	for (;;)
		pause();
}

static int vm_trip(struct pair *p, ssize_t (*call)(pid_t, const struct iovec *, unsigned long,
						   const struct iovec *, unsigned long,
						   unsigned long))
{
	struct iovec local = { p->buffer, p->size_bytes };
	ssize_t n = call(p->partner, &local, 1, &local, 1, 0);

	return n == (ssize_t)p->size_bytes ? 0 : n < 0 ? -errno : -EIO;
}

static int vm_writev_trip(struct pair *p)
{
	return vm_trip(p, process_vm_writev);
}

static int vm_readv_trip(struct pair *p)
{
	return vm_trip(p, process_vm_readv);
}

static int time_vm(const struct floor_measure *m, const struct floor_setting *setting,
		   struct floor_rounds *rounds)
{
	struct pair p = { .size_bytes = m->size_bytes };
	int err;

	p.buffer = mmap(NULL, p.size_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p.buffer == MAP_FAILED)
		return -errno;
	memset(p.buffer, 2, p.size_bytes);
	err = pair_measure(&p, m->method, setting, rounds);
	munmap(p.buffer, p.size_bytes);
	return err;
}

const struct floor_method floor_vm_writev = { time_vm, .partner = sleeping_partner,
					      .trip = vm_writev_trip };
const struct floor_method floor_vm_readv = { time_vm, .partner = sleeping_partner,
					     .trip = vm_readv_trip };

/* ---- wake-up: time from the write to the partner's first store ---- */

static void eventfd_partner(struct pair *p)
{
	uint64_t value, woken = 0;

	while (read(p->fd[1], &value, sizeof(value)) == sizeof(value))
		atomic_store_explicit(&p->shared->pong, ++woken,
				      memory_order_release);
}

/* Waits until /proc shows that the partner sleeps. */
static int wait_until_asleep(int stat_fd)
{
	uint64_t deadline_ns = clock_now_ns() + WAIT_MAX_NS;
	char text[128];

	while (clock_now_ns() < deadline_ns) {
		ssize_t n = pread(stat_fd, text, sizeof(text) - 1, 0);
		const char *state;

		if (n <= 0)
			return -EIO;
		text[n] = '\0';
		state = strrchr(text, ')'); /* the name may contain a bracket, too */
		if (state && state[1] == ' ' && state[2] == 'S')
			return 0;
	}
	return -ETIMEDOUT;
}

static int eventfd_rounds(struct pair *p, int stat_fd, struct floor_rounds *rounds)
{
	const unsigned wakeups = 40;

	for (unsigned i = 0; i < FLOOR_ROUNDS; i++) {
		uint64_t ticks = 0;

		for (unsigned k = 0; k < wakeups; k++) {
			uint64_t start, one = 1;
			int err = wait_until_asleep(stat_fd);

			if (err)
				return err;
			start = clock_ticks();
			if (write(p->fd[0], &one, sizeof(one)) != sizeof(one))
				return -errno;
			err = wait_for(&p->shared->pong, ++p->count);
			if (err)
				return err;
			ticks += clock_ticks() - start;
		}
		rounds->value[i] = (double)clock_ticks_to_ns(ticks) / wakeups;
	}
	return 0;
}

static int time_eventfd(const struct floor_measure *m, const struct floor_setting *setting,
			struct floor_rounds *rounds)
{
	struct pair p = { 0 };
	char path[64];
	int fd = eventfd(0, EFD_CLOEXEC), stat_fd, err;

	if (fd < 0)
		return -errno;
	p.fd[0] = p.fd[1] = fd;
	err = pair_start(&p, &setting->cpus, m->method->partner);
	if (err)
		goto out_close;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)p.partner);
	stat_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (stat_fd < 0) {
		err = -errno;
	} else {
		err = eventfd_rounds(&p, stat_fd, rounds);
		close(stat_fd);
	}
	pair_stop(&p);
out_close:
	close(fd);
	return err;
}

const struct floor_method floor_eventfd = { time_eventfd, .partner = eventfd_partner };
