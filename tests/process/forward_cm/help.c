/* SPDX-License-Identifier: BSD-2-Clause */
/* See help.h. */
#include "help.h"

#include <arpa/inet.h>
#include <dlfcn.h>

struct standin_cm_state *standin(void)
{
	static _Atomic(struct standin_cm_state *) known;
	struct standin_cm_state *state = atomic_load(&known);
	const char *path = getenv("BUSBAR_SYSTEM_LIBRDMACM");
	void *handle;

	if (state)
		return state;
	/* Only if it is there already. */
	handle = path && path[0] == '/' ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) :
					  NULL;
	state = handle ? dlsym(handle, "standin_cm_state") : NULL;
	atomic_store(&known, state);
	return state;
}

struct sockaddr *address_of(const char *host, uint16_t port)
{
	static _Thread_local struct sockaddr_in addresses[4];
	static _Thread_local unsigned turn;
	struct sockaddr_in *sin = &addresses[turn++ % 4];

	*sin = (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port) };
	CHECK(inet_pton(AF_INET, host, &sin->sin_addr) == 1);
	return (struct sockaddr *)sin;
}

bool is_on(const struct rdma_cm_id *id, const char *device)
{
	return id->verbs && !strcmp(ibv_get_device_name(id->verbs->device), device);
}

struct rdma_cm_id *bound(struct rdma_event_channel *ch, const char *host,
			 uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, address_of(host, port)) == 0);
	return id;
}

struct rdma_cm_id *routed(struct rdma_event_channel *ch, const char *host,
			  uint16_t port)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, address_of(host, 0), address_of(host, port),
				1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ROUTE_RESOLVED) == 0);
	CHECK(id->route.num_paths == 1 && id->route.path_rec);
	return id;
}

int qp_make(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
	};

	return rdma_create_qp(id, NULL, &attr);
}
