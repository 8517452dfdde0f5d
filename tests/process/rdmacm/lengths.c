/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data: each message carries, unchanged, the number of bytes that the manual pages
 * and the message's layout allow; one byte more is an error.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>

static uint8_t data[256];

static void fill(uint8_t seed)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(seed + i * 7);
}

static bool same(const void *got, size_t got_len, size_t len)
{
	const uint8_t *p = got;

	if (got_len < len || memcmp(got, data, len))
		return false;
	for (size_t i = len; i < got_len; i++)
		if (p[i])
			return false; /* the padding must be zero */
	return true;
}

/* A loopback address as a GID (AF_IB) or as IPv4. */
static struct sockaddr *address(bool gid, enum rdma_port_space ps, uint16_t port)
{
	static struct sockaddr_ib sib;

	if (!gid)
		return cm_loopback(port);
	memset(&sib, 0, sizeof(sib));
	sib.sib_family = AF_IB;
	sib.sib_addr.sib_raw[15] = 1;
	sib.sib_sid = htobe64((uint64_t)ps << 16 | port);
	sib.sib_sid_mask = UINT64_MAX;
	return (struct sockaddr *)&sib;
}

struct sides {
	struct rdma_event_channel *caller_ch, *callee_ch;
	struct rdma_cm_id *listener, *caller;
	struct rdma_cm_event *request; /* of the caller */
};

