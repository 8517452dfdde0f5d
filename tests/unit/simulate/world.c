/* SPDX-License-Identifier: BSD-2-Clause */
/* See world.h. */
#include "world.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/waiting.h"
#include "util/container_of.h"

#define ACTORS_MAX 256
/* A run that has not ended after so many turns never will. */
#define TURNS_MAX 20000000u
#define FOREVER UINT64_MAX
/* The wall clock at the beginning of a run: an arbitrary day. */
#define WALL_NS UINT64_C(1700000000000000000)

enum waits { RUNS, SLEEPS, WAITS_FUTEX, WAITS_POLL, WAITS_JOIN, WAITS_MUTEX };

struct actor {
	bool used, ended, woken;
	enum waits waits;
	uint64_t until_ns;
	const void *at;            /* futex, mutex or struct actor */
	struct pollfd *fds;
	nfds_t fd_count;
	unsigned weight;           /* share of the turns */
	sem_t go;
	pthread_t thread;
	void *(*function)(void *);
	void *arg;
};

static struct actor actors[ACTORS_MAX];
static unsigned actor_count;           /* number of slots ever used */
static struct actor *current;
static bool on;
static uint64_t seed, state, now_ns, turns, fingerprint;
static _Thread_local struct actor *self;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr,
			  void *(*function)(void *), void *arg);
int __real_pthread_join(pthread_t t, void **value);
int __real_pthread_clockjoin_np(pthread_t t, void **value, clockid_t of,
				const struct timespec *until);
int __real_pthread_tryjoin_np(pthread_t t, void **value);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t of,
				   const struct timespec *until);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __real_clock_gettime(clockid_t id, struct timespec *t);
int __real_sched_yield(void);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		 const sigset_t *mask);
long __real_syscall(long number, ...);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
			  void *(*function)(void *), void *arg);
int __wrap_pthread_join(pthread_t t, void **value);
int __wrap_pthread_clockjoin_np(pthread_t t, void **value, clockid_t of,
				const struct timespec *until);
int __wrap_pthread_tryjoin_np(pthread_t t, void **value);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t of,
				   const struct timespec *until);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_sched_yield(void);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		 const sigset_t *mask);
long __wrap_syscall(long number, ...);

static uint64_t to_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

unsigned world_draw(unsigned below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)((state >> 11) % below);
}

void world_note(uint64_t what)
{
	fingerprint = (fingerprint ^ what) * UINT64_C(0x100000001b3);
}

uint64_t world_fingerprint(void)
{
	return fingerprint;
}

uint64_t world_now_ns(void)
{
	return now_ns;
}

uint64_t world_turns(void)
{
	return turns;
}

void world_fail(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "\nseed %llu, turn %llu: ", (unsigned long long)seed,
		(unsigned long long)turns);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n(again with: --seed %llu --runs 1 --verbose)\n",
		(unsigned long long)seed);
	fflush(stderr);
	_exit(1);
}

static struct actor *new_actor(void)
{
	unsigned i = 0;

	while (i < actor_count && actors[i].used)
		i++;
	if (i == ACTORS_MAX)
		world_fail("more than %u threads", ACTORS_MAX);
	actor_count = MAX(actor_count, i + 1);
	actors[i] = (struct actor){ .used = true,
				    .until_ns = FOREVER,
				    .weight = 1 + world_draw(8) };
	sem_init(&actors[i].go, 0, 0);
	return &actors[i];
}

/* Whoever did not run for a while was replaced by another actor. */
static uint64_t count_switches(void)
{
	static uint64_t count;

	return ++count;
}

void world_begin(uint64_t number)
{
	seed = number;
	state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (int i = 0; i < 8; i++)
		world_draw(2);
	now_ns = 1000000000;
	turns = 0;
	fingerprint = UINT64_C(0xcbf29ce484222325);
	actor_count = 0;
	memset(actors, 0, sizeof(actors));
	current = self = new_actor();
	/* Forget what the process has measured about its processors. */
	waiting_reset(2);
	waiting_switches = count_switches;
	on = true;
}

void world_end(void)
{
	for (unsigned i = 0; i < actor_count; i++)
		if (actors[i].used && &actors[i] != self)
			world_fail("a thread was not joined");
	sem_destroy(&self->go);
	on = false;
}

