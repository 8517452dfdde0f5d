/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses and ports: every address of this host in every family, wildcards,
 * ports of the library's choice, port spaces, and addresses of AF_IB.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <infiniband/ib.h>
#include <net/if.h>

struct place {
	struct sockaddr_storage addr;
};

static struct place ip(const char *text, uint16_t port)
{
	struct place p = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&p.addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&p.addr;

	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		CHECK(inet_pton(AF_INET6, text, &in6->sin6_addr) == 1);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		CHECK(inet_pton(AF_INET, text, &in->sin_addr) == 1);
	}
	return p;
}

static struct place gid(const char *text, uint64_t service, uint64_t mask)
{
	struct place p = { 0 };
	struct sockaddr_ib *ib = (struct sockaddr_ib *)&p.addr;

	ib->sib_family = AF_IB;
	CHECK(inet_pton(AF_INET6, text, &ib->sib_addr) == 1);
	ib->sib_sid = htobe64(service);
	ib->sib_sid_mask = htobe64(mask);
	return p;
}

static struct sockaddr *sa(struct place *p)
{
	return (struct sockaddr *)&p->addr;
}

/* Binds and listens. 0, or the errno of binding. */
static int bound(struct rdma_event_channel *ch, enum rdma_port_space ps,
		 struct place p, struct rdma_cm_id **out)
{
	struct rdma_cm_id *id;
	int err;

	CHECK(rdma_create_id(ch, &id, NULL, ps) == 0);
	if (!rdma_bind_addr(id, sa(&p)) && !rdma_listen(id, 8)) {
		*out = id;
		return 0;
	}
	err = errno;
	CHECK(rdma_destroy_id(id) == 0);
	*out = NULL;
	return err;
}

/* Connects to `to` and returns the listener that got the request. Destroys both ends. */
static struct rdma_cm_id *call(struct rdma_event_channel *ch,
			       enum rdma_port_space ps, struct place to,
			       void (*look)(struct rdma_cm_id *caller,
					    struct rdma_cm_id *callee))
{
	struct rdma_cm_id *caller, *callee, *listener;
	struct rdma_conn_param param = { .retry_count = 7, .qp_num = 1 };
	struct rdma_cm_event *ev;

