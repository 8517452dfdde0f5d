/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues (InfiniBand specification volume 1, 10.2.9 and
 * ibv_create_srq(3)): two receiving queue pairs on one queue, in one process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "join.h"
#include "pair.h"

enum { BYTES = 8 << 20, BUFFER = 256 << 10, DEPTH = 16 };

struct world {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *tx[2], *rx[2];
	uint8_t *memory;
	struct ibv_mr *mr;
};

static struct ibv_qp *make_qp(struct world *w, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = w->send_cq,
		.recv_cq = w->recv_cq,
		.srq = srq,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(w->pd, &init);

	expect(qp);
	return qp;
}

static struct world *open_world(struct world *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH,
						    .max_sge = 1 } };

	memset(w, 0, sizeof(*w));
	expect(list && list[0]);
	w->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	expect(w->ctx);
	w->pd = ibv_alloc_pd(w->ctx);
	w->send_cq = ibv_create_cq(w->ctx, 64, NULL, NULL, 0);
	w->recv_cq = ibv_create_cq(w->ctx, 64, NULL, NULL, 0);
	w->srq = ibv_create_srq(w->pd, &init);
	expect(w->pd && w->send_cq && w->recv_cq && w->srq);
	w->memory = aligned_alloc(4096, BYTES);
	expect(w->memory);
	memset(w->memory, 0, BYTES);
	w->mr = ibv_reg_mr(w->pd, w->memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	expect(w->mr);
	for (int i = 0; i < 2; i++) {
		w->tx[i] = make_qp(w, NULL);
		w->rx[i] = make_qp(w, w->srq);
		join(w->tx[i], w->rx[i]);
	}
	return w;
}

static void close_world(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		expect(!ibv_destroy_qp(w->tx[i]));
		if (w->rx[i])
			expect(!ibv_destroy_qp(w->rx[i]));
	}
	expect(!ibv_destroy_srq(w->srq));
	expect(!ibv_destroy_cq(w->send_cq));
	expect(!ibv_destroy_cq(w->recv_cq));
	expect(!ibv_dereg_mr(w->mr));
	expect(!ibv_dealloc_pd(w->pd));
	expect(!ibv_close_device(w->ctx));
	free(w->memory);
}

static int post(struct world *w, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)w->memory + id % DEPTH * BUFFER, BUFFER,
			       w->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad = NULL;
	int ret = ibv_post_srq_recv(w->srq, &wr, &bad);

	expect(!ret == !bad);
	return ret;
}

static void post_send(struct world *w, int qp, uint32_t length, uint8_t value)
{
	uint8_t *from = w->memory + (size_t)(DEPTH + qp) * BUFFER;
	struct ibv_sge sge = { (uintptr_t)from, length, w->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uint64_t)qp, .sg_list = &sge,
				  .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	memset(from, value, length);
	expect(!ibv_post_send(w->tx[qp], &wr, &bad));
}

static struct ibv_wc next(struct ibv_cq *cq)
{
	struct timespec start, now;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		expect((now.tv_sec - start.tv_sec) * 1000 < WAIT_MS);
	}
	expect(n == 1);
	return wc;
}

static enum ibv_event_type next_event(struct world *w, int timeout_ms)
{
	struct pollfd p = { .fd = w->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&p, 1, timeout_ms) != 1)
		return (enum ibv_event_type)-1;
	expect(!ibv_get_async_event(w->ctx, &event));
	ibv_ack_async_event(&event);
	return event.event_type;
}

static void both_queue_pairs_take_from_one_queue(struct pair *p)
{
	struct world world, *w = open_world(&world);

	for (uint64_t i = 0; i < DEPTH; i++)
		expect(!post(w, i));
	expect(post(w, DEPTH) == ENOMEM);
	for (int i = 0; i < DEPTH; i++) {
		struct ibv_wc wc;

		post_send(w, i % 2, 100 + (uint32_t)i, (uint8_t)i);
		expect(next(w->send_cq).status == IBV_WC_SUCCESS);
		wc = next(w->recv_cq);
		expect(wc.status == IBV_WC_SUCCESS);
		expect(wc.wr_id == (uint64_t)i);
		expect(wc.qp_num == w->rx[i % 2]->qp_num);
		expect(wc.byte_len == 100u + (uint32_t)i);
		expect(w->memory[(size_t)i * BUFFER + 99] == (uint8_t)i);
	}
	close_world(w);
}

static void an_empty_queue_makes_the_sender_wait(struct pair *p)
{
	struct world world, *w;

	need_rnr();
	w = open_world(&world);
	post_send(w, 0, 64, 7);
	for (int i = 0; i < 2000; i++) {
		struct ibv_wc wc;

		expect(ibv_poll_cq(w->send_cq, 1, &wc) == 0);
		expect(ibv_poll_cq(w->recv_cq, 1, &wc) == 0);
	}
	expect(!post(w, 3));
	expect(next(w->recv_cq).wr_id == 3);
	expect(next(w->send_cq).status == IBV_WC_SUCCESS);
	close_world(w);
}

