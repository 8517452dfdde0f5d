/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Options, paths, extended capabilities (ECE), and the calls for programs that change
 * the states of their queue pairs themselves.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <infiniband/sa.h>

static int set8(struct rdma_cm_id *id, int name, uint8_t value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int set_int(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

#define EINVALID(call) CHECK((call) == -1 && errno == EINVAL)

static void options_have_their_size_their_time_and_their_service(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id, *ud;
	int number = 1;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_create_id(ch, &ud, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_set_option(id, 7, 0, &number, sizeof(number)) == -1 &&
	      errno == ENOSYS);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, 99, &number,
			      sizeof(number)) == -1 && errno == ENOSYS);
	/* Wrong sizes: TOS is one byte, REUSEADDR an int. */
	EINVALID(set_int(id, RDMA_OPTION_ID_TOS, 4));
	EINVALID(set8(id, RDMA_OPTION_ID_REUSEADDR, 1));
	EINVALID(set8(id, RDMA_OPTION_ID_AFONLY, 1));
	EINVALID(set_int(id, RDMA_OPTION_ID_ACK_TIMEOUT, 4));
	EINVALID(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL,
				 1));
	CHECK(set8(id, RDMA_OPTION_ID_TOS, 255) == 0);
	CHECK(set_int(id, RDMA_OPTION_ID_REUSEADDR, 1) == 0);
	CHECK(set_int(id, RDMA_OPTION_ID_AFONLY, 0) == 0);
	CHECK(set8(id, RDMA_OPTION_ID_ACK_TIMEOUT, 31) == 0);
	EINVALID(set8(id, RDMA_OPTION_ID_ACK_TIMEOUT, 32));
	/* Datagrams have no acknowledgements. */
	EINVALID(set8(ud, RDMA_OPTION_ID_ACK_TIMEOUT, 14));
	/* AFONLY is only possible before the identifier is bound. */
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	EINVALID(set_int(id, RDMA_OPTION_ID_AFONLY, 1));
	CHECK(set_int(id, RDMA_OPTION_ID_REUSEADDR, 1) == 0);
	CHECK(rdma_listen(id, 1) == 0);
	EINVALID(set_int(id, RDMA_OPTION_ID_REUSEADDR, 0));
	CHECK(set8(id, RDMA_OPTION_ID_TOS, 0) == 0);
	cm_id_free(id);
	cm_id_free(ud);
	rdma_destroy_event_channel(ch);
}

