/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC objects of a side; see xrc_help.h. The functions named at_* run in the
 * side's process. */
#include "xrc_help.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Of this process; both sides may be here. */
static struct objects {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq[X_SRQS];
	struct ibv_qp *qp[2]; /* enum x_qp */
} objects[2];

void x_file_make(struct x_file *f)
{
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/busbar-xrc.XXXXXX");
	fd = mkstemp(f->path);
	expect(fd >= 0);
	close(fd);
}

void x_file_end(struct x_file *f)
{
	unlink(f->path);
}

struct opening {
	int me;
	char path[64];
	uint32_t srqn[X_SRQS], ini, tgt;
};

static struct ibv_qp *make_qp(struct end *e, struct objects *o,
			      enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex a = {
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = o->xrcd,
	};

	if (type == IBV_QPT_XRC_SEND) {
		a.comp_mask = IBV_QP_INIT_ATTR_PD |
			      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.pd = e->pd;
		a.send_cq = e->cq[SEND_CQ];
		a.cap.max_send_wr = 64;
		a.cap.max_send_sge = 8;
		a.send_ops_flags = IBV_QP_EX_WITH_SEND |
				   IBV_QP_EX_WITH_SEND_WITH_IMM |
				   IBV_QP_EX_WITH_RDMA_WRITE |
				   IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_RDMA_READ |
				   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	}
	return ibv_create_qp_ex(e->ctx, &a);
}

static int at_open(struct end *e, void *arg)
{
	struct opening *a = arg;
	struct objects *o = &objects[a->me];
	struct ibv_xrcd_init_attr x = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex s = {
		.attr = { .max_wr = X_DEPTH, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->pd,
		.cq = e->cq[RECV_CQ],
	};

	if (a->path[0] && (x.fd = open(a->path, O_RDONLY | O_CLOEXEC)) < 0)
		return errno;
	o->xrcd = ibv_open_xrcd(e->ctx, &x);
	if (x.fd >= 0)
		close(x.fd);
	if (!o->xrcd)
		return errno;
	s.xrcd = o->xrcd;
	for (int i = 0; i < X_SRQS; i++) {
		o->srq[i] = ibv_create_srq_ex(e->ctx, &s);
		if (!o->srq[i] || ibv_get_srq_num(o->srq[i], &a->srqn[i]))
			return errno;
	}
	o->qp[X_INI] = make_qp(e, o, IBV_QPT_XRC_SEND);
	o->qp[X_TGT] = make_qp(e, o, IBV_QPT_XRC_RECV);
	if (!o->qp[X_INI] || !o->qp[X_TGT])
		return errno;
	a->ini = o->qp[X_INI]->qp_num;
	a->tgt = o->qp[X_TGT]->qp_num;
	return 0;
}

void x_open(struct pair *p, struct side *s, struct x *x, const char *path)
{
	struct opening a = { .me = s == &p->b };

	if (path)
		snprintf(a.path, sizeof(a.path), "%s", path);
	expect_eq(side_run(s, at_open, &a, sizeof(a)), 0);
	x->side = s;
	x->me = a.me;
	memcpy(x->srqn, a.srqn, sizeof(x->srqn));
	x->ini = a.ini;
	x->tgt = a.tgt;
}

static int at_close(struct end *e, void *arg)
{
	struct objects *o = &objects[*(int *)arg];
	int bad = 0;

	for (int i = 0; i < 2; i++)
		bad += o->qp[i] && ibv_destroy_qp(o->qp[i]);
	for (int i = 0; i < X_SRQS; i++)
		bad += o->srq[i] && ibv_destroy_srq(o->srq[i]);
	bad += ibv_close_xrcd(o->xrcd) != 0;
	memset(o, 0, sizeof(*o));
	return bad;
}

void x_close(struct x *x)
{
	expect_eq(side_run(x->side, at_close, &x->me, sizeof(x->me)), 0);
}

void x_start(struct pair *p, struct x *a, struct x *b)
{
	const struct side_options opt = { .bytes = 4 << 20, .mr_access = X_ALL };

	pair_open(p, &opt);
	x_open(p, &p->a, a, NULL);
	x_open(p, &p->b, b, NULL);
	x_connect(p, a, b, X_ALL);
	x_connect(p, b, a, X_ALL);
}

void x_end(struct x *a, struct x *b)
{
	x_close(a);
	x_close(b);
}

struct modifying {
	int me, qp, mask;
	struct ibv_qp_attr attr;
};

static int at_modify(struct end *e, void *arg)
{
	struct modifying *m = arg;

	return ibv_modify_qp(objects[m->me].qp[m->qp], &m->attr, m->mask);
}

int x_modify(struct x *x, enum x_qp qp, const struct ibv_qp_attr *attr, int mask)
{
	struct modifying m = { .me = x->me, .qp = qp, .mask = mask, .attr = *attr };

	return side_run(x->side, at_modify, &m, sizeof(m));
}

int x_to_state(struct x *x, enum x_qp qp, enum ibv_qp_state state)
{
	return x_modify(x, qp, &(struct ibv_qp_attr){ .qp_state = state },
			IBV_QP_STATE);
}

static int at_state(struct end *e, void *arg)
{
	struct modifying *m = arg;
	struct ibv_qp_init_attr init;

	return ibv_query_qp(objects[m->me].qp[m->qp], &m->attr, IBV_QP_STATE,
			    &init);
}

enum ibv_qp_state x_state(struct x *x, enum x_qp qp)
{
	struct modifying m = { .me = x->me, .qp = qp };

	expect_eq(side_run(x->side, at_state, &m, sizeof(m)), 0);
	return m.attr.qp_state;
}

static void to_init(struct x *x, enum x_qp qp, unsigned access)
{
	const struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
					  .port_num = 1,
					  .qp_access_flags = access };

	expect_eq(x_modify(x, qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						 IBV_QP_PORT |
						 IBV_QP_ACCESS_FLAGS), 0);
}

