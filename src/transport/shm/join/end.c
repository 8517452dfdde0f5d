/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of links.
 *
 * A link is taken down on the progress thread: first its state, then each QP (under its
 * sq_lock), then the link's own locks, then the memory.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sys/epoll.h>

#include "hca/memory/promising.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/reach.h"
#include "util/log.h"

static void unmap_blocks(struct shm_link *l)
{
	for (unsigned b = 0; b < HCA_QPN_BLOCKS; b++)
		if (atomic_load_explicit(&shm.by_block[b], memory_order_relaxed) == l)
			atomic_store(&shm.by_block[b], NULL);
}

void shm_qp_set_link(struct hca_qp *qp, struct shm_link *l, const struct hca_qp_public *remote)
{
	shm_qp(qp)->link = l;
	qp->rx_peer = l ? l->rx_peer : NULL;
	shm_qp(qp)->remote = remote;
	shm_qp(qp)->remote_promise = remote ? &l->peer->promises[remote - l->peer->qps] : NULL;
}

static void drop_qps(struct shm_link *l)
{
	struct list *entry;

	while ((entry = list_pop(&l->qps))) {
		struct hca_qp *qp = shm_qp_whole(list_entry(entry, struct shm_qp, link_entry));

		hca_lock(&qp->sq_lock);
		hca_promise_revoke(qp); /* a promise holds for this link only */
		shm_qp_set_link(qp, NULL, NULL);
		shm_qp(qp)->tx_taken = 0;
		if (qp->sq.tail != qp->sq.head && qp->tx_blocked == HCA_TX_OPEN) {
			if (shm_is_reliable(qp))
				shm_retry_lost(qp);
			else
				hca_sq_run(qp); /* without a link: the rest is lost */
		}
		hca_unlock(&qp->sq_lock);
	}
}

void shm_link_down(struct shm_link *l)
{
	struct list waiting;

	list_init(&waiting);
	if (atomic_load(&l->state) == SHM_LINK_UP)
		hca_link_closed(l->place);
	atomic_store(&l->state, SHM_LINK_DEAD);
	unmap_blocks(l);
	drop_qps(l);
	shm_link_lock(l);
	shm_link_unlock(l);
	/* From here on nothing more is sent through the link. */
	shm_xrc_link_lost(l);
	shm_link_lock(l);
	list_splice(&waiting, &l->backlog_qps);
	atomic_store(&l->backlog, 0);
	shm_responders_free(l);
	shm_map_release(l);
	shm_link_release(l);
	shm_link_unlock(l);
	atomic_store(&l->state, SHM_LINK_FREE);
	/* QPs that send datagrams are not in l->qps, only in the backlog. */
	shm_backlog_run(&waiting);
	pthread_cond_broadcast(&shm.changed);
}

void shm_link_end(struct shm_link *l, const char *why)
{
	if (atomic_load(&l->state) == SHM_LINK_UP)
		log_debug("link to pid %d ended: %s", (int)l->pid, why);
	if (l->fd >= 0)
		progress_unwatch_async(l->fd);
	/* From a peer that broke the protocol nothing more is received. */
	if (atomic_load(&l->state) == SHM_LINK_UP && !atomic_load(&l->broken)) {
		shm_receive_rest(l);
		shm_harvest_rest(l);
	}
	shm_link_down(l);
}

/* Ends the links whose peers broke the protocol. Progress thread. */
static void reap_expired(struct progress_timer *t)
{
	pthread_mutex_lock(&shm.lock);
	shm_each_link(l) {
		if (atomic_load(&l->state) != SHM_LINK_UP || !atomic_load(&l->broken))
			continue;
		shm_peer_ban(l->pid, SHM_BAN_NS);
		shm_link_end(l, "violation");
	}
	pthread_mutex_unlock(&shm.lock);
}

void shm_sweep_at(uint64_t when_ns)
{
	if (shm.sweep_ns && shm.sweep_ns <= when_ns)
		return;
	shm.sweep_ns = when_ns;
	progress_timer_arm(&shm.sweep, when_ns);
}

/* Another user's process owns a QP block and does not answer. It is banned for the
 * time of a handshake, so that datagrams to others do not wait for it again. */
static void silent(const struct shm_link *l)
{
	if (hca_complaint_due())
		log_warn("pid %d of uid %u has the QP numbers 0x%x.. and does not answer",
			 (int)l->pid, l->uid,
			 l->target_block << HCA_QPN_BLOCK_BITS);
	shm_peer_ban(l->pid, SHM_HANDSHAKE_NS);
}

/* Watches again the listening sockets that pause_listening() has paused; later, if the kernel
 * lacks memory for that now. shm.lock is held. */
static void listen_again(void)
{
	while (shm.paused_count > 0) {
		int ret = progress_rewatch(shm.paused[shm.paused_count - 1], EPOLLIN);

		if (ret == -ENOMEM || ret == -ENOSPC) {
			shm_sweep_at(progress_now_ns() + SHM_LISTEN_PAUSE_NS);
			break;
		}
		shm.paused_count--;
	}
}

/* Ends links whose handshake is overdue, and ends the pause of listening sockets. Progress
 * thread. */
static void sweep_expired(struct progress_timer *t)
{
	uint64_t now = progress_now_ns();

	pthread_mutex_lock(&shm.lock);
	shm.sweep_ns = 0;
	shm_each_link(l) {
		if (!shm_link_is_made(l) || !l->deadline_ns)
			continue;
		if (now < l->deadline_ns) {
			shm_sweep_at(l->deadline_ns);
			continue;
		}
		if (atomic_load(&l->state) == SHM_LINK_CONNECTING)
			silent(l);
		shm_link_end(l, "it said nothing");
	}
	listen_again();
	pthread_mutex_unlock(&shm.lock);
}

void shm_links_start(void)
{
	progress_timer_init(&shm.reap, reap_expired);
	progress_timer_init(&shm.sweep, sweep_expired);
	shm.sweep_ns = 0;
}

void shm_links_stop(void)
{
	progress_timer_cancel(&shm.reap);
	progress_timer_cancel(&shm.sweep);
	shm_each_link(l) {
		/* The callback may be waiting for the lock; it then finds the
		 * link free. */
		pthread_mutex_lock(&shm.lock);
		if (atomic_load(&l->state) != SHM_LINK_FREE) {
			progress_unwatch_async(l->fd);
			shm_link_down(l);
		}
		pthread_mutex_unlock(&shm.lock);
	}
	progress_timer_cancel(&shm.reap); /* armed meanwhile */
	progress_timer_cancel(&shm.sweep);
	shm.paused_count = 0;
}
