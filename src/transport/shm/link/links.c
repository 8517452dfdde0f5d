/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: their structures, their memory, their end.
 *
 * Link structures are never freed, only used again, because pollers walk the
 * table without a lock. A link is taken down on the progress thread: first its
 * state, then each QP (under its sq_lock), then the link's own locks, then the
 * memory.
 */
#define LOG_ROOM "shm"
#include "hca/memory/promising.h"
#include "hca/memory/region.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"
#include "util/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/reach/copy.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/watch/watch.h"
#include "util/log.h"

bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16])
{
	return !memcmp(l->uuid, uuid, sizeof(l->uuid));
}

/* shm.lock is held, here and below. */
struct shm_link *shm_link_new(void)
{
	unsigned count = atomic_load(&shm.link_count);
	struct shm_link *l;

	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&shm.links[i]->state) == SHM_LINK_FREE)
			return shm.links[i];
	if (count == SHM_LINKS) {
		log_error("more than %d peer processes", SHM_LINKS);
		return NULL;
	}
	l = aligned_alloc(CACHE_LINE, (sizeof(*l) + CACHE_LINE - 1) &
					      ~(size_t)(CACHE_LINE - 1));
	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->fd = l->kick_fd = l->mem_fd = -1;
	list_init(&l->qps);
	list_init(&l->backlog_qps);
	l->place = count;
	shm.links[count] = l;
	atomic_store_explicit(&shm.link_count, count + 1, memory_order_release);
	return l;
}

static struct shm_area *area_map(int fd)
{
	struct shm_area *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);

	if (a == MAP_FAILED)
		return NULL;
	madvise(a, sizeof(*a), MADV_DONTFORK);
	return a;
}

/* A link's tables of its slots and of the peer's regions. They are mapped, so that the
 * pages are allocated only when they are used. */
struct link_tables {
	struct shm_inflight inflight[SHM_SLOTS];
	struct shm_part_shown shown[SHM_SLOTS];
	struct shm_faults_of faults;
	struct shm_mapping maps[HCA_REGIONS];
};

int shm_link_map_tables(struct shm_link *l)
{
	struct link_tables *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return -ENOMEM;
	l->inflight = t->inflight;
	l->shown = t->shown;
	l->faults = &t->faults;
	l->maps = t->maps;
	return 0;
}

static void tables_unmap(struct shm_link *l)
{
	shm_map_release(l);
	munmap(container_of(l->maps, struct link_tables, maps[0]),
	       sizeof(struct link_tables));
	l->inflight = NULL;
	l->shown = NULL;
	l->faults = NULL;
	l->maps = NULL;
}

int shm_link_set_area(struct shm_link *l, int area_fd, int role)
{
	int ret = shm_link_map_tables(l);

	if (ret)
		return ret;
	l->area = area_map(area_fd);
	if (!l->area)
		return -errno;
	l->tx = &l->area->dir[role];
	l->rx = &l->area->dir[!role];
	atomic_store(&l->tx_pos, 0);
	atomic_store(&l->wanted_pos, 0);
	l->promises_pos = 0;
	atomic_store(&l->harvested, 0);
	atomic_store(&l->acked_hint, 0);
	atomic_store(&l->data_tail, 0);
	l->data_head = 0;
	atomic_store(&l->rx_pos, 0);
	atomic_store(&l->rx_ack, 0);
	l->rx_marks = l->marks_seen = l->hint_seen = 0;
	l->carried = false;
	l->twin = NULL;
	l->idle_polls = 0;
	l->full_ns = 0;
	shm_faults_open(l);
	return 0;
}

static void descriptors_close(struct shm_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->kick_fd >= 0)
		close(l->kick_fd);
	if (l->mem_fd >= 0)
		close(l->mem_fd);
}

