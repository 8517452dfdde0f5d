/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls for an identifier on a real device: who gets them, and with what. */
#include "help.h"

#include <arpa/inet.h>

/* The function was called once more, for this shadow. */
#define REACHES(name, shadow, ...)                                            \
	do {                                                                  \
		unsigned before_ = standin()->count(#name);                   \
		CHECK(name(__VA_ARGS__) == 0);                                \
		CHECK(standin()->count(#name) == before_ + 1);                \
		CHECK(standin()->arg(#name, 0) == (long)(shadow));            \
	} while (0)

static void every_call_reaches_the_shadow(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_join_mc_attr_ex join = { .comp_mask = 0 };
	struct rdma_conn_param param = { .retry_count = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_ece ece = { .vendor_id = 0 };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id, *shadow;
	char context, word[] = "no";
	int mask, on = 1;

	CHECK(ch);
	CHECK(standin() && atomic_load(&standin()->calls_to_itself) == 0);
	id = routed(ch, REAL_HOST, 7);
	CHECK(atomic_load(&standin()->calls_to_itself) == 1);
	shadow = standin()->newest();
	CHECK(shadow != id && shadow->context == id && is_on(id, "stand0"));
	CHECK(id->channel == ch && !id->context && id->port_num == 1);
	REACHES(rdma_init_qp_attr, shadow, id, &attr, &mask);
	CHECK(standin()->arg("rdma_init_qp_attr", 1) == (long)&attr);
	REACHES(rdma_set_option, shadow, id, RDMA_OPTION_IB,
		RDMA_OPTION_IB_PATH, &on, sizeof(on));
	CHECK(standin()->arg("rdma_set_option", 1) == RDMA_OPTION_IB);
	CHECK(standin()->last_option == 1);
	REACHES(rdma_set_local_ece, shadow, id, &ece);
	REACHES(rdma_get_remote_ece, shadow, id, &ece);
	REACHES(rdma_accept, shadow, id, &param);
	CHECK(standin()->arg("rdma_accept", 1) == (long)&param);
	REACHES(rdma_reject, shadow, id, word, 3);
	CHECK(standin()->arg("rdma_reject", 1) == (long)word);
	CHECK(standin()->arg("rdma_reject", 2) == 3);
	REACHES(rdma_reject_ece, shadow, id, word, 3);
	REACHES(rdma_establish, shadow, id);
	REACHES(rdma_notify, shadow, id, IBV_EVENT_COMM_EST);
	CHECK(standin()->arg("rdma_notify", 1) == IBV_EVENT_COMM_EST);
	REACHES(rdma_disconnect, shadow, id);
	REACHES(rdma_join_multicast, shadow, id, address_of("239.1.1.1", 0),
		&context);
	ev = cm_expect(ch, RDMA_CM_EVENT_MULTICAST_JOIN);
	CHECK(ev->id == id && ev->param.ud.private_data == &context);
	CHECK(rdma_ack_cm_event(ev) == 0);
	REACHES(rdma_join_multicast_ex, shadow, id, &join, &context);
	REACHES(rdma_leave_multicast, shadow, id, address_of("239.1.1.1", 0));
	REACHES(rdma_connect, shadow, id, &param);
	CHECK(standin()->arg("rdma_connect", 1) == (long)&param);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_REJECTED) == 8);
	REACHES(rdma_destroy_id, shadow, id);
	id = bound(ch, REAL_HOST, 0);
	shadow = standin()->newest();
	CHECK(rdma_get_src_port(id) == shadow->route.addr.src_sin.sin_port);
	REACHES(rdma_listen, shadow, id, 5);
	CHECK(standin()->arg("rdma_listen", 1) == 5);
	REACHES(rdma_destroy_id, shadow, id);
	rdma_destroy_event_channel(ch);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	CHECK(atomic_load(&standin()->channels) == 0);
	CHECK(atomic_load(&standin()->events) == 0);
}

static void options_set_before_the_address_are_replayed(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	uint8_t tos = 0x40, timeout = 17;
	struct rdma_cm_id *id;
	int on = 1;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, address_of(REAL_HOST, 0)) == 0);
	CHECK(standin()->count("rdma_set_option") == 0);
	CHECK(rdma_destroy_id(id) == 0);

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
			      sizeof(on)) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
			      sizeof(tos)) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			      &timeout, sizeof(timeout)) == 0);
	CHECK(standin()->count("rdma_set_option") == 0);
	CHECK(rdma_bind_addr(id, address_of(REAL_HOST, 0)) == 0);
	CHECK(standin()->count("rdma_set_option") == 3);
	CHECK(standin()->arg("rdma_set_option", 2) == RDMA_OPTION_ID_ACK_TIMEOUT);
	CHECK(standin()->last_option == 17);
	/* Beside ours it is told of later ones, too. */
	CHECK(rdma_destroy_id(id) == 0);
	id = bound(ch, "0.0.0.0", 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
			      sizeof(tos)) == 0);
	CHECK(standin()->count("rdma_set_option") == 4);
	CHECK(standin()->last_option == 0x40);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void private_data_of_an_endpoint_leads(void)
{
	struct rdma_addrinfo info = {
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = address_of(REAL_HOST, 0),
		.ai_src_len = sizeof(struct sockaddr_in),
		.ai_dst_addr = address_of(REAL_HOST, 7),
		.ai_dst_len = sizeof(struct sockaddr_in),
		.ai_connect = (char *)"lead",
		.ai_connect_len = 4,
	};
	struct rdma_conn_param param = { .private_data = "more",
					 .private_data_len = 4 };
	struct rdma_cm_id *id;

	CHECK(rdma_create_ep(&id, &info, NULL, NULL) == 0);
	CHECK(is_on(id, "stand0"));
	/* Nobody listens. */
	CHECK(rdma_connect(id, &param) == -1 && errno == ECONNREFUSED);
	CHECK(standin()->private_len == 8);
	CHECK(!memcmp(standin()->private_data, "leadmore", 8));
	rdma_destroy_ep(id);
}

