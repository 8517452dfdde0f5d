/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ inside a host: the initiator checks the target's keys in
 * the target's shared table of keys and copies, with plain stores and loads if it
 * has the memory mapped (map.c), else by system calls (access.c). ATOMIC
 * operations likewise, on mapped memory only. The target need not run. The initiator
 * announces each copy (fence.c).
 *
 * A large copy is carried out by parts (copy.c). Each part is announced and checked like
 * a copy of its own, so a fence waits for the part only, not for the whole copy.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "hca/host/mapping.h"
#include "hca/limits.h"
#include "hca/memory/key.h"
#include "hca/memory/target.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/scatter.h"
#include "hca/run/dma.h"
#include "hca/run/touch.h"
#include "hca/share/process.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/log.h"

#define ORDERED_END 4096

/* The local side of a copy. */
struct near {
	struct iovec iov[HCA_MAX_SGE];
	int count;
	bool kernel; /* pages may be missing: only system calls may access it */
};

int shm_swqe_iov(const struct hca_qp *qp, const struct hca_swqe *e, uint32_t at,
		 uint32_t length, unsigned access, struct iovec *iov,
		 bool *kernel)
{
	if (e->flags & HCA_SWQE_INLINE) {
		iov[0] = (struct iovec){
			(void *)(uintptr_t)(e->inline_data + at), length };
		return 1;
	}
	return hca_sges_iov(qp->pd, e->sge, e->num_sge, at, length, access, iov, kernel);
}

bool shm_xrc_serves(const struct hca_qp_public *srq, uint32_t srqn,
		    const struct hca_qp_public *target)
{
	return srq &&
	       atomic_load_explicit(&srq->srqn, memory_order_acquire) == srqn &&
	       hca_xrcd_same(&srq->xrcd, &target->xrcd);
}

static enum ibv_wc_status copy_far(struct shm_link *l, bool read,
				   struct near *near, uint64_t far,
				   uint64_t length, enum shm_step *step)
{
	struct iovec to = { (void *)(uintptr_t)far, length };

	switch (shm_access_copy(l, read, near->iov, near->count, &to, 1, length)) {
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
	return !near->kernel || copy_mapped_carefully(qp, e, false, 0, e->length, to) == 0;
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
	hca_atomic_apply((uint64_t *)(void *)far, HCA_WR_ATOMIC_WRITE, 0, word);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status atomic_mapped(const struct hca_qp *qp,
					const struct hca_swqe *e, uint8_t *far)
{
	/* An iova may be aligned where the memory is not. */
	if ((uintptr_t)far % sizeof(uint64_t))
		return IBV_WC_REM_OP_ERR;
	return shm_atomic_result(
		qp, e, hca_atomic_apply((uint64_t *)(void *)far, e->opcode, e->atomic.compare_add,
					e->atomic.swap));
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
				  write_word(qp, e, near, mapped) : atomic_mapped(qp, e, mapped);
	else if (mapped)
		*status = copy_mapped(qp, e, read, near, part, mapped + part->at);
	else
		*status = copy_far(l, read, near, use.addr + part->at,
				   part->length, &step);
	return step;
}

bool shm_onesided_reaches(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
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
	region = __atomic_load_n(&l->keys[e->rkey >> 8].region_id, __ATOMIC_RELAXED);
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
