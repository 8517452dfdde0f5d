/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random operations of both sides on several queue pairs against a model of
 * what has to come out: order, lengths, immediates, contents, with receives
 * that are late and queue pairs that are reset in between.
 *
 *     adapter-random [SECONDS [SEED]]
 *
 * The seed is printed; the same seed does the same operations, though not at
 * the same times.
 */
#include <arpa/inet.h>
#include <string.h>

#include "pair.h"

enum {
	QPS = 4,
	SLOTS = 8,
	ROOM = 1 << 16, /* bytes in a slot */
	/* Offsets in the buffer of a QP. */
	OUT = 0,
	IN = SLOTS * ROOM,
	TARGET = 2 * SLOTS * ROOM, /* of the peer's WRITEs */
	SOURCE = 3 * SLOTS * ROOM, /* of the peer's READs */
	PER_QP = SOURCE + ROOM,
};

static unsigned seconds = 5;
static uint64_t seed;

struct sent {
	struct send_req r;
	uint32_t length;
	uint64_t pattern;
	int slot;
};

struct received {
	uint64_t wr_id;
	int slot;
};

/* A bounded queue. */
struct line {
	int first, count;
};

struct flow {
	struct sent sends[SLOTS]; /* posted, not known to be complete */
	struct line send_line;
	struct sent due[SLOTS * 2]; /* sent, to be received by the peer */
	struct line due_line;
	struct received recvs[SLOTS];
	struct line recv_line;
	/* A WRITE with immediate uses its slot until both sides have seen it. */
	int out_used[SLOTS], in_used[SLOTS];
	uint64_t next_id;
};

struct model {
	struct pair *p;
	struct side *side[2];
	struct flow flow[2][QPS]; /* what side s does on QP q */
	uint64_t random;
	uint64_t operations, messages, resets;
};

static uint32_t dice(struct model *m, uint32_t n)
{
	m->random = m->random * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
	return (uint32_t)(m->random >> 33) % n;
}

static uint64_t at(int q, uint64_t area, int slot)
{
	return (uint64_t)q * PER_QP + area + (uint64_t)slot * ROOM;
}

static int free_slot(const int *used)
{
	for (int i = 0; i < SLOTS; i++)
		if (!used[i])
			return i;
	return -1;
}

static uint64_t source_pattern(int s, int q)
{
	return 1000 + (uint64_t)s * 10 + (uint64_t)q;
}

static uint32_t random_length(struct model *m)
{
	switch (dice(m, 6)) {
	case 0:
		return dice(m, 200);
	case 1:
		return dice(m, 4) * 32 + dice(m, 3);
	case 2:
		return 16382 + dice(m, 5);
	case 3:
		return dice(m, ROOM);
	default:
		return dice(m, 5000);
	}
}

/* Cuts the request's one SGE into several. */
static void cut(struct model *m, struct ibv_sge *sge, int *count)
{
	int parts = 1 + (int)dice(m, 4);
	struct ibv_sge rest = sge[0];

	for (int i = 0; i < parts; i++) {
		uint32_t part = i == parts - 1 ? rest.length :
						 dice(m, rest.length + 1);

		sge[i] = rest;
		sge[i].length = part;
		rest.addr += part;
		rest.length -= part;
	}
	*count = parts;
}

static void do_recv(struct model *m, int s, int q)
{
	struct flow *f = &m->flow[s][q];
	int slot = free_slot(f->in_used);
	struct recv_req r = { .wr_id = f->next_id++, .num_sge = 1 };

	if (slot < 0)
		return;
	r.sge[0] = side_sge(m->side[s], at(q, IN, slot), ROOM);
	cut(m, r.sge, &r.num_sge);
	expect_eq(side_post_recv(m->side[s], q, &r, 1).ret, 0);
	f->in_used[slot] = 1;
	f->recvs[(f->recv_line.first + f->recv_line.count++) % SLOTS] =
		(struct received){ .wr_id = r.wr_id, .slot = slot };
}

static bool is_message(enum ibv_wr_opcode op)
{
	return op != IBV_WR_RDMA_WRITE && op != IBV_WR_RDMA_READ;
}

