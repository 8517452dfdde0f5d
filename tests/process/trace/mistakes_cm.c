/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection calls out of their order, and connections that do not come about. */
#include "mistakes.h"

#include <arpa/inet.h>
#include <errno.h>

static struct rdma_event_channel *channel;

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static struct rdma_cm_id *id_new(void)
{
	struct rdma_cm_id *id;

	NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	return id;
}

static void await(enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;

	NEED(!rdma_get_cm_event(channel, &event));
	NEED(event->event == wanted);
	NEED(!rdma_ack_cm_event(event));
}

static void order(void)
{
	struct rdma_cm_id *id = id_new(), *other;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = { 0 };

	rdma_create_id(channel, &other, NULL, (enum rdma_port_space)5);
	BECAUSE("rdma_create_id", "= -1 EINVAL", "port space 0x5", "RDMA_PS_TCP");
	rdma_resolve_route(id, 1000);
	BECAUSE("rdma_resolve_route", "= -1 EINVAL", "address is not resolved",
		"RDMA_CM_EVENT_ADDR_RESOLVED");
	rdma_create_qp(id, NULL, &attr);
	BECAUSE("rdma_create_qp", "= -1 EINVAL", "no device yet");
	rdma_connect(id, &param);
	BECAUSE("rdma_connect", "= -1 EINVAL", "address is not resolved");
	rdma_accept(id, &param);
	BECAUSE("rdma_accept", "= -1 EINVAL", "RDMA_CM_EVENT_CONNECT_REQUEST");
	rdma_reject(id, NULL, 0);
	BECAUSE("rdma_reject", "= -1 EINVAL", "no request to reject");
	rdma_disconnect(id);
	BECAUSE("rdma_disconnect", "= -1 EINVAL", "never been connected");
	rdma_notify(id, IBV_EVENT_QP_FATAL);
	BECAUSE("rdma_notify", "= -1 EINVAL", "only IBV_EVENT_COMM_EST");
	rdma_get_request(id, &other);
	BECAUSE("rdma_get_request", "= -1 EINVAL", "without an event channel");
	rdma_set_option(id, 77, 5, &param, 1);
	BECAUSE("rdma_set_option", "= -1 E", "option 5");
	NEED(!rdma_destroy_id(id));
}

static void addresses(void)
{
	struct rdma_cm_id *first = id_new(), *second = id_new();
	struct sockaddr_in elsewhere = address("203.0.113.77", 0), own = address("127.0.0.1", 0);
	struct sockaddr nothing = { .sa_family = AF_UNIX };

	rdma_bind_addr(first, (struct sockaddr *)&elsewhere);
	BECAUSE("rdma_bind_addr", "= -1 E", "203.0.113.77", "of this host");
	rdma_bind_addr(first, &nothing);
	BECAUSE("rdma_bind_addr", "= -1 EINVAL", "AF_INET6");
	NEED(!rdma_bind_addr(first, (struct sockaddr *)&own));
	NEED(!rdma_listen(first, 1));
	own.sin_port = rdma_get_src_port(first);
	rdma_bind_addr(first, (struct sockaddr *)&own);
	BECAUSE("rdma_bind_addr", "= -1 EINVAL", "bound already");
	rdma_bind_addr(second, (struct sockaddr *)&own);
	BECAUSE("rdma_bind_addr", "= -1 EADDRINUSE", "another identifier has this port");
	rdma_listen(first, 1);
	BECAUSE("rdma_listen", "= -1 EINVAL", "listens already");
	NEED(!rdma_destroy_id(first) && !rdma_destroy_id(second));
}

static void connections(void)
{
	struct rdma_cm_id *id = id_new();
	struct sockaddr_in nobody = address("127.0.0.1", 1), far = address("203.0.113.77", 9);
	struct rdma_conn_param param = { .initiator_depth = 254 };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_recv_wr = 1 },
	};

	NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, 1000));
	await(RDMA_CM_EVENT_ADDR_ERROR);
	BECAUSE("rdma_get_cm_event", "= 0", "ADDR_ERROR", "unreachable");
	NEED(!rdma_destroy_id(id));
	id = id_new();
	NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&nobody, 1000));
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_connect(id, &param);
	BECAUSE("rdma_connect", "= -1 EINVAL", "route is not resolved",
		"RDMA_CM_EVENT_ROUTE_RESOLVED");
	rdma_create_qp(id, pd, &attr);
	BECAUSE("rdma_create_qp", "= -1 EINVAL", "pd is of another context");
	NEED(!rdma_resolve_route(id, 1000));
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	rdma_connect(id, &param);
	BECAUSE("rdma_connect", "= -1 EINVAL", "initiator_depth is 254");
	rdma_connect(id, NULL);
	BECAUSE("rdma_connect", "= -1 EINVAL", "conn_param is NULL");
	param.initiator_depth = 1;
	attr.cap.max_send_sge = 1000;
	rdma_create_qp(id, NULL, &attr);
	BECAUSE("rdma_create_qp > ibv_create_qp", "= NULL EINVAL", "max_send_sge is 1000");
	attr.cap.max_send_sge = 1;
	NEED(!rdma_create_qp(id, NULL, &attr));
	NEED(!rdma_connect(id, &param));
	await(RDMA_CM_EVENT_REJECTED);
	BECAUSE("rdma_get_cm_event", "= 0", "REJECTED", "nobody listens");
	rdma_destroy_qp(id);
	NEED(!rdma_destroy_id(id));
}

void mistakes_connections(void)
{
	channel = rdma_create_event_channel();
	NEED(channel);
	order();
	addresses();
	connections();
	rdma_destroy_event_channel(channel);
}
