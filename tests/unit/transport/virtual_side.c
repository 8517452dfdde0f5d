/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs, what is posted on them and what completes; see virtual.h. */
#include <errno.h>
#include <string.h>

#include "hca/object/cq.h"
#include "util/container_of.h"
#include "virtual.h"

/* A step is a packet or a timer. A run that has not ended after so many never will. */
#define STEPS_MAX 20000000u

struct side sides[SIDES];
uint64_t virtual_poll_ns;
static _Alignas(4096) uint8_t memory[SIDES][SIDE_BYTES];
static struct ibv_mr *region;
bool virtual_on_demand;
static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

/* ---- making them ---- */

static void to_init(struct side *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = (unsigned)rights };

	expect_eq(ibv_modify_qp(s->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS), 0);
}

static void open_one(struct side *s, unsigned host, const struct options *o)
{
	struct ibv_qp_init_attr init = {
		.qp_type = o->type ? o->type : IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = o->send_wr ? o->send_wr : 128,
			 .max_recv_wr = o->recv_wr ? o->recv_wr : 128,
			 .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = o->inline_bytes },
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 128, .max_sge = 1 } };

	memset(s->count, 0, sizeof(s->count));
	s->polls = false;
	s->host = &virtual_hosts[host];
	s->memory = memory[s - sides];
	for (unsigned i = 0; i < 2; i++) {
		s->cq[i] = i && o->one_queue ? s->cq[0] :
					       ibv_create_cq(virtual_ctx, 512, s->host, NULL, 0);
		expect(s->cq[i]);
	}
	s->shares = o->share;
	s->srq = o->share ? o->share->srq : o->srq ? ibv_create_srq(virtual_pd, &srq) : NULL;
	expect(s->srq || !o->srq);
	init.srq = s->srq;
	init.send_cq = s->cq[SENDS];
	init.recv_cq = s->cq[RECEIVES];
	init.qp_context = s->host;
	s->qp = ibv_create_qp(virtual_pd, &init);
	expect(s->qp);
	to_init(s);
}

void side_connect(struct side *s, const struct options *o)
{
	bool uc = s->qp->qp_type == IBV_QPT_UC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = o->mtu ? o->mtu : IBV_MTU_1024,
		.dest_qp_num = s->peer->qp->qp_num, .rq_psn = o->psn & RC_PSN_MASK,
		.sq_psn = o->psn & RC_PSN_MASK,
		.max_dest_rd_atomic = 16, .min_rnr_timer = o->min_rnr_timer,
		.max_rd_atomic = o->max_rd_atomic ? o->max_rd_atomic : 16,
		.timeout = o->timeout || o->no_timeout ? o->timeout : 10,
		.retry_cnt = o->retry_cnt, .rnr_retry = o->rnr_retry,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 },
	};
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	virtual_gid(s->peer->host->number, &attr.ah_attr.grh.dgid);
	if (!uc) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	expect_eq(ibv_modify_qp(s->qp, &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	expect_eq(ibv_modify_qp(s->qp, &attr, rts), 0);
}

void sides_open(unsigned first, unsigned a, unsigned b, const struct options *o)
{
	struct side *x = &sides[first], *y = x + 1;
	struct options second = *o;

	if (!region)
		region = ibv_reg_mr(virtual_pd, memory, sizeof(memory),
				    rights | (virtual_on_demand ? IBV_ACCESS_ON_DEMAND : 0));
	expect(region && first + 1 < SIDES && !x->qp && !y->qp);
	x->peer = y;
	y->peer = x;
	open_one(x, a, o);
	open_one(y, b, o);
	side_connect(x, o);
	second.psn += (uint32_t)o->skew;
	if (!o->only_first)
		side_connect(y, &second);
}

void side_destroy(struct side *s)
{
	expect_eq(ibv_destroy_qp(s->qp), 0);
	if (s->srq && !s->shares)
		expect_eq(ibv_destroy_srq(s->srq), 0);
	expect_eq(ibv_destroy_cq(s->cq[SENDS]), 0);
	if (s->cq[RECEIVES] != s->cq[SENDS])
		expect_eq(ibv_destroy_cq(s->cq[RECEIVES]), 0);
	s->qp = NULL;
}

void sides_close(void)
{
	/* Those that share a queue before its owner. */
	for (unsigned i = SIDES; i--;)
		if (sides[i].qp)
			side_destroy(&sides[i]);
	/* Other sides may want the other kind. */
	if (region)
		expect_eq(ibv_dereg_mr(region), 0);
	region = NULL;
	virtual_poll_ns = 0;
}

enum ibv_qp_state side_state(const struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_eq(ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void side_error(struct side *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	expect_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), 0);
}

void side_reset(struct side *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	expect_eq(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), 0);
	to_init(s);
}

