/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * connections_of_both_devices_are_made_by_one_process: usage cm ADDRESS, the one
 * that rxe0 has. Runs in the guest, on busbar's libraries: every connection is
 * made twice, to ADDRESS by the kernel's device and to 127.0.0.1 by soft0.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>

#define PORT "7471"

static const char *real_address;

static struct sockaddr *address_of(const char *host, uint16_t port)
{
	static _Thread_local struct sockaddr_in sin;

	sin = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_port = htons(port) };
	CHECK(inet_pton(AF_INET, host, &sin.sin_addr) == 1);
	return (struct sockaddr *)&sin;
}

static bool is_on(const struct rdma_cm_id *id, const char *device)
{
	return id->verbs && !strcmp(ibv_get_device_name(id->verbs->device), device);
}

static void devices_of_both_are_listed(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);

	/* The kernel's is active, so it comes first. */
	CHECK(list && count == 2 && !list[2]);
	CHECK(!strcmp(ibv_get_device_name(list[0]->device), "rxe0"));
	CHECK(!strcmp(ibv_get_device_name(list[1]->device), "soft0"));
	rdma_free_devices(list);
}

/* ---- one channel, one listener, a caller on each device ---- */

struct call {
	const char *host, *device;
	struct rdma_cm_id *caller, *callee;
	int established, ended;
	struct sockaddr *to;
};

static struct call calls[2] = { { .device = "rxe0" }, { .device = "soft0" } };

static struct call *call_of(const struct rdma_cm_id *id)
{
	for (int i = 0; i < 2; i++)
		if (calls[i].caller == id || calls[i].callee == id)
			return &calls[i];
	return NULL;
}

static void request_take(struct rdma_cm_event *ev, struct rdma_cm_id *listener)
{
	struct call *c = is_on(ev->id, "soft0") ? &calls[1] : &calls[0];

	CHECK(ev->listen_id == listener && ev->id->context == listener->context);
	CHECK(is_on(ev->id, c->device) && !c->callee);
	CHECK(!memcmp(ev->param.conn.private_data, c->device, strlen(c->device)));
	c->callee = ev->id;
	c->callee->context = c;
	cm_qp(c->callee);
	CHECK(rdma_accept(c->callee, &ev->param.conn) == 0);
}

static void event_take(struct rdma_cm_event *ev, struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = { .responder_resources = 1,
					 .initiator_depth = 1, .retry_count = 7,
					 .rnr_retry_count = 7 };
	struct call *c = call_of(ev->id);

	CHECK(ev->status == 0 &&
	      (c || ev->event == RDMA_CM_EVENT_CONNECT_REQUEST));
	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		CHECK(is_on(ev->id, c->device) && ev->id->context == c);
		CHECK(rdma_resolve_route(ev->id, 2000) == 0);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		CHECK(ev->id->route.num_paths == 1 && ev->id->route.path_rec);
		cm_qp(ev->id);
		param.private_data = c->device;
		param.private_data_len = (uint8_t)strlen(c->device);
		CHECK(rdma_connect(ev->id, &param) == 0);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		request_take(ev, listener);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		c->established++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		c->ended++;
		/* The kernel waits for the program with its answer. */
		if (ev->id == c->callee)
			rdma_disconnect(ev->id);
		break;
	default:
		CHECK(ev->event == RDMA_CM_EVENT_TIMEWAIT_EXIT);
		break;
	}
}

/* By the descriptor, as programs with loops of their own do. */
static void event_next(struct rdma_event_channel *ch, struct rdma_cm_id *listener)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;

	CHECK(poll(&pfd, 1, -1) == 1);
	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	event_take(ev, listener);
	CHECK(rdma_ack_cm_event(ev) == 0);
}

static void one_channel_serves_both(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *listener;
	uint16_t port;

	calls[0].host = real_address;
	calls[1].host = "127.0.0.1";
	CHECK(ch && other);
	CHECK(rdma_create_id(ch, &listener, &port, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, address_of("0.0.0.0", 0)) == 0);
	CHECK(rdma_listen(listener, 4) == 0);
	port = ntohs(rdma_get_src_port(listener));
	for (int i = 0; i < 2; i++) {
		struct call *c = &calls[i];

		CHECK(rdma_create_id(ch, &c->caller, c, RDMA_PS_TCP) == 0);
		CHECK(rdma_resolve_addr(c->caller, NULL,
					address_of(c->host, port), 2000) == 0);
	}
	while (calls[0].established + calls[1].established < 4)
		event_next(ch, listener);
	for (int i = 0; i < 2; i++) {
		cm_message(calls[i].caller, calls[i].callee);
		cm_message(calls[i].callee, calls[i].caller);
		/* What comes later comes to the other channel. */
		CHECK(rdma_migrate_id(calls[i].callee, other) == 0);
		CHECK(rdma_disconnect(calls[i].caller) == 0);
	}
	while (calls[0].ended + calls[1].ended < 2)
		event_next(other, listener);
	while (calls[0].ended + calls[1].ended < 4)
		event_next(ch, listener);
	for (int i = 0; i < 2; i++) {
		cm_id_free(calls[i].caller);
		cm_id_free(calls[i].callee);
	}
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(other);
}