static void the_limit_raises_one_event(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	for (uint64_t i = 0; i < 4; i++)
		expect(!post(w, i));
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	expect(!ibv_query_srq(w->srq, &attr));
	expect(attr.srq_limit == 3 && attr.max_wr == DEPTH);
	expect(next_event(w, 0) == (enum ibv_event_type)-1);
	post_send(w, 0, 8, 1);
	next(w->recv_cq);
	expect(next_event(w, 0) == (enum ibv_event_type)-1); /* 3 left: not below */
	post_send(w, 1, 8, 1);
	next(w->recv_cq);
	expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
	post_send(w, 0, 8, 1);
	next(w->recv_cq);
	expect(next_event(w, 0) == (enum ibv_event_type)-1);
	expect(!ibv_query_srq(w->srq, &attr));
	expect(attr.srq_limit == 0);
	close_world(w);
}

static void a_failing_queue_pair_leaves_the_queue_to_the_other(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	expect(!post(w, 5));
	expect(!ibv_modify_qp(w->rx[0], &attr, IBV_QP_STATE));
	expect(next_event(w, WAIT_MS) == IBV_EVENT_QP_LAST_WQE_REACHED);
	expect(ibv_poll_cq(w->recv_cq, 1, &wc) == 0);
	post_send(w, 1, 8, 1);
	expect(next(w->recv_cq).wr_id == 5);
	close_world(w);
}

