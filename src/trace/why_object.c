/* SPDX-License-Identifier: BSD-2-Clause */
/* Why objects cannot be made, changed or destroyed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/calls.h"

/* ---- users of an object ---- */

struct users {
	const void *object;
	struct text *t;
	unsigned found;
};

#define USERS_SHOWN 4

static void user(struct users *u, const char *kind, uint64_t number)
{
	if (u->found++ < USERS_SHOWN)
		text_item(u->t, "%s 0x%" PRIx64, kind, number);
}

static bool qp_uses(void *handle, void *arg)
{
	struct ibv_qp *qp = handle;
	struct users *u = arg;

	if (qp->pd == u->object || qp->send_cq == u->object || qp->recv_cq == u->object ||
	    qp->srq == u->object)
		user(u, "queue pair", qp->qp_num);
	return true;
}

static bool mr_uses(void *handle, void *arg)
{
	struct ibv_mr *mr = handle;

	if (mr->pd == ((struct users *)arg)->object)
		user(arg, "memory region with lkey", mr->lkey);
	return true;
}

static bool mw_uses(void *handle, void *arg)
{
	struct ibv_mw *mw = handle;

	if (mw->pd == ((struct users *)arg)->object)
		user(arg, "memory window with rkey", mw->rkey);
	return true;
}

static bool srq_uses(void *handle, void *arg)
{
	struct ibv_srq *srq = handle;

	if (srq->pd == ((struct users *)arg)->object)
		user(arg, "srq", (uintptr_t)srq);
	return true;
}

static bool ah_uses(void *handle, void *arg)
{
	struct ibv_ah *ah = handle;

	if (ah->pd == ((struct users *)arg)->object)
		user(arg, "address handle", (uintptr_t)ah);
	return true;
}

static bool cq_uses(void *handle, void *arg)
{
	struct ibv_cq *cq = handle;

	if (cq->channel == ((struct users *)arg)->object)
		user(arg, "completion queue", (uintptr_t)cq);
	return true;
}

static void why_busy(struct text *t, int error, const void *object, const char *what)
{
	struct users u = { .object = object, .t = t };

	if (!object) {
		text_add(t, "%s is NULL", what);
		return;
	}
	if (error != EBUSY)
		return;
	text_add(t, "still used by ");
	t->item = false;
	object_each(OBJECT_QP, qp_uses, &u);
	object_each(OBJECT_MR, mr_uses, &u);
	object_each(OBJECT_MW, mw_uses, &u);
	object_each(OBJECT_SRQ, srq_uses, &u);
	object_each(OBJECT_AH, ah_uses, &u);
	object_each(OBJECT_CQ, cq_uses, &u);
	if (u.found > USERS_SHOWN)
		text_add(t, " and %u more", u.found - USERS_SHOWN);
	text_add(t, "%s; these must be destroyed first",
		 u.found ? "" : "objects that the trace does not know");
}

void why_ibv_dealloc_pd(struct text *t, int error, struct ibv_pd *pd)
{
	why_busy(t, error, pd, "pd");
}

void why_ibv_destroy_cq(struct text *t, int error, struct ibv_cq *cq)
{
	why_busy(t, error, cq, "cq");
}

void why_ibv_destroy_srq(struct text *t, int error, struct ibv_srq *srq)
{
	why_busy(t, error, srq, "srq");
}

void why_ibv_destroy_comp_channel(struct text *t, int error, struct ibv_comp_channel *channel)
{
	why_busy(t, error, channel, "channel");
}

void why_ibv_dereg_mr(struct text *t, int error, struct ibv_mr *mr)
{
	if (!mr)
		text_add(t, "mr is NULL");
	else if (error == EBUSY)
		text_add(t, "a memory window is still bound to it: invalidate or deallocate the window first");
}

void why_ibv_destroy_qp(struct text *t, int error, struct ibv_qp *qp)
{
	if (!qp)
		text_add(t, "qp is NULL");
	else if (error == EBUSY)
		text_add(t, "it is still attached to a multicast group: ibv_detach_mcast first");
}