static void do_send(struct model *m, int s, int q)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct flow *f = &m->flow[s][q];
	struct side *me = m->side[s], *peer = m->side[!s];
	struct sent x = { .slot = free_slot(f->out_used) };
	enum ibv_wr_opcode op = ops[dice(m, 6)];

	if (x.slot < 0 || f->due_line.count >= SLOTS * 2 - 1)
		return;
	x.length = random_length(m);
	x.pattern = m->random;
	x.r = rdma_req(me, peer, op, f->next_id++, at(q, OUT, x.slot),
		       op == IBV_WR_RDMA_READ ? at(q, SOURCE, 0) :
						at(q, TARGET, x.slot),
		       x.length);
	x.r.imm = htonl((uint32_t)x.r.wr_id);
	x.r.flags = (dice(m, 3) || f->send_line.count >= SLOTS - 2 ?
			     IBV_SEND_SIGNALED : 0) |
		    (dice(m, 2) ? IBV_SEND_SOLICITED : 0) |
		    (dice(m, 2) ? IBV_SEND_FENCE : 0);
	if (x.length <= 128 && op != IBV_WR_RDMA_READ && dice(m, 2))
		x.r.flags |= IBV_SEND_INLINE;
	side_fill(me, at(q, OUT, x.slot), x.length, x.pattern);
	cut(m, x.r.sge, &x.r.num_sge);
	expect_eq(side_post_send(me, q, &x.r, 1).ret, 0);
	if (x.r.flags & IBV_SEND_INLINE)
		side_set(me, at(q, OUT, x.slot), x.length, 0);
	f->out_used[x.slot] = op == IBV_WR_RDMA_WRITE_WITH_IMM ? 2 : 1;
	f->sends[(f->send_line.first + f->send_line.count++) % SLOTS] = x;
	if (is_message(op))
		f->due[(f->due_line.first + f->due_line.count++) %
		       (SLOTS * 2)] = x;
}

static int qp_of(struct model *m, int s, uint32_t qpn)
{
	for (int q = 0; q < QPS; q++)
		if (m->side[s]->qpn[q] == qpn)
			return q;
	fail("completion of unknown queue pair 0x%x", qpn);
}

/* A send is known to be complete: its effect must be there. */
static void send_done(struct model *m, int s, int q, const struct sent *x)
{
	m->messages++;
	m->flow[s][q].out_used[x->slot]--;
	if (x->r.opcode == IBV_WR_RDMA_WRITE)
		side_check(m->side[!s], at(q, TARGET, x->slot), x->length,
			   x->pattern);
	if (x->r.opcode == IBV_WR_RDMA_READ)
		side_check(m->side[s], at(q, OUT, x->slot), x->length,
			   source_pattern(!s, q));
}

static void take_send(struct model *m, int s, const struct ibv_wc *wc)
{
	int q = qp_of(m, s, wc->qp_num);
	struct flow *f = &m->flow[s][q];

	expect_status(*wc, IBV_WC_SUCCESS);
	while (f->send_line.count) {
		struct sent x = f->sends[f->send_line.first];

		f->send_line.first = (f->send_line.first + 1) % SLOTS;
		f->send_line.count--;
		send_done(m, s, q, &x);
		if (!(x.r.flags & IBV_SEND_SIGNALED))
			continue;
		expect_eq(wc->wr_id, x.r.wr_id);
		return;
	}
	fail("completion %llu of nothing", (unsigned long long)wc->wr_id);
}

