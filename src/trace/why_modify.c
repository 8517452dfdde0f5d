/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a queue pair does not change its state: the transitions of the InfiniBand
 * specification (volume 1, 11.2.5.2) with the attributes that each needs and allows
 * (ibv_modify_qp(3)), and the values that attributes may have.
 */
#include <inttypes.h>
#include <string.h>

#include "trace/calls.h"

#define CUR IBV_QP_CUR_STATE
#define ACCESS IBV_QP_ACCESS_FLAGS
#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define QKEY IBV_QP_QKEY
#define AV IBV_QP_AV
#define MTU IBV_QP_PATH_MTU
#define TIMEOUT IBV_QP_TIMEOUT
#define RETRY IBV_QP_RETRY_CNT
#define RNR IBV_QP_RNR_RETRY
#define RQ_PSN IBV_QP_RQ_PSN
#define SQ_PSN IBV_QP_SQ_PSN
#define RD IBV_QP_MAX_QP_RD_ATOMIC
#define DEST_RD IBV_QP_MAX_DEST_RD_ATOMIC
#define ALT IBV_QP_ALT_PATH
#define MIN_RNR IBV_QP_MIN_RNR_TIMER
#define MIG IBV_QP_PATH_MIG_STATE
#define DEST IBV_QP_DEST_QPN

/* For RC, which has all attributes; those that another type lacks are masked out. */
static const struct step {
	enum ibv_qp_state from, to;
	int needed, allowed;
} steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS | QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS | QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN | DEST_RD | MIN_RNR,
	  ALT | ACCESS | PKEY | QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | SQ_PSN | RD,
	  CUR | ALT | ACCESS | MIN_RNR | MIG | QKEY | IBV_QP_RATE_LIMIT },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  CUR | ACCESS | ALT | MIG | MIN_RNR | QKEY | IBV_QP_RATE_LIMIT },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR | RD | DEST_RD | ALT | ACCESS | PKEY | MIN_RNR |
		  MIG | QKEY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MIN_RNR | MIG | QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS | QKEY },
};

static int not_of(enum ibv_qp_type type)
{
	const int reliable = TIMEOUT | RETRY | RNR | RD | DEST_RD | MIN_RNR;

	switch (type) {
	case IBV_QPT_UC:
		return QKEY | reliable;
	case IBV_QPT_UD:
		return reliable | ACCESS | AV | MTU | DEST | RQ_PSN | ALT | MIG;
	case IBV_QPT_XRC_SEND:
		return QKEY | DEST_RD | MIN_RNR;
	case IBV_QPT_XRC_RECV:
		return QKEY | RETRY | RNR | RD;
	default:
		return QKEY;
	}
}

static const struct step *step_find(enum ibv_qp_state from, enum ibv_qp_state to)
{
	for (size_t i = 0; i < COUNT(steps); i++)
		if (steps[i].from == from && steps[i].to == to)
			return &steps[i];
	return NULL;
}

static void no_such_step(struct text *t, enum ibv_qp_state from, enum ibv_qp_state to)
{
	text_add(t, "from ");
	text_state(t, from);
	text_add(t, " only ");
	for (size_t i = 0; i < COUNT(steps); i++)
		if (steps[i].from == from) {
			text_state(t, steps[i].to);
			text_add(t, ", ");
		}
	text_add(t, "RESET and ERR are possible");
	if (to == IBV_QPS_RTR)
		text_add(t, "; IBV_QP_STATE must go RESET -> INIT -> RTR");
	else if (to == IBV_QPS_RTS && from != IBV_QPS_ERR)
		text_add(t, "; IBV_QP_STATE must go RESET -> INIT -> RTR -> RTS");
	else if (from == IBV_QPS_ERR)
		text_add(t, "; out of ERR it must go to RESET first");
}

static bool mask_wrong(struct text *t, enum ibv_qp_type type, enum ibv_qp_state from,
		       enum ibv_qp_state to, int mask)
{
	const struct step *s = step_find(from, to);
	int needed, allowed;

	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
		needed = 0;
		allowed = CUR;
	} else if (!s) {
		no_such_step(t, from, to);
		return true;
	} else {
		needed = s->needed & ~not_of(type);
		if (type == IBV_QPT_UD && from == IBV_QPS_RESET)
			needed = PKEY | PORT | QKEY;
		allowed = needed | (s->allowed & ~not_of(type));
		/* Programs set the attributes of both XRC types at once; allowed. */
		if (type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV)
			allowed |= (s->needed | s->allowed) & ~QKEY;
	}
	if (needed & ~mask) {
		text_qp_mask(t, (unsigned)(needed & ~mask));
		text_add(t, " missing in attr_mask: ");
	} else if (mask & ~allowed) {
		text_qp_mask(t, (unsigned)(mask & ~allowed));
		text_add(t, " not allowed in attr_mask: ");
	} else {
		return false;
	}
	text_state(t, from);
	text_add(t, " -> ");
	text_state(t, to);
	text_add(t, " of ");
	text_qp_type(t, type);
	text_add(t, " needs ");
	text_qp_mask(t, (unsigned)needed);
	if (allowed & ~needed) {
		text_add(t, " and may have ");
		text_qp_mask(t, (unsigned)(allowed & ~needed));
	}
	return true;
}

