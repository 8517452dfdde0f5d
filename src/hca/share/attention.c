/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether the application's polls or the progress thread move messages; see
 * process.h.
 *
 * The decision depends on `wants_kick`, `ticking` and `armed`. A thread that stores one of
 * them and then loads another uses sequentially consistent accesses for both. So of two
 * threads that do so at the same time, at least one sees the other's store, and always one
 * of these holds: the application polls, the progress thread ticks, or peers wake it.
 */
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/fence.h"

#define POLLS_TO_ATTEND 512
#define TICK_MS 5
#define POLLS_PER_WAKE 64

/* Copies the number of polls to the counters that other processes read, once per tick: polls do
 * not write the shared line themselves. */
static void polls_publish(struct hca_segment *s)
{
	__atomic_store_n(&s->counters.at[HCA_POLLS],
			 atomic_load_explicit(&hca_process.polls,
					      memory_order_relaxed),
			 __ATOMIC_RELAXED);
}

void hca_attention_attend(void)
{
	struct hca_segment *s = hca_process.segment;
	uint32_t streak;
	bool armed;

	polls_publish(s);
	streak = atomic_load_explicit(&hca_process.streak,
				      memory_order_relaxed) + 1;
	atomic_store_explicit(&hca_process.streak, streak,
			      memory_order_relaxed);
	/* A program that armed a CQ may go to sleep at any time, however often it polled. */
	if (streak < POLLS_TO_ATTEND ||
	    atomic_load_explicit(&hca_process.armed_next,
				 memory_order_relaxed) > 0)
		return;
	atomic_store_explicit(&hca_process.streak, 0,
			      memory_order_relaxed);
	armed = atomic_load(&hca_process.armed) > 0;
	atomic_store(&s->wants_kick,
		     armed ? HCA_WAKE_SOLICITED : HCA_WAKE_NOTHING);
	if (!atomic_exchange(&hca_process.ticking, true))
		progress_kick();
	/* Another thread may have armed a CQ meanwhile and be asleep, or be inside after
	 * its last look for messages. Peers wake the progress thread again, and it looks. */
	if (unlikely(atomic_load(&hca_process.armed_next) > 0 ||
		     (!armed && atomic_load(&hca_process.armed) > 0))) {
		hca_attention_release();
		hca_attention_hand_over();
	}
}

void hca_attention_release(void)
{
	struct hca_segment *s = hca_process.segment;

	atomic_store_explicit(&hca_process.streak, 0,
			      memory_order_relaxed);
	if (atomic_load(&s->wants_kick) == HCA_WAKE_ALL)
		return;
	atomic_store(&s->wants_kick, HCA_WAKE_ALL);
	fence_others(FENCE_HOST, hca_process.membarrier);
}

void hca_attention_hand_over(void)
{
	atomic_store(&hca_process.kicked, true);
	progress_kick();
}

void hca_attention_serve(void)
{
	for (int i = 0; i < POLLS_PER_WAKE; i++)
		if (!hca_transports_poll_local())
			return;
	hca_attention_hand_over();
}

/* A peer woke this process while the application polls. If a CQ is armed, the application may
 * go to sleep without another poll, so all messages must be moved here. True: there may be
 * more of them. */
static bool look_when_kicked(void)
{
	bool more = true;

	hca_enter();
	if (atomic_load(&hca_process.armed) == 0) {
		hca_poll_transports(NULL);
		more = false;
	}
	for (int i = 0; i < POLLS_PER_WAKE && more; i++)
		more = hca_poll_transports_surely();
	hca_leave();
	return more;
}

/* Has the application polled in the last TICK_MS? The thread may also be woken much sooner behind
 * the last look, and a thread that polls may have lost its processor. */
static bool polls_now(uint64_t polls)
{
	static uint64_t before, seen_ns;
	uint64_t now_ns = progress_now_ns();

	if (polls != before) {
		before = polls;
		seen_ns = now_ns;
	}
	return now_ns - seen_ns < TICK_MS * UINT64_C(1000000);
}

/* The application polls. When to look again, in ms: whoever armed a CQ may be asleep behind those
 * polls. */
static int next_look_ms(bool more)
{
	if (more) {
		atomic_store(&hca_process.kicked, true);
		return 0;
	}
	return atomic_load(&hca_process.armed) && hca_transports_pending() ? 1 : TICK_MS;
}

/* Moves messages that no thread of the application moves. When to look again, in ms; -1: not before
 * a wake-up. */
static int look_for_all(void)
{
	int again_ms = 0;

	hca_enter();
	for (int i = 0; i < POLLS_PER_WAKE && !again_ms; i++)
		/* What was moved before may have left something for later. */
		if (!hca_poll_transports_surely())
			again_ms = hca_transports_pending() ? 1 : -1;
	hca_leave();
	return again_ms;
}

/* With process.tick_lock, and while the adapter is open. */
static int tick(struct hca_segment *s)
{
	uint64_t polls = atomic_load_explicit(&hca_process.polls, memory_order_relaxed);

	HCA_COUNT_PROCESS(TICKS, 1);
	polls_publish(s);
	if (unlikely(!atomic_load_explicit(&s->alive, memory_order_relaxed)))
		hca_death_mark_make(s);
	if (atomic_load(&hca_process.ticking)) {
		/* Woken while the application polls: a peer has waited longer than
		 * the time between two polls, so messages are moved here. */
		bool more = atomic_exchange(&hca_process.kicked, false) && look_when_kicked();

		if (polls_now(polls))
			return next_look_ms(more);
		atomic_store(&hca_process.ticking, false);
		hca_attention_release();
	}
	if (!atomic_load_explicit(&s->wants_kick, memory_order_relaxed) &&
	    !hca_transports_pending())
		return -1;
	return look_for_all();
}

int hca_attention_tick(void)
{
	int again_ms = -1;

	/* The adapter may be stopped now, while librdmacm holds the progress thread. */
	pthread_mutex_lock(&hca_process.tick_lock);
	if (hca_process.segment)
		again_ms = tick(hca_process.segment);
	pthread_mutex_unlock(&hca_process.tick_lock);
	return again_ms;
}

/* Calls of the transports' poll(); each processes many messages. */
#define MOVES_BEFORE_ERROR 64

/* Requests that the peer has acknowledged must complete with success instead of being flushed:
 * the peer's application may have told this one by other means that it has everything. */
void hca_take_in(void)
{
	hca_enter();
	for (int i = 0; i < MOVES_BEFORE_ERROR && !hca_builds() &&
			hca_poll_transports_surely(); i++)
		;
	hca_leave();
}