static void take_recv(struct model *m, int s, const struct ibv_wc *wc)
{
	int q = qp_of(m, s, wc->qp_num);
	struct flow *f = &m->flow[s][q], *from = &m->flow[!s][q];
	struct received r;
	struct sent x;
	bool write;

	expect_status(*wc, IBV_WC_SUCCESS);
	expect(f->recv_line.count > 0 && from->due_line.count > 0);
	r = f->recvs[f->recv_line.first];
	f->recv_line.first = (f->recv_line.first + 1) % SLOTS;
	f->recv_line.count--;
	x = from->due[from->due_line.first];
	from->due_line.first = (from->due_line.first + 1) % (SLOTS * 2);
	from->due_line.count--;
	write = x.r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	expect_eq(wc->wr_id, r.wr_id);
	expect_eq(wc->byte_len, x.length);
	expect_eq(wc->opcode,
		  write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	expect_eq(wc->wc_flags, x.r.opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM);
	if (x.r.opcode != IBV_WR_SEND)
		expect_eq(wc->imm_data, x.r.imm);
	side_check(m->side[s], write ? at(q, TARGET, x.slot) : at(q, IN, r.slot),
		   x.length, x.pattern);
	f->in_used[r.slot] = 0;
	if (write)
		from->out_used[x.slot]--;
}

static int do_poll(struct model *m, int s, enum side_cq cq, int timeout_ms)
{
	struct polled polled = side_poll(m->side[s], cq,
					 timeout_ms ? 1 : 1 + (int)dice(m, 16),
					 timeout_ms);

	expect(polled.count >= 0);
	for (int i = 0; i < polled.count; i++)
		(cq == SEND_CQ ? take_send : take_recv)(m, s, &polled.wc[i]);
	return polled.count;
}

static void do_reset(struct model *m, int q)
{
	pair_reset_qp(m->p, q);
	memset(&m->flow[0][q], 0, sizeof(m->flow[0][q]));
	memset(&m->flow[1][q], 0, sizeof(m->flow[1][q]));
	m->p->conn.psn_a = dice(m, 1 << 24);
	m->p->conn.psn_b = 0xffffff - dice(m, 100);
	pair_connect_qp(m->p, q);
	m->resets++;
}

static void do_something(struct model *m)
{
	int s = (int)dice(m, 2), q = (int)dice(m, QPS);
	uint32_t what = dice(m, 1000);

	m->operations++;
	if (what < 300)
		do_recv(m, s, q);
	else if (what < 600)
		do_send(m, s, q);
	else if (what < 800)
		do_poll(m, s, SEND_CQ, 0);
	else if (what < 998)
		do_poll(m, s, RECV_CQ, 0);
	else
		do_reset(m, q);
}

static bool anything_due(const struct model *m)
{
	for (int s = 0; s < 2; s++)
		for (int q = 0; q < QPS; q++)
			if (m->flow[s][q].due_line.count)
				return true;
	return false;
}

/* All that is on its way must arrive. */
static void finish(struct model *m)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (anything_due(m)) {
		if (now_ms() > end)
			fail("messages are missing at the end");
		for (int s = 0; s < 2; s++) {
			for (int q = 0; q < QPS; q++)
				if (m->flow[!s][q].due_line.count)
					do_recv(m, s, q);
			do_poll(m, s, RECV_CQ, 1);
			do_poll(m, s, SEND_CQ, 1);
		}
	}
	for (int s = 0; s < 2; s++)
		while (do_poll(m, s, SEND_CQ, QUIET_MS))
			;
	for (int s = 0; s < 2; s++)
		for (int q = 0; q < QPS; q++)
			for (; m->flow[s][q].send_line.count;
			     m->flow[s][q].send_line.count--)
				expect(!(m->flow[s][q].sends
						 [(m->flow[s][q].send_line.first +
						   m->flow[s][q].send_line.count -
						   1) % SLOTS].r.flags &
					 IBV_SEND_SIGNALED));
}

static void random_operations_do_what_the_model_says(struct pair *p)
{
	const struct side_options opt = { .bytes = (uint64_t)QPS * PER_QP,
					  .send_wr = SLOTS, .recv_wr = SLOTS,
					  .inline_bytes = 128, .sges = 4,
					  .cqe = 256 };
	static struct model m;
	uint64_t end;

	m.p = p;
	m.side[0] = &p->a;
	m.side[1] = &p->b;
	m.random = seed;
	printf("    seed %llu, %u s\n", (unsigned long long)seed, seconds);
	fflush(stdout);
	p->conn.timeout = 18; /* nothing is lost here, however slow we are */
	pair_start(p, &opt);
	for (int q = 1; q < QPS; q++) {
		expect_eq(side_qp_create(&p->a, &opt), q);
		expect_eq(side_qp_create(&p->b, &opt), q);
		pair_connect_qp(p, q);
	}
	for (int s = 0; s < 2; s++)
		for (int q = 0; q < QPS; q++)
			side_fill(m.side[s], at(q, SOURCE, 0), ROOM,
				  source_pattern(s, q));
	end = now_ms() + seconds * 1000;
	while (now_ms() < end)
		do_something(&m);
	finish(&m);
	printf("    %llu operations, %llu messages, %llu resets\n",
	       (unsigned long long)m.operations, (unsigned long long)m.messages,
	       (unsigned long long)m.resets);
	expect(m.messages > 0);
}

int main(int argc, char **argv)
{
	struct test_case cases[] = {
		CASE(random_operations_do_what_the_model_says),
	};

	seed = now_ms();
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	cases[0].limit_s = seconds + 60;
	return RUN_CASES(1, argv, cases);
}