static bool values_wrong(struct text *t, struct ibv_context *context,
			 const struct ibv_qp_attr *a, int mask)
{
	struct ibv_device_attr device = why_device(context);
	struct ibv_port_attr port = why_port(context, mask & PORT ? a->port_num : 1);
	const uint64_t reads = (uint64_t)(device.max_qp_rd_atom > 0 ? device.max_qp_rd_atom : 0);

	if (mask & PORT && (!a->port_num || a->port_num > device.phys_port_cnt)) {
		text_add(t, "port_num is %u, the device has ports 1 to %u", a->port_num,
			 device.phys_port_cnt);
		return true;
	}
	if (mask & PKEY && a->pkey_index >= port.pkey_tbl_len && port.pkey_tbl_len) {
		text_add(t, "pkey_index is %u, the P_Key table has %u entries (0 to %u)",
			 a->pkey_index, port.pkey_tbl_len, port.pkey_tbl_len - 1u);
		return true;
	}
	if (mask & MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096)) {
		text_add(t, "path_mtu is %d, it is no number of bytes but one of IBV_MTU_256 (1) to IBV_MTU_4096 (5)",
			 (int)a->path_mtu);
		return true;
	}
	if (mask & AV && why_vector(t, context, &a->ah_attr))
		return true;
	return (mask & DEST && why_above(t, "dest_qp_num", a->dest_qp_num, 0xffffff,
					 "a QP number")) ||
	       (mask & TIMEOUT && why_above(t, "timeout", a->timeout, 31, "its field")) ||
	       (mask & RETRY && why_above(t, "retry_cnt", a->retry_cnt, 7, "its field")) ||
	       (mask & RNR && why_above(t, "rnr_retry", a->rnr_retry, 7,
					"its field (7: without end)")) ||
	       (mask & MIN_RNR && why_above(t, "min_rnr_timer", a->min_rnr_timer, 31,
					    "its field")) ||
	       (reads && mask & RD && why_above(t, "max_rd_atomic", a->max_rd_atomic, reads,
						"the device (max_qp_init_rd_atom)")) ||
	       (reads && mask & DEST_RD &&
		why_above(t, "max_dest_rd_atomic", a->max_dest_rd_atomic, reads,
			  "the device (max_qp_rd_atom)"));
}

static bool migration_wrong(struct text *t, const struct ibv_qp_attr *a, int mask, int error)
{
	if (mask & ALT)
		text_add(t, "IBV_QP_ALT_PATH: this device has no alternate paths");
	else if (mask & MIG && a->path_mig_state != IBV_MIG_MIGRATED)
		text_add(t, "path_mig_state is %d: without an alternate path only IBV_MIG_MIGRATED is possible",
			 (int)a->path_mig_state);
	else
		return false;
	return true;
}

void why_ibv_modify_qp(struct text *t, int error, struct ibv_qp *qp,
		       struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	enum ibv_qp_state to;

	if (!qp || !a) {
		text_add(t, "%s is NULL", qp ? "attr" : "qp");
		return;
	}
	if (!why_qp(qp, &now, &init))
		return;
	to = mask & IBV_QP_STATE ? a->qp_state : now.qp_state;
	if (mask & CUR && a->cur_qp_state != now.qp_state) {
		text_add(t, "cur_qp_state is ");
		text_state(t, a->cur_qp_state);
		text_add(t, ", but the queue pair is in ");
		text_state(t, now.qp_state);
		return;
	}
	if (to > IBV_QPS_ERR) {
		text_add(t, "qp_state is %u, which is no state", to);
		return;
	}
	if (error == EOPNOTSUPP && migration_wrong(t, a, mask, error))
		return;
	if (mask_wrong(t, init.qp_type, now.qp_state, to, mask) ||
	    values_wrong(t, qp->context, a, mask) || migration_wrong(t, a, mask, error))
		return;
	if (mask & ACCESS && a->qp_access_flags >> 10 & ~(IBV_ACCESS_OPTIONAL_RANGE >> 10)) {
		text_add(t, "qp_access_flags has bits that are no access rights: 0x%x",
			 a->qp_access_flags);
		return;
	}
	if (error == EIO)
		text_add(t, "the device has failed: close it and open it anew");
	else if (to == IBV_QPS_RTR && mask & AV) {
		text_add(t, "the destination ");
		text_gid(t, &a->ah_attr.grh.dgid);
		text_add(t, " was not reached (%s)", strerrordesc_np(error));
	} else {
		text_add(t, "%s; the queue pair is in ", strerrordesc_np(error));
		text_state(t, now.qp_state);
	}
}