/* ---- memory ---- */

/* Is [addr, addr + length) mapped, and with `write` writable? Else `hole` is the first
 * address that is not. */
static bool range_mapped(const void *addr, size_t length, bool write, char hole[32])
{
	uintptr_t at = (uintptr_t)addr, end = at + length, first, last;
	char line[512], rights[8];
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return true;
	while (at < end && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &first, &last, rights) != 3 ||
		    last <= at)
			continue;
		if (first > at || (write && rights[1] != 'w') || rights[0] != 'r')
			break;
		at = last;
	}
	fclose(f);
	snprintf(hole, 32, "0x%" PRIxPTR, at);
	return at >= end;
}

static void why_region(struct text *t, int error, struct ibv_pd *pd, void *addr, size_t length,
		       unsigned access)
{
	const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	char hole[32];

	if (!pd)
		text_add(t, "pd is NULL");
	else if (access & remote && !(access & IBV_ACCESS_LOCAL_WRITE))
		text_add(t, "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE as well");
	else if (!length && (uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE) == 0)
		text_add(t, "length is 0: a region has at least one page");
	else if ((uintptr_t)addr + length < (uintptr_t)addr)
		text_add(t, "addr + length goes beyond the address space");
	else if (!(access & IBV_ACCESS_ON_DEMAND) &&
		 !range_mapped(addr, length, access & IBV_ACCESS_LOCAL_WRITE, hole))
		text_add(t, "the memory from %s on is not mapped%s", hole,
			 access & IBV_ACCESS_LOCAL_WRITE ?
				 " or not writable (IBV_ACCESS_LOCAL_WRITE)" : "");
	else if (access >> 8 & ~(IBV_ACCESS_OPTIONAL_RANGE >> 8)) {
		text_add(t, "access has bits that this device does not know: ");
		text_access(t, access);
	} else if (access & IBV_ACCESS_HUGETLB)
		text_add(t, "IBV_ACCESS_HUGETLB: not possible with this memory");
	else if (error == ENOMEM)
		text_add(t, "no more regions (max_mr %d), or not enough memory may be locked (ulimit -l)",
			 why_device(pd->context).max_mr);
}

void why_ibv_reg_mr(struct text *t, int error, struct ibv_pd *pd, void *addr, size_t length,
		    int access)
{
	why_region(t, error, pd, addr, length, (unsigned)access);
}

void why_ibv_reg_mr_iova(struct text *t, int error, struct ibv_pd *pd, void *addr,
			 size_t length, uint64_t iova, int access)
{
	why_region(t, error, pd, addr, length, (unsigned)access);
}

void why_ibv_reg_mr_iova2(struct text *t, int error, struct ibv_pd *pd, void *addr,
			  size_t length, uint64_t iova, unsigned int access)
{
	why_region(t, error, pd, addr, length, access);
}

void why_ibv_advise_mr(struct text *t, int error, struct ibv_pd *pd,
		       enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge,
		       uint32_t count)
{
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		text_add(t, "flags 0x%x: only IBV_ADVISE_MR_FLAG_FLUSH is known", flags);
	else if (error == EOPNOTSUPP)
		text_add(t, "the device does not know this advice");
	else if (!count)
		text_add(t, "num_sge is 0");
	else
		text_add(t, "each piece must lie in a region of this protection domain that was registered with IBV_ACCESS_ON_DEMAND and has its lkey");
}

void why_ibv_alloc_dm(struct text *t, int error, struct ibv_context *context,
		      struct ibv_alloc_dm_attr *a)
{
	if (error == ENOMEM || error == EINVAL)
		text_add(t, "length %zu: ibv_query_device_ex tells in max_dm_size how much device memory there is",
			 a->length);
}

void why_ibv_bind_mw(struct text *t, int error, struct ibv_qp *qp, struct ibv_mw *mw,
		     struct ibv_mw_bind *b)
{
	const struct ibv_mw_bind_info *i = &b->bind_info;

