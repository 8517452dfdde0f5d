/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who moves messages, the application's polls or the progress thread; see process.h.
 *
 * Three words decide it: `wants_kick`, `ticking` and `armed`. Who changes one of them
 * and then looks at another has sequentially consistent accesses for both, so that of
 * two threads that do so at once, each with the other's word, one sees the other:
 * whatever happens, either somebody polls, or the thread ticks, or peers wake it.
 */
#include "hca/process.h"

#include "util/fence.h"

#define POLLS_TO_ATTEND 512
#define TICK_MS 5
#define TICK_MAX_MS 40
#define POLLS_PER_WAKE 64

/* Others read the number of polls from here, at most a tick late: the line that
 * polls write has enough in it that is hot. */
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
	/* Who armed a CQ may go to sleep at any time, however often it polled. */
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
	/* Another thread may have armed one meanwhile, and be asleep; and the lock
	 * that the caller does without may be held by one that has looked already. */
	if (unlikely(atomic_load(&hca_process.armed_next) > 0 ||
		     (!armed && atomic_load(&hca_process.armed) > 0))) {
		hca_attention_release();
		atomic_store(&hca_process.kicked, true);
		progress_kick();
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

/* The application polls. Where it also may be about to sleep until an event, it may
 * have looked for the last time: then this thread has to know that nothing is left. */
static void look_when_kicked(void)
{
	if (atomic_load(&hca_process.armed) == 0) {
		hca_poll_transports(NULL);
		return;
	}
	for (int i = 0; i < POLLS_PER_WAKE && hca_poll_transports_surely(); i++)
		;
}

int hca_attention_tick(void)
{
	static uint64_t polls_before;
	static int tick_ms;
	uint64_t polls = atomic_load_explicit(&hca_process.polls,
					      memory_order_relaxed);
	struct hca_segment *s;
	int timeout_ms = -1;

	/* Against the adapter's end while librdmacm keeps the thread. */
	pthread_mutex_lock(&hca_process.tick_lock);
	s = hca_process.segment;
	if (!s)
		goto out;
	HCA_COUNT_PROCESS(TICKS, 1);
	polls_publish(s);
	if (unlikely(!atomic_load_explicit(&s->alive, memory_order_relaxed)))
		hca_death_mark_make(s);
	if (!atomic_load(&hca_process.ticking)) {
		tick_ms = TICK_MS;
	} else {
		/* The longer the application has been polling, the longer it
		 * probably will; a peer that waits for us kicks. */
		timeout_ms = tick_ms;
		tick_ms = MIN(2 * tick_ms, TICK_MAX_MS);
		/* A kick while the application polls: a peer waits for us
		 * longer than it takes to poll, so look at once. */
		if (atomic_exchange(&hca_process.kicked, false))
			look_when_kicked();
		if (polls != polls_before) {
			polls_before = polls;
			goto out;
		}
		atomic_store(&hca_process.ticking, false);
		hca_attention_release();
	}
	timeout_ms = hca_transports_pending() ? 1 : -1;
	if (!atomic_load_explicit(&s->wants_kick, memory_order_relaxed) &&
	    timeout_ms < 0)
		goto out;
	for (int i = 0; i < POLLS_PER_WAKE; i++)
		if (!hca_poll_transports_surely())
			goto out;
	timeout_ms = 0;
out:
	pthread_mutex_unlock(&hca_process.tick_lock);
	return timeout_ms;
}