/* ---- posting ---- */

int side_try(struct side *s, const struct request *r)
{
	struct ibv_sge sge = { (uintptr_t)s->memory + r->at, r->bytes, region->lkey };
	struct ibv_send_wr wr = {
		.wr_id = r->id, .opcode = r->opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = r->flags, .imm_data = r->imm,
	}, *bad;
	uint64_t to = (uintptr_t)s->peer->memory + r->to;

	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = to;
		wr.wr.atomic.rkey = region->rkey;
		wr.wr.atomic.compare_add = r->compare_add;
		wr.wr.atomic.swap = r->swap;
	} else {
		wr.wr.rdma.remote_addr = to;
		wr.wr.rdma.rkey = region->rkey;
	}
	return ibv_post_send(s->qp, &wr, &bad);
}

void side_post(struct side *s, const struct request *r)
{
	expect_eq(side_try(s, r), 0);
}

void side_send(struct side *s, uint64_t id, uint32_t bytes)
{
	side_post(s, &(struct request){ .opcode = IBV_WR_SEND, .id = id, .bytes = bytes });
}

void side_receive(struct side *s, uint64_t id, uint32_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory + at, bytes, region->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	expect(at + bytes <= SIDE_BYTES);
	expect_eq(s->srq ? ibv_post_srq_recv(s->srq, &wr, &bad) :
			   ibv_post_recv(s->qp, &wr, &bad), 0);
}

void side_prefetch(struct side *s, uint32_t at, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)s->memory + at, bytes, region->lkey };

	expect_eq(ibv_advise_mr(virtual_pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
}

uint8_t pattern(uint64_t seed, uint64_t at)
{
	return (uint8_t)((seed * 151 + at * 7 + (at >> 8) * 13) ^ seed >> 8);
}

void side_fill(struct side *s, uint32_t at, uint32_t bytes, uint64_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		s->memory[at + i] = pattern(seed, i);
}

void side_check(const struct side *s, uint32_t at, uint32_t bytes, uint64_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (s->memory[at + i] != pattern(seed, i))
			fail("side %td: byte %u of %u at 0x%x is 0x%x, not 0x%x", s - sides,
			     i, bytes, at, s->memory[at + i], pattern(seed, i));
}

/* ---- time ---- */

static bool take(struct side *s, int queue)
{
	struct ibv_wc wc[16];
	int n;

	/* A program that is not woken does not look, and moves nothing. */
	if (!s->polls && hca_cq_empty(hca_cq(s->cq[queue])))
		return false;
	n = ibv_poll_cq(s->cq[queue], 16, wc);
	expect(n >= 0);
	for (int i = 0; i < n; i++) {
		if (s->cq[SENDS] == s->cq[RECEIVES])
			queue = wc[i].opcode & IBV_WC_RECV ? RECEIVES : SENDS;
		expect(s->count[queue] < DONE_MAX);
		s->done[queue][s->count[queue]] = (struct done){
			wc[i], virtual_now_ns(), s->count[SENDS] + s->count[RECEIVES] };
		s->count[queue]++;
	}
	return n > 0;
}

static bool take_all(void)
{
	bool any = false;

	for (unsigned i = 0; i < SIDES; i++)
		if (sides[i].qp)
			any |= (int)take(&sides[i], SENDS) | (int)take(&sides[i], RECEIVES);
	return any;
}

static bool any_polls(void)
{
	bool any = false;

	for (unsigned i = 0; i < SIDES; i++)
		any |= sides[i].qp && sides[i].polls;
	return any;
}

void virtual_step(uint64_t until_ns)
{
	uint64_t next = virtual_progress();

	if (take_all() || next <= virtual_now_ns())
		return;
	if (virtual_poll_ns && any_polls())
		next = MIN(next, virtual_now_ns() + virtual_poll_ns);
	virtual_advance(MIN(next, until_ns));
	take_all();
}

void play_until(uint64_t ns)
{
	for (unsigned steps = 0; virtual_now_ns() < ns; steps++) {
		expect(steps < STEPS_MAX);
		virtual_step(ns);
	}
}

void play(const struct side *s, int queue, unsigned count, uint64_t within_ns)
{
	uint64_t end = virtual_now_ns() + within_ns;

	for (unsigned steps = 0; s->count[queue] < count; steps++) {
		if (steps == STEPS_MAX || virtual_now_ns() >= end)
			fail("side %td: %u of %u completions of queue %d within %ju ns",
			     s - sides, s->count[queue], count, queue, (uintmax_t)within_ns);
		virtual_step(end);
	}
}