	if (!i->mr)
		text_add(t, "bind_info.mr is NULL");
	else if (mw->pd != qp->pd || i->mr->pd != qp->pd)
		text_add(t, "window, region and queue pair must have one protection domain");
	else if (error == EPERM || error == EINVAL)
		text_add(t, "the region must have IBV_ACCESS_MW_BIND (and for remote write IBV_ACCESS_LOCAL_WRITE), and the range must lie in it");
}

/* ---- completion queues ---- */

static bool cqe_wrong(struct text *t, struct ibv_context *context, long cqe)
{
	int max = why_device(context).max_cqe;

	if (cqe >= 1 && cqe <= max)
		return false;
	text_add(t, "cqe is %ld, it must be 1 to %d (max_cqe)", cqe, max);
	return true;
}

static void why_cq(struct text *t, struct ibv_context *context, long cqe,
		   const struct ibv_comp_channel *channel, int vector)
{
	if (!context)
		text_add(t, "context is NULL");
	else if (cqe_wrong(t, context, cqe))
		return;
	else if (vector < 0 || vector >= context->num_comp_vectors)
		text_add(t, "comp_vector is %d, the device has %d (0 to %d)", vector,
			 context->num_comp_vectors, context->num_comp_vectors - 1);
	else if (channel && object_lives(OBJECT_CHANNEL, channel) && channel->context != context)
		text_add(t, "the channel is of another context than the queue");
}

void why_ibv_create_cq(struct text *t, int error, struct ibv_context *context, int cqe,
		       void *cq_context, struct ibv_comp_channel *channel, int vector)
{
	why_cq(t, context, cqe, channel, vector);
}

void why_ibv_create_cq_ex(struct text *t, int error, struct ibv_context *context,
			  struct ibv_cq_init_attr_ex *a)
{
	size_t before = t->length;

	why_cq(t, context, a->cqe, a->channel, (int)a->comp_vector);
	if (t->length == before)
		text_add(t, "wc_flags 0x%" PRIx64 ", comp_mask 0x%x, flags 0x%x: the device does not offer all of these",
			 a->wc_flags, a->comp_mask, a->flags);
}

void why_ibv_resize_cq(struct text *t, int error, struct ibv_cq *cq, int cqe)
{
	if (!cqe_wrong(t, cq->context, cqe))
		text_add(t, "cqe %d is less than the completions that are in the queue", cqe);
}

/* ---- queue pairs ---- */

static bool cap_wrong(struct text *t, struct ibv_context *context, const struct ibv_qp_cap *c,
		      bool receives)
{
	struct ibv_device_attr d = why_device(context);

	if (why_above(t, "cap.max_send_wr", c->max_send_wr, (uint64_t)d.max_qp_wr,
		      "the device (max_qp_wr)") ||
	    why_above(t, "cap.max_send_sge", c->max_send_sge, (uint64_t)d.max_sge,
		      "the device (max_sge)"))
		return true;
	return receives && (why_above(t, "cap.max_recv_wr", c->max_recv_wr,
				      (uint64_t)d.max_qp_wr, "the device (max_qp_wr)") ||
			    why_above(t, "cap.max_recv_sge", c->max_recv_sge,
				      (uint64_t)d.max_sge, "the device (max_sge)"));
}

static bool cq_wrong(struct text *t, const char *name, const struct ibv_cq *cq,
		     const struct ibv_context *context)
{
	if (!cq)
		text_add(t, "%s is NULL", name);
	else if (cq->context != context)
		text_add(t, "%s is of another context than the queue pair", name);
	else
		return false;
	return true;
}

static void not_offered(struct text *t, enum ibv_qp_type type)
{
	text_add(t, "qp_type ");
	text_qp_type(t, type);
	text_add(t, " is not offered by this device");
}

