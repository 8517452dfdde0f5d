/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzer of the arguments of rdma_*: random calls with random values, among them
 * connections of the process with itself at every stage; see api.h.
 *
 *     fuzz_rdma_args [SECONDS [SEED [RUN]]]
 */
#include <arpa/inet.h>
#include <busbar/rdma_cma.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "api.h"

enum { CALLS = 200, BYTES = 512 };

static struct {
	struct pool channels, ids, srqs;
	uint8_t data[BYTES]; /* private data and the like */
} r;

/* ---- values ---- */

union any_address {
	struct sockaddr a;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_ib ib;
	struct sockaddr_storage s;
};

static uint16_t any_port(void)
{
	struct rdma_cm_id *id = pick(&r.ids);

	switch (draw(4)) {
	case 0:
		return 0;
	case 1:
		return htons((uint16_t)(40000 + draw(50)));
	default:
		return id ? rdma_get_src_port(id) : 0;
	}
}

/* Loopback mostly; nothing here ever goes to another host. */
static union any_address any_address(void)
{
	static const char *const in6[] = { "::1", "::", "fe80::1", "ff02::1",
					   "::ffff:127.0.0.1" };
	union any_address x = { 0 };

	if (one_in(8)) {
		x.ib.sib_family = AF_IB;
		x.ib.sib_sid = draw(3) ? htobe64(RDMA_IB_PS_IB |
						 ntohs(any_port())) : number();
		x.ib.sib_sid_mask = draw(3) ? UINT64_MAX : draw(2) ? 0 : number();
		inet_pton(AF_INET6, in6[draw(5)], &x.ib.sib_addr);
	} else if (draw(6)) {
		x.in.sin_family = AF_INET;
		x.in.sin_port = any_port();
		x.in.sin_addr.s_addr = htonl(draw(8) ? INADDR_LOOPBACK :
						       draw(2) ? 0 : number());
	} else {
		x.in6.sin6_family = AF_INET6;
		x.in6.sin6_port = any_port();
		inet_pton(AF_INET6, in6[draw(5)], &x.in6.sin6_addr);
	}
	if (one_in(20))
		x.a.sa_family = (sa_family_t)number();
	return x;
}

static struct rdma_conn_param any_param(void)
{
	return (struct rdma_conn_param){
		.private_data = draw(4) ? r.data : NULL,
		.private_data_len = (uint8_t)(draw(3) ? draw(57) : number()),
		.responder_resources = (uint8_t)mostly(17),
		.initiator_depth = (uint8_t)mostly(17),
		.flow_control = (uint8_t)draw(2),
		.retry_count = (uint8_t)mostly(8),
		.rnr_retry_count = (uint8_t)mostly(8),
		.srq = (uint8_t)draw(2), .qp_num = number() & 0xffffff,
	};
}

/* Without data there is no length that could be right. */
static struct rdma_conn_param *param_or_null(struct rdma_conn_param *p)
{
	if (!p->private_data)
		p->private_data_len = 0;
	return one_in(8) ? NULL : p;
}

static struct ibv_qp_init_attr any_qp(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD,
						  IBV_QPT_UC, IBV_QPT_XRC_SEND,
						  IBV_QPT_XRC_RECV, 0, 99 };

	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = mostly(20) % 1000,
			 .max_recv_wr = mostly(20) % 1000,
			 .max_send_sge = mostly(4), .max_recv_sge = mostly(4),
			 .max_inline_data = mostly(100) },
		.qp_type = types[draw(one_in(4) ? 7 : 2)],
		.sq_sig_all = (int)draw(2),
	};
}

/* ---- calls ---- */

static void call_create_channel(void)
{
	struct rdma_event_channel *ch;

	CALL("rdma_create_event_channel");
	if (!has_room(&r.channels))
		return;
	ch = keep(&r.channels, pointer(rdma_create_event_channel()));
	must(ch && !fcntl(ch->fd, F_SETFL, O_NONBLOCK));
}

