/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ inside a host: the initiator checks the target's keys in
 * the target's shared table of keys and copies, with plain stores and loads if it
 * has the memory mapped (map.c), else by system calls (access.c). ATOMIC
 * operations likewise, on mapped memory only. The target need not run.
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
 *
 * A large copy is carried out by parts (copy.c). Each part is announced and checked like
 * a copy of its own, so a fence waits for the part only, not for the whole copy.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca/host/mapping.h"
#include "hca/limits.h"
#include "hca/memory/key.h"
#include "hca/memory/sge.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/hold.h"
#include "hca/queue/scatter.h"
#include "hca/run/dma.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/run/touch.h"
#include "hca/share/process.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/state.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"

#define ORDERED_END 4096
#define FENCE_YIELDS 1000
#define FENCE_PAUSE_US 200

/* The local side of a copy. */
struct near {
	struct iovec iov[HCA_MAX_SGE];
	int count;
	bool kernel; /* pages may be missing: only system calls may access it */
};

static enum ibv_wc_status copy_far(struct shm_link *l, bool read,
				   struct near *near, uint64_t far,
				   uint64_t length, enum shm_step *step)
{
	struct iovec to = { (void *)(uintptr_t)far, length };

	switch (shm_access_copy(l, read, near->iov, near->count, &to, 1,
				length)) {
	case 0:
		return IBV_WC_SUCCESS;
	case -ESRCH:
		return IBV_WC_RETRY_EXC_ERR;
	case -EPERM:
		*step = SHM_STEP_TO_TARGET;
		return IBV_WC_GENERAL_ERR;
	default:
		/* `near` begins where the copy stopped: is our page missing there? */
		return hca_page_usable(near->iov[0].iov_base, read) ?
			       IBV_WC_REM_ACCESS_ERR :
			       IBV_WC_LOC_PROT_ERR;
	}
}

/* [at, at + length) of the entry's buffers. */
static int copy_mapped_carefully(const struct hca_qp *qp,
				 const struct hca_swqe *e, bool read, uint32_t at,
				 uint32_t length, uint8_t *far)
{
	return read ? hca_sges_write(qp->pd, e->sge, e->num_sge, at, far, length) :
		      hca_sges_read(qp->pd, e->sge, e->num_sge, at, far, length);
}

static void copy_piece(uint8_t *near, uint8_t *far, uint64_t length, bool read, bool is_long)
{
	/* Its last bytes may be what the target's program waits for. */
	uint64_t past = is_long && length > ORDERED_END ?
				(read ? length : length - ORDERED_END) : 0;

	if (past)
		hca_dma_copy_past_caches(read ? near : far, read ? far : near, past);
	if (read)
		memcpy(near + past, far + past, length - past);
	else
		hca_dma_copy_ordered(far + past, near + past, length - past);
}

static enum ibv_wc_status copy_mapped(const struct hca_qp *qp,
				      const struct hca_swqe *e, bool read,
				      const struct near *near,
				      const struct shm_part *part, uint8_t *far)
{
	if (unlikely(near->kernel))
		return copy_mapped_carefully(qp, e, read, part->at, part->length,
					     far) ?
			       IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
	for (int i = 0; i < near->count; i++) {
		const struct iovec *n = &near->iov[i];

		if (unlikely(read ? !hca_touch_write(n->iov_base, n->iov_len) :
				    !hca_touch_read(n->iov_base, n->iov_len)))
			return IBV_WC_LOC_PROT_ERR;
		copy_piece(n->iov_base, far, n->iov_len, read, e->length > SHM_COPY_LONG);
		far += n->iov_len;
	}
	return IBV_WC_SUCCESS;
}