/* Judged by the thread's own state alone. */
static bool may_be_ready(const struct actor *a)
{
	if (!a->used || a->ended)
		return false;
	if (now_ns >= a->until_ns)
		return true;
	switch (a->waits) {
	case SLEEPS:
		return false;
	case WAITS_FUTEX:
		return a->woken;
	case WAITS_JOIN:
		return ((const struct actor *)a->at)->ended;
	case RUNS:
	case WAITS_POLL:
	case WAITS_MUTEX:
		break;
	}
	return true;
}

static bool is_ready(const struct actor *a)
{
	if (now_ns >= a->until_ns)
		return true;
	if (a->waits == WAITS_POLL)
		return __real_poll(a->fds, a->fd_count, 0) > 0;
	if (a->waits != WAITS_MUTEX)
		return true;
	if (pthread_mutex_trylock((pthread_mutex_t *)a->at))
		return false;
	pthread_mutex_unlock((pthread_mutex_t *)a->at);
	return true;
}

/* No thread can run: advances the time to the first deadline of a waiting thread. */
static void advance(void)
{
	uint64_t first = FOREVER;

	for (unsigned i = 0; i < actor_count; i++)
		if (actors[i].used && !actors[i].ended)
			first = MIN(first, actors[i].until_ns);
	if (first == FOREVER)
		world_fail("all threads wait for each other");
	now_ns = MAX(now_ns, first);
}

static struct actor *choose(void)
{
	struct actor *ready[ACTORS_MAX];
	unsigned n = 0, sum = 0, at;

	/* From time to time the share of a thread changes. */
	if (world_draw(64) == 0)
		actors[world_draw(actor_count)].weight =
			world_draw(4) ? 1 + world_draw(8) : 100;
	for (unsigned i = 0; i < actor_count; i++) {
		if (!may_be_ready(&actors[i]))
			continue;
		ready[n++] = &actors[i];
		sum += actors[i].weight;
	}
	while (n) {
		struct actor *a;
		unsigned i = 0;

		at = world_draw(sum);
		while (at >= ready[i]->weight)
			at -= ready[i++]->weight;
		a = ready[i];
		if (is_ready(a))
			return a;
		sum -= a->weight;
		ready[i] = ready[--n];
	}
	return NULL;
}

/* The thread that runs next, perhaps the same one. */
static struct actor *next_actor(void)
{
	struct actor *a;

	if (++turns > TURNS_MAX)
		world_fail("no end after %u turns", TURNS_MAX);
	now_ns += world_draw(64) ? 200 + world_draw(2000) : world_draw(50000);
	while (!(a = choose()))
		advance();
	world_note((uint64_t)(a - actors));
	return a;
}

static void hand_over(void)
{
	struct actor *me = self, *next = next_actor();

	if (next != me) {
		current = next;
		sem_post(&next->go);
		while (sem_wait(&me->go))
			;
	}
	me->waits = RUNS;
	me->until_ns = FOREVER;
}

static void wait_for(enum waits waits, const void *at, uint64_t until_ns)
{
	self->waits = waits;
	self->at = at;
	self->until_ns = until_ns;
	self->woken = false;
	hand_over();
}

void world_turn(void)
{
	if (on)
		hand_over();
}

void world_sleep_ns(uint64_t ns)
{
	wait_for(SLEEPS, NULL, now_ns + ns);
}

static void *act(void *arg)
{
	struct actor *me = arg, *next;

	self = me;
	while (sem_wait(&me->go))
		;
	me->function(me->arg);
	me->ended = true;
	next = next_actor();
	current = next;
	sem_post(&next->go);
	return NULL;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr,
			  void *(*function)(void *), void *arg)
{
	struct actor *a;
	int ret;

	if (!on)
		return __real_pthread_create(t, attr, function, arg);
	a = new_actor();
	a->function = function;
	a->arg = arg;
	ret = __real_pthread_create(&a->thread, attr, act, a);
	if (ret) {
		a->used = false;
		return ret;
	}
	*t = a->thread;
	world_turn();
	return 0;
}

static struct actor *actor_of(pthread_t t)
{
	for (unsigned i = 0; i < actor_count; i++)
		if (actors[i].used && pthread_equal(actors[i].thread, t) &&
		    &actors[i] != self)
			return &actors[i];
	world_fail("an unknown thread is joined");
}

