/* SPDX-License-Identifier: BSD-2-Clause */
/* Successful connections: what both sides see, and how connections end. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>

static void expect_patience(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(id->qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, &init) == 0);
	CHECK((4096e-9 * (1u << attr.timeout)) * (attr.retry_cnt + 1) > 2);
}

static void both_sides_are_established_and_exchange_messages(void)
{
	struct cm_pair p;

	cm_pair_make(&p);
	/* A peer may get no processor for seconds, whatever the way to it. */
	expect_patience(p.caller);
	expect_patience(p.callee);
	cm_message(p.caller, p.callee);
	cm_message(p.callee, p.caller);
	CHECK(rdma_get_dst_port(p.caller) == htons(p.port));
	CHECK(rdma_get_src_port(p.callee) == htons(p.port));
	CHECK(rdma_get_dst_port(p.callee) == rdma_get_src_port(p.caller));
	cm_pair_free(&p);
}

static void private_data_and_values_reach_the_other_side(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	uint8_t question[56], answer[196];
	struct rdma_conn_param ask = { question, sizeof(question), 3, 2, 1, 5, 6,
				       0, 0 };
	struct rdma_conn_param say = { answer, sizeof(answer), 2, 1, 0, 0, 4, 0, 0 };
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint16_t port;

	memset(question, 0x5a, sizeof(question));
	memset(answer, 0xa5, sizeof(answer));
	listener = cm_listener(callee_ch, RDMA_PS_TCP, 1, &port);
	listener->context = question;
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cm_qp(caller);
	ask.private_data_len = 57;
	CHECK(rdma_connect(caller, &ask) == -1 && errno == EINVAL);
	ask.private_data_len = 56;
	CHECK(rdma_connect(caller, &ask) == 0);

	ev = cm_expect(callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(callee->context == question);
	CHECK(ev->param.conn.private_data_len == sizeof(question));
	CHECK(!memcmp(ev->param.conn.private_data, question, sizeof(question)));
	/* The caller's initiator depth is the callee's responder resources. */
	CHECK(ev->param.conn.responder_resources == 2);
	CHECK(ev->param.conn.initiator_depth == 3);
	CHECK(ev->param.conn.flow_control == 1);
	CHECK(ev->param.conn.retry_count == 5);
	CHECK(ev->param.conn.rnr_retry_count == 6);
	CHECK(ev->param.conn.qp_num == caller->qp->qp_num);
	cm_qp(callee);
	CHECK(rdma_accept(callee, &say) == 0);
	rdma_ack_cm_event(ev);

	ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ev->param.conn.private_data_len == sizeof(answer));
	CHECK(!memcmp(ev->param.conn.private_data, answer, sizeof(answer)));
	CHECK(ev->param.conn.qp_num == callee->qp->qp_num);
	rdma_ack_cm_event(ev);
	CHECK(ibv_query_qp(caller->qp, &attr, IBV_QP_RNR_RETRY |
			   IBV_QP_RETRY_CNT | IBV_QP_MAX_QP_RD_ATOMIC |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN, &init) == 0);
	CHECK(attr.rnr_retry == 4 && attr.retry_cnt == 5);
	CHECK(attr.max_rd_atomic == 2 && attr.max_dest_rd_atomic == 1);
	CHECK(attr.dest_qp_num == callee->qp->qp_num);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_id_free(caller);
	CHECK(cm_expect_ack(callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	cm_id_free(callee);
	cm_id_free(listener);
	rdma_destroy_event_channel(callee_ch);
	rdma_destroy_event_channel(ch);
}

static void disconnect_ends_both_sides_and_flushes(void)
{
	char buf[16];
	struct cm_pair p;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	cm_pair_make(&p);
	mr = rdma_reg_msgs(p.caller, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(p.caller, NULL, buf, sizeof(buf), mr) == 0);
	CHECK(rdma_disconnect(p.caller) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(rdma_get_recv_comp(p.caller, &wc) == 1);
	CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	/* The disconnect of one side leaves the other side's QP alone. */
	CHECK(cm_qp_state(p.callee) == IBV_QPS_RTS);
	CHECK(rdma_disconnect(p.callee) == 0);
	CHECK(cm_qp_state(p.callee) == IBV_QPS_ERR);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_TIMEWAIT_EXIT) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_TIMEWAIT_EXIT) == 0);
	CHECK(rdma_disconnect(p.caller) == 0);
	cm_expect_quiet(p.caller_ch, 20);
	CHECK(rdma_dereg_mr(mr) == 0);
	cm_pair_free(&p);
}

