/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life of the objects: what is in use cannot be destroyed, what is not offered
 * is refused with the documented error, resizing and re-registration.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "pair.h"

static void objects_in_use_cannot_be_destroyed(struct pair *p)
{
	const struct side_options opt = { .events = true };
	struct end *e = p->a.end;
	struct ibv_ah_attr ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1 };
	struct ibv_pd *pd;
	struct ibv_ah *ah;
	struct ibv_mr *mr;

	side_open(&p->a, &opt);
	expect_eq(ibv_destroy_cq(e->cq[SEND_CQ]), EBUSY);
	expect_eq(ibv_destroy_cq(e->cq[RECV_CQ]), EBUSY);
	expect_eq(ibv_destroy_comp_channel(e->channel), EBUSY);
	expect_eq(ibv_dealloc_pd(e->pd), EBUSY);
	/* One kind of user at a time. */
	pd = ibv_alloc_pd(e->ctx);
	mr = ibv_reg_mr(pd, e->buffer, 100, 0);
	expect_eq(ibv_dealloc_pd(pd), EBUSY);
	expect_eq(ibv_dereg_mr(mr), 0);
	ah_attr.grh.dgid = p->a.gid;
	ah = ibv_create_ah(pd, &ah_attr);
	expect(!ah == transport_under_test()->streams); /* an RNIC has none */
	if (ah) {
		expect_eq(ibv_dealloc_pd(pd), EBUSY);
		expect_eq(ibv_destroy_ah(ah), 0);
	}
	expect_eq(ibv_dealloc_pd(pd), 0);
	/* The refused ones still work: pair_close() proves the rest. */
	expect_eq(side_to_init(&p->a, 0, 0), 0);
}

static void expect_no_qp(struct ibv_qp *qp, int error)
{
	if (qp)
		fail("a queue pair was created");
	expect_eq(errno, error);
}

static void queue_pairs_that_are_not_offered_are_refused(struct pair *p)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RAW_PACKET,
						  IBV_QPT_DRIVER };
	struct end *e = p->a.end;
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr init;
	const struct ibv_qp_init_attr good = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device(e->ctx, &dev), 0);
#define TRY(error, ...)                                                 \
	(init = good, init.send_cq = e->cq[0], init.recv_cq = e->cq[1], \
	 __VA_ARGS__, expect_no_qp(ibv_create_qp(e->pd, &init), error))
	for (int i = 0; i < 2; i++)
		TRY(EOPNOTSUPP, init.qp_type = types[i]);
	TRY(EINVAL, init.send_cq = NULL);
	TRY(EINVAL, init.recv_cq = NULL);
	TRY(EINVAL, init.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1);
	TRY(EINVAL, init.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1);
	TRY(EINVAL, init.cap.max_send_sge = (uint32_t)dev.max_sge + 1);
	TRY(EINVAL, init.cap.max_recv_sge = (uint32_t)dev.max_sge + 1);
	TRY(EINVAL, init.cap.max_inline_data = 1 << 20);
}

/* qperf does. */
static void a_list_of_devices_may_be_given_to_free(struct pair *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	expect(list && list[0]);
	side_open(&p->a, NULL);
	free(list);
	/* The devices outlive it. */
	expect(ibv_get_device_name(p->a.end->ctx->device)[0]);
}

