/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * No message is left without a wake-up of the receiver, by the peer that sent it or by the
 * progress thread's tick. In these scenarios the progress thread runs when it is woken and
 * not after a time.
 */
#include "check.h"
#include "hca/queue/push.h"
#include "hca/share/process.h"
#include "transport/shm/link/wake.h"
#include "util/container_of.h"
#include "world.h"

/* Later than the tick before by more than the time after which a program counts as gone. */
static void tick(void)
{
	stand_in_now += 10000000;
	hca_attention_tick();
}

static void start(bool polling, bool membarrier)
{
	static uint64_t polls;

	world_make(IBV_QPS_RTS);
	world_post_recv();
	pthread_mutex_init(&hca_process.tick_lock, NULL);
	world.b_cq.ex.channel = (void *)&world; /* any value: there is a channel */
	world_segment->wants_kick = !polling;
	hca_process.ticking = polling;
	hca_process.kicked = false;
	hca_process.armed = hca_process.armed_next = 0;
	hca_process.membarrier = membarrier;
	world.to_b.fence = !membarrier;
	/* The progress thread has last seen another number of polls. */
	polls += 8;
	hca_process.polls = polls;
	hca_process.streak = 0;
	stand_in_kicks = stand_in_events = 0;
}

static void polling(void)
{
	start(true, true);
}

static void polling_without_membarrier(void)
{
	start(true, false);
}

/* After the next poll the process counts as attended and need not be woken. */
static void about_to_attend(void)
{
	start(false, true);
	hca_process.streak = 511;
}

/* The CQ was armed, but the progress thread still ticks; its next tick ends that. */
static void still_ticking(void)
{
	about_to_attend();
	hca_process.ticking = true;
	tick();
}

static void sends(void)
{
	world_send();
	shm_kick(&world.to_b);
}

static void arms_and_sleeps(void)
{
	struct ibv_wc wc;

	hca_req_notify_cq(hca_cq_public(&world.b_cq), 0);
	/* Required of programs: messages before the arming cause no event. */
	if (hca_poll_cq(hca_cq_public(&world.b_cq), 1, &wc) == 1)
		return;
	check_sleep(&stand_in_events);
	check_that(hca_poll_cq(hca_cq_public(&world.b_cq), 1, &wc) == 1,
		   "woken for nothing");
}

/* Another thread of the program polls a queue of its own. */
static void polls_once(void)
{
	struct ibv_wc wc;

	hca_poll_cq(hca_cq_public(&world.a_cq), 1, &wc);
}

/* The same, and right afterwards its peer sends a message. */
static void polls_once_and_is_sent_to(void)
{
	polls_once();
	sends();
}

static void ticks(void)
{
	for (;;) {
		check_sleep(&stand_in_kicks);
		stand_in_kicks = 0;
		atomic_store(&hca_process.kicked, true);
		tick();
	}
}

static void ticks_by_time(void)
{
	tick();
	ticks();
}

static void nothing(void) {}

/* At the end no thread polls any more: a wake-up must be pending. */
static void somebody_will_look(void)
{
	bool wants = world_segment->wants_kick, ticking = hca_process.ticking;

	check_that(wants || ticking, "nobody is woken and nobody ticks");
	check_that(world_received() || ticking,
		   "a message is there, and the thread sleeps for ever");
}

static const struct check_break no_membarrier[] = {
	{ "membarrier does nothing", WITHOUT_MEMBARRIER, NULL, -1, CHECK_TSO },
	{ 0 },
};

static const struct check_break no_fence[] = {
	{ "the sender has no fence", WITHOUT_FENCES, NULL, 0, CHECK_TSO },
	{ "the sleeper has no fence", WITHOUT_FENCES, NULL, 1, CHECK_C11 },
	{ 0 },
};

static struct check_break no_order[] = {
	{ "wants_kick is looked at in any order", WITHOUT_ORDER, NULL, -1,
	  CHECK_C11 },
	{ 0 },
};

static const struct check_scenario scenarios[] = {
	{ .name = "a program arms a queue and sleeps", .setup = polling,
	  .threads = { sends, arms_and_sleeps, ticks }, .idle = 1 << 2,
	  .finish = nothing, .breaks = no_membarrier },
	{ .name = "a program sleeps where there is no membarrier",
	  .setup = polling_without_membarrier,
	  .threads = { sends, arms_and_sleeps, ticks }, .idle = 1 << 2,
	  .finish = nothing, .old_values = 2, .breaks = no_fence },
	{ .name = "one thread arms while another begins to poll steadily",
	  .setup = about_to_attend,
	  .threads = { polls_once_and_is_sent_to, arms_and_sleeps, ticks },
	  .idle = 1 << 2, .finish = nothing },
	{ .name = "a program polls again while the thread gives up ticking",
	  .setup = still_ticking,
	  .threads = { sends, polls_once, ticks_by_time }, .idle = 1 << 2,
	  .finish = somebody_will_look, .breaks = no_order },
};

int main(int argc, char **argv)
{
	world_make(IBV_QPS_RTS);
	no_order[0].lock = &world_segment->wants_kick;
	return check_main(argc, argv, scenarios, ARRAY_SIZE(scenarios));
}