static int join(pthread_t t, void **value, uint64_t until_ns)
{
	struct actor *a = actor_of(t);
	int ret;

	if (!a->ended)
		wait_for(WAITS_JOIN, a, until_ns);
	if (!a->ended)
		return ETIMEDOUT;
	ret = __real_pthread_join(t, value);
	sem_destroy(&a->go);
	a->used = false;
	return ret;
}

int __wrap_pthread_join(pthread_t t, void **value)
{
	return on ? join(t, value, FOREVER) : __real_pthread_join(t, value);
}

int __wrap_pthread_clockjoin_np(pthread_t t, void **value, clockid_t of,
				const struct timespec *until)
{
	if (!on)
		return __real_pthread_clockjoin_np(t, value, of, until);
	return join(t, value, to_ns(until));
}

/* For timed_join() with the thread sanitizer. */
int __wrap_pthread_tryjoin_np(pthread_t t, void **value)
{
	int ret;

	if (!on)
		return __real_pthread_tryjoin_np(t, value);
	ret = join(t, value, 1); /* a deadline that has passed */
	return ret == ETIMEDOUT ? EBUSY : ret;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!on)
		return __real_pthread_mutex_lock(m);
	if (world_draw(4) == 0)
		world_turn();
	while (pthread_mutex_trylock(m))
		wait_for(WAITS_MUTEX, m, FOREVER);
	return 0;
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t of,
				   const struct timespec *until)
{
	uint64_t until_ns;

	if (!on)
		return __real_pthread_mutex_clocklock(m, of, until);
	until_ns = to_ns(until);
	while (pthread_mutex_trylock(m)) {
		if (now_ns >= until_ns)
			return ETIMEDOUT;
		wait_for(WAITS_MUTEX, m, until_ns);
	}
	return 0;
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	if (!on)
		return __real_nanosleep(t, left);
	world_sleep_ns(to_ns(t));
	return 0;
}

/* Reading the clock advances it, so that a loop which waits for a time ends, and lets other
 * threads run. */
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	if (!on)
		return __real_clock_gettime(id, t);
	now_ns += 30;
	if (world_draw(16) == 0)
		world_turn();
	ns = id == CLOCK_REALTIME ? WALL_NS + now_ns : now_ns;
	t->tv_sec = (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

int __wrap_sched_yield(void)
{
	if (!on)
		return __real_sched_yield();
	world_turn();
	return 0;
}

static int poll_until(struct pollfd *fds, nfds_t n, uint64_t until_ns)
{
	self->fds = fds;
	self->fd_count = n;
	wait_for(WAITS_POLL, NULL, until_ns);
	return __real_poll(fds, n, 0);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (!on)
		return __real_poll(fds, n, timeout_ms);
	return poll_until(fds, n, timeout_ms < 0 ? FOREVER :
			  now_ns + (uint64_t)timeout_ms * 1000000);
}

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t,
		 const sigset_t *mask)
{
	if (!on)
		return __real_ppoll(fds, n, t, mask);
	return poll_until(fds, n, t ? now_ns + to_ns(t) : FOREVER);
}

static long futex_wait(const atomic_uint *at, unsigned expected,
		       const struct timespec *t)
{
	if (__atomic_load_n((const unsigned *)at, __ATOMIC_SEQ_CST) != expected) {
		errno = EAGAIN;
		return -1;
	}
	wait_for(WAITS_FUTEX, at, t ? now_ns + to_ns(t) : FOREVER);
	if (self->woken)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

static long futex_wake(const void *at, int most)
{
	int n = 0;

	for (unsigned i = 0; i < actor_count && n < most; i++) {
		struct actor *a = &actors[i];

		if (!a->used || a->waits != WAITS_FUTEX || a->at != at ||
		    a->woken)
			continue;
		a->woken = true;
		n++;
	}
	if (world_draw(2))
		world_turn();
	return n;
}

long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (on && number == SYS_futex) {
		switch (a[1] & FUTEX_CMD_MASK) {
		case FUTEX_WAIT:
			return futex_wait((const atomic_uint *)a[0],
					  (unsigned)a[2],
					  (const struct timespec *)a[3]);
		case FUTEX_WAKE:
			return futex_wake((const void *)a[0], (int)a[2]);
		default:
			world_fail("futex operation %ld is not known here",
				   a[1]);
		}
	}
	/* A barrier of all threads: others may run before it. */
	if (on && number == SYS_membarrier)
		world_turn();
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