static void completion_queues_know_the_programs_identifier(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = routed(ch, REAL_HOST, 7);
	struct rdma_cm_id *shadow = standin()->newest();

	CHECK(id->pd && id->pd->context == id->verbs);
	CHECK(qp_make(id, IBV_QPT_RC) == 0);
	CHECK(id->qp && id->qp == shadow->qp && id->qp->pd == id->pd);
	/* rdma_get_send_comp() insists on it. */
	CHECK(id->send_cq && id->send_cq->cq_context == id);
	CHECK(id->recv_cq && id->recv_cq->cq_context == id);
	CHECK(id->send_cq_channel && id->recv_cq_channel);
	CHECK(standin()->arg("rdma_create_qp_ex", 1) == (long)id->send_cq);
	/* The system's library would destroy what it knows. */
	CHECK(!shadow->send_cq && !shadow->recv_cq);
	CHECK(qp_make(id, IBV_QPT_RC) == -1 && errno == EINVAL);
	rdma_destroy_qp(id);
	CHECK(standin()->count("rdma_destroy_qp") == 1);
	CHECK(!id->qp && !shadow->qp && !id->send_cq && !id->recv_cq_channel);
	/* A program may take away the queue pair by itself. */
	CHECK(qp_make(id, IBV_QPT_RC) == 0);
	free(id->qp);
	id->qp = NULL;
	CHECK(rdma_disconnect(id) == 0 && !shadow->qp);
	rdma_destroy_qp(id);
	CHECK(standin()->count("rdma_destroy_qp") == 1);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void a_uc_identifier_comes_from_an_endpoint(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_addrinfo info = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_UC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = address_of(REAL_HOST, 0),
		.ai_src_len = sizeof(struct sockaddr_in),
	};
	struct rdma_cm_id *id, *rc;

	CHECK(rdma_create_ep(&id, &info, NULL, NULL) == 0);
	CHECK(standin()->count("rdma_create_ep") == 1);
	CHECK(standin()->arg("rdma_create_ep", 0) == RDMA_PS_IB);
	CHECK(standin()->arg("rdma_create_ep", 1) == IBV_QPT_UC);
	CHECK(standin()->arg("rdma_create_ep", 2) == RAI_PASSIVE);
	CHECK(standin()->count("rdma_migrate_id") == 1);
	CHECK(standin()->newest()->context == id);
	CHECK(is_on(id, "stand0") && id->ps == RDMA_PS_TCP);
	CHECK(rdma_get_src_port(id) != 0);
	CHECK(qp_make(id, IBV_QPT_UC) == 0);
	rdma_destroy_ep(id);

	/* Of one that was made for RC the kernel makes no UC connection. */
	rc = routed(ch, REAL_HOST, 7);
	CHECK(qp_make(rc, IBV_QPT_UC) == -1 && errno == EOPNOTSUPP);
	CHECK(!rc->qp && !rc->send_cq);
	CHECK(rdma_destroy_id(rc) == 0);
	rdma_destroy_event_channel(ch);
}

static void devices_of_both_are_listed(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);
	struct ibv_context *soft, *stand;

	/* In sysfs stand0's port is not active, so soft0 comes first. */
	CHECK(list && count == 2 && !list[2]);
	soft = list[0];
	stand = list[1];
	CHECK(!strcmp(ibv_get_device_name(soft->device), "soft0"));
	CHECK(!strcmp(ibv_get_device_name(stand->device), "stand0"));
	rdma_free_devices(list);
	CHECK(standin()->count("rdma_free_devices") == 1);
	list = rdma_get_devices(NULL);
	CHECK(list && list[0] == soft && list[1] == stand);
	rdma_free_devices(list);
}

CM_MAIN(CASE(every_call_reaches_the_shadow),
	CASE(options_set_before_the_address_are_replayed),
	CASE(private_data_of_an_endpoint_leads),
	CASE(completion_queues_know_the_programs_identifier),
	CASE(a_uc_identifier_comes_from_an_endpoint),
	CASE(devices_of_both_are_listed))
