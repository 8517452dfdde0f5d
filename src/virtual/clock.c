/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock and the progress thread of the adapter, as the linker wraps them; see clock.h.
 *
 * The thread's function is the product's. It is not started as a thread: virtual_progress()
 * calls it as if the thread had just been woken. When it is about to sleep a second time it
 * is left by a jump; nothing is held where it sleeps.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "hca/run/progress.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "virtual/clock.h"
#include "virtual/fail.h"

void __wrap_clock_init(void);
uint64_t __wrap_clock_monotonic_ns_slow(void);
uint64_t __wrap_clock_now_ns_outside(void);
int __wrap_clock_gettime(clockid_t of, struct timespec *t);
int __wrap_getrusage(int who, struct rusage *r);
int __wrap_sched_yield(void);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_join(pthread_t t, void **value);
int __wrap_pthread_setname_np(pthread_t t, const char *name);
int __wrap_prctl(int option, ...);
bool __wrap_hca_thread_is_ready(pid_t tid);
bool __wrap_progress_is_self(void);
void __real_progress_kick(void);
void __wrap_progress_kick(void);
void __real_progress_set_tick(int (*fn)(void));
void __wrap_progress_set_tick(int (*fn)(void));
void __real_progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
void __wrap_progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns);
void __real_progress_timer_hasten(struct progress_timer *t, uint64_t deadline_ns);
void __wrap_progress_timer_hasten(struct progress_timer *t, uint64_t deadline_ns);
int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int max,
			const struct timespec *wait, const sigset_t *mask);
uint64_t __real_wakeup_drain(int fd);
uint64_t __wrap_wakeup_drain(int fd);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

/* ---- the clock ---- */

static uint64_t now_ns = NSEC_PER_SEC;

uint64_t virtual_now_ns(void)
{
	return now_ns;
}

void virtual_set_ns(uint64_t ns)
{
	expect(ns >= now_ns);
	now_ns = ns;
}

/* Without a calibration each reader asks the functions below. */
void __wrap_clock_init(void)
{
}

uint64_t __wrap_clock_monotonic_ns_slow(void)
{
	return now_ns;
}

uint64_t __wrap_clock_now_ns_outside(void)
{
	return now_ns;
}

/* Also the processor time of a thread: it never waits for one. */
int __wrap_clock_gettime(clockid_t of, struct timespec *t)
{
	(void)of;
	*t = timespec_from_ns(now_ns);
	return 0;
}

int __wrap_getrusage(int who, struct rusage *r)
{
	(void)who;
	*r = (struct rusage){ 0 };
	return 0;
}

int __wrap_sched_yield(void)
{
	return 0;
}

/* ---- the progress thread ---- */

static void *(*thread)(void *);
static bool inside, woken;
static bool kicked = true;
static bool posted; /* a kick that the thread has not read; nothing else wakes it from outside */
/* What it reads kicks from, once it was told; then kicks need no system call. */
static int kick_fd = -1;
static jmp_buf asleep;
static int (*tick)(void);
static uint64_t tick_ns = UINT64_MAX; /* of its next tick */
static uint64_t next_ns; /* when it wakes by itself */

void __wrap_progress_kick(void)
{
	kicked = posted = true;
	if (kick_fd < 0)
		__real_progress_kick();
}

/* As in arm(), which takes the caller for the thread itself. */
static void armed_for(uint64_t deadline_ns)
{
	if (!inside && deadline_ns < next_ns)
		__wrap_progress_kick();
}

void __wrap_progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns)
{
	__real_progress_timer_arm(t, deadline_ns);
	armed_for(deadline_ns);
}

void __wrap_progress_timer_hasten(struct progress_timer *t, uint64_t deadline_ns)
{
	__real_progress_timer_hasten(t, deadline_ns);
	armed_for(deadline_ns);
}

/* The only thread that the adapter has here. */
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	(void)attr;
	(void)arg;
	expect(!thread);
	thread = fn;
	*t = pthread_self();
	return 0;
}

int __wrap_pthread_join(pthread_t t, void **value)
{
	(void)t;
	(void)value;
	thread = NULL;
	return 0;
}

/* It asks for its timer slack each time that it is entered. */
int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

int __wrap_pthread_setname_np(pthread_t t, const char *name)
{
	(void)t;
	(void)name;
	return 0;
}

/* In virtual time no thread loses its processor. */
bool __wrap_hca_thread_is_ready(pid_t tid)
{
	(void)tid;
	return false;
}

bool __wrap_progress_is_self(void)
{
	return inside;
}

/* It ticks before it sleeps. Where it is entered it has done that, and its time may be over. */
static int tick_behind(void)
{
	int wait_ms;

	if (woken)
		return virtual_now_ns() >= tick_ns ? 0 : -1;
	wait_ms = tick();
	tick_ns = wait_ms < 0 ? UINT64_MAX : virtual_now_ns() + (uint64_t)wait_ms * 1000000;
	return wait_ms;
}

void __wrap_progress_set_tick(int (*fn)(void))
{
	tick = fn;
	__real_progress_set_tick(tick_behind);
}

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int max,
			const struct timespec *wait, const sigset_t *mask)
{
	int n;

	(void)mask;
	if (!woken) {
		next_ns = MIN(wait ? now_ns + timespec_to_ns(*wait) : UINT64_MAX, tick_ns);
		longjmp(asleep, 1);
	}
	woken = false;
	if (!posted)
		return 0;
	posted = false;
	if (kick_fd >= 0) {
		events[0] = (struct epoll_event){ .events = EPOLLIN,
						  .data.u64 = (uint32_t)kick_fd };
		return 1;
	}
	n = epoll_wait(fd, events, max, 0);
	if (n == 1)
		kick_fd = (int)(uint32_t)events[0].data.u64;
	return n;
}

uint64_t __wrap_wakeup_drain(int fd)
{
	return fd == kick_fd ? 0 : __real_wakeup_drain(fd);
}

uint64_t virtual_progress(void)
{
	expect(thread && !inside);
	if (!kicked && virtual_now_ns() < next_ns)
		return next_ns;
	inside = woken = true;
	kicked = false;
	if (!setjmp(asleep))
		thread(NULL);
	inside = false;
	return next_ns;
}

/* The only thread keeps its time slices, which the progress thread would change. More
 * arguments are taken along than there may be, as the C library does it. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;

	if (number == SYS_sched_getattr) {
		errno = ENOSYS;
		return -1;
	}
	va_start(ap, number);
	for (size_t i = 0; i < ARRAY_SIZE(arg); i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* ---- the addresses of the host, which need no real interface ---- */

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static char name[] = "lo";
	static struct sockaddr_in address = { .sin_family = AF_INET };
	static struct ifaddrs one = {
		.ifa_name = name,
		.ifa_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK,
		.ifa_addr = (struct sockaddr *)&address,
	};

	address.sin_addr.s_addr = htonl(0x0a4d00ff);
	*list = &one;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}
