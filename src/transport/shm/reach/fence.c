/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for copies that use a key, a queue pair or an XRC SRQ which is taken out of service.
 *
 * De-registration must not return while a process still copies with the key. The
 * initiator announces the key in its own segment (a hazard), then checks it; the owner
 * withdraws the key, then reads the hazards of its peers. With a full fence between the
 * two steps on both sides, either the initiator sees that the key is withdrawn or the
 * owner sees the hazard.
 *
 * The same holds for a QP that is reset, destroyed or moved to the error state: the
 * initiator reads its state after announcing, and the owner waits for every copy that
 * was announced before; likewise for an XRC SRQ. The memory behind an XRC target may
 * belong to another process, so the owner of the target waits for all copies of the
 * target's initiator.
 */
#define LOG_ROOM "shm"
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "hca/memory/key.h"
#include "hca/queue/hold.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copiers.h"
#include "transport/shm/reach/reach.h"
#include "util/spin.h"

#define FENCE_YIELDS 1000
#define FENCE_PAUSE_US 200

static bool announced(const struct hca_segment *s, uint64_t id)
{
	for (int i = 0; i < HCA_HAZARDS; i++)
		if (atomic_load_explicit(&s->hazards[i], memory_order_acquire) == id)
			return true;
	return false;
}

/* Waits for the holder of a lock, who may still use the withdrawn key; later holders find
 * it withdrawn. On x86-64 taking the lock is a full fence, so reading that it is free is
 * enough. */
static void wait_for_holder(struct spin *lock)
{
#if defined(__x86_64__)
	if (likely(!spin_is_held(lock)))
		return;
#endif
	hca_lock(lock);
	hca_unlock(lock);
}

/* Waits for copies of messages, which this process carries out in the link's locks. */
static void wait_for_copies(struct shm_link *l)
{
	hca_lock(&l->rx_lock);
	hca_lock(&l->tx_lock);
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->rx_lock);
}

/* Waits for one-sided copies and results of atomics of the link's QPs, which are written
 * with sq_lock held. Not for a thread that builds requests (ibv_wr_start): it holds a
 * sq_lock itself. */
static void wait_for_qps(struct shm_link *l)
{
	if (hca_self.depth)
		return;
	pthread_mutex_lock(&shm.lock);
	list_for_each(part, &l->qps, struct shm_qp, link_entry)
		wait_for_holder(&shm_qp_whole(part)->sq_lock);
	pthread_mutex_unlock(&shm.lock);
}

static uint64_t own_key_id(uint32_t key)
{
	return (uint64_t)shm_uuid_tag(hca_process.uuid) << 32 | key;
}

/* True if the link is up for the peer, even if READY is not processed here. ACCEPTING is
 * tested before UP, as the link goes from the one to the other. */
static bool may_copy(const struct shm_link *l)
{
	return shm_link_is_greeted(l) || atomic_load(&l->state) == SHM_LINK_UP;
}

/* For a memory window: counts copies by peers and what this process carries out through
 * it (atomic.c, target.c). Announcements of peers that cannot access our memory are
 * ignored. */
bool shm_key_busy(uint32_t key)
{
	uint64_t id = own_key_id(key);
	bool busy;

	atomic_thread_fence(memory_order_seq_cst);
	busy = announced(hca_process.segment, id);
	shm_each_link(l) {
		if (busy)
			break;
		/* Ending a link unmaps the peer's segment with this lock held. */
		hca_lock(&l->tx_lock);
		busy = may_copy(l) && shm_reaches_us(l) && announced(l->peer, id);
		hca_unlock(&l->tx_lock);
	}
	return busy;
}

/* True if the link's peer can access our memory and announces a copy with the key.
 * shm.lock is held. */
static bool copies_with(const struct shm_link *l, uint64_t id)
{
	return may_copy(l) && shm_reaches_us(l) &&
	       !atomic_load(&l->broken) && announced(l->peer, id);
}

/* Pauses between two readings of a peer's hazards. If the peer has announced its copy for
 * longer than SHM_FENCE_LIMIT_NS, which no copy takes, ends its link and returns false. */
static bool pause_for_peer(struct shm_link *l, uint64_t since_ns, unsigned looks,
			   const char *what)
{
	if (progress_now_ns() - since_ns > SHM_FENCE_LIMIT_NS) {
		shm_link_violation(l, what);
		return false;
	}
	if (looks < FENCE_YIELDS)
		sched_yield();
	else
		usleep(FENCE_PAUSE_US);
	return true;
}

