/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of connection calls as text. */
#include <arpa/inet.h>
#include <endian.h>
#include <infiniband/ib.h>
#include <netinet/in.h>

#include "trace/calls.h"

static const struct text_name events[] = {
	{ RDMA_CM_EVENT_ADDR_RESOLVED, "ADDR_RESOLVED" },
	{ RDMA_CM_EVENT_ADDR_ERROR, "ADDR_ERROR" },
	{ RDMA_CM_EVENT_ROUTE_RESOLVED, "ROUTE_RESOLVED" },
	{ RDMA_CM_EVENT_ROUTE_ERROR, "ROUTE_ERROR" },
	{ RDMA_CM_EVENT_CONNECT_REQUEST, "CONNECT_REQUEST" },
	{ RDMA_CM_EVENT_CONNECT_RESPONSE, "CONNECT_RESPONSE" },
	{ RDMA_CM_EVENT_CONNECT_ERROR, "CONNECT_ERROR" },
	{ RDMA_CM_EVENT_UNREACHABLE, "UNREACHABLE" },
	{ RDMA_CM_EVENT_REJECTED, "REJECTED" },
	{ RDMA_CM_EVENT_ESTABLISHED, "ESTABLISHED" },
	{ RDMA_CM_EVENT_DISCONNECTED, "DISCONNECTED" },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL, "DEVICE_REMOVAL" },
	{ RDMA_CM_EVENT_MULTICAST_JOIN, "MULTICAST_JOIN" },
	{ RDMA_CM_EVENT_MULTICAST_ERROR, "MULTICAST_ERROR" },
	{ RDMA_CM_EVENT_ADDR_CHANGE, "ADDR_CHANGE" },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT, "TIMEWAIT_EXIT" },
};

static void pointer(struct text *t, const char *kind, const void *p)
{
	if (p)
		text_add(t, "%s %p", kind, p);
	else
		text_add(t, "NULL");
}

void show_id(struct text *t, struct rdma_cm_id *id)
{
	pointer(t, "id", id);
}

void show_id_out(struct text *t, struct rdma_cm_id **id)
{
	show_id(t, *id);
}

void show_events(struct text *t, struct rdma_event_channel *channel)
{
	pointer(t, "channel", channel);
}

void show_ps(struct text *t, enum rdma_port_space ps)
{
	static const struct text_name names[] = {
		{ RDMA_PS_IPOIB, "IPOIB" }, { RDMA_PS_TCP, "TCP" },
		{ RDMA_PS_UDP, "UDP" }, { RDMA_PS_IB, "IB" },
	};

	text_value(t, names, COUNT(names), "port space ", ps);
}

void show_sockaddr(struct text *t, struct sockaddr *addr)
{
	const struct sockaddr_in *v4 = (void *)addr;
	const struct sockaddr_in6 *v6 = (void *)addr;
	const struct sockaddr_ib *ib = (void *)addr;
	char text[INET6_ADDRSTRLEN] = "";

	if (!addr)
		text_add(t, "NULL");
	else if (addr->sa_family == AF_INET)
		text_add(t, "%s:%u", inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)),
			 ntohs(v4->sin_port));
	else if (addr->sa_family == AF_INET6)
		text_add(t, "[%s]:%u", inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text)),
			 ntohs(v6->sin6_port));
	else if (addr->sa_family == AF_IB)
		text_add(t, "ib [%s]", inet_ntop(AF_INET6, &ib->sib_addr, text, sizeof(text)));
	else
		text_add(t, "family %d", addr->sa_family);
}

void show_conn(struct text *t, struct rdma_conn_param *p)
{
	if (!p) {
		text_add(t, "NULL");
		return;
	}
	text_add(t, "{private_data %u bytes, responder_resources %u, initiator_depth %u, "
		 "retry_count %u, rnr_retry_count %u, qp_num 0x%x}",
		 p->private_data_len, p->responder_resources, p->initiator_depth,
		 p->retry_count, p->rnr_retry_count, p->qp_num);
}

void show_addrinfo(struct text *t, struct rdma_addrinfo *a)
{
	if (!a) {
		text_add(t, "NULL");
		return;
	}
	text_add(t, "{flags 0x%x, ", (unsigned)a->ai_flags);
	show_ps(t, (enum rdma_port_space)a->ai_port_space);
	text_add(t, ", source ");
	show_sockaddr(t, a->ai_src_addr);
	text_add(t, ", destination ");
	show_sockaddr(t, a->ai_dst_addr);
	text_add(t, "}");
}

void show_addrinfo_in(struct text *t, const struct rdma_addrinfo *a)
{
	if (a)
		text_add(t, "{flags 0x%x, port space 0x%x}", (unsigned)a->ai_flags,
			 (unsigned)a->ai_port_space);
	else
		text_add(t, "NULL");
}

void show_addrinfo_out(struct text *t, struct rdma_addrinfo **a)
{
	show_addrinfo(t, *a);
}

void show_cm_event(struct text *t, struct rdma_cm_event *e)
{
	if (!e) {
		text_add(t, "NULL");
		return;
	}
	text_add(t, "{");
	text_value(t, events, COUNT(events), "event ", e->event);
	text_add(t, ", id %p", (void *)e->id);
	if (e->listen_id)
		text_add(t, ", listen_id %p", (void *)e->listen_id);
	if (e->status)
		text_add(t, ", status %d", e->status);
	text_add(t, "}");
}

void show_event_type(struct text *t, enum ibv_event_type event)
{
	text_event(t, event);
}

void show_mc_attr(struct text *t, struct rdma_cm_join_mc_attr_ex *a)
{
	if (a && a->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS)
		show_sockaddr(t, a->addr);
	else
		pointer(t, "attr", a);
}

void show_qp_mask_out(struct text *t, int *mask)
{
	text_qp_mask(t, (unsigned)*mask);
}

void show_fork(struct text *t, enum ibv_fork_status status)
{
	text_add(t, "%d", (int)status);
}
