/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TSC calibration, readings of the system's clocks, and publication of the record.
 *
 * The frequency is measured against CLOCK_MONOTONIC rather than read from CPUID
 * leaf 15H, which is absent or incomplete on many processors and on most
 * virtual machines. CLOCK_MONOTONIC (not _RAW) is the reference so that
 * durations agree with what clock_gettime() reports to other programs.
 */
#include "util/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "util/clock_servo.h"
#include "util/settings.h"
#include "util/spin.h"

#define RELAXED memory_order_relaxed
#define NO_RATE (UINT64_C(1) << 32)

/* Attempts for a reading; the one with the smallest uncertainty is taken. */
#define MONO_TRIES 8
#define WALL_TRIES 4
/* How long before its beginning a record is published. */
#define LEAD_NS 10000000
/* After that readers take readings themselves, if the keeping thread does not. */
#define ABSENT_NS 100000000

struct clock_state clock_state = { .tick_hz = NSEC_PER_SEC, .mult = NO_RATE };
struct clock_latch clock_latch = {
	.shown[0] = { .mult = NO_RATE, .span = CLOCK_NO_END, .late_mult = NO_RATE,
		      .due = CLOCK_NO_END },
};

static struct {
	struct clock_servo servo; /* it and the following: under `lock` */
	enum clock_wall wall;
	struct spin lock;
	_Atomic int wall_id;      /* clockid_t */
	atomic_uint keepers;
} state = { .wall_id = CLOCK_REALTIME };

static const char *source = "clock_gettime (not initialised)";

static uint64_t read_clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return timespec_to_ns(t);
}

uint64_t clock_monotonic_ns_slow(void)
{
	return read_clock_ns(CLOCK_MONOTONIC);
}

/* Publishes a record. Under the lock, or before there are readers. Unused on processors
 * without a counter. */
__attribute__((unused)) static void show(const struct clock_record *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct clock_shown *c = &clock_latch.shown[i];

		/* The lowest bit of `seq` sends readers to the other copy; they see
		 * all that was written to it. */
		atomic_store_explicit(&clock_latch.seq,
				      atomic_load_explicit(&clock_latch.seq,
							   RELAXED) + 1,
				      memory_order_release);
		atomic_thread_fence(memory_order_release);
		atomic_store_explicit(&c->ticks, r->line.ticks, RELAXED);
		atomic_store_explicit(&c->ns, r->line.ns, RELAXED);
		atomic_store_explicit(&c->mult, r->line.mult, RELAXED);
		atomic_store_explicit(&c->span, r->span, RELAXED);
		atomic_store_explicit(&c->wall_ns, r->wall_ns, RELAXED);
		atomic_store_explicit(&c->due, r->due, RELAXED);
		atomic_store_explicit(&c->before_ticks, r->before.ticks, RELAXED);
		atomic_store_explicit(&c->before_ns, r->before.ns, RELAXED);
		atomic_store_explicit(&c->before_mult, r->before.mult, RELAXED);
		atomic_store_explicit(&c->late_mult, r->late_mult, RELAXED);
	}
}

/* The published record; returns the ticks, which are read after it. */
static uint64_t read_shown(struct clock_record *r)
{
	uint64_t seq, ticks;

	do {
		const struct clock_shown *c;

		seq = atomic_load_explicit(&clock_latch.seq, memory_order_acquire);
		c = &clock_latch.shown[seq & 1];
		r->line.ticks = atomic_load_explicit(&c->ticks, RELAXED);
		r->line.ns = atomic_load_explicit(&c->ns, RELAXED);
		r->line.mult = atomic_load_explicit(&c->mult, RELAXED);
		r->span = atomic_load_explicit(&c->span, RELAXED);
		r->wall_ns = atomic_load_explicit(&c->wall_ns, RELAXED);
		r->due = atomic_load_explicit(&c->due, RELAXED);
		r->before.ticks = atomic_load_explicit(&c->before_ticks, RELAXED);
		r->before.ns = atomic_load_explicit(&c->before_ns, RELAXED);
		r->before.mult = atomic_load_explicit(&c->before_mult, RELAXED);
		r->late_mult = atomic_load_explicit(&c->late_mult, RELAXED);
		ticks = clock_ticks();
		atomic_thread_fence(memory_order_acquire);
	} while (seq != atomic_load_explicit(&clock_latch.seq, RELAXED));
	return ticks;
}

