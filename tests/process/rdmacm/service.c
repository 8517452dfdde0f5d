/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service types: which of them each port space has, which ends can be connected, and
 * the queue pairs of UC and XRC connections.
 */
#include "cm_help.h"

#include <busbar/rdma_cma.h>
#include <pthread.h>


static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
					  IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };
#define TYPES (sizeof(types) / sizeof(types[0]))

static void a_port_space_has_its_service_types_and_no_others(void)
{
	static const struct {
		enum rdma_port_space ps;
		const char *has; /* one character for each of types[] */
	} rules[] = {
		{ RDMA_PS_TCP, "yynyy" },
		{ RDMA_PS_UDP, "nnynn" },
		{ RDMA_PS_IPOIB, "nyynn" },
		{ RDMA_PS_IB, "yyyyy" },
		{ (enum rdma_port_space)0x0999, "nnnnn" },
	};
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++)
		for (size_t t = 0; t < TYPES; t++) {
			int ret = rdma_create_id2(ch, &id, ch, rules[r].ps,
						  types[t]);

			if (rules[r].has[t] == 'n') {
				CHECK(ret == -1 && errno == EINVAL);
				continue;
			}
			CHECK(ret == 0 && id->qp_type == types[t]);
			CHECK(id->ps == rules[r].ps && id->context == ch);
			CHECK(rdma_destroy_id(id) == 0);
		}
	/* The type that rdma_create_id() chooses. */
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_IPOIB) == 0);
	CHECK(id->qp_type == IBV_QPT_UD && rdma_destroy_id(id) == 0);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_IB) == 0);
	CHECK(id->qp_type == IBV_QPT_RC && rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static struct rdma_cm_id *listener_of(struct rdma_event_channel *ch,
				      enum rdma_port_space ps,
				      enum ibv_qp_type type, uint16_t *port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id2(ch, &id, NULL, ps, type) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	CHECK(rdma_listen(id, 4) == 0);
	*port = ntohs(rdma_get_src_port(id));
	return id;
}

static struct rdma_cm_id *caller_of(struct rdma_event_channel *ch,
				    enum rdma_port_space ps,
				    enum ibv_qp_type type, uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id2(ch, &id, NULL, ps, type) == 0);
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(port), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	return id;
}

static void a_listener_refuses_other_service_types_with_reason_9(void)
{
	struct rdma_event_channel *server = rdma_create_event_channel();
	struct rdma_event_channel *client = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 7 };

	for (size_t l = 0; l < TYPES; l++) {
		uint16_t port;
		struct rdma_cm_id *listener = listener_of(server, RDMA_PS_IB,
							  types[l], &port);

		for (size_t c = 0; c < TYPES; c++) {
			struct rdma_cm_id *id;

			/* XRC: only an initiator connects to a target. */
			if (types[c] == types[l] ||
			    types[c] == IBV_QPT_XRC_RECV ||
			    (types[c] == IBV_QPT_XRC_SEND &&
			     types[l] == IBV_QPT_XRC_RECV))
				continue;
			id = caller_of(client, RDMA_PS_IB, types[c], port);
			CHECK(rdma_connect(id, &param) == 0);
			if (types[c] == IBV_QPT_UD)
				CHECK(cm_expect_ack(client,
					RDMA_CM_EVENT_UNREACHABLE) == 2);
			else
				CHECK(cm_expect_ack(client,
					RDMA_CM_EVENT_REJECTED) == 9);
			cm_id_free(id);
		}
		cm_expect_quiet(server, 0);
		cm_id_free(listener);
	}
	rdma_destroy_event_channel(server);
	rdma_destroy_event_channel(client);
}

static struct ibv_qp_attr query(struct rdma_cm_id *id, int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(id->qp, &attr, mask, &init) == 0);
	return attr;
}

/* Both ends of a UC connection in a port space, with a message each way. */
static void connect_uc(enum rdma_port_space ps)
{
	struct rdma_conn_param param = { .responder_resources = 4,
					 .initiator_depth = 4,
					 .retry_count = 7, .rnr_retry_count = 7,
					 .private_data = "uc",
					 .private_data_len = 2 };
	struct cm_pair p = { 0 };
	struct rdma_cm_event *ev;

	p.caller_ch = rdma_create_event_channel();
	p.callee_ch = rdma_create_event_channel();
	p.listener = listener_of(p.callee_ch, ps, IBV_QPT_UC, &p.port);
	p.caller = caller_of(p.caller_ch, ps, IBV_QPT_UC, p.port);
	cm_qp(p.caller);
	CHECK(p.caller->qp->qp_type == IBV_QPT_UC);
	CHECK(rdma_connect(p.caller, &param) == 0);
	ev = cm_expect(p.callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.callee = ev->id;
	CHECK(p.callee->qp_type == IBV_QPT_UC && p.callee->ps == ps);
	CHECK(!memcmp(ev->param.conn.private_data, "uc", 2));
	/* UC has neither reads nor acknowledgements to agree on. */
	CHECK(ev->param.conn.responder_resources == 0);
	CHECK(ev->param.conn.initiator_depth == 0);
	CHECK(ev->param.conn.retry_count == 0);
	CHECK(ev->param.conn.rnr_retry_count == 0);
	cm_qp(p.callee);
	CHECK(rdma_accept(p.callee, NULL) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);

	for (int side = 0; side < 2; side++) {
		struct rdma_cm_id *id = side ? p.callee : p.caller;
		struct ibv_qp_attr attr = query(id, IBV_QP_STATE |
						IBV_QP_ACCESS_FLAGS |
						IBV_QP_DEST_QPN);

		CHECK(attr.qp_state == IBV_QPS_RTS);
		CHECK(attr.qp_access_flags == IBV_ACCESS_REMOTE_WRITE);
		CHECK(attr.dest_qp_num ==
		      (side ? p.caller : p.callee)->qp->qp_num);
	}
	cm_message(p.caller, p.callee);
	cm_message(p.callee, p.caller);
	CHECK(rdma_disconnect(p.caller) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_DISCONNECTED) == 0);
	CHECK(cm_qp_state(p.caller) == IBV_QPS_ERR);
	cm_pair_free(&p);
}