static void the_device_says_what_it_does_not_offer(struct pair *p)
{
	const bool atomics = offers(IBV_WR_ATOMIC_FETCH_AND_ADD);
	const uint16_t words = atomics ? IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP : 0;
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr d;
	struct ibv_port_attr port;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device(p->a.end->ctx, &d), 0);
	expect(d.max_srq > 0 && d.max_srq_wr > 0 && d.max_srq_sge > 0);
	/* As adapters do. Programs look for this one (UCX), and for what the processor shares
	 * with the adapter in the other attributes. */
	expect_eq(d.atomic_cap, atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE);
	expect_eq(ibv_query_device_ex(p->a.end->ctx, NULL, &ex), 0);
	expect_eq(ex.pci_atomic_caps.fetch_add, words);
	expect_eq(ex.pci_atomic_caps.compare_swap, words);
	expect_eq(ex.pci_atomic_caps.swap, 0);
	expect(ex.max_dm_size > 0);
	expect(!memcmp(&ex.orig_attr, &d, sizeof(d)));
	expect_eq(ibv_query_port(p->a.end->ctx, 1, &port), 0);
	expect_eq(port.state, IBV_PORT_ACTIVE);
	expect_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	expect(port.max_msg_sz >= 1u << 30);
	expect_eq(ibv_query_port(p->a.end->ctx, 2, &port), EINVAL);
}

static void resizing_keeps_what_waits_in_the_queue(struct pair *p)
{
	const struct side_options opt = { .cqe = 32 };
	struct ibv_cq *cq;

	need_arrival();
	pair_start(p, &opt);
	cq = p->b.end->cq[RECV_CQ];
	for (uint64_t i = 0; i < 20; i++)
		side_recv(&p->b, i, 0, 10);
	for (uint64_t i = 0; i < 20; i++)
		side_send(&p->a, i, 0, 10);
	for (uint64_t i = 0; i < 20; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	side_wait_ok(&p->b, RECV_CQ, 0); /* all have been moved now */
	expect_eq(ibv_resize_cq(cq, 100), 0);
	expect(cq->cqe >= 100);
	expect_eq(ibv_resize_cq(cq, 19), 0);
	expect(cq->cqe >= 19);
	/* As many as wait, whatever would be granted. */
	expect_eq(ibv_resize_cq(cq, 18), EINVAL);
	expect_eq(ibv_resize_cq(cq, 9), EINVAL);
	expect_eq(ibv_resize_cq(cq, 0), EINVAL);
	expect_eq(ibv_resize_cq(cq, 1 << 30), EINVAL);
	for (uint64_t i = 1; i < 20; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
}

/* A program cannot know whether the first datagram has been sent already. */
static void a_queue_does_not_shrink_below_the_datagrams_on_their_way(struct pair *p)
{
	const struct side_options opt = { .type = IBV_QPT_UD, .cqe = 32 };
	struct ibv_cq *cq;
	struct send_req r;

	p->conn.access_a = p->conn.access_b = 0x1234; /* the Q_Key */
	pair_start(p, &opt);
	cq = p->a.end->cq[SEND_CQ];
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);
	r.ah = side_ah_to(&p->a, &p->b.gid);
	r.remote_qpn = p->b.qpn[0];
	r.qkey = 0x1234;
	for (int i = 0; i < 10; i++)
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(ibv_resize_cq(cq, 9), EINVAL);
	expect_eq(ibv_resize_cq(cq, 10), 0);
	for (int i = 0; i < 10; i++)
		side_wait_ok(&p->a, SEND_CQ, 1);
	expect_eq(ibv_resize_cq(cq, 1), 0);
}

static void re_registration_moves_the_region(struct pair *p)
{
	struct region mr;
	struct send_req r;

	pair_start(p, NULL);
	mr = side_reg(&p->b, 0, 100, IBV_ACCESS_LOCAL_WRITE, 0);
	mr = side_rereg(&p->b, mr.index,
			IBV_REREG_MR_CHANGE_TRANSLATION |
				IBV_REREG_MR_CHANGE_ACCESS,
			0, 1000, 200,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	expect_eq(mr.error, 0);
	expect_eq(mr.addr, p->b.addr + 1000);
	side_fill(&p->a, 0, 200, 1);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 1000, 200);
	r.rkey = mr.rkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, 1000, 200, 1);
	/* To the other protection domain: the queue pair loses it. */
	mr = side_rereg(&p->b, mr.index, IBV_REREG_MR_CHANGE_PD, 1, 0, 0, 0);
	expect_eq(mr.error, 0);
	r.rkey = mr.rkey;
	if (transport_under_test()->streams) /* whose WRITEs complete before they arrive */
		r.opcode = IBV_WR_RDMA_READ;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
}