static void link_release_parts(struct shm_link *l)
{
	if (l->area)
		munmap(l->area, sizeof(*l->area));
	shm_peer_unmap(l);
	descriptors_close(l);
	if (l->maps)
		tables_unmap(l);
	l->area = NULL;
	l->tx = l->rx = NULL;
	l->fd = l->kick_fd = l->mem_fd = -1;
	atomic_store(&l->path, SHM_PATH_TARGET);
	l->pid = 0;
	l->uid = 0;
	l->kin = l->may_not_talk = l->asked_memory = false;
	l->lends = l->borrows = 0;
	l->deadline_ns = 0;
	memset(l->uuid, 0, sizeof(l->uuid));
	atomic_store(&l->broken, false);
	atomic_store(&l->greeted, false);
}

void shm_link_lock(struct shm_link *l)
{
	hca_lock(&l->rx_lock);
	hca_lock(&l->ack_lock);
	hca_lock(&l->tx_lock);
}

void shm_link_unlock(struct shm_link *l)
{
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->ack_lock);
	hca_unlock(&l->rx_lock);
}

static void unmap_blocks(struct shm_link *l)
{
	for (unsigned b = 0; b < HCA_QPN_BLOCKS; b++)
		if (atomic_load_explicit(&shm.by_block[b],
					 memory_order_relaxed) == l)
			atomic_store(&shm.by_block[b], NULL);
}

void shm_qp_set_link(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_qp_public *remote)
{
	shm_qp(qp)->link = l;
	qp->rx_peer = l ? l->rx_peer : NULL;
	shm_qp(qp)->remote = remote;
	shm_qp(qp)->remote_promise = remote ? &l->peer->promises[remote - l->peer->qps] :
				      NULL;
}

static void drop_qps(struct shm_link *l)
{
	struct list *entry;

	while ((entry = list_pop(&l->qps))) {
		struct hca_qp *qp = shm_qp_whole(
			list_entry(entry, struct shm_qp, link_entry));

		hca_lock(&qp->sq_lock);
		hca_promise_revoke(qp); /* it was given for this link only */
		shm_qp_set_link(qp, NULL, NULL);
		shm_qp(qp)->tx_taken = 0;
		if (qp->sq.tail != qp->sq.head &&
		    qp->tx_blocked == HCA_TX_OPEN) {
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
	link_release_parts(l);
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

void shm_link_violation(struct shm_link *l, const char *what)
{
	if (atomic_exchange(&l->broken, true))
		return;
	HCA_COUNT_PROCESS(LINKS_BROKEN, 1);
	if (hca_complaint_due())
		log_error("peer pid %d broke the rules of the link (%s), link ended",
			  (int)l->pid, what);
	progress_timer_arm(&shm.reap, progress_now_ns());
}

/* Ends the links whose peers broke the protocol. Progress thread. */
static void reap_expired(struct progress_timer *t)
{
	pthread_mutex_lock(&shm.lock);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) != SHM_LINK_UP ||
		    !atomic_load(&l->broken))
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

/* Watches the listening sockets that pause_listening() paused; later, when the kernel has no
 * memory for that now. shm.lock is held. */
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
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

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

int shm_links_start(void)
{
	progress_timer_init(&shm.reap, reap_expired);
	progress_timer_init(&shm.sweep, sweep_expired);
	shm.sweep_ns = 0;
	shm_copies_start();
	return 0;
}

void shm_links_stop(void)
{
	shm_mcast_stop();
	shm_copies_stop();
	progress_timer_cancel(&shm.reap);
	progress_timer_cancel(&shm.sweep);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

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

void shm_links_forked(void)
{
	/* The parent's structures are not used in the child; only their descriptors
	 * are closed. */
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++)
		descriptors_close(shm.links[i]);
	shm_mcast_stop();
	shm_copies_forked();
	memset(shm.by_block, 0, sizeof(shm.by_block));
	atomic_store(&shm.link_count, 0);
	shm.paused_count = 0;
	pthread_mutex_init(&shm.lock, NULL);
	pthread_cond_init(&shm.changed, NULL);
}
