/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended completion queues (ibv_create_cq_ex(3)): polling entry by entry and
 * reading only the requested fields, with time stamps in ticks of the adapter's clock
 * (util/clock.h).
 *
 * ibv_start_poll() removes the oldest completion from the ring and holds poll_lock until
 * ibv_end_poll(). cq->lock is not held in between, so requests that the application posts
 * meanwhile can complete.
 */
#define LOG_ROOM "hca"
#include <errno.h>

#include "hca/hca.h"
#include "hca/object/pd.h"
#include "hca/queue/push.h"
#include "hca/run/elide.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/spin.h"

/* Without the fields of raw Ethernet packets and of tag matching. */
#define WC_FLAGS_OFFERED                                                \
	((uint64_t)IBV_WC_STANDARD_FLAGS |                              \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                          \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define COMP_MASK_KNOWN (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define FLAGS_KNOWN                            \
	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | \
	 IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static struct hca_cq *of_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct hca_cq, ex);
}

static bool take_next(struct hca_cq *cq)
{
	bool any;

	hca_enter();
	any = hca_cq_take(cq, &cq->current, &cq->current_stamp);
	hca_leave();
	if (!any)
		return false;
	cq->ex.wr_id = cq->current.wr_id;
	cq->ex.status = cq->current.status;
	return true;
}

static void leave(struct hca_cq *cq)
{
	if (!cq->single_threaded)
		spin_unlock(&cq->poll_lock);
}

static void move_again(struct hca_cq *cq)
{
	hca_enter();
	hca_cq_move_again(cq);
	hca_leave();
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct hca_cq *cq = of_ex(ex);

	if (unlikely(attr->comp_mask))
		return EINVAL;
	hca_enter();
	hca_cq_move(cq);
	hca_leave();
	if (unlikely(hca_cq_moved(cq, !hca_cq_empty(cq))))
		move_again(cq);
	if (hca_cq_empty(cq))
		goto empty;
	if (!cq->single_threaded)
		spin_lock(&cq->poll_lock);
	if (likely(take_next(cq)))
		return 0;
	leave(cq);
empty:
	return unlikely(atomic_load_explicit(&cq->overrun,
					     memory_order_relaxed)) ?
		       EIO :
		       ENOENT;
}

/* Also finds completions that came while the program read those before. */
static int next_poll(struct ibv_cq_ex *ex)
{
	struct hca_cq *cq = of_ex(ex);

	if (likely(take_next(cq)))
		return 0;
	move_again(cq);
	return take_next(cq) ? 0 : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	leave(of_ex(ex));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.vendor_err;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.wc_flags;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.byte_len;
}

/* Also the key that a SEND with invalidate has invalidated: both are in one union. */
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.src_qp;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return of_ex(ex)->current_stamp;
}

/* The wall clock now, minus the time since the completion. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	uint64_t wall_ns = timespec_to_ns(clock_realtime());

	return wall_ns - clock_ticks_to_ns(clock_ticks() -
					   of_ex(ex)->current_stamp);
}

/* Readers of fields that were not requested remain NULL, as with other adapters: a program that
 * calls one must not work here only. */
static void readers_init(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define READER(flag, name)                \
	if (wc_flags & IBV_WC_EX_WITH_##flag) \
		ex->read_##name = read_##name
	READER(BYTE_LEN, byte_len);
	READER(IMM, imm_data);
	READER(QP_NUM, qp_num);
	READER(SRC_QP, src_qp);
	READER(SLID, slid);
	READER(SL, sl);
	READER(DLID_PATH_BITS, dlid_path_bits);
	READER(COMPLETION_TIMESTAMP, completion_ts);
	READER(COMPLETION_TIMESTAMP_WALLCLOCK, completion_wallclock_ns);
#undef READER
}

static int check(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *a)
{
	if (a->comp_mask & ~(uint32_t)COMP_MASK_KNOWN ||
	    ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     a->flags & ~(uint32_t)FLAGS_KNOWN) ||
	    a->comp_vector >= (uint32_t)ctx->num_comp_vectors)
		return -EINVAL;
	/* Must be a parent domain. */
	if ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!a->parent_domain || a->parent_domain->context != ctx ||
	     !hca_pd(a->parent_domain)->domain))
		return -EINVAL;
	return a->wc_flags & ~WC_FLAGS_OFFERED ? -EOPNOTSUPP : 0;
}

static struct ibv_cq_ex *op_create_cq_ex(struct ibv_context *ctx,
					 struct ibv_cq_init_attr_ex *attr)
{
	CANCEL_OFF;
	struct ibv_cq *cq;
	int ret = check(ctx, attr);

	if (!ret)
		ret = hca_cq_create(ctx, attr, &cq);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	readers_init(&hca_cq(cq)->ex, attr->wc_flags);
	return &hca_cq(cq)->ex;
}

static int op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	CANCEL_OFF;
	return -hca_cq_modify(cq, attr);
}

/* The clock of the time stamps, with ticks in tv_nsec as with other adapters. */
static int op_query_rt_values(struct ibv_context *ctx,
			      struct ibv_values_ex *values)
{
	uint32_t asked = values->comp_mask;

	values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
	if (values->comp_mask)
		values->raw_clock = (struct timespec){
			.tv_nsec = (long)clock_ticks(),
		};
	return 0;
}

void hca_cq_ex_ops_init(struct verbs_context *v)
{
	v->create_cq_ex = op_create_cq_ex;
	v->modify_cq = op_modify_cq;
	v->query_rt_values = op_query_rt_values;
}
