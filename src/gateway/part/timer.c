/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for steps and instants; see timer.h. */
#define LOG_ROOM "gateway/timer"
#include "gateway/part/timer.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "gateway/base/turn.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/spin.h"

/*
 * What `tsc` leaves to spinning: more than the kernel's timers are usually
 * late, so that a sleep does not cost the step.
 */
#define SPIN_NS 250000

/* A turn that finds no work, or one sample, takes less. */
#define TURN_NS 1000
/* One step in HELD_UP_WEIGHT may be late because of turns; and four thousand in a row, in
 * which they work off what was left behind by gaps. */
#define HELD_UP_WEIGHT 4
#define HELD_UP_MOST 16384
#define ALONE_LAST_NS (32 * NSEC_PER_SEC)

/* Two readings within this are of one instant. */
#define SAME_INSTANT_NS 1000

const char *const timer_kind_names[] = {
	[TIMER_AUTO] = "auto",
	[TIMER_TIMERFD] = "timerfd",
	[TIMER_TSC] = "tsc",
	NULL,
};

const char *const origin_mode_names[] = {
	[ORIGIN_ACTUAL] = "actual",
	[ORIGIN_PLANNED] = "planned",
	NULL,
};

struct timespec timer_planned_time(const struct timer *t, uint64_t planned_ns,
				   struct timespec *actual)
{
	uint64_t now;

	/* Both clocks at one instant, unless the host is against it. */
	for (int tries = 0; tries < 4; tries++) {
		now = t->now_ns();
		*actual = clock_realtime();
		if (likely(t->now_ns() - now < SAME_INSTANT_NS))
			break;
	}
	return timespec_from_ns(timespec_to_ns(*actual) - (now - planned_ns));
}

const char *timer_kind_name(enum timer_kind kind)
{
	return timer_kind_names[kind];
}

void timer_grid_start(struct timer_grid *g, double rate_hz, uint64_t catch_up_ns,
		      uint64_t now_ns)
{
	/* In two parts: a double holds 2^-32 ns of short periods only. */
	double period_ns = 1e9 / rate_hz;
	uint64_t whole = (uint64_t)period_ns;
	double part = (period_ns - (double)whole) * 0x1p32;

	g->period = ((unsigned __int128)whole << 32) + (uint64_t)part;
	if (g->period == 0)
		g->period = 1;
	g->next = ((unsigned __int128)now_ns << 32) + g->period;
	g->taken = 0;
	g->bound = (unsigned __int128)catch_up_ns << 32;
	if (g->bound <= g->period)
		g->bound = g->period - 1;
	g->running = g->forgiven = g->made_up = false;
}

uint64_t timer_grid_advance(struct timer_grid *g, uint64_t now_ns,
			    uint64_t *late_ns)
{
	/* Behind all grid points that round up to `now_ns`. */
	unsigned __int128 now = (unsigned __int128)now_ns << 32;
	unsigned __int128 bound = g->bound, late;
	uint64_t left_out = 0;

	*late_ns = 0;
	if (now < g->next)
		return 0;
	if (unlikely(!g->running)) {
		g->running = true;
		if (now - g->next >= g->period)
			g->next = now;
	}
	*late_ns = now_ns - (uint64_t)(g->next >> 32);
	if (unlikely(g->forgiven))
		bound = g->period - 1;
	g->forgiven = false;
	late = now - g->next;
	if (unlikely(late > bound)) {
		left_out = (uint64_t)((late - bound - 1) / g->period) + 1;
		late -= left_out * g->period;
	}
	g->made_up = late >= g->period;
	g->taken = g->next + left_out * g->period;
	g->next += (left_out + 1) * g->period;
	return left_out + 1;
}

static void arm(struct timer *t, uint64_t ns, int flags)
{
	struct itimerspec when = { .it_value = timespec_from_ns(ns ? ns : 1) };

	timerfd_settime(t->fd, flags, &when, NULL);
}

static bool is_interrupted(struct timer *t)
{
	return atomic_load_explicit(&t->interrupted, memory_order_seq_cst);
}

