/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo(): one rule of its manual page after the other. */
#include "cm_help.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netdb.h>

static struct rdma_addrinfo *ask(const char *node, const char *service,
				 struct rdma_addrinfo hints)
{
	struct rdma_addrinfo *res;

	CHECK(rdma_getaddrinfo(node, service, &hints, &res) == 0);
	CHECK(res->ai_next == NULL);
	return res;
}

static int refusal(const char *node, const char *service,
		   struct rdma_addrinfo hints)
{
	struct rdma_addrinfo *res;

	return rdma_getaddrinfo(node, service, &hints, &res);
}

static void port_space_and_type_complete_each_other(void)
{
	static const struct {
		int ps, type, want_ps, want_type;
	} rules[] = {
		{ 0, 0, RDMA_PS_TCP, IBV_QPT_RC },
		{ 0, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC },
		{ 0, IBV_QPT_UC, RDMA_PS_TCP, IBV_QPT_UC },
		{ 0, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, 0, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, 0, RDMA_PS_IPOIB, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, IBV_QPT_UC, RDMA_PS_IPOIB, IBV_QPT_UC },
		{ RDMA_PS_IB, 0, RDMA_PS_IB, IBV_QPT_RC },
		{ RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD },
		{ RDMA_PS_IB, IBV_QPT_XRC_SEND, RDMA_PS_IB, IBV_QPT_XRC_SEND },
	};
	struct sockaddr *to = cm_loopback(9);

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct rdma_addrinfo hints = { .ai_port_space = rules[i].ps,
					       .ai_qp_type = rules[i].type };
		/* For a name, and for addresses in the hints. */
		for (int given = 0; given < 2; given++) {
			struct rdma_addrinfo *res;

			if (given) {
				hints.ai_dst_addr = to;
				hints.ai_dst_len = sizeof(struct sockaddr_in);
			}
			res = ask(given ? NULL : "127.0.0.1",
				  given ? NULL : "9", hints);
			CHECK(res->ai_port_space == rules[i].want_ps);
			CHECK(res->ai_qp_type == rules[i].want_type);
			CHECK(res->ai_family == AF_INET);
			CHECK(res->ai_dst_len == sizeof(struct sockaddr_in));
			CHECK(!memcmp(res->ai_dst_addr, to,
				      sizeof(struct sockaddr_in)));
			rdma_freeaddrinfo(res);
		}
	}
}

static void what_does_not_go_together_is_refused(void)
{
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UD,
	}) == EAI_SOCKTYPE);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_port_space = RDMA_PS_UDP, .ai_qp_type = IBV_QPT_RC,
	}) == EAI_SOCKTYPE);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_qp_type = IBV_QPT_RAW_PACKET }) == EAI_SOCKTYPE);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_port_space = 0x1234 }) == EAI_SOCKTYPE);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_family = AF_UNIX }) == EAI_FAMILY);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_flags = 1 << 9 }) == EAI_BADFLAGS);
	CHECK(refusal("127.0.0.1", "no such service", (struct rdma_addrinfo){
		0 }) == EAI_SERVICE);
	CHECK(refusal("localhost", "9", (struct rdma_addrinfo){
		.ai_flags = RAI_NUMERICHOST }) == EAI_NONAME);
}

static void the_family_hint_holds(void)
{
	struct rdma_addrinfo *res;

	res = ask("::1", "9", (struct rdma_addrinfo){
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY, .ai_family = AF_INET6 });
	CHECK(res->ai_family == AF_INET6);
	CHECK(res->ai_dst_len == sizeof(struct sockaddr_in6));
	CHECK(res->ai_src_len == sizeof(struct sockaddr_in6));
	rdma_freeaddrinfo(res);
	CHECK(refusal("127.0.0.1", "9", (struct rdma_addrinfo){
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_INET6 }) == EAI_ADDRFAMILY);
}

static void passive_results_have_a_source_only(void)
{
	struct rdma_addrinfo *res;
	const struct sockaddr_in *in;

	res = ask(NULL, "7471", (struct rdma_addrinfo){
		.ai_flags = RAI_PASSIVE, .ai_family = AF_INET });
	in = (struct sockaddr_in *)res->ai_src_addr;
	CHECK(res->ai_flags == RAI_PASSIVE && !res->ai_dst_len);
	CHECK(!res->ai_dst_addr && !res->ai_connect_len && !res->ai_route_len);
	CHECK(in->sin_addr.s_addr == htonl(INADDR_ANY));
	CHECK(in->sin_port == htons(7471));
	rdma_freeaddrinfo(res);
	/* The same for a source address, whatever the hints say of a destination. */
	res = ask(NULL, NULL, (struct rdma_addrinfo){
		.ai_flags = RAI_PASSIVE, .ai_src_addr = cm_loopback(5),
		.ai_src_len = sizeof(*in), .ai_dst_addr = cm_loopback(5),
		.ai_dst_len = sizeof(*in) });
	CHECK(res->ai_src_len == sizeof(*in) && !res->ai_dst_len);
	rdma_freeaddrinfo(res);
}

