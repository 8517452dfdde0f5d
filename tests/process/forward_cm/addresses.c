/* SPDX-License-Identifier: BSD-2-Clause */
/* Which side an identifier comes to, by its address and by the settings. */
#include "help.h"

#include <arpa/inet.h>
#include <dlfcn.h>

static void the_address_decides(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *real = bound(ch, REAL_HOST, 0);
	struct rdma_cm_id *soft = bound(ch, SOFT_HOST, 0);
	struct rdma_cm_id *second;

	CHECK(is_on(real, "stand0") && is_on(soft, "soft0"));
	/* Each side has its ports. */
	CHECK(rdma_create_id(ch, &second, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(second, address_of(REAL_HOST,
						ntohs(rdma_get_src_port(real)))) ==
		      -1 && errno == EADDRINUSE);
	CHECK(rdma_bind_addr(second, address_of(SOFT_HOST,
						ntohs(rdma_get_src_port(soft)))) ==
		      -1 && errno == EADDRINUSE);
	CHECK(rdma_bind_addr(second, address_of(SOFT_HOST,
						ntohs(rdma_get_src_port(real)))) ==
	      0);
	/* One address is enough. */
	CHECK(rdma_bind_addr(second, address_of(REAL_HOST, 0)) == -1 &&
	      errno == EINVAL);
	CHECK(rdma_bind_addr(real, address_of(SOFT_HOST, 0)) == -1 &&
	      errno == EINVAL);
	CHECK(rdma_destroy_id(second) == 0);
	CHECK(rdma_destroy_id(real) == 0 && rdma_destroy_id(soft) == 0);
	real = routed(ch, REAL_HOST, 7);
	soft = routed(ch, SOFT_HOST, 7);
	CHECK(is_on(real, "stand0") && is_on(soft, "soft0"));
	CHECK(rdma_destroy_id(real) == 0 && rdma_destroy_id(soft) == 0);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(ch);
}

/* Here stand0 has 127.0.0.1, from where 127/8 is reached. */
static void the_routing_tables_source_decides(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, address_of("127.0.0.5", 7), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(is_on(id, "stand0"));
	CHECK(standin()->count("rdma_resolve_addr") == 1);
	CHECK(standin()->arg("rdma_resolve_addr", 3) == 1000);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void an_inactive_port_leaves_an_address_to_soft0(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = bound(ch, REAL_HOST, 0);

	CHECK(is_on(id, "soft0"));
	CHECK(standin()->count("rdma_bind_addr") == 1);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void call(struct rdma_event_channel *ch, struct rdma_event_channel *own,
		 struct rdma_cm_id *listener, const char *host, const char *device)
{
	uint16_t port = ntohs(rdma_get_src_port(listener));
	struct rdma_conn_param param = { .retry_count = 1 };
	struct rdma_cm_id *id = routed(own, host, port), *child;
	struct rdma_cm_event *ev;

	CHECK(is_on(id, device));
	CHECK(rdma_connect(id, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = ev->id;
	CHECK(ev->listen_id == listener && is_on(child, device));
	CHECK(child != listener && child->context == listener->context);
	CHECK(child->channel == ch && child->ps == RDMA_PS_TCP);
	CHECK(rdma_get_src_port(child) == htons(port));
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(rdma_reject(child, NULL, 0) == 0);
	CHECK(rdma_destroy_id(child) == 0);
	CHECK(cm_expect_ack(own, RDMA_CM_EVENT_REJECTED) == 28);
	CHECK(rdma_destroy_id(id) == 0);
}

static void a_wildcard_listener_listens_on_both(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *listener;

	for (int i = 0; i < 2; i++) {
		CHECK(rdma_create_id(ch, &listener, ch, RDMA_PS_TCP) == 0);
		/* Listening binds what is not bound. */
		CHECK(i || rdma_bind_addr(listener,
					  address_of("0.0.0.0", 0)) == 0);
		CHECK(rdma_listen(listener, 3) == 0);
		CHECK(standin()->count("rdma_listen") == 1U + (unsigned)i);
		CHECK(!listener->verbs);
		CHECK(standin()->arg("rdma_bind_addr", 1) ==
		      ntohs(rdma_get_src_port(listener)));
		call(ch, own, listener, SOFT_HOST, "soft0");
		call(ch, own, listener, REAL_HOST, "stand0");
		CHECK(rdma_destroy_id(listener) == 0);
		CHECK(atomic_load(&standin()->identifiers) == 0);
	}
	rdma_destroy_event_channel(own);
	rdma_destroy_event_channel(ch);
}

static void a_free_port_is_free_on_both(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	/* A port that the caller names is taken. */
	atomic_store(&standin()->wildcard_errno, EADDRINUSE);
	atomic_store(&standin()->wildcard_refusals, 1);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, address_of("0.0.0.0", standin_cm_port())) == -1 &&
	      errno == EADDRINUSE);
	/* And given back on our side. */
	CHECK(rdma_bind_addr(id, address_of("0.0.0.0", standin_cm_port())) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	/* For one without a name there are others. */
	atomic_store(&standin()->wildcard_refusals, 3);
	id = bound(ch, "0.0.0.0", 0);
	CHECK(atomic_load(&standin()->wildcard_refusals) == 0);
	CHECK(standin()->newest()->route.addr.src_sin.sin_port ==
	      rdma_get_src_port(id));
	CHECK(rdma_destroy_id(id) == 0);
	/* But not without end. */
	atomic_store(&standin()->wildcard_refusals, 1000);
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, address_of("0.0.0.0", 0)) == -1 &&
	      errno == EADDRINUSE);
	CHECK(rdma_destroy_id(id) == 0);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(ch);
}

static void a_real_side_that_fails_costs_only_itself(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct rdma_cm_id *listener;

	atomic_store(&standin()->wildcard_errno, EACCES);
	atomic_store(&standin()->wildcard_refusals, 1);
	listener = bound(ch, "0.0.0.0", 0);
	CHECK(atomic_load(&standin()->wildcard_refusals) == 0);
	CHECK(rdma_listen(listener, 3) == 0);
	CHECK(standin()->count("rdma_listen") == 0);
	call(ch, own, listener, SOFT_HOST, "soft0");
	CHECK(rdma_destroy_id(listener) == 0);
	rdma_destroy_event_channel(own);
	rdma_destroy_event_channel(ch);
}

/* An identifier of both sides goes to a real destination. Can another one have its port
 * on our side then? */
static bool left_for_the_real_side(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = bound(ch, "0.0.0.0", 0), *second;
	uint16_t port = ntohs(rdma_get_src_port(id));
	bool left;

	CHECK(rdma_resolve_addr(id, address_of(REAL_HOST, 0),
				address_of(REAL_HOST, 7), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(is_on(id, "stand0"));
	CHECK(rdma_create_id(ch, &second, NULL, RDMA_PS_TCP) == 0);
	/* On our side alone. */
	atomic_store(&standin()->wildcard_errno, EACCES);
	atomic_store(&standin()->wildcard_refusals, 1);
	left = rdma_bind_addr(second, address_of("0.0.0.0", port)) == 0;
	CHECK(left || errno == EADDRINUSE);
	atomic_store(&standin()->wildcard_refusals, 0);
	CHECK(rdma_destroy_id(second) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	return left;
}

static void a_destination_ends_the_other_side(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = bound(ch, "0.0.0.0", 0);
	uint16_t port = ntohs(rdma_get_src_port(id));
	int tries = 0;

	CHECK(atomic_load(&standin()->identifiers) == 1);
	CHECK(rdma_resolve_addr(id, NULL, address_of(SOFT_HOST, 7), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(is_on(id, "soft0"));
	CHECK(rdma_get_src_port(id) == htons(port));
	CHECK(atomic_load(&standin()->identifiers) == 0);
	CHECK(rdma_destroy_id(id) == 0);

	/* Its port on our side is free again; others on this host may take it. */
	while (!left_for_the_real_side(ch))
		CHECK(tries++ < 4);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(ch);
}

/* ---- settings ---- */

static void connections_are_soft0s(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = bound(ch, REAL_HOST, 0), *any;

	CHECK(is_on(id, "soft0"));
	CHECK(rdma_destroy_id(id) == 0);
	any = bound(ch, "0.0.0.0", 0);
	CHECK(rdma_listen(any, 1) == 0);
	CHECK(rdma_destroy_id(any) == 0);
	CHECK(!standin());
	rdma_destroy_event_channel(ch);
}

static void soft_alone_does_not_open_it(void)
{
	const char *verbs = getenv("BUSBAR_SYSTEM_LIBIBVERBS");

	connections_are_soft0s();
	CHECK(!dlopen(verbs, RTLD_LAZY | RTLD_NOLOAD));
}

static void off_leaves_connections_to_soft0(void)
{
	int count = 0;
	struct ibv_context **list = rdma_get_devices(&count);

	connections_are_soft0s();
	/* And so are the devices that can have connections. */
	CHECK(list && count == 1);
	rdma_free_devices(list);
}

static void a_library_that_is_ours_is_not_taken(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = bound(ch, REAL_HOST, 0);

	CHECK(is_on(id, "soft0"));
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void system_alone_hides_soft0(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;
	struct ibv_context **list;
	int count = 0;

	CHECK(ch && rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	/* No real device has it. */
	CHECK(rdma_bind_addr(id, address_of(SOFT_HOST, 0)) == -1 &&
	      errno == ENODEV);
	CHECK(rdma_bind_addr(id, address_of(REAL_HOST, 0)) == 0);
	CHECK(is_on(id, "stand0") && rdma_destroy_id(id) == 0);
	id = bound(ch, "0.0.0.0", standin_cm_port());
	CHECK(ntohs(rdma_get_src_port(id)) == standin_cm_port());
	CHECK(rdma_listen(id, 1) == 0);
	CHECK(standin()->count("rdma_listen") == 1);
	CHECK(rdma_destroy_id(id) == 0);
	list = rdma_get_devices(&count);
	CHECK(list && count == 1);
	CHECK(!strcmp(ibv_get_device_name(list[0]->device), "stand0"));
	rdma_free_devices(list);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(the_address_decides),
	CASE(the_routing_tables_source_decides),
	CASE(an_inactive_port_leaves_an_address_to_soft0),
	CASE(a_wildcard_listener_listens_on_both),
	CASE(a_free_port_is_free_on_both),
	CASE(a_real_side_that_fails_costs_only_itself),
	CASE(a_destination_ends_the_other_side),
	CASE(soft_alone_does_not_open_it),
	CASE(off_leaves_connections_to_soft0),
	CASE(a_library_that_is_ours_is_not_taken),
	CASE(system_alone_hides_soft0))