/*
 * Sleeps until the descriptor is readable. The order matters: an interrupt sets
 * its flag before it sets the descriptor; so either the flag is seen here, or
 * the descriptor was set to expire after our own setting.
 */
static int sleep_on_fd(struct timer *t)
{
	uint64_t expirations;

	if (is_interrupted(t))
		return -EINTR;
	if (read(t->fd, &expirations, sizeof(expirations)) < 0 && errno != EINTR)
		return -errno;
	return is_interrupted(t) ? -EINTR : 0;
}

static int wait_timerfd(struct timer *t, uint64_t deadline_ns)
{
	int ret = 0;

	while (!ret && t->now_ns() < deadline_ns) {
		if (t->armed_ns != deadline_ns)
			arm(t, deadline_ns, TFD_TIMER_ABSTIME);
		ret = sleep_on_fd(t);
		t->armed_ns = 0;
	}
	return ret ? ret : is_interrupted(t) ? -EINTR : 0;
}

static int sleep_for(struct timer *t, uint64_t ns)
{
	arm(t, ns, 0);
	return sleep_on_fd(t);
}

/* Nobody's turns are run meanwhile. */
static int sleep_alone(struct timer *t, uint64_t ns)
{
	turn_spinner_ends();
	return t->sleep(t, ns);
}

/* The last turns of a wait took `turns_ns`, and it ended `late_ns` behind its deadline. */
static void note_turns(struct timer *t, uint64_t now_ns, uint64_t turns_ns, uint64_t late_ns)
{
	if (likely(late_ns < TURN_NS || turns_ns < TURN_NS / 2)) {
		t->held_up -= t->held_up > 0;
		return;
	}
	t->held_up += HELD_UP_WEIGHT;
	if (t->held_up <= HELD_UP_MOST)
		return;
	t->held_up = 0;
	/* Found again soon after the end of the last time it is longer. */
	t->alone_ns = t->alone_ns && now_ns - t->alone_until_ns < ALONE_LAST_NS ?
			      MIN(2 * t->alone_ns, ALONE_LAST_NS) : NSEC_PER_SEC;
	t->alone_until_ns = now_ns + t->alone_ns;
	turn_spinner_ends();
	log_debug("turns of paths delay the steps: their own threads run them for a while");
}

static bool spin_begin(struct timer *t, uint64_t now_ns)
{
	waiting_worked(&t->waiting);
	if (!t->runs_turns || !t->gives_way || now_ns < t->alone_until_ns) {
		turn_spinner_ends();
		return false;
	}
	turn_spinner_begins();
	return true;
}

/* Spins until the deadline; runs turns, once at least. */
static int spin(struct timer *t, uint64_t deadline_ns)
{
	uint64_t now = t->now_ns(), turns_ns = 0, before;
	bool carries = spin_begin(t, now), owes = carries, slept = false;

	for (; now < deadline_ns || owes; now = t->now_ns()) {
		if (unlikely(atomic_load_explicit(&t->interrupted,
						  memory_order_relaxed)))
			return -EINTR;
		if (owes || (carries && now + TURN_NS < deadline_ns)) {
			owes = false;
			before = now;
			if (turn_run_offered())
				now = t->now_ns();
			turns_ns = now - before;
			if (now >= deadline_ns)
				break;
		}
		if (t->gives_way && unlikely(!waiting_look(&t->waiting, now))) {
			int ret = sleep_alone(t, deadline_ns - now);

			if (ret)
				return ret;
			carries = spin_begin(t, now);
			slept = true;
		}
		cpu_relax();
	}
	/* The time that others had the processor ends behind the deadline. */
	if (t->gives_way && unlikely(now - deadline_ns >= TURN_NS))
		waiting_look(&t->waiting, now);
	if (carries && !slept)
		note_turns(t, now, turns_ns, now - deadline_ns);
	return 0;
}

static int wait_tsc(struct timer *t, uint64_t deadline_ns)
{
	uint64_t now = t->now_ns();
	int ret;

	while (t->gives_way && now + WAITING_SLEEP_PERIOD_NS <= deadline_ns) {
		ret = sleep_alone(t, deadline_ns - now);
		if (ret)
			return ret;
		now = t->now_ns();
	}
	/* Not worth two system calls otherwise. */
	while (now + 2 * SPIN_NS < deadline_ns) {
		ret = sleep_alone(t, deadline_ns - SPIN_NS - now);
		if (ret)
			return ret;
		now = t->now_ns();
	}
	ret = spin(t, deadline_ns);
	return ret ? ret : is_interrupted(t) ? -EINTR : 0;
}