/* rdma_create_qp(3) forbids it, but some programs do so before they end. */
static void a_qp_that_was_destroyed_by_hand_is_not_touched(void)
{
	struct cm_pair p;

	cm_pair_make(&p);
	CHECK(ibv_destroy_qp(p.callee->qp) == 0);
	CHECK(rdma_disconnect(p.callee) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	p.callee->qp = NULL;
	rdma_destroy_qp(p.callee); /* destroys its completion queues */
	cm_pair_free(&p);
}

/* Moves a QP that the program made itself to the given state. */
static void qp_by_hand(struct rdma_cm_id *id, struct ibv_qp *qp,
		       enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
	CHECK(ibv_modify_qp(qp, &attr, mask) == 0);
}

static struct ibv_qp *qp_make(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(id->pd, &attr);

	CHECK(qp);
	qp_by_hand(id, qp, IBV_QPS_INIT);
	return qp;
}

static void qps_outside_the_identifier_are_connected_by_hand(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_cm_event *ev;
	struct ibv_qp *caller_qp, *callee_qp;
	struct ibv_cq *cq;
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	caller = cm_caller(ch, RDMA_PS_TCP, port);
	cq = ibv_create_cq(caller->verbs, 8, NULL, NULL, 0);
	CHECK(cq);
	caller_qp = qp_make(caller, cq);
	param.qp_num = caller_qp->qp_num;
	CHECK(rdma_connect(caller, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(ev->param.conn.qp_num == caller_qp->qp_num);
	rdma_ack_cm_event(ev);
	callee_qp = qp_make(callee, cq);
	qp_by_hand(callee, callee_qp, IBV_QPS_RTR);
	qp_by_hand(callee, callee_qp, IBV_QPS_RTS);
	param.qp_num = callee_qp->qp_num;
	CHECK(rdma_accept(callee, &param) == 0);

	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(ev->id == caller && ev->param.conn.qp_num == callee_qp->qp_num);
	rdma_ack_cm_event(ev);
	qp_by_hand(caller, caller_qp, IBV_QPS_RTR);
	qp_by_hand(caller, caller_qp, IBV_QPS_RTS);
	CHECK(rdma_establish(caller) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ev->id == callee);
	rdma_ack_cm_event(ev);
	CHECK(rdma_establish(caller) == -1 && errno == EINVAL);
	CHECK(rdma_notify(callee, IBV_EVENT_COMM_EST) == -1 && errno == EISCONN);

	CHECK(ibv_destroy_qp(caller_qp) == 0);
	CHECK(ibv_destroy_qp(callee_qp) == 0);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(rdma_destroy_id(caller) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(rdma_destroy_id(callee) == 0);
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(ch);
}

static void a_wildcard_listener_is_reached_by_every_local_address(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, to = any;
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;

	CHECK(rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&any) == 0);
	CHECK(listener->verbs == NULL);
	CHECK(rdma_listen(listener, 0) == 0);
	to.sin_port = rdma_get_src_port(listener);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 6);
	CHECK(rdma_create_id(ch, &caller, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(caller, NULL, (struct sockaddr *)&to, 100) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(caller, 100) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->id->verbs == caller->verbs);
	CHECK(((struct sockaddr_in *)rdma_get_local_addr(ev->id))->sin_addr.s_addr ==
	      to.sin_addr.s_addr);
	CHECK(rdma_destroy_id(ev->id) == 0);
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 28);
	cm_id_free(caller);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

struct gap {
	struct rdma_event_channel *ch, *callee_ch;
	struct rdma_cm_id *listener, *caller;
	uint16_t port;
	unsigned wait_us;
	uint64_t called_ms;
};

static void *call_in_between(void *arg)
{
	struct gap *g = arg;

	usleep(g->wait_us);
	g->called_ms = cm_now_ms();
	CHECK(rdma_connect(g->caller, NULL) == 0);
	return NULL;
}

/* At the same port, or another one if somebody has taken that meanwhile. False: another one. */
static bool listen_again(struct gap *g)
{
	CHECK(rdma_create_id(g->callee_ch, &g->listener, NULL, RDMA_PS_TCP) == 0);
	if (!rdma_bind_addr(g->listener, cm_loopback(g->port)) && !rdma_listen(g->listener, 4))
		return true;
	cm_id_free(g->listener);
	g->listener = cm_listener(g->callee_ch, RDMA_PS_TCP, 4, &g->port);
	return false;
}

/* The call has reached the first listener, which rejects it by its end, or the second one. */
static void find_call(struct gap *g, bool in_time)
{
	struct pollfd at[2] = { { g->ch->fd, POLLIN, 0 }, { g->callee_ch->fd, POLLIN, 0 } };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *callee;

	CHECK(poll(at, 2, -1) > 0);
	if (!at[0].revents) {
		ev = cm_expect(g->callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
		callee = ev->id;
		rdma_ack_cm_event(ev);
		CHECK(rdma_destroy_id(callee) == 0);
	}
	if (in_time)
		CHECK(cm_expect_ack(g->ch, RDMA_CM_EVENT_REJECTED) == 28);
	else
		cm_expect_ack(g->ch, RDMA_CM_EVENT_REJECTED);
}

/* perftest's server closes its listener and opens it again while its client calls. */
static void a_call_between_two_listeners_reaches_one(void)
{
	struct gap g = { .ch = rdma_create_event_channel(),
			 .callee_ch = rdma_create_event_channel() };
	struct cm_pair first;
	pthread_t thread;
	bool again;

	/* Beside a connection, as perftest's second call. */
	cm_pair_make(&first);
	g.listener = cm_listener(g.callee_ch, RDMA_PS_TCP, 4, &g.port);
	for (unsigned i = 0; i < 200; i++) {
		g.caller = cm_caller(g.ch, RDMA_PS_TCP, g.port);
		cm_qp(g.caller);
		g.wait_us = i * 37 % 200;
		CHECK(!pthread_create(&thread, NULL, call_in_between, &g));
		usleep(i * 101 % 300);
		CHECK(rdma_destroy_id(g.listener) == 0);
		/* For those that have found it already. */
		usleep(1000);
		again = listen_again(&g);
		CHECK(!pthread_join(thread, NULL));
		find_call(&g, again && cm_now_ms() - g.called_ms < 40);
		cm_id_free(g.caller);
	}
	cm_pair_free(&first);
	cm_id_free(g.listener);
	rdma_destroy_event_channel(g.callee_ch);
	rdma_destroy_event_channel(g.ch);
}

CM_MAIN(CASE(both_sides_are_established_and_exchange_messages),
	CASE(private_data_and_values_reach_the_other_side),
	CASE(disconnect_ends_both_sides_and_flushes),
	CASE(a_qp_that_was_destroyed_by_hand_is_not_touched),
	CASE(qps_outside_the_identifier_are_connected_by_hand),
	CASE(a_wildcard_listener_is_reached_by_every_local_address),
	CASE(a_call_between_two_listeners_reaches_one))
