/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections on an adapter without datagrams, multicast or unreliable connections
 * (BUSBAR_WITHOUT), as those of iWARP are. The value is set by meson.build.
 */
#include <arpa/inet.h>
#include <sys/resource.h>

#include "cm_help.h"

static void reliable_connections_need_no_datagrams(void)
{
	struct cm_pair p;

	cm_pair_make(&p);
	cm_message(p.caller, p.callee);
	cm_message(p.callee, p.caller);
	cm_pair_free(&p);
}

static struct rdma_cm_id *datagram_id(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) == 0);
	return id;
}

static void identifiers_of_datagrams_are_not_supported(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in any = { .sin_family = AF_INET }, source;
	struct rdma_cm_id *id = datagram_id(ch);

	/* To an address that the device has, in every way that chooses the device. */
	errno = 0;
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == -1 && errno == EOPNOTSUPP);
	CHECK(!id->verbs);
	errno = 0;
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(7), 1000) == -1 &&
	      errno == EOPNOTSUPP);
	errno = 0;
	memcpy(&source, cm_loopback(0), sizeof(source));
	CHECK(rdma_resolve_addr(id, (struct sockaddr *)&source, cm_loopback(7), 1000) == -1 &&
	      errno == EOPNOTSUPP);
	cm_expect_quiet(ch, 20);
	CHECK(rdma_destroy_id(id) == 0);
	/* Nobody could be answered at a wildcard address either. */
	id = datagram_id(ch);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&any) == 0);
	errno = 0;
	CHECK(rdma_listen(id, 1) == -1 && errno == EOPNOTSUPP);
	CHECK(rdma_destroy_id(id) == 0);
	/* Other port spaces go on, at the same addresses. */
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	CHECK(rdma_listen(id, 1) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void a_port_that_was_refused_is_free(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = datagram_id(ch);
	struct rlimit limit;

	/* Each port that were kept would keep a descriptor. */
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = 100;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < 200; i++) {
		errno = 0;
		CHECK(rdma_bind_addr(id, cm_loopback(0)) == -1 && errno == EOPNOTSUPP);
	}
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void unreliable_connections_have_no_queue_pair(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct rdma_cm_id *listener, *id;
	uint16_t port;

	listener = cm_listener(ch, RDMA_PS_TCP, 1, &port);
	id = cm_caller(ch, RDMA_PS_TCP, port);
	errno = 0;
	CHECK(rdma_create_qp(id, NULL, &attr) == -1 && errno == EOPNOTSUPP);
	/* The same identifier gets one that there is. */
	cm_qp(id);
	cm_id_free(id);
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(ch);
}

static void groups_are_not_supported(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in group = { .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(0xefc80107) };
	struct rdma_cm_id *id = datagram_id(ch);

	CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
	errno = 0;
	CHECK(rdma_join_multicast(id, (struct sockaddr *)&group, NULL) == -1);
	CHECK(errno == EOPNOTSUPP);
	cm_expect_quiet(ch, 20);
	CHECK(rdma_leave_multicast(id, (struct sockaddr *)&group) == -1);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(reliable_connections_need_no_datagrams),
	CASE(identifiers_of_datagrams_are_not_supported),
	CASE(a_port_that_was_refused_is_free),
	CASE(unreliable_connections_have_no_queue_pair),
	CASE(groups_are_not_supported))
