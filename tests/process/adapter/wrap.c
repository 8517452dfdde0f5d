/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters that no test lives to see wrap: positions in a link's rings, indices
 * of send, receive and completion queues. They are set close to their end while
 * nothing is on its way, and traffic goes across. Sequence numbers, which have
 * 24 bits and a start that the program chooses, are in order.c.
 *
 * This program has the adapter's insides linked into it, not the library.
 */
#include <string.h>

#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "pair.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/link/state.h"

enum { DEPTH = 32, ROOM = 40000 };

static const struct side_options deep = {
	.send_wr = DEPTH, .recv_wr = DEPTH, .cqe = 2 * DEPTH,
	.bytes = 2 * DEPTH * ROOM,
};

struct positions {
	uint32_t pos;
	bool heard; /* of the peer, when it took the slot before that */
};

/* All of an idle link's own positions, and what it tells the peer of them. */
static void link_set(struct shm_link *l, const struct positions *at)
{
	uint32_t pos = at->pos;
	uint32_t word;

	hca_lock(&l->rx_lock);
	hca_lock(&l->ack_lock);
	hca_lock(&l->tx_lock);
	word = shm_ack_word(pos, l->rx_marks);
	atomic_store(&l->tx_pos, pos);
	atomic_store(&l->harvested, pos);
	l->hint_seen = shm_ack_word(at->heard ? pos : 0, l->marks_seen);
	atomic_store(&l->acked_hint, l->hint_seen);
	atomic_store(&l->rx_pos, pos);
	atomic_store(&l->rx_ack, word);
	atomic_store(&l->rx->ack.word, word);
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->ack_lock);
	hca_unlock(&l->rx_lock);
}

/* What is complete by a promise need not be acknowledged yet. */
static int links_rest(struct end *e, void *arg)
{
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++)
		if (atomic_load(&shm.links[i]->state) == SHM_LINK_UP)
			shm_harvest_rest(shm.links[i]);
	return 0;
}

static int links_set(struct end *e, void *arg)
{
	int count = 0;

	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) != SHM_LINK_UP)
			continue;
		if (shm_outstanding(l))
			return -1;
		link_set(l, arg);
		count++;
	}
	return count;
}

/* Did traffic cross the end of 32 bits since? */
static int links_wrapped(struct end *e, void *arg)
{
	bool tx = false, rx = false;

	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		tx |= atomic_load(&shm.links[i]->tx_pos) - 1 < INT32_MAX;
		rx |= atomic_load(&shm.links[i]->rx_pos) - 1 < INT32_MAX;
	}
	return tx && rx;
}

static void cq_set(struct hca_cq *cq, uint32_t at)
{
	hca_lock(&cq->lock);
	atomic_store(&cq->head, at);
	atomic_store(&cq->tail, at);
	hca_unlock(&cq->lock);
}

/* The indices of a side's empty queues. */
static int queues_set(struct end *e, void *arg)
{
	uint32_t at = *(uint32_t *)arg;
	struct hca_qp *qp = hca_qp(e->qp[0]);

	hca_lock(&qp->sq_lock);
	if (qp->sq.head != qp->sq.tail ||
	    atomic_load(&qp->rq.head) != atomic_load(&qp->rq.tail)) {
		hca_unlock(&qp->sq_lock);
		return -1;
	}
	qp->sq.head = qp->sq.next = qp->sq.tail = at;
	hca_unlock(&qp->sq_lock);
	hca_lock(&qp->rq.post_lock);
	hca_lock(&qp->rq.consume_lock);
	atomic_store(&qp->rq.head, at);
	atomic_store(&qp->rq.tail, at);
	atomic_store(&qp->promising.upto, at);
	hca_unlock(&qp->rq.consume_lock);
	hca_unlock(&qp->rq.post_lock);
	for (int k = 0; k < 2; k++)
		cq_set(hca_cq(e->cq[k]), at);
	return 0;
}