/* Sends a request with `most` bytes, after checking that one byte more fails. */
static struct sides request(enum rdma_port_space ps, bool gid, uint8_t most)
{
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = most + 1,
					 .qp_num = 0x10, .retry_count = 7 };
	struct sides s;
	uint16_t port;

	fill(most);
	s.caller_ch = rdma_create_event_channel();
	s.callee_ch = rdma_create_event_channel();
	CHECK(rdma_create_id(s.callee_ch, &s.listener, NULL, ps) == 0);
	CHECK(rdma_bind_addr(s.listener, address(gid, ps, 0)) == 0);
	CHECK(rdma_listen(s.listener, 2) == 0);
	port = ntohs(rdma_get_src_port(s.listener));
	CHECK(port != 0);
	CHECK(rdma_create_id(s.caller_ch, &s.caller, NULL, ps) == 0);
	CHECK(rdma_resolve_addr(s.caller, NULL, address(gid, ps, port), 1000) ==
	      0);
	CHECK(cm_expect_ack(s.caller_ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(s.caller, 1000) == 0);
	CHECK(cm_expect_ack(s.caller_ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	CHECK(rdma_connect(s.caller, &param) == -1 && errno == EINVAL);
	param.private_data_len = most;
	CHECK(rdma_connect(s.caller, &param) == 0);
	s.request = cm_expect(s.callee_ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	return s;
}

static void sides_free(struct sides *s)
{
	cm_id_free(s->caller);
	cm_id_free(s->listener);
	rdma_destroy_event_channel(s->caller_ch);
	rdma_destroy_event_channel(s->callee_ch);
}

static void check_connected(bool gid, uint8_t most)
{
	struct sides s = request(RDMA_PS_TCP, gid, most);
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = 197,
					 .qp_num = 0x11 };
	struct rdma_cm_id *callee = s.request->id;
	struct rdma_cm_event *ev;

	CHECK(same(s.request->param.conn.private_data,
		   s.request->param.conn.private_data_len, most));
	CHECK(rdma_ack_cm_event(s.request) == 0);
	fill(3);
	CHECK(rdma_accept(callee, &param) == -1 && errno == EINVAL);
	param.private_data_len = 196;
	CHECK(rdma_accept(callee, &param) == 0);
	ev = cm_expect(s.caller_ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(same(ev->param.conn.private_data, ev->param.conn.private_data_len,
		   196));
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(rdma_establish(s.caller) == 0);
	CHECK(cm_expect_ack(s.callee_ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	cm_id_free(callee);
	sides_free(&s);
}

static void connected_requests_carry_56_bytes_and_replies_196(void)
{
	check_connected(false, 56);
}

static void without_ip_addresses_a_request_carries_92_bytes(void)
{
	check_connected(true, 92);
}

static void rejections_carry_148_bytes(void)
{
	struct sides s = request(RDMA_PS_TCP, false, 56);
	struct rdma_cm_id *callee = s.request->id;
	struct rdma_cm_event *ev;

	CHECK(rdma_ack_cm_event(s.request) == 0);
	fill(9);
	CHECK(rdma_reject(callee, data, 149) == -1 && errno == EINVAL);
	CHECK(rdma_reject(callee, data, 148) == 0);
	ev = cm_expect(s.caller_ch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->status == 28);
	CHECK(same(ev->param.conn.private_data, ev->param.conn.private_data_len,
		   148));
	CHECK(rdma_ack_cm_event(ev) == 0);
	cm_id_free(callee);
	sides_free(&s);
}

static void check_datagram(enum rdma_port_space ps, bool gid, uint8_t most,
			   bool accept)
{
	struct sides s = request(ps, gid, most);
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = 137,
					 .qp_num = 0x12 };
	struct rdma_cm_id *callee = s.request->id;
	struct rdma_cm_event *ev;

	CHECK(same(s.request->param.ud.private_data,
		   s.request->param.ud.private_data_len, most));
	CHECK(rdma_ack_cm_event(s.request) == 0);
	fill(5);
	if (accept) {
		CHECK(rdma_accept(callee, &param) == -1 && errno == EINVAL);
		param.private_data_len = 136;
		CHECK(rdma_accept(callee, &param) == 0);
		ev = cm_expect(s.caller_ch, RDMA_CM_EVENT_ESTABLISHED);
		CHECK(ev->param.ud.qp_num == 0x12);
		CHECK(ev->param.ud.qkey == RDMA_UDP_QKEY);
	} else {
		CHECK(rdma_reject(callee, data, 137) == -1 && errno == EINVAL);
		CHECK(rdma_reject(callee, data, 136) == 0);
		ev = cm_expect(s.caller_ch, RDMA_CM_EVENT_UNREACHABLE);
		CHECK(ev->status == 2);
	}
	CHECK(same(ev->param.ud.private_data, ev->param.ud.private_data_len,
		   136));
	CHECK(rdma_ack_cm_event(ev) == 0);
	cm_id_free(callee);
	sides_free(&s);
}

static void datagram_lookups_carry_180_bytes_and_answers_136(void)
{
	check_datagram(RDMA_PS_UDP, false, 180, true);
	check_datagram(RDMA_PS_IPOIB, false, 180, true);
	check_datagram(RDMA_PS_UDP, false, 180, false);
}

static void without_ip_addresses_a_lookup_carries_216_bytes(void)
{
	check_datagram(RDMA_PS_UDP, true, 216, true);
}

static void data_of_the_endpoint_leads_that_of_the_caller(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .private_data = "caller",
					 .private_data_len = 6 };
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 } };
	struct rdma_addrinfo hints = { 0 }, *res;
	struct rdma_cm_event *ev;
	struct rdma_cm_id *listener, *callee, *id;
	char text[8];
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	snprintf(text, sizeof(text), "%u", port);
	CHECK(rdma_getaddrinfo("127.0.0.1", text, &hints, &res) == 0);
	res->ai_connect = data;
	res->ai_connect_len = 57;
	CHECK(rdma_create_ep(&id, res, NULL, &attr) == -1 && errno == EINVAL);
	fill(1);
	res->ai_connect_len = 10;
	CHECK(rdma_create_ep(&id, res, NULL, &attr) == 0);
	res->ai_connect = NULL;
	rdma_freeaddrinfo(res);
	CHECK(rdma_migrate_id(id, ch) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(!memcmp(ev->param.conn.private_data, data, 10));
	CHECK(!memcmp((const char *)ev->param.conn.private_data + 10, "caller",
		      6));
	CHECK(rdma_reject(ev->id, NULL, 0) == 0);
	callee = ev->id;
	CHECK(rdma_ack_cm_event(ev) == 0);
	cm_id_free(callee);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 28);
	rdma_destroy_ep(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(connected_requests_carry_56_bytes_and_replies_196),
	CASE(without_ip_addresses_a_request_carries_92_bytes),
	CASE(rejections_carry_148_bytes),
	CASE(datagram_lookups_carry_180_bytes_and_answers_136),
	CASE(without_ip_addresses_a_lookup_carries_216_bytes),
	CASE(data_of_the_endpoint_leads_that_of_the_caller))