static void call_create_id(void)
{
	static const enum rdma_port_space spaces[] = {
		RDMA_PS_TCP, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB, RDMA_PS_IPOIB,
	};
	struct rdma_event_channel *ch = pick(&r.channels);
	struct rdma_cm_id *id;

	if (!has_room(&r.ids) || !ch)
		return;
	CALL("rdma_create_id2");
	if (one_in(4)) {
		if (done_or_minus1(rdma_create_id2(ch, &id, &r, spaces[draw(5)],
						   any_qp().qp_type)))
			keep(&r.ids, id);
		return;
	}
	CALL("rdma_create_id");
	if (done_or_minus1(rdma_create_id(ch, &id, &r,
					  one_in(10) ? (enum rdma_port_space)
							       number() :
						       spaces[draw(5)])))
		keep(&r.ids, id);
}

static void call_bind(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	union any_address x = any_address();

	CALL("rdma_bind_addr");
	if (id)
		done_or_minus1(rdma_bind_addr(id, &x.a));
}

static void call_resolve(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	union any_address from = any_address(), to = any_address();

	CALL("rdma_resolve_addr");
	if (id && draw(3))
		done_or_minus1(rdma_resolve_addr(id, draw(2) ? NULL : &from.a,
						 &to.a, (int)number()));
	CALL("rdma_resolve_route");
	if (id && draw(2))
		done_or_minus1(rdma_resolve_route(id, (int)number()));
}

static void call_create_qp(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	struct ibv_qp_init_attr a = any_qp();

	CALL("rdma_create_qp");
	if (id && id->verbs && !id->qp)
		done_or_minus1(rdma_create_qp(id, draw(2) ? NULL : id->pd, &a));
}

static void call_destroy_qp(void)
{
	struct rdma_cm_id *id = pick(&r.ids);

	CALL("rdma_destroy_qp");
	if (id && id->qp && one_in(4))
		rdma_destroy_qp(id);
}

static void call_listen(void)
{
	struct rdma_cm_id *id = pick(&r.ids);

	CALL("rdma_listen");
	if (id)
		done_or_minus1(rdma_listen(id, (int)number()));
}

static void call_connect(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	struct rdma_conn_param p = any_param();

	CALL("rdma_connect");
	if (id)
		done_or_minus1(rdma_connect(id, param_or_null(&p)));
}

static void call_answer(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	struct rdma_conn_param p = any_param();

	if (!id)
		return;
	switch (draw(5)) {
	case 0:
		CALL("rdma_reject");
		done_or_minus1(rdma_reject(id, r.data, (uint8_t)number()));
		break;
	case 1:
		CALL("rdma_disconnect");
		done_or_minus1(rdma_disconnect(id));
		break;
	case 2:
		CALL("rdma_establish");
		done_or_minus1(rdma_establish(id));
		break;
	default:
		CALL("rdma_accept");
		done_or_minus1(rdma_accept(id, param_or_null(&p)));
		break;
	}
}

/* Events come from the library's thread: some are taken, some stay. */
static void call_events(void)
{
	struct rdma_event_channel *ch = pick(&r.channels);
	struct rdma_cm_event *ev;
	struct rdma_cm_id *child = NULL;

	CALL("rdma_get_cm_event");
	for (unsigned n = draw(4); ch && n > 0; n--) {
		if (!done_or_minus1(rdma_get_cm_event(ch, &ev)))
			return;
		must(rdma_event_str(ev->event));
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			child = ev->id;
		CALL("rdma_ack_cm_event");
		must(done_or_minus1(rdma_ack_cm_event(ev)));
		CALL("rdma_destroy_id");
		if (child && !has_room(&r.ids))
			must(done_or_minus1(rdma_destroy_id(child)));
		else if (child)
			keep(&r.ids, child);
		child = NULL;
		CALL("rdma_get_cm_event");
	}
}

static void call_options(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	uint32_t value = number();
	struct ibv_qp_attr attr = { .qp_state = (enum ibv_qp_state)mostly(6) };
	struct ibv_ece ece = { number(), number(), 0 };
	int mask;

	if (!id)
		return;
	CALL("rdma_set_option");
	done_or_minus1(rdma_set_option(id, (int)mostly(3), (int)mostly(5), &value,
				       draw(2) ? 1 : draw(2) ? 4 :
				       draw(sizeof(value) + 1)));
	CALL("rdma_init_qp_attr");
	done_or_minus1(rdma_init_qp_attr(id, &attr, &mask));
	CALL("rdma_notify");
	done_or_minus1(rdma_notify(id, (enum ibv_event_type)mostly(20)));
	CALL("rdma_set_local_ece");
	done_or_minus1(rdma_set_local_ece(id, &ece));
	done_or_minus1(rdma_get_remote_ece(id, &ece));
	CALL("rdma_get_local_addr");
	must(rdma_get_local_addr(id) && rdma_get_peer_addr(id));
	must(rdma_event_str((enum rdma_cm_event_type)number()));
}