static void why_create_qp(struct text *t, int error, struct ibv_context *context,
			  const struct ibv_qp_init_attr *a)
{
	bool receives = a->qp_type != IBV_QPT_XRC_SEND && !a->srq;
	size_t before = t->length;

	if (error == EOPNOTSUPP && (a->qp_type == IBV_QPT_RAW_PACKET ||
				    a->qp_type == IBV_QPT_DRIVER || a->qp_type > IBV_QPT_DRIVER ||
				    a->qp_type < IBV_QPT_RC)) {
		not_offered(t, a->qp_type);
		return;
	}
	if (a->qp_type != IBV_QPT_XRC_RECV) {
		if (cq_wrong(t, "send_cq", a->send_cq, context) ||
		    (receives && cq_wrong(t, "recv_cq", a->recv_cq, context)) ||
		    cap_wrong(t, context, &a->cap, receives))
			return;
	}
	if (a->srq && a->srq->context != context)
		text_add(t, "srq is of another context than the queue pair");
	else if (a->srq && a->qp_type == IBV_QPT_UC)
		text_add(t, "a queue pair of type UC cannot have a shared receive queue: only RC, UD and XRC");
	else if (a->cap.max_inline_data > 64)
		text_add(t, "cap.max_inline_data is %u, more than this device has (try less: 64)",
			 a->cap.max_inline_data);
	else if (error == EIO)
		text_add(t, "the device has failed: close it and open it anew");
	else if (error == ENOMEM && t->length == before)
		text_add(t, "no more queue pairs (max_qp %d) or no memory",
			 why_device(context).max_qp);
}

void why_ibv_create_qp(struct text *t, int error, struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	if (!pd || !a)
		text_add(t, "%s is NULL", pd ? "qp_init_attr" : "pd");
	else if (error == EOPNOTSUPP) /* there is nothing else here to be supported */
		not_offered(t, a->qp_type);
	else
		why_create_qp(t, error, pd->context, a);
}

void why_ibv_create_qp_ex(struct text *t, int error, struct ibv_context *context,
			  struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp_init_attr plain;
	size_t before = t->length;

	/* Both structures have the same members at the beginning. */
	memcpy(&plain, a, offsetof(struct ibv_qp_init_attr, sq_sig_all));
	if (a->qp_type == IBV_QPT_XRC_RECV) {
		if (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD))
			text_add(t, "a queue pair of type XRC_RECV needs IBV_QP_INIT_ATTR_XRCD in comp_mask, and xrcd");
		return;
	}
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd) {
		text_add(t, "IBV_QP_INIT_ATTR_PD is missing in comp_mask, or pd is NULL");
		return;
	}
	if (a->pd->context != context) {
		text_add(t, "pd is of another context than the queue pair");
		return;
	}
	why_create_qp(t, error, context, &plain);
	if (t->length != before)
		return;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		text_add(t, "send_ops_flags 0x%" PRIx64 " has operations that ",
			 a->send_ops_flags);
	else
		text_add(t, "comp_mask 0x%x, create_flags 0x%x has something that ", a->comp_mask,
			 a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0);
	text_add(t, "a queue pair of type ");
	text_qp_type(t, a->qp_type);
	text_add(t, " of this device does not offer");
}

static void why_mcast(struct text *t, int error, struct ibv_qp *qp, const union ibv_gid *gid,
		      bool detach)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	bool multicast = gid && (gid->raw[0] == 0xff ||
				 (!memcmp(gid->raw, v4, 12) && gid->raw[12] >> 4 == 0xe));

	if (!qp || !gid) {
		text_add(t, "%s is NULL", qp ? "gid" : "qp");
	} else if (error == EOPNOTSUPP) {
		text_add(t, "the device has no multicast groups (max_mcast_grp is %d)",
			 why_device(qp->context).max_mcast_grp);
	} else if (!multicast) {
		text_gid(t, gid);
		text_add(t, " is no multicast address");
	} else if (qp->qp_type != IBV_QPT_UD) {
		text_add(t, "only a queue pair of type UD can be in a multicast group, this one is ");
		text_qp_type(t, qp->qp_type);
	} else if (detach)
		text_add(t, "the queue pair is not attached to this group");
	else if (error == ENOMEM)
		text_add(t, "the device has at most %d groups (max_mcast_grp)",
			 why_device(qp->context).max_mcast_grp);
}