static int queues_wrapped(struct end *e, void *arg)
{
	const struct hca_qp *qp = hca_qp(e->qp[0]);

	return qp->sq.tail < INT32_MAX && atomic_load(&qp->rq.tail) < INT32_MAX &&
	       atomic_load(&hca_cq(e->cq[0])->tail) < INT32_MAX &&
	       atomic_load(&hca_cq(e->cq[1])->tail) < INT32_MAX;
}

static void one_way(struct side *from, struct side *to, uint64_t i, bool late)
{
	static const uint32_t lengths[] = { 8, 96, 3000, ROOM };
	uint32_t length = lengths[i % 4];
	uint64_t slot = i % DEPTH * ROOM, half = DEPTH * ROOM;

	side_fill(from, slot, length < 256 ? length : 256, i);
	if (!late)
		side_recv(to, i, half + slot, ROOM);
	side_send(from, i, slot, length);
	if (late)
		side_recv(to, i, half + slot, ROOM);
	expect_eq(side_wait_ok(to, RECV_CQ, i).byte_len, length);
	side_check(to, half + slot, length < 256 ? length : 256, i);
	side_wait_ok(from, SEND_CQ, i);
}

/* There and back; some find no receive at first, and are repeated. */
static void exchange(struct pair *p, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		one_way(&p->a, &p->b, i, i % 16 == 5);
		one_way(&p->b, &p->a, i, i % 16 == 11);
	}
}

/* Many at a time: the rings and queues are never empty over the wrap. */
static void bursts(struct side *from, struct side *to, uint64_t count)
{
	struct polled got;

	for (uint64_t i = 0; i < count; i++) {
		for (uint64_t k = 0; k < DEPTH; k++)
			side_recv(to, k, 0, 100);
		for (uint64_t k = 0; k < DEPTH; k++)
			side_send(from, k, 0, 50);
		got = side_poll(to, RECV_CQ, DEPTH, WAIT_MS);
		expect_eq(got.count, DEPTH);
		for (uint64_t k = 0; k < DEPTH; k++) {
			expect_eq(got.wc[k].wr_id, k);
			expect_status(got.wc[k], IBV_WC_SUCCESS);
		}
		got = side_poll(from, SEND_CQ, DEPTH, WAIT_MS);
		expect_eq(got.count, DEPTH);
		for (uint64_t k = 0; k < DEPTH; k++)
			expect_eq(got.wc[k].wr_id, k);
	}
}

/* Both directions of all links end up there. */
static void set_links_as(struct pair *p, uint32_t pos, bool heard)
{
	struct positions note = { pos, heard };

	/* Datagrams and faults would be outstanding without a completion; here
	 * all that was sent is complete on both sides. */
	side_run(&p->a, links_rest, NULL, 0);
	side_run(&p->b, links_rest, NULL, 0);
	expect(side_run(&p->a, links_set, &note, sizeof(note)) > 0);
	if (p->two_processes)
		expect_eq(side_run(&p->b, links_set, &note, sizeof(note)), 1);
}

static void set_links(struct pair *p, uint32_t pos)
{
	exchange(p, 2);
	set_links_as(p, pos, true);
}

static void positions_in_the_rings_wrap(struct pair *p)
{
	p->conn.min_rnr_timer = 1;
	pair_start(p, &deep);
	/* More than a lap before the end, which no real link reaches without
	 * having filled every slot. */
	set_links(p, UINT32_MAX - 2 * SHM_SLOTS + 1);
	exchange(p, 1400);
	expect_eq(side_run(&p->a, links_wrapped, NULL, 0), 1);
	expect_eq(side_run(&p->b, links_wrapped, NULL, 0), 1);
	set_links(p, UINT32_MAX - 2 * SHM_SLOTS + 1);
	bursts(&p->a, &p->b, 80);
}

static void positions_of_acknowledgements_wrap(struct pair *p)
{
	p->conn.min_rnr_timer = 1;
	pair_start(p, &deep);
	set_links(p, SHM_ACK_POS_MASK - 2 * SHM_SLOTS + 1);
	exchange(p, 1200);
	set_links(p, 2 * SHM_ACK_POS_MASK - 2 * SHM_SLOTS + 2);
	bursts(&p->a, &p->b, 80);
}