	CHECK(rdma_create_id(ch, &caller, NULL, ps) == 0);
	CHECK(rdma_resolve_addr(caller, NULL, sa(&to), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(caller, 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	CHECK(rdma_connect(caller, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	listener = ev->listen_id;
	CHECK(rdma_ack_cm_event(ev) == 0);
	if (look)
		look(caller, callee);
	CHECK(rdma_reject(callee, NULL, 0) == 0);
	CHECK(cm_expect_ack(ch, caller->qp_type == IBV_QPT_UD ?
			    RDMA_CM_EVENT_UNREACHABLE :
			    RDMA_CM_EVENT_REJECTED) != 0);
	cm_id_free(callee);
	cm_id_free(caller);
	return listener;
}

static socklen_t len_of(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
	       a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					  sizeof(struct sockaddr_ib);
}

/* The local address of each end is the peer's remote address, with port and interface. */
static void ends_agree(struct rdma_cm_id *caller, struct rdma_cm_id *callee)
{
	struct sockaddr *a = rdma_get_local_addr(caller);
	struct sockaddr *b = rdma_get_peer_addr(caller);

	CHECK(!memcmp(a, rdma_get_peer_addr(callee), len_of(a)));
	CHECK(!memcmp(b, rdma_get_local_addr(callee), len_of(b)));
	CHECK(caller->verbs == callee->verbs && callee->port_num);
	CHECK(rdma_get_src_port(caller) == rdma_get_dst_port(callee));
	CHECK(rdma_get_dst_port(caller) == rdma_get_src_port(callee));
	CHECK(rdma_get_src_port(caller) != 0);
}

static void every_address_of_this_host_is_reached(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct ifaddrs *list;
	unsigned count = 0, link_local = 0;

	CHECK(getifaddrs(&list) == 0);
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct rdma_cm_id *listener;
		struct place p = { 0 };

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
		    (i->ifa_addr->sa_family != AF_INET &&
		     i->ifa_addr->sa_family != AF_INET6))
			continue;
		memcpy(&p.addr, i->ifa_addr, len_of(i->ifa_addr));
		CHECK(bound(ch, RDMA_PS_TCP, p, &listener) == 0);
		memcpy(&p.addr, rdma_get_local_addr(listener),
		       len_of(i->ifa_addr));
		CHECK(call(ch, RDMA_PS_TCP, p, ends_agree) == listener);
		cm_id_free(listener);
		count++;
		link_local += p.addr.ss_family == AF_INET6 &&
			      IN6_IS_ADDR_LINKLOCAL(
				&((struct sockaddr_in6 *)&p.addr)->sin6_addr);
	}
	freeifaddrs(list);
	printf("%u addresses, %u of them link-local\n", count, link_local);
	CHECK(count > 0);
	rdma_destroy_event_channel(ch);
}

static void a_link_local_address_needs_its_interface(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct place p = ip("fe80::1", 0);
	struct rdma_cm_id *id;

	CHECK(bound(ch, RDMA_PS_TCP, p, &id) == EINVAL);
	rdma_destroy_event_channel(ch);
}

static void a_definite_listener_is_asked_before_a_wildcard(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *all, *one, *none;
	uint16_t port;

	CHECK(bound(ch, RDMA_PS_TCP, ip("0.0.0.0", 0), &all) == 0);
	CHECK(all->verbs == NULL);
	port = ntohs(rdma_get_src_port(all));
	CHECK(bound(ch, RDMA_PS_TCP, ip("127.0.0.1", port), &one) == 0);
	CHECK(one->verbs != NULL);
	CHECK(call(ch, RDMA_PS_TCP, ip("127.0.0.1", port), ends_agree) == one);
	CHECK(call(ch, RDMA_PS_TCP, ip("127.0.0.2", port), ends_agree) == all);
	CHECK(bound(ch, RDMA_PS_TCP, ip("127.0.0.1", port), &none) ==
	      EADDRINUSE);
	cm_id_free(one);
	CHECK(call(ch, RDMA_PS_TCP, ip("127.0.0.1", port), ends_agree) == all);
	cm_id_free(all);
	rdma_destroy_event_channel(ch);
}

static void an_ipv6_wildcard_serves_ipv4_unless_told_otherwise(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *both, *six, *four;
	struct place any = ip("::", 0);
	int only = 1;
	uint16_t port;

	CHECK(bound(ch, RDMA_PS_TCP, any, &both) == 0);
	port = ntohs(rdma_get_src_port(both));
	CHECK(call(ch, RDMA_PS_TCP, ip("127.0.0.1", port), ends_agree) == both);
	CHECK(call(ch, RDMA_PS_TCP, ip("::1", port), ends_agree) == both);
	cm_id_free(both);

	CHECK(rdma_create_id(ch, &six, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &only,
			      sizeof(only)) == 0);
	CHECK(rdma_bind_addr(six, sa(&any)) == 0 && rdma_listen(six, 8) == 0);
	port = ntohs(rdma_get_src_port(six));
	CHECK(bound(ch, RDMA_PS_TCP, ip("0.0.0.0", port), &four) == 0);
	CHECK(call(ch, RDMA_PS_TCP, ip("127.0.0.1", port), ends_agree) == four);
	CHECK(call(ch, RDMA_PS_TCP, ip("::1", port), ends_agree) == six);
	cm_id_free(four);
	cm_id_free(six);
	rdma_destroy_event_channel(ch);
}

static void a_port_belongs_to_its_port_space(void)
{
	static const enum rdma_port_space spaces[] = {
		RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *ids[4], *none;
	uint16_t port = 0;

	for (int i = 0; i < 4; i++) {
		CHECK(bound(ch, spaces[i], ip("127.0.0.1", port), &ids[i]) == 0);
		port = ntohs(rdma_get_src_port(ids[i]));
	}
	for (int i = 0; i < 4; i++) {
		CHECK(ntohs(rdma_get_src_port(ids[i])) == port);
		CHECK(bound(ch, spaces[i], ip("127.0.0.1", port), &none) ==
		      EADDRINUSE);
		CHECK(call(ch, spaces[i], ip("127.0.0.1", port), ends_agree) ==
		      ids[i]);
	}
	for (int i = 0; i < 4; i++)
		cm_id_free(ids[i]);
	rdma_destroy_event_channel(ch);
}

static void a_port_of_0_is_a_free_one_each_time(void)
{
	enum { COUNT = 100 };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *ids[COUNT];

	for (int i = 0; i < COUNT; i++) {
		CHECK(bound(ch, RDMA_PS_TCP, ip("127.0.0.1", 0), &ids[i]) == 0);
		CHECK(ntohs(rdma_get_src_port(ids[i])) >= 1024);
		for (int k = 0; k < i; k++)
			CHECK(rdma_get_src_port(ids[k]) !=
			      rdma_get_src_port(ids[i]));
	}
	for (int i = 0; i < COUNT; i++)
		cm_id_free(ids[i]);
	rdma_destroy_event_channel(ch);
}

#define SERVICE(ps, port) ((uint64_t)(ps) << 16 | (port))

static void gids_are_addresses_too(void)
{
	static const char *const texts[] = { "::1", "::ffff:127.0.0.1" };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *one, *all;

	for (int i = 0; i < 2; i++) {
		struct place p = gid(texts[i], SERVICE(RDMA_PS_IB, 0),
				     ~UINT64_C(0xffff));
		const struct sockaddr_ib *ib;
		uint16_t port;

		CHECK(bound(ch, RDMA_PS_IB, p, &one) == 0);
		port = ntohs(rdma_get_src_port(one));
		ib = (struct sockaddr_ib *)rdma_get_local_addr(one);
		CHECK(port && ib->sib_family == AF_IB);
		CHECK(be64toh(ib->sib_sid) == SERVICE(RDMA_PS_IB, port));
		p = gid(texts[i], SERVICE(RDMA_PS_IB, port), UINT64_MAX);
		CHECK(bound(ch, RDMA_PS_IB, p, &all) == EADDRINUSE);
		CHECK(bound(ch, RDMA_PS_IB,
			    gid("::", SERVICE(RDMA_PS_IB, port), UINT64_MAX),
			    &all) == 0);
		CHECK(call(ch, RDMA_PS_IB, p, NULL) == one);
		cm_id_free(one);
		CHECK(call(ch, RDMA_PS_IB, p, NULL) == all);
		cm_id_free(all);
	}
	rdma_destroy_event_channel(ch);
}

static void a_service_identifier_is_of_the_port_space(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	/* Of this process: others run the same at the same time. */
	const unsigned port = 2000 + (unsigned)getpid() % 18000;
	struct place to = gid("::1", SERVICE(RDMA_PS_UDP, port), UINT64_MAX);
	struct rdma_cm_id *id;

	/* A service identifier of another port space, or of no IP port space. */
	CHECK(bound(ch, RDMA_PS_TCP, to, &id) == EPROTONOSUPPORT);
	CHECK(bound(ch, RDMA_PS_TCP, gid("::1", 0x1234567890, UINT64_MAX),
		    &id) == EPROTONOSUPPORT);
	CHECK(bound(ch, RDMA_PS_IPOIB, gid("::1", 0, 0), &id) ==
	      EPROTONOSUPPORT);
	/* RDMA_PS_IB accepts service identifiers of all port spaces of IP. */
	CHECK(bound(ch, RDMA_PS_IB, to, &id) == 0);
	cm_id_free(id);
	/* If the identifier leaves the port space open, rdma_create_id()'s is set. */
	CHECK(bound(ch, RDMA_PS_UDP, gid("::1", 0, 0), &id) == 0);
	CHECK(be64toh(((struct sockaddr_ib *)rdma_get_local_addr(id))->sib_sid) >>
		      16 == RDMA_PS_UDP);
	cm_id_free(id);
	/* The same holds for destinations. */
	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, sa(&to), 1000) == -1 &&
	      errno == EPROTONOSUPPORT);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

static void both_addresses_are_of_one_family(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct place four = ip("127.0.0.1", 9), six = ip("::1", 0);
	struct place ib = gid("::1", SERVICE(RDMA_PS_TCP, 9), UINT64_MAX);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, sa(&six), sa(&four), 1000) == -1 &&
	      errno == EINVAL);
	CHECK(rdma_resolve_addr(id, sa(&six), sa(&ib), 1000) == -1 &&
	      errno == EINVAL);
	CHECK(rdma_bind_addr(id, sa(&six)) == 0);
	CHECK(rdma_resolve_addr(id, NULL, sa(&four), 1000) == -1 &&
	      errno == EINVAL);
	cm_expect_quiet(ch, 0);
	/* The failed call has not changed the identifier. */
	six = ip("::1", 9);
	CHECK(rdma_resolve_addr(id, NULL, sa(&six), 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

CM_MAIN(CASE(every_address_of_this_host_is_reached),
	CASE(a_link_local_address_needs_its_interface),
	CASE(a_definite_listener_is_asked_before_a_wildcard),
	CASE(an_ipv6_wildcard_serves_ipv4_unless_told_otherwise),
	CASE(a_port_belongs_to_its_port_space),
	CASE(a_port_of_0_is_a_free_one_each_time),
	CASE(gids_are_addresses_too),
	CASE(a_service_identifier_is_of_the_port_space),
	CASE(both_addresses_are_of_one_family))
