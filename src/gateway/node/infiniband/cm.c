/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The management thread of an infiniband node: it waits for events of the
 * connection manager, for the data path's report of an error and for the time
 * of the next attempt, and alone creates, connects, accepts and destroys. What
 * it then does stands in connect.c, accept.c and lookup.c.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "gateway/base/thread.h"
#include "gateway/node/infiniband/infiniband.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/timed.h"
#include "util/wakeup.h"

/* For what was posted to leave, and for the peer to take note, at the end. */
#define FLUSH_NS (500 * MS)
#define GOODBYE_MS 200
/* How long start waits for the first attempt. */
#define FIRST_NS NSEC_PER_SEC
/* Between two looks for the answer to a probe. */
#define PROBE_NS (20 * MS)
/* Between two looks whether the state may be published. */
#define STATE_NS MS

/* Sets the node's state. False: it is too early, since the super-node sets STARTED first. */
static bool publish_state(struct infiniband *ib)
{
	static const enum node_state states[] = {
		[IB_IDLE] = NODE_STARTED,
		[IB_RESOLVING] = NODE_STARTED,
		[IB_CONNECTING] = NODE_PENDING_CONNECT,
		[IB_ACCEPTING] = NODE_PENDING_CONNECT,
		[IB_CONNECTED] = NODE_CONNECTED,
		[IB_FAILED] = NODE_STARTED,
	};
	enum node_state state = states[ib->phase];

	if (!node_is_running(ib->node))
		return state == NODE_STARTED;
	if (node_state(ib->node) != state)
		node_set_state(ib->node, state);
	return true;
}

/* When there is something to do without an event. */
static uint64_t next_ns(struct infiniband *ib)
{
	const uint64_t times[] = { ib->retry.at_ns, ib->lookup_at_ns, ib_accept_until_ns(ib) };
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i])
			next = MIN(next, times[i]);
	if (ib->probing)
		next = clock_now_ns() + PROBE_NS;
	return publish_state(ib) ? next : clock_now_ns() + STATE_NS;
}

/* One event; false when there is none (any more). */
static bool handle_event(struct infiniband *ib)
{
	struct rdma_cm_event *event, copy;
	const char *why;

	if (rdma_get_cm_event(ib->events, &event))
		return false;
	/*
	 * Acknowledged first: an identifier cannot be destroyed while an event
	 * of it is not. Private data would be gone then, but is not used.
	 */
	copy = *event;
	rdma_ack_cm_event(event);
	log_debug("%s: event %s, status %d", ib->node->name,
		  rdma_event_str(copy.event), copy.status);
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		ib_request(ib, copy.id);
	else if (copy.id == ib->conn)
		ib_conn_event(ib, &copy);
	else if (copy.id == ib->lookup && (why = ib_lookup_event(ib, &copy)))
		ib_lost(ib, why);
	return true;
}

static void serve(struct infiniband *ib)
{
	static const char *(*const checks[])(struct infiniband *) = {
		ib_break_check, ib_accept_check, ib_probe_check, ib_lookup_check,
	};
	const char *why;
	struct pollfd fds[] = {
		{ .fd = ib->wake_fd, .events = POLLIN },
		{ .fd = ib->events->fd, .events = POLLIN },
	};

	wakeup_poll(fds, ARRAY_SIZE(fds), next_ns(ib));
	/* Events first: they tell more about the cause. */
	while (ib->phase != IB_FAILED && handle_event(ib))
		;
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		if ((why = checks[i](ib)))
			ib_lost(ib, why);
	if (backoff_is_due(&ib->retry, clock_now_ns()))
		ib_connection_attempt(ib);
}

/* Lets everything that was written reach the peer, then leaves politely. */
static void say_goodbye(struct infiniband *ib)
{
	struct pollfd pfd = { .fd = ib->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	bool gone = false;

	if (ib->phase != IB_CONNECTED)
		return;
	ib_channel_close_tx(ib->channel);
	if (!ib_channel_flush(ib->channel, FLUSH_NS))
		log_warn("%s: the peer did not take all samples in time, the last ones may be missing there",
			 ib->node->name);
	if (ib->mode == IB_UD || rdma_disconnect(ib->conn))
		return;
	while (!gone && poll(&pfd, 1, GOODBYE_MS) > 0 &&
	       !rdma_get_cm_event(ib->events, &event)) {
		gone = event->id == ib->conn &&
		       event->event == RDMA_CM_EVENT_DISCONNECTED;
		rdma_ack_cm_event(event);
	}
}

static void *manage(void *arg)
{
	struct infiniband *ib = arg;
	struct pollfd pfd = { .fd = ib->wake_fd, .events = POLLIN };

	/* Without its path a node that receives is not ready for a peer. */
	while (ib->node->is_source && !node_is_running(ib->node) &&
	       !atomic_load(&ib->stop))
		poll(&pfd, 1, 1);
	if (ib->remotes_found && !atomic_load(&ib->stop))
		ib_connection_attempt(ib);
	while (!atomic_load(&ib->stop) && ib->phase != IB_FAILED)
		serve(ib);
	publish_state(ib);
	say_goodbye(ib);
	return NULL;
}

/*
 * Paths begin when all nodes have started, and what they write before there is
 * a connection is lost. So a node that only sends lets its first attempt
 * succeed or fail before; one that also receives does not, because its receive
 * queue should be full before the peer may send, and paths have to fill it.
 */
static void wait_first(struct infiniband *ib)
{
	struct timespec until;

	if (!ib->remotes_found || !ib->node->is_destination ||
	    ib->node->is_source)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until = timespec_from_ns(timespec_to_ns(until) + FIRST_NS);
	while (timed_sem_wait(&ib->first_attempt, &until) &&
	       errno == EINTR)
		;
}

int ib_cm_start(struct infiniband *ib)
{
	int err;

	atomic_store(&ib->stop, false);
	atomic_store(&ib->failed, false);
	sem_init(&ib->first_attempt, 0, 0);
	ib->phase = IB_IDLE;
	backoff_reset(&ib->retry);
	ib->said_unreachable = ib->probing = false;
	ib->lost_at_ns = 0;
	ib->callers = (struct callers){ 0 };
	if (!ib->remotes_found) {
		err = ib_listen(ib);
		if (err)
			return err;
		log_info("%s: listening on %s", ib->node->name,
			 ib->in.address);
	}
	err = thread_start(&ib->thread, "ib-cm", THREAD_AS_CALLER, manage, ib);
	if (err) {
		log_error("%s: cannot start a thread: %s", ib->node->name,
			  strerror(-err));
		ib_listen_end(ib);
		return err;
	}
	wait_first(ib);
	return 0;
}

void ib_cm_stop(struct infiniband *ib)
{
	atomic_store(&ib->stop, true);
	wakeup_post(ib->wake_fd);
	pthread_join(ib->thread, NULL);
	sem_destroy(&ib->first_attempt);
	ib_connection_drop(ib);
	ib_listen_end(ib);
}