void why_ibv_attach_mcast(struct text *t, int error, struct ibv_qp *qp,
			  const union ibv_gid *gid, uint16_t lid)
{
	why_mcast(t, error, qp, gid, false);
}

void why_ibv_detach_mcast(struct text *t, int error, struct ibv_qp *qp,
			  const union ibv_gid *gid, uint16_t lid)
{
	why_mcast(t, error, qp, gid, true);
}

/* ---- shared receive queues, address handles ---- */

static bool srq_wrong(struct text *t, struct ibv_context *context, const struct ibv_srq_attr *a)
{
	struct ibv_device_attr d = why_device(context);

	if (!a->max_wr) {
		text_add(t, "max_wr is 0");
		return true;
	}
	return why_above(t, "max_wr", a->max_wr, (uint64_t)d.max_srq_wr,
			 "the device (max_srq_wr)") ||
	       why_above(t, "max_sge", a->max_sge, (uint64_t)d.max_srq_sge,
			 "the device (max_srq_sge)");
}

void why_ibv_create_srq(struct text *t, int error, struct ibv_pd *pd,
			struct ibv_srq_init_attr *a)
{
	if (!pd || !a)
		text_add(t, "%s is NULL", pd ? "srq_init_attr" : "pd");
	else
		srq_wrong(t, pd->context, &a->attr);
}

void why_ibv_create_srq_ex(struct text *t, int error, struct ibv_context *context,
			   struct ibv_srq_init_attr_ex *a)
{
	enum ibv_srq_type type = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? a->srq_type :
									 IBV_SRQT_BASIC;

	if (type == IBV_SRQT_TM)
		text_add(t, "tag matching (IBV_SRQT_TM) is not offered by this device");
	else if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd)
		text_add(t, "IBV_SRQ_INIT_ATTR_PD is missing in comp_mask, or pd is NULL");
	else if (type == IBV_SRQT_XRC && (!(a->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !a->xrcd ||
					  !(a->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !a->cq))
		text_add(t, "an SRQ of type XRC needs IBV_SRQ_INIT_ATTR_XRCD and IBV_SRQ_INIT_ATTR_CQ in comp_mask, and both objects");
	else
		srq_wrong(t, context, &a->attr);
}

void why_ibv_modify_srq(struct text *t, int error, struct ibv_srq *srq, struct ibv_srq_attr *a,
			int mask)
{
	int (*query)(struct ibv_srq *, struct ibv_srq_attr *) =
		__extension__(__typeof__(query))real_find("ibv_query_srq", "IBVERBS_1.1");
	struct ibv_srq_attr now = { 0 };

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) {
		text_add(t, "srq_attr_mask 0x%x: only IBV_SRQ_MAX_WR (1) and IBV_SRQ_LIMIT (2) are known",
			 (unsigned)mask);
		return;
	}
	if (mask & IBV_SRQ_MAX_WR) {
		now.max_sge = 1;
		now.max_wr = a->max_wr;
		if (srq_wrong(t, srq->context, &now))
			return;
	}
	if (query && query(srq, &now))
		return;
	if (mask & IBV_SRQ_MAX_WR)
		now.max_wr = a->max_wr;
	if (mask & IBV_SRQ_LIMIT)
		why_above(t, "srq_limit", a->srq_limit, now.max_wr, "the queue (max_wr)");
	else
		text_add(t, "max_wr %u is less than the requests in the queue, or than its limit (%u)",
			 now.max_wr, now.srq_limit);
}

void why_ibv_create_ah(struct text *t, int error, struct ibv_pd *pd, struct ibv_ah_attr *a)
{
	if (!pd || !a)
		text_add(t, "%s is NULL", pd ? "attr" : "pd");
	else if (error == EOPNOTSUPP)
		text_add(t, "the device has no datagrams (max_ah is %d)",
			 why_device(pd->context).max_ah);
	else
		why_vector(t, pd->context, a);
}