/* Reads the word that an ATOMIC WRITE is to write. False: the buffer is not accessible. */
static bool take_word(const struct hca_qp *qp, const struct hca_swqe *e,
		      const struct near *near, uint64_t *word)
{
	uint8_t *to = (uint8_t *)word;

	for (int i = 0; i < near->count && !near->kernel; i++) {
		if (unlikely(!hca_touch_read(near->iov[i].iov_base, near->iov[i].iov_len)))
			return false;
		memcpy(to, near->iov[i].iov_base, near->iov[i].iov_len);
		to += near->iov[i].iov_len;
	}
	return !near->kernel ||
	       copy_mapped_carefully(qp, e, false, 0, e->length, to) == 0;
}

static enum ibv_wc_status write_word(const struct hca_qp *qp,
				     const struct hca_swqe *e,
				     const struct near *near, uint8_t *far)
{
	uint64_t word;

	if ((uintptr_t)far % sizeof(uint64_t))
		return IBV_WC_REM_OP_ERR;
	if (!take_word(qp, e, near, &word))
		return IBV_WC_LOC_PROT_ERR;
	shm_atomic_apply((uint64_t *)(void *)far, SHM_ATOMIC_WRITE, 0, word);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status atomic_mapped(const struct hca_qp *qp,
					const struct hca_swqe *e, uint8_t *far)
{
	/* An iova may be aligned where the memory is not. */
	if ((uintptr_t)far % sizeof(uint64_t))
		return IBV_WC_REM_OP_ERR;
	return shm_atomic_result(
		qp, e, shm_atomic_apply((uint64_t *)(void *)far,
					e->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ?
						SHM_COMPARE_SWAP : SHM_FETCH_ADD,
					e->atomic.compare_add, e->atomic.swap));
}

/* True if the protection of the peer's pages matters (on-demand memory) and the way of
 * access ignores it, as /proc/self/mem does. The target then does the operation. */
static bool forces(const struct shm_link *l, uint32_t flags)
{
	return (flags & HCA_KEY_ON_DEMAND) &&
	       atomic_load_explicit(&l->path, memory_order_relaxed) ==
		       SHM_PATH_PROCMEM;
}

/* Checks the QP, the SRQ and the key, and copies. The key is announced. */
static enum shm_step checked_copy(struct hca_qp *qp, const struct hca_swqe *e,
				  const struct shm_way *way,
				  const struct shm_part *part, struct near *near,
				  enum ibv_wc_status *status)
{
	const struct hca_qp_public *owner = way->owner;
	struct shm_link *l = way->link;
	bool word = hca_op_is_word(e->opcode), read = hca_op_takes_data(e->opcode);
	enum shm_step step = SHM_STEP_DONE;
	struct hca_key_use use = {
		.rkey = e->rkey,
		.qpn = qp->attr.dest_qp_num,
		.access = hca_opcodes[e->opcode].right,
		.iova = e->remote_addr,
		.length = e->length,
	};
	uint8_t *mapped = NULL;

	*status = IBV_WC_RETRY_EXC_ERR;
	/* Checked again now that the copy is announced: see shm_qp_fence(). */
	if (unlikely(!shm_answers(qp, way->remote)))
		return SHM_STEP_DONE;
	*status = IBV_WC_REM_ACCESS_ERR;
	if (unlikely(owner != way->remote &&
		     !shm_xrc_serves(owner, *hca_swqe_srqn((struct hca_swqe *)e),
				     way->remote)))
		return SHM_STEP_DONE;
	use.pd_id = atomic_load_explicit(&owner->pd_id, memory_order_relaxed);
	*status = hca_key_check(l->keys, shm_keys_upto(l, e->rkey), &use);
	if (unlikely(*status != IBV_WC_SUCCESS))
		return SHM_STEP_DONE;
	if (use.region_id)
		mapped = shm_map_find(l, e->rkey, use.region_id,
				      use.region_offset, e->length,
				      word || !read);
	if (!mapped && (word || unlikely(forces(l, use.flags))))
		return SHM_STEP_TO_TARGET;
	if (unlikely(!part->length))
		return SHM_STEP_DONE;
	if (word)
		*status = e->opcode == HCA_WR_ATOMIC_WRITE ?
				  write_word(qp, e, near, mapped) :
				  atomic_mapped(qp, e, mapped);
	else if (mapped)
		*status = copy_mapped(qp, e, read, near, part, mapped + part->at);
	else
		*status = copy_far(l, read, near, use.addr + part->at,
				   part->length, &step);
	return step;
}

bool shm_onesided_reaches(struct hca_qp *qp, struct shm_link *l,
			  const struct hca_swqe *e)
{
	bool write = e->opcode != IBV_WR_RDMA_READ;
	uint32_t region;

	/* Without the peer's keys the path is SHM_PATH_TARGET. */
	if (!hca_op_is_word(e->opcode) &&
	    atomic_load_explicit(&l->path, memory_order_relaxed) !=
		    SHM_PATH_TARGET)
		return true;
	if (e->rkey >> 8 >= shm_keys_upto(l, e->rkey))
		return false;
	region = __atomic_load_n(&l->keys[e->rkey >> 8].region_id,
				 __ATOMIC_RELAXED);
	return region && shm_map_find(l, e->rkey, region, 0, 0, write);
}

enum shm_step shm_onesided(struct hca_qp *qp, const struct hca_swqe *e,
			   const struct shm_way *way, const struct shm_part *part,
			   enum ibv_wc_status *status)
{
	struct near near = { .kernel = false };
	enum shm_step step;
	int hazard;

	/* Local buffers are checked before anything is copied. */
	*status = IBV_WC_LOC_PROT_ERR;
	near.count = shm_swqe_iov(qp, e, part->at,
				  part->length ? part->length : e->length,
				  hca_op_takes_data(e->opcode) ? IBV_ACCESS_LOCAL_WRITE : 0,
				  near.iov, &near.kernel);
	if (near.count < 0)
		return SHM_STEP_DONE;
	*status = IBV_WC_REM_INV_REQ_ERR;
	if (!(atomic_load_explicit(&way->remote->access, memory_order_relaxed) &
	      hca_opcodes[e->opcode].right) ||
	    (hca_op_is_word(e->opcode) && e->remote_addr % sizeof(uint64_t)))
		return SHM_STEP_DONE;
	*status = IBV_WC_SUCCESS;
	if (e->length == 0) /* no key is looked at (9.7.4.1.5) */
		return SHM_STEP_DONE;
	hazard = hca_hazard_enter((uint64_t)way->link->peer_tag << 32 | e->rkey);
	step = checked_copy(qp, e, way, part, &near, status);
	hca_hazard_leave(hazard);
	return step;
}

static bool announced(const struct hca_segment *s, uint64_t id)
{
	for (int i = 0; i < HCA_HAZARDS; i++)
		if (atomic_load_explicit(&s->hazards[i],
					 memory_order_acquire) == id)
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
	unsigned count = atomic_load(&shm.link_count);
	uint64_t id = own_key_id(key);
	bool busy;

	atomic_thread_fence(memory_order_seq_cst);
	busy = announced(hca_process.segment, id);
	for (unsigned i = 0; i < count && !busy; i++) {
		struct shm_link *l = shm.links[i];

		/* Ending a link unmaps the peer's segment with this lock held. */
		hca_lock(&l->tx_lock);
		busy = may_copy(l) && shm_reaches_us(l) &&
		       announced(l->peer, id);
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
	if (!may_copy(l) || (!all && !shm_reaches_us(l)) ||
	    atomic_load(&l->broken))
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

static void wait_for_copy(struct shm_link *l, bool all, unsigned place,
			  struct copy first)
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
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];
		bool all = initiates(l, qp);

		if (copies_at(l, all, 0, HCA_HAZARDS, copies))
			for (unsigned place = 0; place < HCA_HAZARDS; place++)
				if (copies[place].id)
					wait_for_copy(l, all, place,
						      copies[place]);
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
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++)
		wait_for_peer(shm.links[i], id);
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
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		wait_for_holder(&l->rx_lock);
		wait_for_holder(&l->tx_lock);
		wait_for_qps(l);
	}
	hca_hold_fence();
}