void x_connect(struct pair *p, struct x *from, struct x *to, unsigned access)
{
	const struct connection *c = &p->conn;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->tgt,
		.rq_psn = c->psn_b,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = c->min_rnr_timer,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .dgid = to->side->gid, .hop_limit = 64 } },
		.sq_psn = c->psn_a,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = 4,
	};
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	to_init(to, X_TGT, access);
	to_init(from, X_INI, 0);
	attr.ah_attr.is_global = !c->by_lid_a;
	expect_eq(x_modify(from, X_INI, &attr, rtr), 0);
	attr.dest_qp_num = from->ini;
	attr.ah_attr.grh.dgid = from->side->gid;
	attr.ah_attr.is_global = !c->by_lid_b;
	attr.rq_psn = c->psn_a;
	expect_eq(x_modify(to, X_TGT, &attr, rtr | IBV_QP_MAX_DEST_RD_ATOMIC |
						     IBV_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IBV_QPS_RTS;
	expect_eq(x_modify(to, X_TGT, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN), 0);
	expect_eq(x_modify(from, X_INI, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

struct receiving {
	int me, srq;
	uint64_t wr_id, offset;
	uint32_t length;
};

static int at_recv(struct end *e, void *arg)
{
	const struct receiving *r = arg;
	struct ibv_sge sge = { (uintptr_t)e->buffer + r->offset, r->length,
			       e->mr[0]->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = r->wr_id, .sg_list = &sge,
					.num_sge = 1 };

	return ibv_post_srq_recv(objects[r->me].srq[r->srq], &wr, &bad);
}

void x_recv(struct x *x, int srq, uint64_t wr_id, uint64_t offset,
	    uint32_t length)
{
	struct receiving r = { x->me, srq, wr_id, offset, length };

	expect_eq(side_run(x->side, at_recv, &r, sizeof(r)), 0);
}

struct sending {
	int me;
	struct x_send s;
};

static int build(struct ibv_qp *ibqp, const struct x_send *s,
		 const struct ibv_sge *sge, int pieces)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(ibqp);

	ibv_wr_start(qp);
	qp->wr_id = s->wr_id;
	qp->wr_flags = s->flags;
	switch (s->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, s->imm);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, s->rkey, s->remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, s->rkey, s->remote_addr, s->imm);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, s->rkey, s->remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, s->rkey, s->remote_addr,
				      s->compare_add, s->swap);
		break;
	default:
		ibv_wr_atomic_fetch_add(qp, s->rkey, s->remote_addr,
					s->compare_add);
		break;
	}
	ibv_wr_set_xrc_srqn(qp, s->srqn);
	ibv_wr_set_sge_list(qp, (size_t)pieces, sge);
	return ibv_wr_complete(qp);
}