#if defined(__x86_64__)
static const char *tsc_refusal(void)
{
	static const struct setting wanted = {
		.env = "BUSBAR_TSC", .fallback = "1", .type = SETTING_BOOL,
	};
	bool use = true;
	unsigned a, b, c, d;

	settings_load(&wanted, 1, &use);
	if (!use)
		return "clock_gettime (BUSBAR_TSC=0)";
	if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(d & (1u << 27)))
		return "clock_gettime (no rdtscp)";
	if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
		return "clock_gettime (TSC not invariant)";
	return NULL;
}

/* Reads ticks and CLOCK_MONOTONIC, and how far apart the two may be. */
static void read_mono(struct clock_reading *r, unsigned tries)
{
	uint64_t best = UINT64_MAX;
	uint32_t aux;

	for (unsigned i = 0; i < tries; i++) {
		uint64_t before = __builtin_ia32_rdtscp(&aux);
		uint64_t t = read_clock_ns(CLOCK_MONOTONIC);
		uint64_t after = __builtin_ia32_rdtscp(&aux);

		if (after - before < best) {
			best = after - before;
			r->ticks = before + best / 2;
			r->mono_ns = t;
		}
	}
	r->uncertainty_ns = clock_ticks_to_ns(best / 2) + 1;
}

/* Bounds of the wall clock minus CLOCK_MONOTONIC, read before and after it. */
static void read_wall(struct clock_reading *r, unsigned tries)
{
	clockid_t id = atomic_load_explicit(&state.wall_id, RELAXED);
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < tries; i++) {
		uint64_t before = read_clock_ns(CLOCK_MONOTONIC);
		uint64_t wall = read_clock_ns(id);
		uint64_t after = read_clock_ns(CLOCK_MONOTONIC);

		if (after - before < best) {
			best = after - before;
			r->wall_low_ns = (int64_t)(wall - after);
			r->wall_high_ns = (int64_t)(wall - before);
		}
	}
}

static void calibrate_tsc(void)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	struct clock_reading first = { 0 }, r = { 0 };

	read_mono(&first, 2 * MONO_TRIES);
	nanosleep(&pause, NULL);
	read_mono(&r, 2 * MONO_TRIES);
	if (r.ticks <= first.ticks || r.mono_ns <= first.mono_ns) {
		source = "clock_gettime (TSC did not advance)";
		return;
	}
	clock_state.tick_hz = (uint64_t)((unsigned __int128)(r.ticks - first.ticks) *
					 NSEC_PER_SEC /
					 (r.mono_ns - first.mono_ns));
	clock_state.mult = (uint64_t)(((unsigned __int128)NSEC_PER_SEC << 32) /
				      clock_state.tick_hz);
	/* It was counted in ticks before the rate was known. */
	r.uncertainty_ns = clock_ticks_to_ns(r.uncertainty_ns);
	read_wall(&r, 8 * WALL_TRIES);
	clock_servo_start(&state.servo, clock_state.tick_hz, clock_state.mult, &r);
	show(&state.servo.record);
	clock_state.tsc = true;
	source = "tsc";
}
#endif

/* In a forked child: the thread that held the lock at the fork may not exist. */
static void clock_forked(void)
{
	state.lock = (struct spin){ 0 };
}

static void init_once(void)
{
#if defined(__x86_64__)
	const char *why = tsc_refusal();

	pthread_atfork(NULL, NULL, clock_forked);
	if (!why) {
		calibrate_tsc();
		return;
	}
	source = why;
#else
	pthread_atfork(NULL, NULL, clock_forked);
	source = "clock_gettime (no TSC on this processor)";
#endif
}

void clock_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_once);
}

const char *clock_source(void)
{
	return source;
}

/* Takes a reading, if one is due, and publishes the new record. Under the lock. */
static void follow(void)
{
#if defined(__x86_64__)
	uint64_t lead = clock_ns_to_ticks(LEAD_NS);

	/* If this thread lost its processor after the reading, the record would be
	 * published too late: it takes another reading. */
	for (int i = 0; i < 3; i++) {
		struct clock_servo next = state.servo;
		struct clock_reading r = { 0 };

		if (!clock_record_is_due(&next.record, clock_ticks()))
			return;
		read_mono(&r, MONO_TRIES);
		read_wall(&r, WALL_TRIES);
		if (!clock_servo_take(&next, &r, lead))
			return;
		if (clock_ticks() - r.ticks >= lead / 2)
			continue;
		state.servo = next;
		show(&next.record);
		return;
	}
#endif
}

uint64_t clock_now_ns_outside(void)
{
	struct clock_record r;
	uint64_t ticks = read_shown(&r);

	/* The counter began again, and there may be no thread that keeps the clock. */
	if (unlikely(ticks < r.before.ticks) && spin_trylock(&state.lock)) {
		follow();
		spin_unlock(&state.lock);
		ticks = read_shown(&r);
	}
	return clock_record_at(&r, ticks);
}