static void re_registration_refuses_nonsense_and_keeps_the_region(struct pair *p)
{
	struct region mr, same;
	struct send_req r;

	pair_start(p, NULL);
	mr = side_reg(&p->b, 0, 100,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0);
	same = side_rereg(&p->b, mr.index, 0, 0, 0, 0, 0);
	expect(same.error);
	same = side_rereg(&p->b, mr.index, 0x40000, 0, 0, 0, 0);
	expect(same.error);
	same = side_rereg(&p->b, mr.index, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0,
			  IBV_ACCESS_REMOTE_WRITE);
	expect(same.error);
	expect_eq(same.rkey, mr.rkey);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey = mr.rkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void keys_of_a_region_with_another_start_address_are_offsets_from_it(struct pair *p)
{
	struct end *e = p->b.end;
	struct ibv_mr *mr;
	struct send_req r;

	pair_start(p, NULL);
	mr = ibv_reg_mr_iova(e->pd, e->buffer + 4096, 1000, 0x7000,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	expect(mr);
	side_fill(&p->a, 0, 100, 2);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	r.rkey = mr->rkey;
	r.remote_addr = 0x7000 + 50;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_check(&p->b, 4096 + 50, 100, 2);
	expect_eq(ibv_dereg_mr(mr), 0);
}

static void destroying_a_queue_pair_takes_its_completions_along(struct pair *p)
{
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 4; i++) {
		side_recv(&p->b, i, 0, 10);
		side_send(&p->a, i, 0, 10);
	}
	side_wait_ok(&p->a, SEND_CQ, 0);
	side_wait_ok(&p->b, RECV_CQ, 0);
	expect_eq(side_qp_destroy(&p->a, 0), 0);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	side_expect_none(&p->a, SEND_CQ);
	side_expect_none(&p->b, RECV_CQ);
}

static void a_thousand_queue_pairs_of_several_blocks_work(struct pair *p)
{
	enum { COUNT = 2200 }; /* more than two blocks of numbers */
	static struct ibv_qp *qps[COUNT];
	struct end *e = p->a.end;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct send_req r;

	pair_open(p, NULL);
	init.send_cq = e->cq[0];
	init.recv_cq = e->cq[1];
	for (int i = 0; i < COUNT; i++) {
		qps[i] = ibv_create_qp(e->pd, &init);
		expect(qps[i]);
		for (int k = 0; k < i && i % 100 == 0; k++)
			expect(qps[k]->qp_num != qps[i]->qp_num);
	}
	/* The last one in place of the first. */
	expect_eq(side_qp_destroy(&p->a, 0), 0);
	e->qp[0] = qps[COUNT - 1];
	p->a.qpn[0] = qps[COUNT - 1]->qp_num;
	pair_connect_qp(p, 0);
	side_recv(&p->b, 1, 0, 10);
	side_send(&p->a, 2, 0, 10);
	side_wait_ok(&p->b, RECV_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_recv(&p->a, 1, 0, 10);
	r = rdma_req(&p->b, &p->a, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 0, 10);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, RECV_CQ, 1);
	side_wait_ok(&p->b, SEND_CQ, 3);
	for (int i = 0; i < COUNT - 1; i++)
		expect_eq(ibv_destroy_qp(qps[i]), 0);
}

static void devices_open_and_close_many_times(struct pair *p)
{
	for (int i = 0; i < 30; i++) {
		pair_start(p, NULL);
		side_recv(&p->b, 1, 0, 10);
		side_send(&p->a, 2, 0, 10);
		side_wait_ok(&p->b, RECV_CQ, 1);
		side_wait_ok(&p->a, SEND_CQ, 2);
		if (i % 2)
			side_close(&p->a);
		side_close(&p->b);
		side_close(&p->a);
	}
}

/* ---- completion queue overrun, and events whose object goes away ---- */

static void overrun(struct pair *p)
{
	const struct side_options opt = { .cqe = 4 };

	pair_start(p, &opt);
	for (uint64_t i = 0; i < 16; i++)
		side_recv(&p->b, i, 0, 10);
	for (uint64_t i = 0; i < 12; i++) {
		side_send(&p->a, i, 0, 10);
		if (i < 4)
			side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void an_overrun_completion_queue_reports_an_error(struct pair *p)
{
	struct polled polled;

	overrun(p);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_CQ_ERR);
	/* Nothing is invented: at most what fits, then an error. */
	polled = side_poll(&p->b, RECV_CQ, 12, 0);
	expect(polled.count < 12);
	for (int i = 0; i < polled.count; i++)
		expect_eq(polled.wc[i].wr_id, i);
	expect_eq(side_poll(&p->b, RECV_CQ, 1, QUIET_MS).count, -1);
}

static void an_unread_event_of_a_destroyed_completion_queue_is_gone(struct pair *p)
{
	struct ibv_async_event event;
	struct end *e = p->b.end;
	struct ibv_cq *other;

	overrun(p);
	side_poll(&p->b, SEND_CQ, 1, QUIET_MS);
	other = e->cq[RECV_CQ];
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	expect_eq(ibv_destroy_cq(other), 0);
	e->cq[RECV_CQ] = e->cq[SEND_CQ];
	expect_eq(ibv_get_async_event(e->ctx, &event), -1);
	expect_eq(errno, EAGAIN);
}

static void *ack_late(void *arg)
{
	const struct timespec wait = { .tv_nsec = 100 * 1000000 };

	nanosleep(&wait, NULL);
	ibv_ack_async_event(arg);
	return NULL;
}

static void destroying_waits_until_asynchronous_events_are_acknowledged(struct pair *p)
{
	struct ibv_async_event event;
	struct end *e = p->b.end;
	struct ibv_cq *cq;
	pthread_t thread;
	uint64_t start;

	overrun(p);
	for (uint64_t end = now_ms() + WAIT_MS; ibv_get_async_event(e->ctx, &event);) {
		expect(now_ms() < end);
		side_poll(&p->b, SEND_CQ, 1, 1);
	}
	expect_eq(event.event_type, IBV_EVENT_CQ_ERR);
	cq = e->cq[RECV_CQ];
	expect(event.element.cq == cq);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	start = now_ms();
	expect_eq(pthread_create(&thread, NULL, ack_late, &event), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect(now_ms() - start >= 90);
	pthread_join(thread, NULL);
	e->cq[RECV_CQ] = e->cq[SEND_CQ];
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_dealloc_pd(3)",
		objects_in_use_cannot_be_destroyed),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_create_qp(3)",
		queue_pairs_that_are_not_offered_are_refused),
	CASE_IN(ONLY_ONE_PROCESS, a_list_of_devices_may_be_given_to_free),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device(3)",
		the_device_says_what_it_does_not_offer),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_resize_cq(3)",
		resizing_keeps_what_waits_in_the_queue),
	RULE("ibv_resize_cq(3)",
	     a_queue_does_not_shrink_below_the_datagrams_on_their_way),
	RULE("ibv_rereg_mr(3)", re_registration_moves_the_region),
	RULE("ibv_rereg_mr(3)",
	     re_registration_refuses_nonsense_and_keeps_the_region),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)",
		keys_of_a_region_with_another_start_address_are_offsets_from_it),
	CASE(destroying_a_queue_pair_takes_its_completions_along),
	CASE_IN(ONLY_ONE_PROCESS, a_thousand_queue_pairs_of_several_blocks_work),
	CASE(devices_open_and_close_many_times),
	RULE("ibv_poll_cq(3)", an_overrun_completion_queue_reports_an_error),
	CASE_IN(ONLY_ONE_PROCESS,
		an_unread_event_of_a_destroyed_completion_queue_is_gone),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_get_async_event(3)",
		destroying_waits_until_asynchronous_events_are_acknowledged),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