static void what_is_in_use_or_not_offered_is_refused(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_srq_attr attr = { .srq_limit = DEPTH + 1, .max_wr = 64 };
	struct ibv_sge sge[2] = { 0 };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	expect(ibv_destroy_srq(w->srq) == EBUSY);
	expect(ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
	expect(ibv_post_srq_recv(w->srq, &wr, &bad) == EINVAL);
	wr.num_sge = 0;
	expect(ibv_post_recv(w->rx[0], &wr, &bad) == EINVAL);
	close_world(w);
}

static int resize(struct world *w, uint32_t depth)
{
	struct ibv_srq_attr attr = { .max_wr = depth };

	return ibv_modify_srq(w->srq, &attr, IBV_SRQ_MAX_WR);
}

static uint32_t depth_of(struct world *w)
{
	struct ibv_srq_attr attr;

	expect(!ibv_query_srq(w->srq, &attr));
	return attr.max_wr;
}

/* A message each, into the receives with these identities, in this order. */
static void take(struct world *w, uint64_t from, uint64_t to)
{
	for (uint64_t id = from; id < to; id++) {
		struct ibv_wc wc;

		post_send(w, (int)(id % 2), 8, (uint8_t)id);
		wc = next(w->recv_cq);
		expect(wc.status == IBV_WC_SUCCESS && wc.wr_id == id);
		expect(next(w->send_cq).status == IBV_WC_SUCCESS);
	}
}

static void resizing_keeps_what_is_posted(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_device_attr d;
	uint64_t id = 0;

	expect(!ibv_query_device(w->ctx, &d));
	expect(d.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	/* So far that the ring has come round. */
	for (; id < 10; id++)
		expect(!post(w, id));
	take(w, 0, 10);
	for (; id < 22; id++)
		expect(!post(w, id));
	expect(!resize(w, 40));
	expect(depth_of(w) == 40);
	for (; id < 50; id++)
		expect(!post(w, id));
	expect(post(w, id) == ENOMEM);
	take(w, 10, 30);
	/* 20 are left. */
	expect(!resize(w, 20));
	expect(post(w, id) == ENOMEM);
	take(w, 30, 50);
	expect(!post(w, 50));
	take(w, 50, 51);
	close_world(w);
}

static void a_size_that_does_not_do_changes_nothing(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_srq_attr attr = { .max_wr = 64, .srq_limit = 65 };
	struct ibv_device_attr d;

	expect(!ibv_query_device(w->ctx, &d));
	for (uint64_t i = 0; i < 8; i++)
		expect(!post(w, i));
	expect(resize(w, 7) == EINVAL);
	expect(resize(w, 0) == EINVAL);
	expect(resize(w, (uint32_t)d.max_srq_wr + 1) == EINVAL);
	/* One good value and one bad, and a bit that is none. */
	expect(ibv_modify_srq(w->srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ==
	       EINVAL);
	expect(ibv_modify_srq(w->srq, &attr, IBV_SRQ_MAX_WR | 1 << 5) == EINVAL);
	expect(depth_of(w) == DEPTH);
	/* Below a limit that is armed. */
	attr.srq_limit = 8;
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	take(w, 0, 1);
	expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
	attr.srq_limit = 7;
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	take(w, 1, 4);
	expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
	attr.srq_limit = 4;
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	expect(resize(w, 3) == EINVAL);
	expect(!resize(w, 4));
	take(w, 4, 5);
	expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
	take(w, 5, 8);
	close_world(w);
}

static void a_limit_that_was_reached_may_be_armed_again(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_srq_attr attr = { .srq_limit = 2 };

	for (uint64_t round = 0; round < 3; round++) {
		expect(!post(w, 2 * round));
		expect(!post(w, 2 * round + 1));
		expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
		expect(next_event(w, 0) == (enum ibv_event_type)-1);
		take(w, 2 * round, 2 * round + 1);
		expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
		take(w, 2 * round + 1, 2 * round + 2);
		expect(next_event(w, 0) == (enum ibv_event_type)-1);
	}
	/* Armed below the mark: at once; and 0 takes the wish back. */
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	expect(next_event(w, WAIT_MS) == IBV_EVENT_SRQ_LIMIT_REACHED);
	expect(!post(w, 6));
	expect(!post(w, 7));
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	attr.srq_limit = 0;
	expect(!ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT));
	take(w, 6, 8);
	expect(next_event(w, 0) == (enum ibv_event_type)-1);
	close_world(w);
}

static void the_last_entry_is_told_of_after_its_completion(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct ibv_wc wc;

	expect(!post(w, 1));
	expect(!post(w, 2));
	/* Longer than the receive: the queue pair fails by itself. */
	post_send(w, 0, BUFFER + 1, 1);
	wc = next(w->recv_cq);
	expect(wc.status == IBV_WC_LOC_LEN_ERR && wc.wr_id == 1);
	wc = next(w->send_cq);
	/* Over a stream the message may be complete, or not, when its receiver refuses it. */
	expect(transport_under_test()->streams || wc.status == IBV_WC_REM_INV_REQ_ERR);
	expect(next_event(w, WAIT_MS) == IBV_EVENT_QP_LAST_WQE_REACHED);
	/* Over a stream both queue pairs say why it has ended. */
	if (!transport_under_test()->streams)
		expect(next_event(w, 0) == (enum ibv_event_type)-1);
	post_send(w, 1, 8, 1);
	expect(next(w->recv_cq).wr_id == 2);
	close_world(w);
}

struct resizer {
	struct world *w;
	atomic_bool stop;
	int failed;
};

static void *keep_resizing(void *arg)
{
	struct resizer *r = arg;

	for (uint32_t i = 0; !atomic_load(&r->stop); i++) {
		if (resize(r->w, DEPTH + i % 50))
			r->failed++;
		sched_yield();
	}
	return NULL;
}

static void resizing_does_not_disturb_traffic(struct pair *p)
{
	struct world world, *w = open_world(&world);
	struct resizer r = { .w = w };
	pthread_t thread;

	expect(!pthread_create(&thread, NULL, keep_resizing, &r));
	for (uint64_t id = 0; id < 1000; id += 8) {
		for (uint64_t i = id; i < id + 8; i++)
			expect(!post(w, i));
		take(w, id, id + 8);
	}
	atomic_store(&r.stop, true);
	expect(!pthread_join(thread, NULL));
	expect(r.failed == 0);
	close_world(w);
}

/* Messages in fragments (BUSBAR_SHM_ACCESS=target, see main) share the queue too. */
static void long_messages_of_both_do_not_mix(struct pair *p)
{
	struct world world, *w = open_world(&world);

	for (int round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 4; i++)
			expect(!post(w, i));
		for (int i = 0; i < 2; i++)
			post_send(w, i, BUFFER - 5, (uint8_t)(1 + i + 2 * round));
		for (int i = 0; i < 2; i++) {
			struct ibv_wc wc = next(w->recv_cq);
			const uint8_t *m = w->memory + wc.wr_id % DEPTH * BUFFER;
			int qp = wc.qp_num == w->rx[1]->qp_num;

			expect(wc.status == IBV_WC_SUCCESS);
			expect(wc.byte_len == BUFFER - 5);
			for (uint32_t at = 0; at < BUFFER - 5; at++)
				expect(m[at] == (uint8_t)(1 + qp + 2 * round));
			expect(next(w->send_cq).status == IBV_WC_SUCCESS);
		}
		for (int i = 0; i < 2; i++) {
			post_send(w, i, 8, 0);
			expect(next(w->send_cq).status == IBV_WC_SUCCESS);
			expect(next(w->recv_cq).status == IBV_WC_SUCCESS);
		}
	}
	close_world(w);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.9",
			both_queue_pairs_take_from_one_queue),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.9",
			an_empty_queue_makes_the_sender_wait),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.9",
			the_limit_raises_one_event),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.9",
			a_failing_queue_pair_leaves_the_queue_to_the_other),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_srq(3)",
			what_is_in_use_or_not_offered_is_refused),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_srq(3)",
			resizing_keeps_what_is_posted),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_srq(3)",
			a_size_that_does_not_do_changes_nothing),
		RULE_IN(ONLY_ONE_PROCESS, "ibv_modify_srq(3)",
			a_limit_that_was_reached_may_be_armed_again),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 11.6.3",
			the_last_entry_is_told_of_after_its_completion),
		CASE_IN(ONLY_ONE_PROCESS, resizing_does_not_disturb_traffic),
		RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.2.9",
			long_messages_of_both_do_not_mix),
	};

	/* All messages by the ring: the order of fragments is what is tested. */
	setenv("BUSBAR_SHM_ACCESS", "target", 1);
	return RUN_CASES(argc, argv, cases);
}
