/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints, synchronous calls and address information. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

static const struct ibv_qp_init_attr qp_attr = {
	.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
		 .max_recv_sge = 1 },
	.sq_sig_all = 1,
};

static struct rdma_addrinfo *info(const char *port, int flags, int ps, int type)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = ps,
				       .ai_qp_type = type }, *res;

	CHECK(rdma_getaddrinfo("127.0.0.1", port, &hints, &res) == 0);
	return res;
}

struct server {
	struct rdma_cm_id *listener, *id;
	enum ibv_qp_type type;
};

static void *serve(void *arg)
{
	struct server *s = arg;
	char buf[16] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;

	CHECK(rdma_get_request(s->listener, &s->id) == 0);
	CHECK(s->id->event &&
	      s->id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(s->id->qp && s->id->qp->qp_type == s->type);
	mr = rdma_reg_msgs(s->id, buf, sizeof(buf));
	CHECK(mr && rdma_post_recv(s->id, NULL, buf, sizeof(buf), mr) == 0);
	CHECK(rdma_accept(s->id, NULL) == 0);
	CHECK(rdma_get_recv_comp(s->id, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && !strcmp(buf, "by the endpoint"));
	CHECK(rdma_disconnect(s->id) == 0);
	CHECK(rdma_dereg_mr(mr) == 0);
	return NULL;
}

static void connect_endpoints(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = qp_attr;
	struct server s = { .type = type };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	char port[8], buf[16] = "by the endpoint";
	struct ibv_mr *mr;
	struct ibv_wc wc;
	pthread_t thread;

	res = info("0", RAI_PASSIVE, RDMA_PS_TCP, type);
	CHECK(rdma_create_ep(&s.listener, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	CHECK(rdma_listen(s.listener, 1) == 0);
	CHECK(pthread_create(&thread, NULL, serve, &s) == 0);
	snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(s.listener)));

	res = info(port, 0, RDMA_PS_TCP, type);
	CHECK(res->ai_dst_len == sizeof(struct sockaddr_in));
	attr = qp_attr;
	if (rdma_create_ep(&id, res, NULL, &attr)) {
		/* An adapter without UC must fail with this errno. */
		CHECK(type == IBV_QPT_UC && errno == EOPNOTSUPP);
		exit(77);
	}
	rdma_freeaddrinfo(res);
	CHECK(id->qp && id->qp->qp_type == type && id->send_cq_channel);
	CHECK(rdma_connect(id, NULL) == 0);
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	CHECK(mr && rdma_post_send(id, NULL, buf, sizeof(buf), mr, 0) == 0);
	CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(rdma_disconnect(id) == 0);
	CHECK(rdma_disconnect(id) == 0); /* no event follows any more */
	CHECK(rdma_dereg_mr(mr) == 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(s.id);
	rdma_destroy_ep(s.listener);
}

static void reliable_endpoints_connect_synchronously(void)
{
	connect_endpoints(IBV_QPT_RC);
}

static void unreliable_connected_endpoints_work_too(void)
{
	connect_endpoints(IBV_QPT_UC);
}

static void synchronous_failures_are_returned(void)
{
	struct ibv_qp_init_attr attr = qp_attr;
	struct rdma_addrinfo *res = info("1", 0, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *id;

	CHECK(rdma_create_ep(&id, res, NULL, &attr) == 0);
	CHECK(rdma_connect(id, NULL) == -1 && errno == ECONNREFUSED);
	CHECK(id->event && id->event->event == RDMA_CM_EVENT_REJECTED);
	CHECK(id->event->status == 8);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
}

static void an_endpoint_becomes_asynchronous_by_migration(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = qp_attr;
	struct rdma_addrinfo *res = info("1", 0, RDMA_PS_TCP, IBV_QPT_RC);
	struct rdma_cm_id *id;

	CHECK(rdma_create_ep(&id, res, NULL, &attr) == 0);
	CHECK(rdma_migrate_id(id, ch) == 0);
	CHECK(id->channel == ch);
	CHECK(rdma_connect(id, NULL) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	CHECK(rdma_migrate_id(id, NULL) == 0);
	CHECK(rdma_migrate_id(id, NULL) == -1 && errno == EINVAL);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
	rdma_destroy_event_channel(ch);
}

static void address_information_follows_the_hints(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE }, *res;

	CHECK(rdma_getaddrinfo(NULL, NULL, NULL, &res) == -1 && errno == EINVAL);
	CHECK(rdma_getaddrinfo(NULL, "7471", &hints, &res) == 0);
	CHECK(res->ai_flags & RAI_PASSIVE);
	CHECK(res->ai_src_addr && !res->ai_dst_addr && !res->ai_dst_len);
	CHECK(res->ai_port_space == RDMA_PS_TCP && res->ai_qp_type == IBV_QPT_RC);
	rdma_freeaddrinfo(res);

	hints = (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_UDP };
	CHECK(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &res) == 0);
	CHECK(res->ai_qp_type == IBV_QPT_UD && res->ai_port_space == RDMA_PS_UDP);
	CHECK(res->ai_dst_addr && res->ai_src_addr);
	rdma_freeaddrinfo(res);

	hints = (struct rdma_addrinfo){ .ai_flags = RAI_NUMERICHOST };
	CHECK(rdma_getaddrinfo("localhost", NULL, &hints, &res) == EAI_NONAME);
	hints.ai_flags = RAI_NUMERICHOST | RAI_FAMILY;
	hints.ai_family = AF_INET6;
	CHECK(rdma_getaddrinfo("::1", "1", &hints, &res) == 0);
	CHECK(res->ai_family == AF_INET6 &&
	      res->ai_dst_addr->sa_family == AF_INET6);
	rdma_freeaddrinfo(res);
	hints.ai_flags = 1 << 20;
	CHECK(rdma_getaddrinfo("::1", "1", &hints, &res) == EAI_BADFLAGS);

	/* Without node and service the addresses of the hints are used. */
	hints = (struct rdma_addrinfo){ .ai_family = AF_INET,
					.ai_dst_addr = cm_loopback(9),
					.ai_dst_len = sizeof(struct sockaddr_in) };
	CHECK(rdma_getaddrinfo(NULL, NULL, &hints, &res) == 0);
	CHECK(res->ai_dst_len == sizeof(struct sockaddr_in));
	rdma_freeaddrinfo(res);
}

static void devices_stay_open_between_calls(void)
{
	int count = -1;
	struct ibv_context **list = rdma_get_devices(&count);
	struct ibv_context **again = rdma_get_devices(NULL);

	CHECK(list && count > 0 && list[count] == NULL);
	CHECK(again && again[0] == list[0]);
	rdma_free_devices(list);
	rdma_free_devices(again);
}

CM_MAIN(CASE(reliable_endpoints_connect_synchronously),
	CASE(unreliable_connected_endpoints_work_too),
	CASE(synchronous_failures_are_returned),
	CASE(an_endpoint_becomes_asynchronous_by_migration),
	CASE(address_information_follows_the_hints),
	CASE(devices_stay_open_between_calls))