/* ---- synchronous endpoints ---- */

struct endpoint {
	struct rdma_cm_id *listener;
	enum ibv_qp_type type;
	const char *device;
};

static struct rdma_addrinfo *info(const char *host, int flags, enum ibv_qp_type type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_qp_type = type,
				       .ai_port_space = RDMA_PS_TCP }, *res;

	CHECK(rdma_getaddrinfo(host, PORT, &hints, &res) == 0);
	return res;
}

static void *endpoint_serve(void *arg)
{
	struct endpoint *e = arg;
	struct rdma_cm_id *id;
	char buf[16] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;

	CHECK(rdma_get_request(e->listener, &id) == 0);
	CHECK(is_on(id, e->device) && id->qp->qp_type == e->type);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(id, NULL, buf, sizeof(buf), mr) == 0);
	CHECK(rdma_accept(id, NULL) == 0);
	CHECK(rdma_get_recv_comp(id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && !strcmp(buf, "by the endpoint"));
	CHECK(rdma_disconnect(id) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	return NULL;
}

static void endpoints_connect(const char *host, const char *device,
			      enum ibv_qp_type type)
{
	const struct ibv_qp_init_attr queues = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp_init_attr attr = queues;
	struct endpoint e = { .type = type, .device = device };
	struct rdma_addrinfo *res = info(host, RAI_PASSIVE, type);
	char buf[16] = "by the endpoint";
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t thread;

	CHECK(rdma_create_ep(&e.listener, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(rdma_listen(e.listener, 1) == 0);
	CHECK(pthread_create(&thread, NULL, endpoint_serve, &e) == 0);
	attr = queues;
	res = info(host, 0, type);
	CHECK(rdma_create_ep(&id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(is_on(id, device) && id->qp->qp_type == type);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CHECK(mr && rdma_connect(id, NULL) == 0);
	CHECK(rdma_post_send(id, NULL, buf, sizeof(buf), mr, 0) == 0);
	CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	/* Each end answers the other's call. */
	CHECK(rdma_disconnect(id) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(e.listener);
}

/* ---- datagrams, refusals ---- */

static void a_lookup_is_answered(const char *host, const char *device)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .private_data = NULL };
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *ev;

	CHECK(ch && rdma_create_id(ch, &listener, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_bind_addr(listener, address_of(host, 7472)) == 0);
	CHECK(is_on(listener, device) && rdma_listen(listener, 1) == 0);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, address_of(host, 7472), 2000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(id, 2000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	cm_qp(id);
	CHECK(is_on(id, device) && rdma_connect(id, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(ev->id->qp_type == IBV_QPT_UD && ev->listen_id == listener);
	cm_qp(ev->id);
	param.qp_num = ev->id->qp->qp_num;
	CHECK(rdma_accept(ev->id, &param) == 0);
	{
		struct rdma_cm_id *callee = ev->id;
		uint32_t qpn = callee->qp->qp_num;

		CHECK(rdma_ack_cm_event(ev) == 0);
		ev = cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
		CHECK(ev->id == id && ev->param.ud.qp_num == qpn);
		CHECK(ev->param.ud.qkey == RDMA_UDP_QKEY);
		CHECK(rdma_ack_cm_event(ev) == 0);
		cm_id_free(callee);
	}
	cm_id_free(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static void a_caller_is_refused(const char *host)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 1 };
	struct rdma_cm_id *listener, *id, *second;
	struct rdma_cm_event *ev;

	CHECK(ch && rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, address_of(host, 7473)) == 0);
	CHECK(rdma_listen(listener, 1) == 0);
	/* The port is taken on its side. */
	CHECK(rdma_create_id(ch, &second, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(second, address_of(host, 7473)) == -1 &&
	      errno == EADDRINUSE);
	cm_id_free(second);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, address_of(host, 7473), 2000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(id, 2000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	cm_qp(id);
	CHECK(rdma_connect(id, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(rdma_reject(ev->id, "no", 3) == 0);
	{
		struct rdma_cm_id *callee = ev->id;

		CHECK(rdma_ack_cm_event(ev) == 0);
		cm_id_free(callee);
	}
	ev = cm_expect(ch, RDMA_CM_EVENT_REJECTED);
	CHECK(ev->status == 28 && !strcmp(ev->param.conn.private_data, "no"));
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(cm_qp_state(id) == IBV_QPS_ERR);
	cm_id_free(id);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	real_address = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(60);
	devices_of_both_are_listed();
	one_channel_serves_both();
	printf("one channel and one listener: both devices\n");
	for (int i = 0; i < 2; i++) {
		struct call *c = &calls[i];

		endpoints_connect(c->host, c->device, IBV_QPT_RC);
		endpoints_connect(c->host, c->device, IBV_QPT_UC);
		a_lookup_is_answered(c->host, c->device);
		a_caller_is_refused(c->host);
		printf("%s: endpoints of RC and UC, a lookup, a refusal\n",
		       c->device);
	}
	return 0;
}