static void call_migrate(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	struct rdma_event_channel *ch = pick(&r.channels);

	CALL("rdma_migrate_id");
	if (id && ch)
		done_or_minus1(rdma_migrate_id(id, ch));
}

static void call_multicast(void)
{
	struct rdma_cm_id *id = pick(&r.ids);
	union any_address x = any_address();

	CALL("rdma_join_multicast");
	if (id && id->verbs && !done_or_minus1(rdma_join_multicast(id, &x.a, &r)))
		done_or_minus1(rdma_leave_multicast(id, &x.a));
}

static void call_addrinfo(void)
{
	static const char *const nodes[] = { "127.0.0.1", "::1", NULL, "",
					     "nowhere.invalid", "999.1.1.1" };
	static const char *const services[] = { "7174", "0", "-1", "99999", "",
						NULL };
	struct rdma_addrinfo hints = {
		.ai_flags = (int)flags(0xf), .ai_family = (int)mostly(12),
		.ai_qp_type = (int)mostly(5),
		.ai_port_space = one_in(3) ? (int)number() : RDMA_PS_TCP,
	};
	struct rdma_addrinfo *res = NULL;
	uint32_t node = draw(6);
	int ret;

	CALL("rdma_getaddrinfo");
	/* A name would be looked up on the network. */
	if (node > 2)
		hints.ai_flags |= RAI_NUMERICHOST;
	ret = rdma_getaddrinfo(nodes[node], services[draw(6)],
			       node > 2 || draw(4) ? &hints : NULL, &res);
	/* 0, -1 with errno, or a code of getaddrinfo(3). */
	must(ret == 0 || (ret == -1 && is_errno(errno)) || gai_strerror(ret));
	if (!ret)
		rdma_freeaddrinfo(res);
}

static void call_devices(void)
{
	struct ibv_context **list;
	int count = -1;

	CALL("rdma_get_devices");
	list = pointer(rdma_get_devices(one_in(4) ? NULL : &count));
	if (list)
		rdma_free_devices(list);
}

static void call_destroy(void)
{
	struct rdma_cm_id *id = pick(&r.ids);

	CALL("rdma_destroy_id");
	if (!id || draw(3))
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	must(done_or_minus1(rdma_destroy_id(id)));
	forget(&r.ids, id);
}

static void destroy_all(void)
{
	CALL("destroying everything");
	while (r.ids.count) {
		struct rdma_cm_id *id = r.ids.at[--r.ids.count];

		if (id->qp)
			rdma_destroy_qp(id);
		must(!rdma_destroy_id(id));
	}
	/* Requests that nobody has read go with their listeners. */
	while (r.channels.count)
		rdma_destroy_event_channel(r.channels.at[--r.channels.count]);
}

static void one_run(void)
{
	static void (*const calls[])(void) = {
		call_create_channel, call_create_id, call_create_id,
		call_create_id, call_bind, call_bind, call_resolve,
		call_resolve, call_resolve, call_create_qp, call_create_qp,
		call_destroy_qp, call_listen, call_listen, call_connect,
		call_connect, call_answer, call_answer, call_events,
		call_events, call_events, call_events, call_options,
		call_migrate, call_multicast, call_addrinfo, call_devices,
		call_destroy,
	};

	call_create_channel();
	for (unsigned n = draw(CALLS); n > 0; n--)
		calls[draw(sizeof(calls) / sizeof(calls[0]))]();
	destroy_all();
}

int main(int argc, char **argv)
{
	/* The first connection makes the links of the process with itself, for
	 * data (two sockets and two wake-up descriptors) and for messages of the
	 * connection manager (two sockets); the first group takes a name. */
	return api_main(argc, argv, 4, 100, 7, one_run);
}