/* Where messages go one way, the last acknowledgement that came with one is as old
 * as the link. */
static void an_old_acknowledgement_is_not_taken_for_a_new_one(struct pair *p)
{
	p->conn.min_rnr_timer = 1;
	pair_start(p, &deep);
	side_recv(&p->b, 1, 0, 8);
	side_send(&p->a, 1, 0, 8);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 1);
	set_links_as(p, SHM_ACK_POS_MASK, false);
	side_send(&p->a, 2, 0, 8);
	side_expect_none(&p->a, SEND_CQ); /* nobody has a receive for it */
	side_recv(&p->b, 2, 0, 8);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void indices_of_queues_wrap(struct pair *p)
{
	uint32_t at = UINT32_MAX - 70;

	p->conn.min_rnr_timer = 1;
	pair_start(p, &deep);
	exchange(p, 2);
	expect_eq(side_run(&p->a, queues_set, &at, sizeof(at)), 0);
	expect_eq(side_run(&p->b, queues_set, &at, sizeof(at)), 0);
	exchange(p, 150);
	/* Completions that are polled for one by one need not enter the queue. */
	bursts(&p->a, &p->b, 4);
	bursts(&p->b, &p->a, 4);
	expect_eq(side_run(&p->a, queues_wrapped, NULL, 0), 1);
	expect_eq(side_run(&p->b, queues_wrapped, NULL, 0), 1);
	expect_eq(side_run(&p->a, queues_set, &at, sizeof(at)), 0);
	expect_eq(side_run(&p->b, queues_set, &at, sizeof(at)), 0);
	bursts(&p->a, &p->b, 6);
}

static void full_queues_are_full_across_the_wrap(struct pair *p)
{
	uint32_t at = UINT32_MAX - DEPTH / 2;
	struct send_req s;
	struct recv_req r = { .num_sge = 0 };

	pair_start(p, &deep);
	expect_eq(side_run(&p->a, queues_set, &at, sizeof(at)), 0);
	expect_eq(side_run(&p->b, queues_set, &at, sizeof(at)), 0);
	s = send_req(&p->a, IBV_WR_SEND, 0, 0, 8);
	for (int i = 0; i < DEPTH; i++)
		expect_eq(side_post_send(&p->a, 0, &s, 1).ret, 0);
	expect(side_post_send(&p->a, 0, &s, 1).ret);
	for (int i = 0; i < DEPTH; i++)
		expect_eq(side_post_recv(&p->a, 0, &r, 1).ret, 0);
	expect(side_post_recv(&p->a, 0, &r, 1).ret);
	/* All of it is flushed. */
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	expect_eq(side_poll(&p->a, SEND_CQ, DEPTH + 1, QUIET_MS).count, DEPTH);
	expect_eq(side_poll(&p->a, RECV_CQ, DEPTH + 1, QUIET_MS).count, DEPTH);
}

static void a_queue_grows_across_the_wrap(struct pair *p)
{
	uint32_t at = UINT32_MAX - 2;
	struct end *e = p->a.end;
	struct polled got;

	pair_start(p, &deep);
	expect_eq(side_run(&p->a, queues_set, &at, sizeof(at)), 0);
	for (uint64_t i = 0; i < 8; i++) {
		side_recv(&p->b, i, 0, 8);
		side_send(&p->a, i, 0, 8);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	got = side_poll(&p->a, SEND_CQ, 1, WAIT_MS);
	expect_eq(got.wc[0].wr_id, 0);
	expect_eq(ibv_resize_cq(e->cq[SEND_CQ], 4 * DEPTH), 0);
	for (uint64_t i = 1; i < 8; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	side_expect_none(&p->a, SEND_CQ);
}

static const struct test_case cases[] = {
	CASE(positions_in_the_rings_wrap),
	CASE(positions_of_acknowledgements_wrap),
	CASE(an_old_acknowledgement_is_not_taken_for_a_new_one),
	CASE(indices_of_queues_wrap),
	CASE(full_queues_are_full_across_the_wrap),
	CASE(a_queue_grows_across_the_wrap),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
