/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for the next step of a fixed rate, or for an instant; node-types that pace samples
 * use it (signal, file).
 *
 * The steps lie on a grid that begins with the first step, also if the caller is late. The
 * timer makes up late steps without waiting, as long as a step is late by no more than a
 * bound; it leaves out later steps, which count as missed. It never leaves out a step
 * that is late by less than a period. So a bound of up to a period has no effect: the
 * late step is taken, and each further whole period is a missed step. Deadlines have
 * fractions of 2^-32 ns, so the grid does not drift from the rate.
 *
 * Kinds: `timerfd` sleeps in the kernel (no processor time, some 50 us late). `tsc` sleeps
 * until shortly before the deadline and spins for the rest; at short periods it spins
 * all the time. `auto` is timerfd where the steps are far enough apart (waiting.h), so
 * that it takes no processor from the threads that read the samples; otherwise it spins
 * like tsc, but sleeps while other threads need the processor.
 *
 * While `auto` spins, it runs turns of paths (base/turn.h) if its owner says so: then
 * one thread generates samples and passes on those that come, and needs no second
 * processor. In each wait it runs them at least once, and then again until shortly before the
 * deadline. Where they delay the steps it leaves them to their owners for a second, or up to
 * half a minute when that is found again and again.
 */
#ifndef GATEWAY_PART_TIMER_H
#define GATEWAY_PART_TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "gateway/base/waiting.h"

/* The pure part: no clock inside. */
struct timer_grid {
	unsigned __int128 period; /* ns << 32 */
	unsigned __int128 next;   /* first step that has not been waited for */
	unsigned __int128 taken;  /* when the step that was taken last was due */
	unsigned __int128 bound;  /* a step that is later than this is left out */
	bool running;             /* a step has been taken */
	bool forgiven;            /* nothing is made up for the next one */
	bool made_up;             /* the last one was late by a period or more */
};

/* Plans steps at now + period, now + 2 period ...; `rate_hz` above 0. Steps that are late by
 * up to `catch_up_ns` are made up. */
void timer_grid_start(struct timer_grid *g, double rate_hz, uint64_t catch_up_ns,
		      uint64_t now_ns);

static inline uint64_t timer_grid_next_ns(const struct timer_grid *g)
{
	/* Rounded up: a wait that ends here is not too early. */
	return (uint64_t)((g->next + UINT32_MAX) >> 32);
}

/* The time that was planned for the last step that was taken, by the clock of `now_ns`
 * below; not the time at which the waiting thread ran. 0 before the first step. */
static inline uint64_t timer_grid_taken_ns(const struct timer_grid *g)
{
	return (uint64_t)((g->taken + UINT32_MAX) >> 32);
}

/*
 * Takes the next step that is due at `now_ns` and not too late. Returns 1 plus the number of
 * steps that it left out before that one; 0: no step is due. *late_ns is how late the
 * first of all these steps is. The very first step is never late: if the caller comes
 * late (at start-up), the grid begins with its call.
 */
uint64_t timer_grid_advance(struct timer_grid *g, uint64_t now_ns,
			    uint64_t *late_ns);

/* The caller did not wait for a while on purpose (a pause): of all steps that are due at
 * the next call, only the last one is taken. */
static inline void timer_grid_forgive(struct timer_grid *g)
{
	g->forgiven = true;
}

enum timer_kind {
	TIMER_AUTO,    /* timerfd up to TIMER_AUTO_LIMIT_HZ, tsc that gives way above */
	TIMER_TIMERFD,
	TIMER_TSC,
};

#define TIMER_AUTO_LIMIT_HZ (1e9 / (double)WAITING_SLEEP_PERIOD_NS)

