/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ inside a host: the initiator checks the target's keys in
 * the target's shared segment and copies with process_vm_writev/readv. The
 * target need not run.
 *
 * De-registration must not return while somebody still copies. The initiator
 * announces the key in its own segment (a hazard), then checks it; the owner
 * withdraws the key, then looks for hazards. With a full fence between the two
 * steps on both sides one of them sees the other.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "hca/settings.h"
#include "transport/shm/shm.h"
#include "util/clock.h"
#include "util/log.h"

#define FENCE_YIELDS 1000
#define FENCE_PAUSE_US 200

bool shm_access_probe(pid_t pid, uint64_t segment_addr, const uint8_t uuid[16])
{
	uint8_t seen[16];
	struct iovec to = { .iov_base = seen, .iov_len = sizeof(seen) };
	struct iovec from = {
		.iov_base = (void *)(uintptr_t)(segment_addr +
						offsetof(struct hca_segment,
							 uuid)),
		.iov_len = sizeof(seen),
	};

	return hca_settings.process_vm &&
	       process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof(seen) &&
	       !memcmp(seen, uuid, sizeof(seen));
}

/* Local side of the copy; IBV_WC_LOC_PROT_ERR when an entry may not be used. */
static enum ibv_wc_status local_iov(struct hca_qp *qp, const struct hca_swqe *e,
				    bool read, struct iovec *iov, int *count)
{
	if (e->flags & HCA_SWQE_INLINE) {
		iov[0] = (struct iovec){ (void *)(uintptr_t)e->inline_data,
					 e->length };
		*count = 1;
		return IBV_WC_SUCCESS;
	}
	for (unsigned i = 0; i < e->num_sge; i++) {
		unsigned right = read ? IBV_ACCESS_LOCAL_WRITE : 0;
		void *at = hca_sge_resolve(qp->pd, &e->sge[i], right);

		if (unlikely(!at && e->sge[i].length)) {
			at = hca_sge_for_kernel(qp->pd, &e->sge[i], right);
			if (!at)
				return IBV_WC_LOC_PROT_ERR;
		}
		iov[i] = (struct iovec){ at, e->sge[i].length };
	}
	*count = e->num_sge;
	return IBV_WC_SUCCESS;
}

/* The whole of iov; process_vm_* may stop early. */
static enum ibv_wc_status copy_all(const struct shm_link *l, bool read,
				   struct iovec *iov, int count, uint64_t remote,
				   uint64_t length)
{
	while (length > 0) {
		struct iovec far = { (void *)(uintptr_t)remote, length };
		ssize_t n;

		n = read ? process_vm_readv(l->pid, iov, (unsigned long)count,
					    &far, 1, 0)
			 : process_vm_writev(l->pid, iov, (unsigned long)count,
					     &far, 1, 0);
		if (n <= 0) {
			log_debug("%s of pid %d failed: %m",
				  read ? "read" : "write", (int)l->pid);
			if (n < 0 && errno == ESRCH)
				return IBV_WC_RETRY_EXC_ERR;
			/* It stops where a page is missing: ours or theirs? */
			return hca_page_usable(iov[0].iov_base, read) ?
				       IBV_WC_REM_ACCESS_ERR :
				       IBV_WC_LOC_PROT_ERR;
		}
		remote += (uint64_t)n;
		length -= (uint64_t)n;
		count = shm_iov_advance(iov, count, (size_t)n);
	}
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status checked_copy(struct hca_qp *qp, struct shm_link *l,
				       const struct hca_swqe *e, uint32_t pd_id,
				       bool read, struct iovec *iov, int count)
{
	unsigned right = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	int hazard = hca_hazard_enter((uint64_t)l->peer_tag << 32 | e->rkey);
	struct hca_key_use use = {
		.rkey = e->rkey,
		.pd_id = pd_id,
		.qpn = qp->attr.dest_qp_num,
		.access = right,
		.iova = e->remote_addr,
		.length = e->length,
	};
	enum ibv_wc_status status;

	/* hca_hazard_enter() is a locked instruction: the full fence. */
	status = hca_key_check(l->peer->keys, &use);
	if (status == IBV_WC_SUCCESS)
		status = copy_all(l, read, iov, count, use.addr, e->length);
	hca_hazard_leave(hazard);
	return status;
}

enum ibv_wc_status shm_onesided(struct hca_qp *qp, struct shm_link *l,
				const struct hca_swqe *e,
				const struct hca_qp_public *owner)
{
	bool read = e->opcode == IBV_WR_RDMA_READ;
	unsigned right = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	struct iovec iov[HCA_MAX_SGE];
	enum ibv_wc_status status;
	int count;

	status = local_iov(qp, e, read, iov, &count);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (!(atomic_load_explicit(&qp->remote->access, memory_order_relaxed) &
	      right))
		return IBV_WC_REM_INV_REQ_ERR;
	if (e->length == 0) /* no key is looked at (9.7.4.1.5) */
		return IBV_WC_SUCCESS;
	return checked_copy(qp, l, e,
			    atomic_load_explicit(&owner->pd_id,
						 memory_order_relaxed),
			    read, iov, count);
}

static bool announced(const struct hca_segment *s, uint64_t id)
{
	for (int i = 0; i < HCA_HAZARDS; i++)
		if (atomic_load_explicit(&s->hazards[i],
					 memory_order_acquire) == id)
			return true;
	return false;
}

/* Our own copies, of messages: who has the lock may still use the key. */
static void wait_for_copies(struct shm_link *l)
{
	hca_lock(&l->rx_lock);
	hca_lock(&l->tx_lock);
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->rx_lock);
}