static int at_send(struct end *e, void *arg)
{
	const struct sending *a = arg;
	const struct x_send *s = &a->s;
	struct ibv_qp *qp = objects[a->me].qp[X_INI];
	int pieces = s->pieces ? s->pieces : 1;
	struct ibv_sge sge[8];
	struct ibv_send_wr *bad, wr = {
		.wr_id = s->wr_id,
		.sg_list = sge,
		.num_sge = pieces,
		.opcode = s->opcode,
		.send_flags = s->flags,
		.imm_data = s->imm,
		.qp_type.xrc.remote_srqn = s->srqn,
	};

	for (int i = 0; i < pieces; i++)
		sge[i] = (struct ibv_sge){
			(uintptr_t)e->buffer + s->offset +
				(uint64_t)i * (s->length / (uint32_t)pieces),
			s->length / (uint32_t)pieces, e->mr[0]->lkey };
	if (s->build)
		return build(qp, s, sge, pieces);
	if (s->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    s->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = s->remote_addr;
		wr.wr.atomic.rkey = s->rkey;
		wr.wr.atomic.compare_add = s->compare_add;
		wr.wr.atomic.swap = s->swap;
	} else {
		wr.wr.rdma.remote_addr = s->remote_addr;
		wr.wr.rdma.rkey = s->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

int x_post(struct x *x, const struct x_send *s)
{
	struct sending a = { .me = x->me, .s = *s };

	if (!a.s.flags)
		a.s.flags = IBV_SEND_SIGNALED;
	return side_run(x->side, at_send, &a, sizeof(a));
}

void x_send(struct x *x, uint32_t srqn, uint64_t wr_id, uint64_t offset,
	    uint32_t length)
{
	const struct x_send s = { .opcode = IBV_WR_SEND, .wr_id = wr_id,
				  .offset = offset, .length = length,
				  .srqn = srqn };

	expect_eq(x_post(x, &s), 0);
}

static int at_srq_destroy(struct end *e, void *arg)
{
	const int *a = arg;
	struct ibv_srq **srq = &objects[a[0]].srq[a[1]];
	int ret = ibv_destroy_srq(*srq);

	if (!ret)
		*srq = NULL;
	return ret;
}

int x_srq_destroy(struct x *x, int srq)
{
	int a[2] = { x->me, srq };

	return side_run(x->side, at_srq_destroy, a, sizeof(a));
}

struct srq_modifying {
	int me, srq, mask;
	struct ibv_srq_attr attr;
};

static int at_srq_modify(struct end *e, void *arg)
{
	struct srq_modifying *m = arg;

	return ibv_modify_srq(objects[m->me].srq[m->srq], &m->attr, m->mask);
}

int x_srq_modify(struct x *x, int srq, const struct ibv_srq_attr *attr, int mask)
{
	struct srq_modifying m = { x->me, srq, mask, *attr };

	return side_run(x->side, at_srq_modify, &m, sizeof(m));
}

struct ibv_xrcd *x_domain(struct x *x)
{
	return objects[x->me].xrcd;
}