struct timer {
	enum timer_kind kind; /* never TIMER_AUTO */
	int fd;
	uint64_t armed_ns;    /* deadline that the descriptor is set to, 0: none */
	uint64_t catch_up_ns; /* of the grid; for timer_start(), 0 from timer_open() */
	bool polled;          /* a thread waits for the descriptor */
	bool gives_way;       /* tsc: sleeps while other threads need the processor */
	bool runs_turns;      /* set by the owner before a wait; see above */
	uint64_t alone_until_ns, alone_ns; /* no turns before that: they take too long; how
					    * long it was the last time */
	unsigned held_up;     /* steps that turns have delayed, less those that they have not */
	struct waiting waiting; /* of its spins */
	atomic_bool interrupted;
	struct timer_grid grid;
	/* The clock of the deadlines: the kernel's for timerfd, so that the two
	 * cannot drift apart; the TSC's for tsc. */
	uint64_t (*now_ns)(void);
	/* Sleeps about `ns`; 0 or -EINTR. Of the tsc kind; for tests. */
	int (*sleep)(struct timer *t, uint64_t ns);
};

/* `rate_hz` decides TIMER_AUTO; INFINITY: instants at any distance will be waited for, and
 * TIMER_AUTO sleeps over those that are far enough. 0 or a negative errno; logs the
 * cause. */
int timer_open(struct timer *t, enum timer_kind kind, double rate_hz);
void timer_close(struct timer *t);

/* Begins a new grid at the present time. */
void timer_start(struct timer *t, double rate_hz);

/* For keys `origin`: the time that was planned for a step, or when it was taken. */
enum origin_mode {
	ORIGIN_ACTUAL,
	ORIGIN_PLANNED,
};
extern const char *const origin_mode_names[];

/*
 * The wall clock at `planned_ns` of t->now_ns(), a time that has come; *actual is
 * the wall clock now.
 */
struct timespec timer_planned_time(const struct timer *t, uint64_t planned_ns,
				   struct timespec *actual);

/* For keys `catch_up`, in seconds. */
#define TIMER_CATCH_UP_KEY(offset) \
	{ "catch_up", CONFIG_REAL, offset, "0.0001", .min = 0, .max = 3600, \
	  .help = "Steps that are late by up to so many seconds are made up; 0 " \
		  "or less than a period: of late ones only the last" }
void timer_set_catch_up(struct timer *t, double seconds);

/*
 * A descriptor (owned by the timer) that is readable when the next step is due; for `tsc` a
 * little earlier, so that timer_wait_step() spins for the rest. After the first call the
 * timer sets it for every step. `always`: there are no steps to wait for, the
 * descriptor is always readable.
 */
int timer_poll_fd(struct timer *t, bool always);

/*
 * Waits for the next step. Returns the steps that have passed since the last
 * one taken, at least 1 (more: they were missed), or -EINTR.
 */
int64_t timer_wait_step(struct timer *t, uint64_t *late_ns);

/* The time since the last step that was taken was due. */
static inline uint64_t timer_step_age_ns(const struct timer *t)
{
	return t->now_ns() - timer_grid_taken_ns(&t->grid);
}

/* Waits until `deadline_ns` of t->now_ns(). 0 or -EINTR. */
int timer_wait_until(struct timer *t, uint64_t deadline_ns);

/*
 * For callers that wait for the descriptor and have no grid. timer_arm(): the descriptor is
 * readable at `deadline_ns`, for `tsc` a little earlier (0: at once). timer_is_due():
 * whether a wait for `deadline_ns` would not sleep any more.
 */
void timer_arm(struct timer *t, uint64_t deadline_ns);
bool timer_is_due(const struct timer *t, uint64_t deadline_ns);

/* Ends the present wait and all later ones at once. Any thread. */
void timer_interrupt(struct timer *t);
/* Undoes timer_interrupt(). Called while no thread waits, or by the thread that waits. */
void timer_rearm(struct timer *t);

const char *timer_kind_name(enum timer_kind kind);
/* For CONFIG_ENUM, NULL terminated: "auto", "timerfd", "tsc". */
extern const char *const timer_kind_names[];

#endif
