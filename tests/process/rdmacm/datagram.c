/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram services: the lookup of a QP, and messages to it. */
#include "cm_help.h"

#include <arpa/inet.h>

static struct rdma_event_channel *ch;

static void channel_free(void)
{
	rdma_destroy_event_channel(ch);
}

static void setup(struct rdma_cm_id **listener, struct rdma_cm_id **caller)
{
	uint16_t port;

	ch = rdma_create_event_channel();
	CHECK(ch && !atexit(channel_free));
	*listener = cm_listener(ch, RDMA_PS_UDP, 1, &port);
	*caller = cm_caller(ch, RDMA_PS_UDP, port);
	CHECK((*caller)->qp_type == IBV_QPT_UD);
	cm_qp(*caller);
	CHECK(cm_qp_state(*caller) == IBV_QPS_RTS);
}

static void lookup_gives_what_a_message_needs(void)
{
	struct rdma_conn_param ask = { "who serves", 11, 0, 0, 0, 0, 0, 0, 0 };
	struct rdma_conn_param say = { "I do", 5, 0, 0, 0, 0, 0, 0, 0 };
	struct rdma_cm_id *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	char out[8] = "datagra", in[40 + 8] = "";
	struct ibv_mr *out_mr, *in_mr;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	setup(&listener, &caller);
	CHECK(rdma_connect(caller, &ask) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(ev->param.ud.private_data_len == 180);
	CHECK(!strcmp(ev->param.ud.private_data, "who serves"));
	rdma_ack_cm_event(ev);
	cm_qp(callee);
	in_mr = rdma_reg_msgs(callee, in, sizeof(in));
	CHECK(in_mr && rdma_post_recv(callee, NULL, in, sizeof(in), in_mr) == 0);
	CHECK(rdma_accept(callee, &say) == 0);

	ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ev->id == caller);
	CHECK(ev->param.ud.qp_num == callee->qp->qp_num);
	CHECK(ev->param.ud.qkey == RDMA_UDP_QKEY);
	CHECK(ev->param.ud.private_data_len == 136);
	CHECK(!strcmp(ev->param.ud.private_data, "I do"));
	ah = ibv_create_ah(caller->pd, &ev->param.ud.ah_attr);
	CHECK(ah);
	rdma_ack_cm_event(ev);
	out_mr = rdma_reg_msgs(caller, out, sizeof(out));
	CHECK(out_mr);
	CHECK(rdma_post_ud_send(caller, NULL, out, sizeof(out), out_mr, 0, ah,
				callee->qp->qp_num) == 0);
	CHECK(rdma_get_recv_comp(callee, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(in));
	CHECK(!strcmp(in + 40, "datagra"));
	/* No event for the callee: nothing was connected. */
	cm_expect_quiet(ch, 0);
	CHECK(ibv_destroy_ah(ah) == 0);
	CHECK(rdma_dereg_mr(in_mr) == 0 && rdma_dereg_mr(out_mr) == 0);
	cm_id_free(callee);
	cm_id_free(caller);
	cm_id_free(listener);
}

static void a_rejected_lookup_is_unreachable_with_status_2(void)
{
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *ev;

	setup(&listener, &caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(ev->id, NULL, 0) == 0);
	CHECK(rdma_destroy_id(ev->id) == 0);
	rdma_ack_cm_event(ev);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) == 2);
	cm_id_free(caller);
	cm_id_free(listener);
}

static void a_lookup_without_listener_is_unreachable_with_status_1(void)
{
	struct rdma_cm_id *listener, *caller;

	setup(&listener, &caller);
	cm_id_free(listener);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_UNREACHABLE) == 1);
	cm_id_free(caller);
}

static void multicast_says_that_it_is_not_supported(void)
{
	struct rdma_cm_id *listener, *caller;

	setup(&listener, &caller);
	CHECK(rdma_join_multicast(caller, cm_loopback(0), NULL) == -1);
	CHECK(errno == EOPNOTSUPP);
	CHECK(rdma_leave_multicast(caller, cm_loopback(0)) == -1);
	CHECK(errno == EADDRNOTAVAIL);
	cm_id_free(listener);
	cm_id_free(caller);
}

CM_MAIN(CASE(lookup_gives_what_a_message_needs),
	CASE(a_rejected_lookup_is_unreachable_with_status_2),
	CASE(a_lookup_without_listener_is_unreachable_with_status_1),
	CASE(multicast_says_that_it_is_not_supported))