/* And one-sided ones, and results of atomics, of the link's QPs. A thread that is
 * building a request (ibv_wr_start) has such a lock itself, and copies nothing. */
static void wait_for_qps(struct shm_link *l)
{
	if (hca_self.depth)
		return;
	pthread_mutex_lock(&shm.lock);
	list_for_each(qp, &l->qps, struct hca_qp, link_entry) {
		hca_lock(&qp->sq_lock);
		hca_unlock(&qp->sq_lock);
	}
	pthread_mutex_unlock(&shm.lock);
}

static uint64_t own_key_id(uint32_t key)
{
	return (uint64_t)shm_uuid_tag(hca_process.uuid) << 32 | key;
}

/* Of a window: copies by peers, and our own atomics through it (atomic.c). One
 * that cannot reach our memory only says that it copies. */
bool shm_key_busy(uint32_t key)
{
	unsigned count = atomic_load(&shm.link_count);
	uint64_t id = own_key_id(key);
	bool busy;

	atomic_thread_fence(memory_order_seq_cst);
	busy = announced(hca_process.segment, id);
	for (unsigned i = 0; i < count && !busy; i++) {
		struct shm_link *l = shm.links[i];

		/* A link that ends unmaps its peer's segment under this. */
		hca_lock(&l->tx_lock);
		busy = atomic_load(&l->state) == SHM_LINK_UP && l->can_pull &&
		       announced(l->peer, id);
		hca_unlock(&l->tx_lock);
	}
	return busy;
}

/* Is somebody at the other end of the link, and copying with the key? */
static bool copies_with(struct shm_link *l, uint64_t id)
{
	bool copies;

	pthread_mutex_lock(&shm.lock);
	copies = atomic_load(&l->state) == SHM_LINK_UP && l->can_pull &&
		 !atomic_load(&l->broken) && announced(l->peer, id);
	pthread_mutex_unlock(&shm.lock);
	return copies;
}

/* Whoever holds a key for longer than any copy takes is not waited for again:
 * its link ends. */
static void wait_for_peer(struct shm_link *l, uint64_t id)
{
	uint64_t start = progress_now_ns();

	for (unsigned i = 0; copies_with(l, id); i++) {
		if (progress_now_ns() - start > SHM_FENCE_LIMIT_NS) {
			shm_link_violation(l, "a key held for too long");
			return;
		}
		if (i < FENCE_YIELDS)
			sched_yield();
		else
			usleep(FENCE_PAUSE_US);
	}
}

void shm_key_fence(uint32_t key)
{
	uint64_t id = own_key_id(key);

	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		wait_for_peer(shm.links[i], id);
		wait_for_copies(shm.links[i]);
		wait_for_qps(shm.links[i]);
	}
}
