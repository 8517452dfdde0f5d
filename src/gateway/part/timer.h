/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for the next step of a fixed rate, or for an instant; used by the
 * node-types that pace samples (signal, file).
 *
 * A late caller stays on the grid of the first step. It makes up what it is late
 * with, each step at once, as long as the step is late by no more than a bound;
 * those later than that are left out, they are missed. A step that is late by less
 * than a period is never left out, so a bound up to a period is none: one late
 * step, and each further whole period is a missed one. Deadlines are kept in
 * fractions of 2^-32 ns, so the grid does not drift away from the asked rate.
 *
 * Kinds: `timerfd` sleeps in the kernel (no processor time, some 50 us late);
 * `tsc` sleeps until shortly before the deadline and spins over the rest,
 * which at short periods means that it spins all the time. `auto` sleeps as timerfd
 * where the steps are far enough apart (waiting.h), so that no processor is taken
 * from who reads them; else it spins as tsc does, but sleeps while others need the
 * processor.
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

/* Steps at now + period, now + 2 period ...; `rate_hz` above 0. Those that are late
 * by up to `catch_up_ns` are made up. */
void timer_grid_start(struct timer_grid *g, double rate_hz, uint64_t catch_up_ns,
		      uint64_t now_ns);

static inline uint64_t timer_grid_next_ns(const struct timer_grid *g)
{
	/* Rounded up: a wait that ends here is not too early. */
	return (uint64_t)((g->next + UINT32_MAX) >> 32);
}

/* When the step that was taken last was due, by the clock of `now_ns` below: the time
 * that was planned for it, not the time at which the waiting thread ran. 0 before the
 * first step. */
static inline uint64_t timer_grid_taken_ns(const struct timer_grid *g)
{
	return (uint64_t)((g->taken + UINT32_MAX) >> 32);
}

/*
 * Takes the next step that is due at `now_ns` and not too late. Returns 1 more than
 * were left out before it; 0: none is due yet. *late_ns is the distance to the
 * first of them all, so it is the longest when there was a pause. The very first
 * step is never late: the grid begins with it when whoever waits came late
 * (start-up).
 */
uint64_t timer_grid_advance(struct timer_grid *g, uint64_t now_ns,
			    uint64_t *late_ns);

/* Who waits was away on purpose: of all that is due by the next step only the last
 * one is taken. */
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
	bool polled;          /* somebody waits for the descriptor */
	bool gives_way;       /* tsc: it sleeps while others need the processor */
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

/* Begins a grid now. */
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
 * A descriptor that is readable when the next step is due; for `tsc` a little
 * earlier, so that timer_wait_step() spins over the rest. From the first call
 * on it is set anew with every step. `always`: there are no steps to wait for,
 * it is readable for good.
 */
int timer_poll_fd(struct timer *t, bool always);

/*
 * Waits for the next step. Returns the steps that have passed since the last
 * one taken, at least 1 (more: they were missed), or -EINTR.
 */
int64_t timer_wait_step(struct timer *t, uint64_t *late_ns);

/* How long ago the step that was taken last was due, by now. */
static inline uint64_t timer_step_age_ns(const struct timer *t)
{
	return t->now_ns() - timer_grid_taken_ns(&t->grid);
}

/* Waits until `deadline_ns` of t->now_ns(). 0 or -EINTR. */
int timer_wait_until(struct timer *t, uint64_t deadline_ns);

/*
 * For who waits for the descriptor and has no grid: it is readable when
 * `deadline_ns` has come, for `tsc` a little earlier (0: at once). Whether it has
 * come so far that a wait would not sleep.
 */
void timer_arm(struct timer *t, uint64_t deadline_ns);
bool timer_is_due(const struct timer *t, uint64_t deadline_ns);

/* Ends the present wait and all later ones, from any thread. */
void timer_interrupt(struct timer *t);
/* Takes that back; while nobody waits, or from the thread that does. */
void timer_rearm(struct timer *t);

const char *timer_kind_name(enum timer_kind kind);
/* For CONFIG_ENUM, NULL terminated: "auto", "timerfd", "tsc". */
extern const char *const timer_kind_names[];

#endif