static void an_address_may_be_shared_by_those_who_say_so(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *a, *b, *c;
	uint16_t port;

	CHECK(rdma_create_id(ch, &a, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_create_id(ch, &b, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_create_id(ch, &c, NULL, RDMA_PS_TCP) == 0);
	CHECK(set_int(a, RDMA_OPTION_ID_REUSEADDR, 1) == 0);
	CHECK(set_int(b, RDMA_OPTION_ID_REUSEADDR, 1) == 0);
	CHECK(rdma_bind_addr(a, cm_loopback(0)) == 0);
	port = ntohs(rdma_get_src_port(a));
	CHECK(rdma_bind_addr(b, cm_loopback(port)) == 0);
	CHECK(rdma_bind_addr(c, cm_loopback(port)) == -1 && errno == EADDRINUSE);
	CHECK(rdma_listen(a, 1) == 0);
	CHECK(rdma_listen(b, 1) == -1 && errno == EADDRINUSE);
	cm_id_free(a);
	CHECK(rdma_listen(b, 1) == 0);
	cm_id_free(b);
	cm_id_free(c);
	rdma_destroy_event_channel(ch);
}

/* ---- paths ---- */

static struct ibv_path_data path_of(const struct rdma_cm_id *id)
{
	const struct ibv_sa_path_rec *from = id->route.path_rec;
	const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;

	CHECK(!from || id->route.num_paths == 1);
	return (struct ibv_path_data){
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = { .dgid = ib->dgid, .sgid = ib->sgid, .pkey = 0xffff,
			  .tclass = 0x20, .mtu = 2 << 6 | IBV_MTU_512,
			  .packetlifetime = 2 << 6 | 16,
			  .flowlabel_hoplimit = htonl(7) },
	};
}

static int set_path(struct rdma_cm_id *id, const struct ibv_path_data *path,
		    size_t len)
{
	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			       (void *)(uintptr_t)path, len);
}

static void a_path_takes_the_place_of_the_resolved_route(void)
{
	struct rdma_conn_param param = { .retry_count = 3, .rnr_retry_count = 2 };
	struct cm_pair p = { 0 };
	struct ibv_path_data path[2];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rdma_cm_event *ev;

	p.caller_ch = rdma_create_event_channel();
	p.callee_ch = rdma_create_event_channel();
	p.listener = cm_listener(p.callee_ch, RDMA_PS_TCP, 1, &p.port);
	CHECK(rdma_create_id(p.caller_ch, &p.caller, NULL, RDMA_PS_TCP) == 0);
	path[1] = path_of(p.caller);
	EINVALID(set_path(p.caller, &path[1], sizeof(path[1])));
	CHECK(rdma_resolve_addr(p.caller, NULL, cm_loopback(p.port), 1000) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);

	/* Wrong length, no matching path, other addresses, no MTU. */
	path[0] = path[1] = path_of(p.caller);
	EINVALID(set_path(p.caller, path, sizeof(path[0]) - 1));
	EINVALID(set_path(p.caller, path, 0));
	path[0].flags = IBV_PATH_FLAG_PRIMARY;
	EINVALID(set_path(p.caller, path, sizeof(path[0])));
	path[1].path.dgid.raw[15] ^= 1;
	EINVALID(set_path(p.caller, path, sizeof(path)));
	path[1] = path_of(p.caller);
	path[1].path.mtu = 0;
	EINVALID(set_path(p.caller, path, sizeof(path)));
	cm_expect_quiet(p.caller_ch, 0);

	path[1] = path_of(p.caller);
	CHECK(set_path(p.caller, path, sizeof(path)) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	CHECK(p.caller->route.path_rec->mtu == IBV_MTU_512);
	EINVALID(set_path(p.caller, path, sizeof(path)));
	cm_qp(p.caller);
	CHECK(rdma_connect(p.caller, &param) == 0);
	ev = cm_expect(p.callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.callee = ev->id;
	cm_qp(p.callee);
	CHECK(rdma_accept(p.callee, NULL) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	for (int side = 0; side < 2; side++) {
		CHECK(ibv_query_qp((side ? p.callee : p.caller)->qp, &attr,
				   IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_AV |
				   IBV_QP_RETRY_CNT, &init) == 0);
		CHECK(attr.path_mtu == IBV_MTU_512);
		CHECK(attr.timeout == 17);
		CHECK(attr.ah_attr.grh.traffic_class == 0x20);
		CHECK(attr.retry_cnt == 3);
	}
	cm_message(p.caller, p.callee);
	cm_pair_free(&p);
}

static void service_and_timeout_of_the_options_reach_both_queue_pairs(void)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	struct cm_pair p = { 0 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct rdma_cm_event *ev;

	p.caller_ch = rdma_create_event_channel();
	p.callee_ch = rdma_create_event_channel();
	p.listener = cm_listener(p.callee_ch, RDMA_PS_TCP, 1, &p.port);
	p.caller = cm_caller(p.caller_ch, RDMA_PS_TCP, p.port);
	CHECK(set8(p.caller, RDMA_OPTION_ID_TOS, 0x60) == 0);
	CHECK(set8(p.caller, RDMA_OPTION_ID_ACK_TIMEOUT, 18) == 0);
	cm_qp(p.caller);
	CHECK(rdma_connect(p.caller, &param) == 0);
	ev = cm_expect(p.callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.callee = ev->id;
	cm_qp(p.callee);
	CHECK(rdma_accept(p.callee, NULL) == 0);
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_expect_ack(p.caller_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(cm_expect_ack(p.callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	for (int side = 0; side < 2; side++) {
		CHECK(ibv_query_qp((side ? p.callee : p.caller)->qp, &attr,
				   IBV_QP_TIMEOUT | IBV_QP_AV, &init) == 0);
		CHECK(attr.timeout == 18);
		CHECK(attr.ah_attr.grh.traffic_class == 0x60);
	}
	cm_pair_free(&p);
}

/* ---- queue pairs of the program's own ---- */

struct by_hand {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *caller, *callee;
};

/* A request that has arrived, from a caller without a QP in its identifier. */
static struct by_hand request_by_hand(void)
{
	struct rdma_conn_param param = { .qp_num = 0x51, .retry_count = 7 };
	struct ibv_ece none = { .vendor_id = 1 << 24 };
	struct ibv_ece ece = { .vendor_id = 0xabcdef, .options = 0x12345678 };
	struct by_hand h = { .ch = rdma_create_event_channel() };
	struct rdma_cm_event *ev;
	uint16_t port;

	h.listener = cm_listener(h.ch, RDMA_PS_TCP, 1, &port);
	h.caller = cm_caller(h.ch, RDMA_PS_TCP, port);
	EINVALID(rdma_set_local_ece(h.caller, NULL));
	EINVALID(rdma_set_local_ece(h.caller, &none)); /* 24 bits */
	CHECK(rdma_set_local_ece(h.caller, &ece) == 0);
	CHECK(rdma_connect(h.caller, &param) == 0);
	ev = cm_expect(h.ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	h.callee = ev->id;
	CHECK(ev->param.conn.qp_num == 0x51);
	CHECK(rdma_ack_cm_event(ev) == 0);
	return h;
}

static void by_hand_free(struct by_hand *h)
{
	cm_id_free(h->caller);
	cm_id_free(h->callee);
	cm_id_free(h->listener);
	rdma_destroy_event_channel(h->ch);
}

static void extended_capabilities_are_exchanged(void)
{
	struct rdma_conn_param param = { .qp_num = 0x52 };
	struct ibv_ece ece = { .vendor_id = 0x00beef, .options = 5 }, got;
	struct by_hand h = request_by_hand();

	EINVALID(rdma_get_remote_ece(h.callee, NULL));
	CHECK(rdma_get_remote_ece(h.callee, &got) == 0);
	CHECK(got.vendor_id == 0xabcdef && got.options == 0x12345678);
	CHECK(rdma_set_local_ece(h.callee, &ece) == 0);
	CHECK(rdma_accept(h.callee, &param) == 0);
	CHECK(cm_expect_ack(h.ch, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
	CHECK(rdma_get_remote_ece(h.caller, &got) == 0);
	CHECK(got.vendor_id == 0x00beef && got.options == 5);
	by_hand_free(&h);
}

static void unwanted_capabilities_are_rejected_with_reason_35(void)
{
	struct by_hand h = request_by_hand();

	CHECK(rdma_reject_ece(h.callee, "no", 2) == 0);
	CHECK(cm_expect_ack(h.ch, RDMA_CM_EVENT_REJECTED) == 35);
	by_hand_free(&h);
}

static void notify_establishes_what_waits_for_its_peer(void)
{
	struct rdma_conn_param param = { .qp_num = 0x53 };
	struct by_hand h = request_by_hand();

	EINVALID(rdma_notify(h.callee, IBV_EVENT_COMM_EST)); /* before rdma_accept() */
	CHECK(rdma_accept(h.callee, &param) == 0);
	CHECK(cm_expect_ack(h.ch, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
	EINVALID(rdma_notify(h.callee, IBV_EVENT_PATH_MIG));
	CHECK(rdma_notify(h.callee, IBV_EVENT_COMM_EST) == 0);
	CHECK(cm_expect_ack(h.ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(rdma_notify(h.callee, IBV_EVENT_COMM_EST) == -1 &&
	      errno == EISCONN);
	/* The late RTU comes and is not reported a second time. */
	CHECK(rdma_establish(h.caller) == 0);
	EINVALID(rdma_establish(h.caller));
	cm_expect_quiet(h.ch, 50);
	by_hand_free(&h);
}

static void attributes_by_hand_are_those_of_the_connection(void)
{
	struct by_hand h = request_by_hand();
	struct rdma_conn_param param = { .qp_num = 0x54, .rnr_retry_count = 6,
					 .initiator_depth = 1,
					 .responder_resources = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	int mask = 0;

	EINVALID(rdma_init_qp_attr(h.caller, &attr, &mask));
	CHECK(rdma_accept(h.callee, &param) == 0);
	CHECK(cm_expect_ack(h.ch, RDMA_CM_EVENT_CONNECT_RESPONSE) == 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(rdma_init_qp_attr(h.caller, &attr, &mask) == 0);
	CHECK(attr.dest_qp_num == 0x54 && attr.path_mtu >= IBV_MTU_256);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(rdma_init_qp_attr(h.caller, &attr, &mask) == 0);
	CHECK(attr.rnr_retry == 6 && attr.retry_cnt == 7);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
		       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC));
	by_hand_free(&h);
}

CM_MAIN(CASE(options_have_their_size_their_time_and_their_service),
	CASE(an_address_may_be_shared_by_those_who_say_so),
	CASE(a_path_takes_the_place_of_the_resolved_route),
	CASE(service_and_timeout_of_the_options_reach_both_queue_pairs),
	CASE(extended_capabilities_are_exchanged),
	CASE(unwanted_capabilities_are_rejected_with_reason_35),
	CASE(notify_establishes_what_waits_for_its_peer),
	CASE(attributes_by_hand_are_those_of_the_connection))