void clock_keep_begin(void)
{
	atomic_fetch_add(&state.keepers, 1);
	clock_keep();
}

void clock_keep_end(void)
{
	atomic_fetch_sub(&state.keepers, 1);
}

uint64_t clock_keep(void)
{
	struct clock_record r;
	uint64_t ticks;

	if (!clock_state.tsc)
		return NSEC_PER_SEC;
	if (spin_trylock(&state.lock)) {
		follow();
		spin_unlock(&state.lock);
	}
	ticks = read_shown(&r);
	return clock_record_is_due(&r, ticks) ? 0 : clock_ticks_to_ns(r.due - ticks);
}

void clock_set_wall(enum clock_wall wall)
{
	spin_lock(&state.lock);
	if (state.wall != wall) {
		state.wall = wall;
		atomic_store(&state.wall_id, wall == CLOCK_WALL_TAI ?
						     CLOCK_TAI : CLOCK_REALTIME);
#if defined(__x86_64__)
		if (clock_state.tsc) {
			struct clock_reading r = { 0 };

			read_wall(&r, 8 * WALL_TRIES);
			clock_servo_set_wall(&state.servo, r.wall_low_ns,
					     r.wall_high_ns);
			show(&state.servo.record);
		}
#endif
	}
	spin_unlock(&state.lock);
}

void clock_get_status(struct clock_status *out)
{
	const struct clock_servo *s = &state.servo;

	spin_lock(&state.lock);
	*out = (struct clock_status){
		.wall = state.wall == CLOCK_WALL_TAI ? "CLOCK_TAI" :
						       "CLOCK_REALTIME",
		.offset_ns = s->offset_ns,
		.uncertainty_ns = s->uncertainty_ns,
		.offset_max_ns = s->offset_max_ns,
		.rate_ppb = clock_state.tsc ?
			clock_servo_rate_ppb(s, clock_state.mult) : 0,
		.readings = s->readings,
		.steps = s->steps,
		.jumps = s->jumps,
		.step_ns = s->step_ns,
		.jump_ns = s->jump_ns,
	};
	spin_unlock(&state.lock);
}

/* Is a reading due that no thread takes: none keeps the clock, or it is absent? */
static bool is_neglected(uint64_t ticks, uint64_t due)
{
	uint64_t patience = atomic_load_explicit(&state.keepers, RELAXED) ?
				    clock_ns_to_ticks(ABSENT_NS) : 0;

	return ticks - due >= patience;
}

static struct timespec wall_neglected(void)
{
	struct clock_record r;
	uint64_t ticks;

	/* Another thread takes a reading, and may have lost its processor. */
	if (!spin_trylock(&state.lock))
		return timespec_from_ns(read_clock_ns(
			atomic_load_explicit(&state.wall_id, RELAXED)));
	follow();
	spin_unlock(&state.lock);
	ticks = read_shown(&r);
	return timespec_from_ns(clock_record_at(&r, ticks) + (uint64_t)r.wall_ns);
}

struct timespec clock_realtime(void)
{
	uint64_t seq, ticks, start, ns, mult, span, due;
	int64_t wall_ns;

	if (unlikely(!clock_state.tsc))
		return timespec_from_ns(read_clock_ns(
			atomic_load_explicit(&state.wall_id, RELAXED)));
	do {
		const struct clock_shown *c;

		seq = atomic_load_explicit(&clock_latch.seq, memory_order_acquire);
		c = &clock_latch.shown[seq & 1];
		start = atomic_load_explicit(&c->ticks, RELAXED);
		ns = atomic_load_explicit(&c->ns, RELAXED);
		mult = atomic_load_explicit(&c->mult, RELAXED);
		span = atomic_load_explicit(&c->span, RELAXED);
		wall_ns = atomic_load_explicit(&c->wall_ns, RELAXED);
		due = atomic_load_explicit(&c->due, RELAXED);
		ticks = clock_ticks();
		atomic_thread_fence(memory_order_acquire);
	} while (unlikely(seq != atomic_load_explicit(&clock_latch.seq, RELAXED)));
	if (unlikely((int64_t)(ticks - due) >= 0 && is_neglected(ticks, due)))
		return wall_neglected();
	/* After the record's end the line is continued: that is closer to the system's
	 * clock than the slower monotonic clock. */
	if (unlikely(ticks - start >= span && ticks < start))
		ns = clock_now_ns_outside();
	else
		ns += (uint64_t)(((unsigned __int128)(ticks - start) * mult) >> 32);
	return timespec_from_ns(ns + (uint64_t)wall_ns);
}
