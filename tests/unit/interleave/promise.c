/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message that the sender completes because of a promise is received, whatever happens
 * on the receiver's side at the same time: there is no receive, the state does not allow
 * messages, an error occurs, the memory of the receive is deregistered.
 */
#include <string.h>

#include "check.h"
#include "hca/memory/promising.h"
#include "hca/queue/flush.h"
#include "hca/queue/receive.h"
#include "hca/run/elide.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"
#include "world.h"

/* The message is put into the ring before the threads start. */
static void a_message_is_there(enum ibv_qp_state state)
{
	world_make(state);
	world_send();
}

/* At the end, takes the messages that were not taken yet, and compares. */
static void completed_means_received(void)
{
	world_receive();
	world_run_close();
	if (world_sent() > world_received())
		check_fail("a SEND was completed, its message is lost");
	if (world_received() && memcmp(world.buffer, world.sent, 32))
		check_fail("received, but not what was sent");
}

/* ---- no receive is posted, and then one is ---- */
static void ready(void)
{
	a_message_is_there(IBV_QPS_RTS);
}

static void ready_without_message(void)
{
	world_make(IBV_QPS_RTS);
	check_data(world.buffer, sizeof(world.buffer));
	check_data(world.to_b.tx->slots, sizeof(struct shm_slot));
}

static void sends_and_takes(void)
{
	world_send();
	world_take_promises();
}

static void sends_twice(void)
{
	world_send();
	world_send();
	world_take_promises();
	world_take_promises();
}

/* ---- the state changes ---- */
static void getting_ready(void)
{
	a_message_is_there(IBV_QPS_INIT);
	world.b.ibv.state = IBV_QPS_INIT;
	world.b.rx_peer = NULL;
	shm_qp(&world.b)->link = NULL;
	world_post_recv();
}

/* As hca_qp_modify() does from INIT to RTR, and the transport's qp_connect behind it. */
static void becomes_ready(void)
{
	struct hca_qp *qp = &world.b;

	hca_lock(&qp->sq_lock);
	qp->rx_psn = WORLD_PSN;
	hca_qp_set_state(qp, IBV_QPS_RTR);
	hca_unlock(&qp->sq_lock);
	hca_lock(&qp->sq_lock);
	shm_qp(qp)->link = &world.of_b;
	qp->rx_peer = world.of_b.rx_peer;
	hca_unlock(&qp->sq_lock);
	hca_promise_posted(qp);
}

/* The sender posts before the other thread does anything. */
static void posts_and_it_is_taken(void)
{
	world_post_recv();
	world_take_promises();
}

static void fails(void)
{
	hca_qp_fail(&world.b);
	world_run_close();
}

/* Another thread moves the QP to the error state, and so withdraws the promise. */
static void modifies_to_error(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	hca_qp_modify(&world.b.ibv, &attr, IBV_QP_STATE);
	world_run_close();
}

static void ready_with_receive(void)
{
	a_message_is_there(IBV_QPS_RTS);
	world_post_recv();
}

static void promised_without_message(void)
{
	world_make(IBV_QPS_RTS);
	world_post_recv();
}

/* ---- the memory is deregistered ---- */
static bool holding;

static void ready_in_memory(void)
{
	/* After a run that was abandoned. */
	if (holding)
		hca_promise_release();
	holding = false;
	a_message_is_there(IBV_QPS_RTS);
}

static void deregisters(void)
{
	holding = true;
	hca_promise_hold(WORLD_KEY);
	hca_key_withdraw(WORLD_KEY);
	holding = false;
	hca_promise_release();
}

static const struct check_break no_post_lock[] = {
	{ "the mark is made without the lock of promises", WITHOUT_LOCK,
	  &world.b.rq.post_lock, 0, CHECK_SC },
	{ 0 },
};

static const struct check_break no_fences[] = {
	{ "the sender has no fence", WITHOUT_FENCES, NULL, 1, CHECK_TSO },
	{ "the receiver has no fence", WITHOUT_FENCES, NULL, 0, CHECK_C11 },
	{ 0 },
};

static const struct check_break no_order[] = {
	{ "the number of a slot is stored before its content", WITHOUT_ORDER,
	  NULL, -1, CHECK_C11 },
	{ 0 },
};

static const struct check_break no_close_lock[] = {
	{ "the refusal of a QP in error is made without the lock of promises",
	  WITHOUT_LOCK, &world.b.rq.post_lock, 0, CHECK_SC },
	{ 0 },
};

static const struct check_scenario scenarios[] = {
	{ .name = "a receive is posted while one is missed", .setup = ready,
	  .threads = { world_receive, world_post_recv, world_take_promises },
	  .finish = completed_means_received, .breaks = no_post_lock },
	{ .name = "messages are sent while receives are posted",
	  .setup = ready_without_message,
	  .threads = { world_receive, sends_twice, world_post_recv },
	  .finish = completed_means_received, .breaks = no_order },
	{ .name = "a queue pair gets ready while a message comes",
	  .setup = getting_ready,
	  .threads = { world_receive, becomes_ready, world_take_promises },
	  .finish = completed_means_received, .breaks = no_post_lock },
	{ .name = "a queue pair fails while a message is promised",
	  .setup = ready,
	  .threads = { world_receive, posts_and_it_is_taken, fails },
	  .finish = completed_means_received, .old_values = CHECK_NONE,
	  .breaks = no_close_lock },
	{ .name = "a queue pair fails while a message is sent",
	  .setup = promised_without_message,
	  .threads = { fails, sends_and_takes },
	  .finish = completed_means_received, .breaks = no_fences },
	{ .name = "a queue pair fails while another thread takes promises back",
	  .setup = ready_with_receive,
	  .threads = { fails, modifies_to_error, world_take_promises },
	  .finish = completed_means_received, .old_values = CHECK_NONE },
	{ .name = "memory of a receive is deregistered", .setup = ready_in_memory,
	  .threads = { deregisters, posts_and_it_is_taken },
	  .finish = completed_means_received, .interruptions = 4 },
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, scenarios, ARRAY_SIZE(scenarios));
}