/* Waits until the link's peer does not copy with the key. shm.lock is held; it is released
 * while waiting. */
static void wait_for_peer(struct shm_link *l, uint64_t id)
{
	uint64_t start = 0;
	bool again = true;

	for (unsigned i = 0; again && copies_with(l, id); i++) {
		pthread_mutex_unlock(&shm.lock);
		if (!start)
			start = progress_now_ns();
		again = pause_for_peer(l, start, i, "a key held for too long");
		pthread_mutex_lock(&shm.lock);
	}
}

/* A copy that a peer has announced; 0: none. */
struct copy {
	uint64_t id;
	uint32_t turn;
};

/* Reads the peer's hazards in places [from, to): those with keys of this process, or of any
 * process (`all`). False: there is none. */
static bool copies_at(struct shm_link *l, bool all, unsigned from, unsigned to,
		      struct copy *copies)
{
	bool any = false;

	memset(copies, 0, (to - from) * sizeof(*copies));
	pthread_mutex_lock(&shm.lock);
	if (!may_copy(l) || (!all && !shm_reaches_us(l)) || atomic_load(&l->broken))
		to = from;
	for (unsigned place = from; place < to; place++) {
		/* The turn is read before the id: in the other order it could be that of
		 * a later copy, which need not be waited for. */
		uint32_t turn = atomic_load_explicit(
			&l->peer->hazard_turns[place], memory_order_acquire);
		uint64_t id = atomic_load_explicit(&l->peer->hazards[place],
						   memory_order_acquire);

		if (!id || (!all && id >> 32 != shm_uuid_tag(hca_process.uuid)))
			continue;
		copies[place - from] = (struct copy){ id, turn };
		any = true;
	}
	pthread_mutex_unlock(&shm.lock);
	return any;
}

static void wait_for_copy(struct shm_link *l, bool all, unsigned place, struct copy first)
{
	uint64_t start = progress_now_ns();
	struct copy now;

	for (unsigned i = 0; copies_at(l, all, place, place + 1, &now) &&
			     now.id == first.id && now.turn == first.turn; i++)
		if (!pause_for_peer(l, start, i, "a copy that does not end"))
			return;
}

/* True if `target` is an XRC target QP and the link leads to its initiator. */
static bool initiates(const struct shm_link *l, const struct hca_qp *target)
{
	uint32_t qpn;

	if (!target || target->ibv.qp_type != IBV_QPT_XRC_RECV)
		return false;
	qpn = atomic_load(&target->pub->dest_qpn) & HCA_PSN_MASK;
	return atomic_load(&shm.by_block[qpn >> HCA_QPN_BLOCK_BITS]) == l;
}

void shm_qp_fence(const struct hca_qp *qp)
{
	struct copy copies[HCA_HAZARDS];

	atomic_thread_fence(memory_order_seq_cst);
	shm_each_link(l) {
		bool all = initiates(l, qp);

		if (copies_at(l, all, 0, HCA_HAZARDS, copies))
			for (unsigned place = 0; place < HCA_HAZARDS; place++)
				if (copies[place].id)
					wait_for_copy(l, all, place, copies[place]);
		/* Operations that this process carries out for peers. Not while this
		 * thread builds requests (ibv_wr_start): a thread that holds the link's
		 * locks may wait for the sq_lock held here. */
		if (!hca_self.depth)
			wait_for_copies(l);
	}
}

/* Waits for the copies of all peers with the key. Takes shm.lock. */
static void wait_for_peers(uint64_t id)
{
	pthread_mutex_lock(&shm.lock);
	shm_each_link(l)
		wait_for_peer(l, id);
	pthread_mutex_unlock(&shm.lock);
}

/*
 * True if no other thread can be using a key. The usual program registers and posts in
 * one thread, and its locks need not be checked then. hca_enter() waits until a thread
 * that runs without locks has left; all other threads hold a lock while they use a key.
 */
static bool nobody_copies(void)
{
	bool alone;

	hca_enter();
	alone = hca_alone();
	hca_leave();
	return alone;
}

void shm_key_fence(uint32_t key)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (hca_key_is_remote(key))
		wait_for_peers(own_key_id(key));
	shm_copy_fence();
	if (likely(nobody_copies()))
		return;
	shm_each_link(l) {
		wait_for_holder(&l->rx_lock);
		wait_for_holder(&l->tx_lock);
		wait_for_qps(l);
	}
	hca_hold_fence();
}