int timer_wait_until(struct timer *t, uint64_t deadline_ns)
{
	return t->kind == TIMER_TSC ? wait_tsc(t, deadline_ns) :
				      wait_timerfd(t, deadline_ns);
}

/* Ahead of the next wait. */
static void arm_next(struct timer *t)
{
	uint64_t next = timer_grid_next_ns(&t->grid), now;

	if (t->kind == TIMER_TIMERFD) {
		t->armed_ns = next;
		arm(t, next, TFD_TIMER_ABSTIME);
	} else if (t->polled) {
		now = t->now_ns();
		arm(t, next > now + SPIN_NS ? next - now - SPIN_NS : 1, 0);
	}
}

int64_t timer_wait_step(struct timer *t, uint64_t *late_ns)
{
	uint64_t steps;
	int ret;

	do {
		ret = timer_wait_until(t, timer_grid_next_ns(&t->grid));
		if (ret)
			return ret;
		steps = timer_grid_advance(&t->grid, t->now_ns(), late_ns);
	} while (!steps);
	arm_next(t);
	return (int64_t)steps;
}

void timer_set_catch_up(struct timer *t, double seconds)
{
	t->catch_up_ns = (uint64_t)(seconds * 1e9);
}

void timer_start(struct timer *t, double rate_hz)
{
	timer_grid_start(&t->grid, rate_hz, t->catch_up_ns, t->now_ns());
	arm_next(t);
}

int timer_poll_fd(struct timer *t, bool always)
{
	if (!t->polled) {
		t->polled = true;
		if (always)
			arm(t, 1, TFD_TIMER_ABSTIME);
		else
			arm_next(t);
	}
	return t->fd;
}

bool timer_is_due(const struct timer *t, uint64_t deadline_ns)
{
	uint64_t now = t->now_ns();

	return deadline_ns <= now + (t->kind == TIMER_TSC ? SPIN_NS : 0);
}

void timer_arm(struct timer *t, uint64_t deadline_ns)
{
	uint64_t now = t->now_ns();

	if (timer_is_due(t, deadline_ns))
		arm(t, 1, TFD_TIMER_ABSTIME);
	else if (t->kind == TIMER_TSC)
		arm(t, deadline_ns - SPIN_NS - now, 0);
	else
		arm(t, deadline_ns, TFD_TIMER_ABSTIME);
	t->armed_ns = 0;
}

void timer_interrupt(struct timer *t)
{
	atomic_store_explicit(&t->interrupted, true, memory_order_seq_cst);
	arm(t, 1, TFD_TIMER_ABSTIME);
}

void timer_rearm(struct timer *t)
{
	atomic_store(&t->interrupted, false);
	t->armed_ns = 0;
	if (t->polled)
		arm_next(t);
}

int timer_open(struct timer *t, enum timer_kind kind, double rate_hz)
{
	clock_init();
	memset(t, 0, sizeof(*t));
	t->gives_way = kind == TIMER_AUTO;
	if (kind == TIMER_AUTO)
		kind = rate_hz <= TIMER_AUTO_LIMIT_HZ ? TIMER_TIMERFD :
							TIMER_TSC;
	t->kind = kind;
	t->waiting.generator = true;
	t->now_ns = kind == TIMER_TSC ? clock_now_ns : clock_monotonic_ns_slow;
	t->sleep = sleep_for;
	t->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (t->fd < 0) {
		int err = errno;

		log_error("timerfd_create: %s", strerror(err));
		return -err;
	}
	/* Counted until timer_close(). */
	if (kind == TIMER_TSC && isfinite(rate_hz))
		waiting_begin_spin(&t->waiting);
	return 0;
}

void timer_close(struct timer *t)
{
	waiting_end_spin(&t->waiting);
	if (t->fd > 0)
		close(t->fd);
	t->fd = -1;
}
