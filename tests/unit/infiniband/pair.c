/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "util/clock.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)

static struct ibv_context *open_soft0(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

bool pair_present(void)
{
	struct ibv_context *context = open_soft0();

	if (context)
		ibv_close_device(context);
	return context;
}

static struct ibv_qp *create_qp(struct pair *p, struct ibv_cq *send,
				struct ibv_cq *recv, unsigned tx, unsigned rx,
				unsigned inline_size)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send, .recv_cq = recv, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = tx, .max_recv_wr = rx,
			 .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = inline_size },
	};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer,
		       const union ibv_gid *gid)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer, .min_rnr_timer = 1,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = *gid, .hop_limit = 1 } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};

	assert_int_equal(ibv_modify_qp(qp, &init,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_modify_qp(qp, &rtr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void open_channel(struct pair *p, const struct pair_setup *s)
{
	const struct ib_channel_config cfg = {
		.name = "pair", .registrar = &p->registrar,
		.rx_depth = s->rx_depth, .rx_threshold = s->rx_threshold,
		.tx_depth = s->tx_depth, .signal_every = s->signal_every,
		.notify_fd = -1, .events = p->recv_events,
		.spin_ns = s->spin_ns,
	};

	assert_int_equal(ib_channel_init(&p->channel, &cfg), 0);
	pair_open_channel(p, s);
}

void pair_open_channel(struct pair *p, const struct pair_setup *s)
{
	const struct ib_channel_qp q = {
		.qp = p->near, .recv_cq = p->recv_cq, .send_cq = p->send_cq,
		.inline_limit = s->inline_size,
	};

	ib_channel_open_rx(&p->channel, &q);
	ib_channel_open_tx(&p->channel, NULL, 0, 0);
}

void pair_open(struct pair *p, const struct pair_setup *s)
{
	union ibv_gid gid;

	clock_init();
	memset(p, 0, sizeof(*p));
	p->context = open_soft0();
	assert_non_null(p->context);
	p->pd = ibv_alloc_pd(p->context);
	p->events = ibv_create_comp_channel(p->context);
	if (s->sleeps) {
		p->recv_events = ibv_create_comp_channel(p->context);
		assert_non_null(p->recv_events);
		assert_int_equal(fcntl(p->recv_events->fd, F_SETFL,
				       O_NONBLOCK), 0);
	}
	p->recv_cq = ibv_create_cq(p->context, 256, NULL, p->recv_events, 0);
	p->send_cq = ibv_create_cq(p->context, 256, NULL, p->events, 0);
	p->far_recv_cq = ibv_create_cq(p->context, 256, NULL, NULL, 0);
	p->far_send_cq = ibv_create_cq(p->context, 256, NULL, NULL, 0);
	p->far_mr = ibv_reg_mr(p->pd, p->far_buffer, sizeof(p->far_buffer),
			       IBV_ACCESS_LOCAL_WRITE);
	assert_true(p->pd && p->events && p->recv_cq && p->send_cq &&
		    p->far_recv_cq && p->far_send_cq && p->far_mr);
	p->near = create_qp(p, p->send_cq, p->recv_cq, s->tx_granted,
			    s->rx_granted, s->inline_size);
	p->far = create_qp(p, p->far_send_cq, p->far_recv_cq, PAIR_FAR,
			   PAIR_FAR, 0);
	assert_int_equal(ibv_query_gid(p->context, 1, 0, &gid), 0);
	connect_qp(p->near, p->far->qp_num, &gid);
	connect_qp(p->far, p->near->qp_num, &gid);
	p->registrar.name = "pair";
	p->registrar.pd = p->pd;
	assert_int_equal(pool_init(&p->pool, s->samples, s->capacity,
				   ib_registrar_type(&p->registrar,
						     &memory_heap)), 0);
	open_channel(p, s);
}

void pair_close(struct pair *p)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	ib_channel_close_tx(&p->channel);
	ib_channel_close_rx(&p->channel);
	assert_int_equal(ibv_modify_qp(p->near, &error, IBV_QP_STATE), 0);
	ib_channel_drain(&p->channel, LIMIT_NS);
	/* The adapter has given back every request by itself. */
	assert_int_equal(ib_table_used(&p->channel.rx.table), 0);
	assert_int_equal(ib_table_used(&p->channel.tx.table), 0);
	assert_int_equal(ibv_destroy_qp(p->near), 0);
	assert_int_equal(ibv_destroy_qp(p->far), 0);
	ib_channel_release_all(&p->channel);
	assert_int_equal(pool_destroy(&p->pool), 0);
	ib_channel_destroy(&p->channel);
	ib_registrar_destroy(&p->registrar);
	assert_int_equal(ibv_dereg_mr(p->far_mr), 0);
	assert_int_equal(ibv_destroy_cq(p->recv_cq), 0);
	assert_int_equal(ibv_destroy_cq(p->send_cq), 0);
	assert_int_equal(ibv_destroy_cq(p->far_recv_cq), 0);
	assert_int_equal(ibv_destroy_cq(p->far_send_cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(p->events), 0);
	if (p->recv_events)
		assert_int_equal(ibv_destroy_comp_channel(p->recv_events), 0);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
	assert_int_equal(ibv_close_device(p->context), 0);
}

static void poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = clock_now_ns() + LIMIT_NS;
	int n;

	while ((n = ibv_poll_cq(cq, 1, wc)) == 0 && clock_now_ns() < end)
		sched_yield();
	assert_int_equal(n, 1);
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
}

void pair_far_post_send(struct pair *p, unsigned values, uint64_t sequence)
{
	uint64_t *message = (uint64_t *)p->far_buffer[sequence % PAIR_FAR];
	struct ibv_sge sge = { (uintptr_t)message, 24 + 8 * values,
			       p->far_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	message[0] = sequence;
	message[1] = 1000;
	message[2] = 2000;
	for (unsigned i = 0; i < values; i++)
		message[3 + i] = sequence + i;
	assert_int_equal(ibv_post_send(p->far, &wr, &bad), 0);
}

void pair_far_send(struct pair *p, unsigned values, uint64_t sequence)
{
	struct ibv_wc wc;

	pair_far_post_send(p, values, sequence);
	poll_one(p->far_send_cq, &wc);
}

void pair_far_post(struct pair *p, unsigned n)
{
	while (n--) {
		struct ibv_sge sge = { (uintptr_t)p->far_buffer[PAIR_FAR],
				       4096,
				       p->far_mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_recv(p->far, &wr, &bad), 0);
	}
}

unsigned pair_far_take(struct pair *p, unsigned n)
{
	struct ibv_wc wc[PAIR_FAR];

	return (unsigned)ibv_poll_cq(p->far_recv_cq, (int)MIN(n, PAIR_FAR), wc);
}

void pair_near_send(struct pair *p, struct sample *s)
{
	struct ib_tx *tx = &p->channel.tx;
	struct ibv_sge sge = { (uintptr_t)sample_wire(s),
			       (uint32_t)sample_wire_size(s->length), 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct pollfd pfd = { .fd = p->events->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	assert_true(ib_keys_get(&tx->keys, s, &sge.lkey));
	wr.wr_id = ib_table_add(&tx->table, s);
	assert_int_equal(ibv_req_notify_cq(p->send_cq, 0), 0);
	pair_far_post(p, 1);
	assert_int_equal(ibv_post_send(p->near, &wr, &bad), 0);
	poll_one(p->far_recv_cq, &wc);
	assert_int_equal(poll(&pfd, 1, 10000), 1);
	assert_int_equal(ibv_get_cq_event(p->events, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
}