static void the_source_is_the_hints_or_the_routing_tables(void)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x7f000003) };
	struct rdma_addrinfo *res;

	res = ask("127.0.0.9", "9", (struct rdma_addrinfo){
		.ai_flags = RAI_NOROUTE });
	CHECK(res->ai_src_len == sizeof(from));
	CHECK(((struct sockaddr_in *)res->ai_src_addr)->sin_port == 0);
	rdma_freeaddrinfo(res);
	res = ask("127.0.0.9", "9", (struct rdma_addrinfo){
		.ai_src_addr = (struct sockaddr *)&from,
		.ai_src_len = sizeof(from) });
	CHECK(!memcmp(res->ai_src_addr, &from, sizeof(from)));
	rdma_freeaddrinfo(res);
}

static void a_name_has_its_canonical_form(void)
{
	struct rdma_addrinfo *res = ask("localhost", "9", (struct rdma_addrinfo){
		.ai_family = AF_INET });

	CHECK(res->ai_dst_canonname && *res->ai_dst_canonname);
	CHECK(!res->ai_src_canonname);
	rdma_freeaddrinfo(res);
}

static void a_gid_with_a_port_is_an_address_of_af_ib(void)
{
	struct rdma_addrinfo *res;
	const struct sockaddr_ib *ib;

	res = ask("::ffff:127.0.0.1", "7471", (struct rdma_addrinfo){
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY, .ai_family = AF_IB,
		.ai_port_space = RDMA_PS_IB });
	CHECK(res->ai_family == AF_IB && res->ai_dst_len == sizeof(*ib));
	ib = (struct sockaddr_ib *)res->ai_dst_addr;
	CHECK(ib->sib_family == AF_IB && ib->sib_sid_mask == UINT64_MAX);
	CHECK(be64toh(ib->sib_sid) == ((uint64_t)RDMA_PS_IB << 16 | 7471));
	CHECK(ib->sib_addr.sib_raw[12] == 127 && ib->sib_addr.sib_raw[15] == 1);
	CHECK(res->ai_src_addr && res->ai_src_addr->sa_family == AF_IB);
	rdma_freeaddrinfo(res);
	CHECK(refusal("localhost", "9", (struct rdma_addrinfo){
		.ai_flags = RAI_FAMILY, .ai_family = AF_IB }) == EAI_NONAME);
}

static void a_known_route_is_handed_on_to_the_endpoint(void)
{
	struct ibv_path_record record = { .mtu = 2 << 6 | IBV_MTU_1024,
					  .packetlifetime = 10 };
	struct rdma_addrinfo hints = { .ai_route = &record,
				       .ai_route_len = sizeof(record) }, *res;
	struct ibv_path_data *data;
	struct rdma_cm_id *id;

	record.sgid.raw[10] = record.sgid.raw[11] = 0xff;
	record.sgid.raw[12] = 127;
	record.sgid.raw[15] = 1;
	record.dgid = record.sgid;
	res = ask("127.0.0.1", "9", hints);
	CHECK(res->ai_route_len == sizeof(*data));
	data = res->ai_route;
	CHECK(!memcmp(&data->path, &record, sizeof(record)));
	CHECK(rdma_create_ep(&id, res, NULL, NULL) == 0);
	CHECK(id->route.num_paths == 1);
	CHECK(id->route.path_rec->mtu == IBV_MTU_1024);
	CHECK(id->route.path_rec->packet_life_time == 10);
	rdma_destroy_ep(id);
	/* A route between other addresses. */
	data->path.dgid.raw[15] = 2;
	CHECK(rdma_create_ep(&id, res, NULL, NULL) == -1 && errno == EINVAL);
	rdma_freeaddrinfo(res);
}

CM_MAIN(CASE(port_space_and_type_complete_each_other),
	CASE(what_does_not_go_together_is_refused),
	CASE(the_family_hint_holds),
	CASE(passive_results_have_a_source_only),
	CASE(the_source_is_the_hints_or_the_routing_tables),
	CASE(a_name_has_its_canonical_form),
	CASE(a_gid_with_a_port_is_an_address_of_af_ib),
	CASE(a_known_route_is_handed_on_to_the_endpoint))
