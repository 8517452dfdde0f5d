/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for the next step of a fixed rate, or for an instant; used by the
 * node-types that pace samples (signal, file).
 *
 * A late caller stays on the grid of the first step: lateness below one period
 * makes one late step, each further whole period is a missed step. Deadlines
 * are kept in fractions of 2^-32 ns, so the grid does not drift away from the
 * asked rate.
 *
 * Kinds: `timerfd` sleeps in the kernel (no processor time, some 50 us late);
 * `tsc` sleeps until shortly before the deadline and spins over the rest,
 * which at short periods means that it spins all the time.
 */
#ifndef GATEWAY_NODE_SIGNAL_TIMER_H
#define GATEWAY_NODE_SIGNAL_TIMER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The pure part: no clock inside. */
struct timer_grid {
	unsigned __int128 period; /* ns << 32 */
	unsigned __int128 next;   /* first step that has not been waited for */
	bool running;             /* a step has been taken */
};

/* Steps at now + period, now + 2 period ...; `rate_hz` above 0. */
void timer_grid_start(struct timer_grid *g, double rate_hz, uint64_t now_ns);

static inline uint64_t timer_grid_next_ns(const struct timer_grid *g)
{
	/* Rounded up: a wait that ends here is not too early. */
	return (uint64_t)((g->next + UINT32_MAX) >> 32);
}

/*
 * Takes all steps that are due at `now_ns`; returns how many (0: none yet).
 * *late_ns is the distance to the first of them. The very first step is never
 * late: the grid begins with it when whoever waits came late (start-up).
 */
uint64_t timer_grid_advance(struct timer_grid *g, uint64_t now_ns,
			    uint64_t *late_ns);

enum timer_kind {
	TIMER_AUTO,    /* timerfd up to TIMER_AUTO_LIMIT_HZ, tsc above */
	TIMER_TIMERFD,
	TIMER_TSC,
};

#define TIMER_AUTO_LIMIT_HZ 2000.0

struct timer {
	enum timer_kind kind; /* never TIMER_AUTO */
	int fd;
	uint64_t armed_ns;    /* deadline that the descriptor is set to, 0: none */
	bool polled;          /* somebody waits for the descriptor */
	atomic_bool interrupted;
	struct timer_grid grid;
	/* The clock of the deadlines: the kernel's for timerfd, so that the two
	 * cannot drift apart; the TSC's for tsc. */
	uint64_t (*now_ns)(void);
	/* Sleeps about `ns`; 0 or -EINTR. Of the tsc kind; for tests. */
	int (*sleep)(struct timer *t, uint64_t ns);
};

/* `rate_hz` decides TIMER_AUTO. 0 or a negative errno; logs the cause. */
int timer_open(struct timer *t, enum timer_kind kind, double rate_hz);
void timer_close(struct timer *t);

/* Begins a grid now. */
void timer_start(struct timer *t, double rate_hz);

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
/* Takes that back; nobody waits meanwhile. */
void timer_rearm(struct timer *t);

/* Takes that back; while nobody waits, or from the thread that does. */
void timer_rearm(struct timer *t);

const char *timer_kind_name(enum timer_kind kind);
/* For CONFIG_ENUM, NULL terminated: "auto", "timerfd", "tsc". */
extern const char *const timer_kind_names[];

#endif