static void uc_connects_in_every_connected_port_space(void)
{
	connect_uc(RDMA_PS_TCP);
	connect_uc(RDMA_PS_IB);
	connect_uc(RDMA_PS_IPOIB);
}

static void uc_attributes_have_no_retries_and_no_timeouts(void)
{
	const int reliable = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	static const enum ibv_qp_state states[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						    IBV_QPS_RTS };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = caller_of(ch, RDMA_PS_IB, IBV_QPT_UC, 9);
	uint8_t timeout = 14;

	for (size_t i = 0; i < 3; i++) {
		struct ibv_qp_attr attr = { .qp_state = states[i] };
		int mask = 0;

		CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
		CHECK((mask & IBV_QP_STATE) && !(mask & reliable));
	}
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			      &timeout, sizeof(timeout)) == -1 &&
	      errno == EINVAL);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

/* ---- XRC ---- */

struct target {
	struct rdma_cm_id *listener, *id;
	uint32_t srqn;
};

static void *serve_xrc(void *arg)
{
	struct target *t = arg;
	struct rdma_conn_param param = { .responder_resources = 2,
					 .initiator_depth = 2 };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_mr *mr;
	char buf[16] = "";
	struct ibv_wc wc;

	CHECK(rdma_get_request(t->listener, &t->id) == 0);
	CHECK(t->id->qp_type == IBV_QPT_XRC_RECV);
	CHECK(t->id->qp && t->id->qp->qp_type == IBV_QPT_XRC_RECV);
	CHECK(rdma_create_srq(t->id, NULL, &srq) == 0);
	CHECK(t->id->srq && t->id->recv_cq && t->id->recv_cq_channel);
	CHECK(ibv_get_srq_num(t->id->srq, &t->srqn) == 0);
	mr = rdma_reg_msgs(t->id, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(t->id, NULL, buf, sizeof(buf), mr) == 0);
	param.private_data = &t->srqn;
	param.private_data_len = sizeof(t->srqn);
	CHECK(rdma_accept(t->id, &param) == 0);
	CHECK(rdma_get_recv_comp(t->id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && !strcmp(buf, "to the queue"));
	CHECK(rdma_dereg_mr(mr) == 0);
	return NULL;
}

static struct rdma_addrinfo *info(const char *port, int flags,
				  enum ibv_qp_type type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_qp_type = type,
				       .ai_port_space = RDMA_PS_IB }, *res;

	CHECK(rdma_getaddrinfo("127.0.0.1", port, &hints, &res) == 0);
	return res;
}

static void xrc_endpoints_reach_the_shared_queue(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.sq_sig_all = 1,
	};
	struct target t = { 0 };
	struct rdma_addrinfo *res = info("0", RAI_PASSIVE, IBV_QPT_XRC_RECV);
	char port[8], buf[16] = "to the queue";
	struct ibv_sge sge = { .length = sizeof(buf), .addr = (uintptr_t)buf };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .num_sge = 1,
				  .sg_list = &sge }, *bad;
	struct rdma_cm_id *id;
	pthread_t thread;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	CHECK(rdma_create_ep(&t.listener, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(rdma_listen(t.listener, 1) == 0);
	CHECK(pthread_create(&thread, NULL, serve_xrc, &t) == 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(t.listener)));

	res = info(port, 0, IBV_QPT_XRC_SEND);
	CHECK(rdma_create_ep(&id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(id->qp && id->qp->qp_type == IBV_QPT_XRC_SEND);
	CHECK(id->send_cq && !id->recv_cq);
	CHECK(rdma_connect(id, NULL) == 0);
	CHECK(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&wr.qp_type.xrc.remote_srqn, id->event->param.conn.private_data,
	       4);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CHECK(mr);
	sge.lkey = mr->lkey;
	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
	CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(wr.qp_type.xrc.remote_srqn == t.srqn);
	CHECK(query(id, IBV_QP_STATE).qp_state == IBV_QPS_RTS);
	CHECK(rdma_disconnect(id) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(t.id);
	rdma_destroy_ep(t.listener);
}

CM_MAIN(CASE(a_port_space_has_its_service_types_and_no_others),
	CASE(a_listener_refuses_other_service_types_with_reason_9),
	CASE(uc_connects_in_every_connected_port_space),
	CASE(uc_attributes_have_no_retries_and_no_timeouts),
	CASE(xrc_endpoints_reach_the_shared_queue))
