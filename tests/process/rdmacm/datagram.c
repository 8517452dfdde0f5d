/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram services: lookup of a QP, and messages to it. */
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

static struct sockaddr *group_address(uint8_t last)
{
	static struct sockaddr_in sin;

	sin = (struct sockaddr_in){ .sin_family = AF_INET };
	/* 239.x.x.x, different for each run, so that parallel runs are not members. */
	sin.sin_addr.s_addr =
		htonl(0xef000000u | ((uint32_t)getpid() & 0xffff) << 8 | last);
	return (struct sockaddr *)&sin;
}

/* An identifier with its QP, on 127.0.0.1, that has joined the group. */
static struct rdma_cm_id *member(uint8_t last, void *context, struct ibv_ah **ah)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *ev;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_resolve_addr(id, cm_loopback(0), group_address(last), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	cm_qp(id);
	CHECK(rdma_join_multicast(id, group_address(last), context) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(ev->id == id && ev->status == 0);
	CHECK(ev->param.ud.private_data == context);
	CHECK(ev->param.ud.qp_num == 0xffffff);
	CHECK(ev->param.ud.qkey == RDMA_UDP_QKEY);
	*ah = ibv_create_ah(id->pd, &ev->param.ud.ah_attr);
	CHECK(*ah);
	rdma_ack_cm_event(ev);
	return id;
}

static void members_of_a_group_get_each_others_messages(void)
{
	struct rdma_cm_id *a, *b;
	struct ibv_ah *to_a, *to_b;
	char out[8] = "to all", in[40 + 8] = "";
	struct ibv_mr *out_mr, *in_mr;
	struct ibv_wc wc;

	ch = rdma_create_event_channel();
	CHECK(ch && !atexit(channel_free));
	a = member(1, &out, &to_a);
	b = member(1, &in, &to_b);
	in_mr = rdma_reg_msgs(b, in, sizeof(in));
	out_mr = rdma_reg_msgs(a, out, sizeof(out));
	CHECK(in_mr && out_mr);
	CHECK(rdma_post_recv(b, NULL, in, sizeof(in), in_mr) == 0);
	CHECK(rdma_post_ud_send(a, NULL, out, sizeof(out), out_mr, 0, to_a,
				0xffffff) == 0);
	CHECK(rdma_get_recv_comp(b, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == sizeof(in));
	CHECK(wc.src_qp == a->qp->qp_num && !strcmp(in + 40, "to all"));
	CHECK(rdma_leave_multicast(b, group_address(1)) == 0);
	CHECK(rdma_leave_multicast(b, group_address(1)) == -1);
	CHECK(errno == EADDRNOTAVAIL);
	/* Destroying the identifier takes a out of the group. */
	CHECK(ibv_destroy_ah(to_a) == 0 && ibv_destroy_ah(to_b) == 0);
	CHECK(rdma_dereg_mr(in_mr) == 0 && rdma_dereg_mr(out_mr) == 0);
	cm_id_free(a);
	cm_id_free(b);
}

static void who_joins_to_send_only_does_not_receive(void)
{
	struct rdma_cm_join_mc_attr_ex ex = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
	};
	struct ibv_ah_attr here = { .port_num = 1, .dlid = 1 };
	struct rdma_cm_id *full, *sender;
	struct ibv_ah *group, *direct;
	char text[2][8] = { "to all", "direct" }, in[40 + 8] = "";
	struct ibv_mr *in_mr, *out_mr;
	struct ibv_wc wc;

	ch = rdma_create_event_channel();
	CHECK(ch && !atexit(channel_free));
	full = member(1, NULL, &group);
	CHECK(rdma_create_id(ch, &sender, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(sender, cm_loopback(0)) == 0);
	cm_qp(sender);
	ex.addr = group_address(1);
	CHECK(rdma_join_multicast_ex(sender, &ex, &ex) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_MULTICAST_JOIN) == 0);
	in_mr = rdma_reg_msgs(sender, in, sizeof(in));
	out_mr = rdma_reg_msgs(full, text, sizeof(text));
	direct = ibv_create_ah(full->pd, &here);
	CHECK(in_mr && out_mr && direct);
	CHECK(rdma_post_recv(sender, NULL, in, sizeof(in), in_mr) == 0);
	CHECK(rdma_post_ud_send(full, NULL, text[0], 8, out_mr, 0, group,
				0xffffff) == 0);
	CHECK(rdma_get_send_comp(full, &wc) == 1);
	CHECK(rdma_post_ud_send(full, NULL, text[1], 8, out_mr, 0, direct,
				sender->qp->qp_num) == 0);
	CHECK(rdma_get_recv_comp(sender, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && !strcmp(in + 40, "direct"));
	CHECK(rdma_leave_multicast(sender, group_address(1)) == 0);
	CHECK(ibv_destroy_ah(group) == 0 && ibv_destroy_ah(direct) == 0);
	CHECK(rdma_dereg_mr(in_mr) == 0 && rdma_dereg_mr(out_mr) == 0);
	cm_id_free(full);
	cm_id_free(sender);
}

static void groups_that_cannot_be_joined_are_refused(void)
{
	struct rdma_cm_join_mc_attr_ex ex = { .addr = group_address(2) };
	struct rdma_cm_id *listener, *caller, *id;

	setup(&listener, &caller);
	CHECK(rdma_join_multicast(caller, cm_loopback(0), NULL) == -1);
	CHECK(errno == EINVAL);
	CHECK(rdma_leave_multicast(caller, group_address(2)) == -1);
	CHECK(errno == EADDRNOTAVAIL);
	CHECK(rdma_join_multicast_ex(caller, &ex, NULL) == -1);
	CHECK(errno == EINVAL);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_join_multicast(id, group_address(2), NULL) == -1);
	CHECK(errno == EINVAL); /* it is not bound to a device yet */
	CHECK(rdma_destroy_id(id) == 0);
	/* A group that is left although the event was never taken. */
	CHECK(rdma_join_multicast(caller, group_address(2), NULL) == 0);
	CHECK(rdma_join_multicast(caller, group_address(2), NULL) == -1);
	CHECK(errno == EADDRINUSE);
	CHECK(rdma_leave_multicast(caller, group_address(2)) == 0);
	cm_expect_quiet(ch, 0);
	cm_id_free(listener);
	cm_id_free(caller);
}

CM_MAIN(CASE(lookup_gives_what_a_message_needs),
	CASE(a_rejected_lookup_is_unreachable_with_status_2),
	CASE(a_lookup_without_listener_is_unreachable_with_status_1),
	CASE(members_of_a_group_get_each_others_messages),
	CASE(who_joins_to_send_only_does_not_receive),
	CASE(groups_that_cannot_be_joined_are_refused))
