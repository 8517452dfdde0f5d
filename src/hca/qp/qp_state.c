/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP state machine's table: for each service and transition the attributes
 * that must and may be given (InfiniBand specification volume 1, section
 * 11.2.5.2, and the manual page of ibv_modify_qp), and which values they may have.
 */
#include <errno.h>

#include "hca/host/gid.h"
#include "hca/host/subnet.h"
#include "hca/limits.h"
#include "hca/qp/address.h"
#include "hca/qp/transition.h"
#include "util/container_of.h"

#define S IBV_QP_STATE
#define CUR IBV_QP_CUR_STATE
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY
#define ACCESS IBV_QP_ACCESS_FLAGS
#define PKEY IBV_QP_PKEY_INDEX
#define PORT IBV_QP_PORT
#define QKEY IBV_QP_QKEY
#define AV IBV_QP_AV
#define MTU IBV_QP_PATH_MTU
#define TIMEOUT IBV_QP_TIMEOUT
#define RETRY IBV_QP_RETRY_CNT
#define RNR IBV_QP_RNR_RETRY
#define RQPSN IBV_QP_RQ_PSN
#define RD IBV_QP_MAX_QP_RD_ATOMIC
#define ALT IBV_QP_ALT_PATH
#define MINRNR IBV_QP_MIN_RNR_TIMER
#define SQPSN IBV_QP_SQ_PSN
#define DEST_RD IBV_QP_MAX_DEST_RD_ATOMIC
#define MIG IBV_QP_PATH_MIG_STATE
#define DEST IBV_QP_DEST_QPN

/* The bits permitted in qp_access_flags. Only remote rights have an effect, and the rights to
 * FLUSH have none, as no device attribute offers FLUSH; they are permitted because programs ask
 * for all rights that there are. */
#define ACCESS_KNOWN                                                          \
	((unsigned)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |        \
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |       \
		    IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |              \
		    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |               \
		    HCA_ACCESS_FLUSH | IBV_ACCESS_OPTIONAL_RANGE))

struct transition {
	enum ibv_qp_state from, to;
	int required, optional;
};

static const struct transition rc[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQPSN | DEST_RD | MINRNR,
	  ALT | ACCESS | PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | SQPSN | RD,
	  CUR | ALT | ACCESS | MINRNR | MIG },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MINRNR },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR | RD | DEST_RD | ALT | ACCESS |
		  PKEY | MINRNR | MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MINRNR | MIG },
};

static const struct transition uc[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQPSN,
	  ALT | ACCESS | PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, SQPSN, CUR | ALT | ACCESS | MIG },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, AV | ALT | ACCESS | PKEY | MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MIG },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS },
};

/* XRC: what concerns requests is the initiator's, responses the target's
 * (annex A14). */
static const struct transition xrc_send[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQPSN,
	  ALT | ACCESS | PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | SQPSN | RD,
	  CUR | ALT | ACCESS | MIG },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | RETRY | RNR | RD | ALT | ACCESS | PKEY | MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MIG },
};

static const struct transition xrc_recv[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS },
	{ IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQPSN | DEST_RD | MINRNR,
	  ALT | ACCESS | PKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | SQPSN,
	  CUR | ALT | ACCESS | MINRNR | MIG },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MINRNR },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0,
	  PORT | AV | TIMEOUT | DEST_RD | ALT | ACCESS | PKEY | MINRNR | MIG },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ALT | ACCESS | MINRNR | MIG },
};

static const struct transition ud[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, SQPSN, CUR | QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY },
};

static const struct transition *find(const struct transition *t, size_t count,
				     enum ibv_qp_state from,
				     enum ibv_qp_state to)
{
	for (size_t i = 0; i < count; i++)
		if (t[i].from == from && t[i].to == to)
			return &t[i];
	return NULL;
}

int hca_qp_mask(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(DEST_RD | MINRNR);
	case IBV_QPT_XRC_RECV:
		return mask & ~(RD | RETRY | RNR);
	default:
		return mask;
	}
}

int hca_qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state cur,
			    enum ibv_qp_state next, int mask)
{
	const struct transition *t;

