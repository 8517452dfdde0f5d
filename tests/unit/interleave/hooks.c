/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the compiler calls in code built for its thread sanitizer, and
 * replacements for functions of the system and the progress thread (renamed by
 * meson.build).
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "check.h"
#include "hca/object/cq.h"
#include "hca/run/progress.h"
#include "stand_in.h"
#include "transport/shm/link/state.h"

#define PUBLIC __attribute__((visibility("default"), used))

/* The compiler's headers declare no prototypes of these. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

PUBLIC void __tsan_init(void) {}
PUBLIC void __tsan_func_entry(void *pc) {}
PUBLIC void __tsan_func_exit(void) {}

#define PLAIN(n)                                                              \
	PUBLIC void __tsan_read##n(void *a) { check_plain(a, n, false); }         \
	PUBLIC void __tsan_write##n(void *a) { check_plain(a, n, true); }         \
	PUBLIC void __tsan_volatile_read##n(void *a) { check_plain(a, n, false); }  \
	PUBLIC void __tsan_volatile_write##n(void *a) { check_plain(a, n, true); }  \
	PUBLIC void __tsan_unaligned_read##n(void *a) { check_plain(a, n, false); } \
	PUBLIC void __tsan_unaligned_write##n(void *a) { check_plain(a, n, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
PUBLIC void __tsan_read_range(void *a, size_t n) { check_plain(a, n, false); }
PUBLIC void __tsan_write_range(void *a, size_t n) { check_plain(a, n, true); }

#define ATOMIC(bits)                                                          \
	PUBLIC uint##bits##_t __tsan_atomic##bits##_load(                     \
		const volatile void *a, int order)                            \
	{                                                                     \
		return (uint##bits##_t)check_atomic(CHECK_LOAD, (void *)a,    \
						    bits / 8, 0, NULL, order); \
	}                                                                     \
	PUBLIC void __tsan_atomic##bits##_store(volatile void *a,             \
						uint##bits##_t v, int order)  \
	{                                                                     \
		check_atomic(CHECK_STORE, (void *)a, bits / 8, v, NULL, order); \
	}                                                                     \
	CHANGE(bits, exchange, CHECK_SWAP, v)                                 \
	CHANGE(bits, fetch_add, CHECK_ADD, v)                                 \
	CHANGE(bits, fetch_sub, CHECK_ADD, (uint##bits##_t)(0 - v))           \
	CHANGE(bits, fetch_and, CHECK_AND, v)                                 \
	CHANGE(bits, fetch_or, CHECK_OR, v)                                   \
	PUBLIC int __tsan_atomic##bits##_compare_exchange_strong(             \
		volatile void *a, void *expected, uint##bits##_t v, int order, \
		int order_else)                                               \
	{                                                                     \
		uint##bits##_t *e = expected;                                 \
		uint64_t want = *e;                                           \
		uint##bits##_t found = (uint##bits##_t)check_atomic(          \
			CHECK_COMPARE, (void *)a, bits / 8, v, &want, order); \
		int same = found == *e;                                       \
                                                                              \
		*e = found;                                                   \
		return same;                                                  \
	}                                                                     \
	/* The name that clang calls. */                                              \
	PUBLIC uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(     \
		volatile void *a, uint##bits##_t expected, uint##bits##_t v,  \
		int order, int order_else)                                    \
	{                                                                     \
		uint64_t want = expected;                                     \
                                                                              \
		return (uint##bits##_t)check_atomic(                          \
			CHECK_COMPARE, (void *)a, bits / 8, v, &want, order); \
	}                                                                     \
	PUBLIC int __tsan_atomic##bits##_compare_exchange_weak(               \
		volatile void *a, void *expected, uint##bits##_t v, int order, \
		int order_else)                                               \
	{                                                                     \
		return __tsan_atomic##bits##_compare_exchange_strong(         \
			a, expected, v, order, order_else);                   \
	}
#define CHANGE(bits, name, op, value)                                         \
	PUBLIC uint##bits##_t __tsan_atomic##bits##_##name(                   \
		volatile void *a, uint##bits##_t v, int order)                \
	{                                                                     \
		return (uint##bits##_t)check_atomic(op, (void *)a, bits / 8,  \
						    value, NULL, order);      \
	}
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

PUBLIC void __tsan_atomic_thread_fence(int order)
{
	check_fence(order);
}

/* Orders against the compiler only: nothing to do. */
PUBLIC void __tsan_atomic_signal_fence(int order) {}

PUBLIC void *__tsan_memcpy(void *to, const void *from, size_t n)
{
	return stand_in_memcpy(to, from, n);
}

PUBLIC void *__tsan_memmove(void *to, const void *from, size_t n)
{
	check_plain(from, n, false);
	check_plain(to, n, true);
	return memmove(to, from, n);
}

PUBLIC void *__tsan_memset(void *to, int c, size_t n)
{
	check_plain(to, n, true);
	return memset(to, c, n);
}

/* ---- replacements ---- */
void *stand_in_memcpy(void *to, const void *from, size_t n)
{
	check_plain(from, n, false);
	check_plain(to, n, true);
	return memcpy(to, from, n);
}

long stand_in_syscall(long number, ...)
{
	if (number != SYS_membarrier) {
		errno = ENOSYS;
		return -1;
	}
	check_membarrier();
	return 0;
}

int stand_in_yield(void)
{
	check_wait();
	return 0;
}

int stand_in_usleep(unsigned us)
{
	check_wait();
	return 0;
}

uint64_t stand_in_kicks, stand_in_events;
uint64_t stand_in_now = 1;

void stand_in_kick(void)
{
	check_note("wakes the progress thread");
	stand_in_kicks++;
}

void stand_in_wake(struct shm_link *l)
{
	check_note("wakes the peer");
	stand_in_kicks++;
}

void stand_in_notify(struct hca_cq *cq)
{
	check_note("raises an event");
	stand_in_events++;
}

int stand_in_access_copy(struct shm_link *l, bool read, struct iovec *near,
			 int near_count, struct iovec *far, int far_count,
			 uint64_t length)
{
	if (read)
		stand_in_memcpy(near->iov_base, far->iov_base, length);
	else
		stand_in_memcpy(far->iov_base, near->iov_base, length);
	return 0;
}

void stand_in_hca_yield(bool (*peer_ran_on)(unsigned cpu))
{
	stand_in_yield();
}

uint64_t stand_in_now_ns(void)
{
	return stand_in_now;
}

static struct progress_timer *armed[4];

void stand_in_timer_arm(struct progress_timer *t, uint64_t deadline_ns)
{
	unsigned place = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (armed[i] == t)
			return;
		if (!armed[i])
			place = i;
	}
	armed[place] = t;
}

bool stand_in_timer_take(struct progress_timer *t)
{
	for (unsigned i = 0; i < 4; i++) {
		if (armed[i] == t) {
			armed[i] = NULL;
			return true;
		}
	}
	return false;
}

void stand_in_timer_disarm(struct progress_timer *t)
{
	stand_in_timer_take(t);
}

void stand_in_timers_forget(void)
{
	memset(armed, 0, sizeof(armed));
}