	/* Permitted from any state, with no other attributes. */
	if (next == IBV_QPS_RESET || next == IBV_QPS_ERR)
		return mask & ~(S | CUR) ? -EINVAL : 0;
	switch (type) {
	case IBV_QPT_RC:
		t = find(rc, ARRAY_SIZE(rc), cur, next);
		break;
	case IBV_QPT_UC:
		t = find(uc, ARRAY_SIZE(uc), cur, next);
		break;
	case IBV_QPT_XRC_SEND:
		t = find(xrc_send, ARRAY_SIZE(xrc_send), cur, next);
		break;
	case IBV_QPT_XRC_RECV:
		t = find(xrc_recv, ARRAY_SIZE(xrc_recv), cur, next);
		break;
	case IBV_QPT_UD:
		t = find(ud, ARRAY_SIZE(ud), cur, next);
		break;
	default:
		return -EINVAL;
	}
	if (!t || (mask & t->required) != t->required ||
	    mask & ~(S | t->required | t->optional))
		return -EINVAL;
	return 0;
}

/* Attributes of the state without a state are how programs apply what rdma_init_qp_attr() gives for
 * RTR and RTS: nothing. */
int hca_qp_rnic_check(enum ibv_qp_state cur, enum ibv_qp_state next, int mask)
{
	const int optional = S | CUR | ACCESS | PKEY | PORT;

	if (next == IBV_QPS_RESET || next == IBV_QPS_ERR)
		return mask & ~(S | CUR) ? -EINVAL : 0;
	if (mask & ~optional)
		return -EINVAL;
	if (cur == next)
		return 0;
	return cur == IBV_QPS_RESET && next == IBV_QPS_INIT ? 0 : -EINVAL;
}

static int check_address_vector(const struct ibv_ah_attr *a)
{
	struct ibv_gid_entry e;

	if (a->port_num != 1 || a->sl > 15)
		return -EINVAL;
	if (hca_subnet_on() && hca_subnet_check_address(a))
		return -EINVAL;
	return a->is_global ? hca_gid_by_index(a->grh.sgid_index, &e) : 0;
}

/* The P_Key table of a port that is of no subnet has one entry. */
static bool pkey_index_is_valid(uint16_t index)
{
	return hca_subnet_on() ? hca_subnet_pkey(index) & 0x7fff : index == 0;
}

/* There is one path to each peer (IBV_DEVICE_AUTO_PATH_MIG is off): it is always
 * migrated, and nothing can be armed. */
static int check_migration(const struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_ALT_PATH)
		return -EOPNOTSUPP;
	if (!(mask & IBV_QP_PATH_MIG_STATE) ||
	    a->path_mig_state == IBV_MIG_MIGRATED)
		return 0;
	return a->path_mig_state == IBV_MIG_REARM ||
			       a->path_mig_state == IBV_MIG_ARMED ?
		       -EOPNOTSUPP :
		       -EINVAL;
}

int hca_qp_values_check(const struct ibv_qp_attr *a, int mask)
{
	if ((mask & IBV_QP_PORT) && a->port_num != 1)
		return -EINVAL;
	if ((mask & IBV_QP_PKEY_INDEX) && !pkey_index_is_valid(a->pkey_index))
		return -EINVAL;
	if ((mask & IBV_QP_ACCESS_FLAGS) && a->qp_access_flags & ~ACCESS_KNOWN)
		return -EINVAL;
	if ((mask & IBV_QP_PATH_MTU) &&
	    (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return -EINVAL;
	if ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > HCA_PSN_MASK)
		return -EINVAL;
	if (((mask & IBV_QP_TIMEOUT) && a->timeout > 31) ||
	    ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
	    ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7) ||
	    ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31))
		return -EINVAL;
	if (((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
	     a->max_rd_atomic > HCA_MAX_RD_ATOM) ||
	    ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
	     a->max_dest_rd_atomic > HCA_MAX_RD_ATOM))
		return -EINVAL;
	if ((mask & IBV_QP_AV) && check_address_vector(&a->ah_attr))
		return -EINVAL;
	return check_migration(a, mask);
}
