/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in's addresses, connections and queue pairs, and what is only recorded.
 * Identifiers, channels and events are in standin_cm.c.
 */
#include "standin_cm_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

/* ---- addresses ---- */

static struct sockaddr_in *in4(struct sockaddr *addr)
{
	return (struct sockaddr_in *)(void *)addr;
}

static bool is_any(struct sockaddr *addr)
{
	return in4(addr)->sin_addr.s_addr == INADDR_ANY;
}

static bool is_mine(struct sockaddr *addr)
{
	const char *mine = getenv("STANDIN_CM_ADDRESS");

	return mine && in4(addr)->sin_addr.s_addr == inet_addr(mine);
}

static void device_take(struct stand_id *own)
{
	own->id.verbs = stand_verbs;
	own->id.pd = &stand_pd;
	own->id.port_num = 1;
}

static bool port_taken(const struct stand_id *own, enum rdma_port_space ps,
		       uint16_t port)
{
	for (struct stand_id *i = stand_ids; i; i = i->next)
		if (i != own && i->id.ps == ps && !i->peer &&
		    i->id.route.addr.src_sin.sin_port == port)
			return true;
	return false;
}

static int bind_locked(struct stand_id *own, struct sockaddr *addr)
{
	uint16_t port = in4(addr)->sin_port;

	if (is_any(addr) &&
	    atomic_load(&standin_cm_state.wildcard_refusals) > 0) {
		atomic_fetch_sub(&standin_cm_state.wildcard_refusals, 1);
		return atomic_load(&standin_cm_state.wildcard_errno);
	}
	if (!is_any(addr) && !is_mine(addr))
		return ENODEV;
	if (port && port_taken(own, own->id.ps, port))
		return EADDRINUSE;
	if (!is_any(addr))
		device_take(own);
	own->id.route.addr.src_sin = *in4(addr);
	own->id.route.addr.src_sin.sin_port = port ? port : stand_port_next();
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	ENTER(id, ntohs(in4(addr)->sin_port), 0, 0);
	return stand_leave(bind_locked(stand(id), addr));
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout_ms)
{
	ENTER(id, src, dst, timeout_ms);
	id->route.addr.dst_sin = *in4(dst);
	if (src)
		id->route.addr.src_sin = *in4(src);
	device_take(stand(id));
	stand_event_add(stand(id), stand(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return stand_leave(0);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	ENTER(id, timeout_ms, 0, 0);
	free(id->route.path_rec);
	id->route.path_rec = calloc(1, sizeof(*id->route.path_rec));
	id->route.num_paths = 1;
	stand_event_add(stand(id), stand(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return stand_leave(0);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
		   struct ibv_pd *domain, struct ibv_qp_init_attr *attr)
{
	struct stand_id *made;
	int error;

	stand_init();
	ENTER(res->ai_port_space, res->ai_qp_type, res->ai_flags, attr);
	made = stand_id_add(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
		      (enum ibv_qp_type)res->ai_qp_type);
	error = bind_locked(made, res->ai_src_addr);
	if (error)
		abort(); /* no case of the test */
	*id = &made->id;
	return stand_leave(0);
}

/* ---- connections ---- */

static struct stand_id *listener_find(const struct stand_id *caller)
{
	for (struct stand_id *i = stand_ids; i; i = i->next)
		if (i->listening && i->id.ps == caller->id.ps &&
		    i->id.route.addr.src_sin.sin_port ==
			    caller->id.route.addr.dst_sin.sin_port)
			return i;
	return NULL;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	ENTER(id, backlog, 0, 0);
	stand(id)->listening = true;
	return stand_leave(0);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct stand_id *listener, *child;
	struct stand_event *ev;

	ENTER(id, param, id->qp, 0);
	if (param && param->private_data_len) {
		standin_cm_state.private_len = param->private_data_len;
		memcpy(standin_cm_state.private_data, param->private_data,
		       param->private_data_len);
	}
	listener = listener_find(stand(id));
	if (!listener) {
		stand_event_add(stand(id), stand(id), RDMA_CM_EVENT_REJECTED, 8);
		return stand_leave(0);
	}
	child = stand_id_add(listener->id.channel, listener->id.context,
		       listener->id.ps, listener->id.qp_type);
	child->id.route.addr.src_sin = id->route.addr.dst_sin;
	child->id.route.addr.dst_sin = id->route.addr.src_sin;
	device_take(child);
	child->peer = stand(id);
	stand(id)->peer = child;
	ev = stand_event_add(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ev->event.listen_id = &listener->id;
	if (param && param->private_data_len) {
		memcpy(ev->private_data, param->private_data,
		       param->private_data_len);
		ev->event.param.conn.private_data = ev->private_data;
		ev->event.param.conn.private_data_len = param->private_data_len;
	}
	return stand_leave(0);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct stand_id *peer = stand(id)->peer;

	ENTER(id, param, id->qp, 0);
	if (!peer)
		return stand_leave(0); /* the record is all that is asked for */
	stand_event_add(stand(id), stand(id), RDMA_CM_EVENT_ESTABLISHED, 0);
	stand_event_add(peer, peer,
		  peer->id.qp ? RDMA_CM_EVENT_ESTABLISHED :
				RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	stand(id)->connected = peer->connected = true;
	return stand_leave(0);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	ENTER(id, private_data, len, 0);
	if (stand(id)->peer)
		stand_event_add(stand(id)->peer, stand(id)->peer,
			  RDMA_CM_EVENT_REJECTED, 28);
	return stand_leave(0);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct stand_id *own = stand(id);

	ENTER(id, id->qp, 0, 0);
	if (own->connected && own->peer) {
		stand_event_add(own, own, RDMA_CM_EVENT_DISCONNECTED, 0);
		stand_event_add(own->peer, own->peer, RDMA_CM_EVENT_DISCONNECTED, 0);
		own->connected = own->peer->connected = false;
	}
	return stand_leave(0);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct stand_event *ev;

	ENTER(id, addr, context, 0);
	ev = stand_event_add(stand(id), stand(id), RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ev->event.param.ud.private_data = context;
	return stand_leave(0);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		    size_t len)
{
	ENTER(id, level, name, len);
	standin_cm_state.last_option =
		len == 1 ? *(uint8_t *)value : *(int *)value;
	return stand_leave(0);
}

/* ---- what only has to be called ---- */

#define RECORDED(name, parameters, a, b, c) \
	int name parameters                 \
	{                                   \
		ENTER(a, b, c, 0);          \
		return stand_leave(0);            \
	}

RECORDED(rdma_reject_ece, (struct rdma_cm_id *id, const void *data, uint8_t len),
	 id, data, len)
RECORDED(rdma_establish, (struct rdma_cm_id *id), id, id->qp, 0)
RECORDED(rdma_notify, (struct rdma_cm_id *id, enum ibv_event_type event), id,
	 event, 0)
RECORDED(rdma_join_multicast_ex,
	 (struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
	  void *context), id, attr, context)
RECORDED(rdma_leave_multicast, (struct rdma_cm_id *id, struct sockaddr *addr), id,
	 addr, 0)
RECORDED(rdma_init_qp_attr,
	 (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask), id, attr,
	 mask)
RECORDED(rdma_set_local_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), id,
	 ece, 0)
RECORDED(rdma_get_remote_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), id,
	 ece, 0)

/* Ours makes these by others, or only the system's library calls them. */
RECORDED(rdma_create_qp, (struct rdma_cm_id *id, struct ibv_pd *domain,
			  struct ibv_qp_init_attr *attr), id, domain, attr)
RECORDED(rdma_create_srq, (struct rdma_cm_id *id, struct ibv_pd *domain,
			   struct ibv_srq_init_attr *attr), id, domain, attr)
RECORDED(rdma_get_request, (struct rdma_cm_id *id, struct rdma_cm_id **out), id,
	 out, 0)
RECORDED(rdma_getaddrinfo, (const char *node, const char *service,
			    const struct rdma_addrinfo *hints,
			    struct rdma_addrinfo **res), node, service, hints)

void rdma_freeaddrinfo(struct rdma_addrinfo *res) {}
void rdma_destroy_ep(struct rdma_cm_id *id) {}
void rdma_destroy_srq(struct rdma_cm_id *id) {}
const char *rdma_event_str(enum rdma_cm_event_type event) { return ""; }
__be16 rdma_get_src_port(struct rdma_cm_id *id) { return 0; }
__be16 rdma_get_dst_port(struct rdma_cm_id *id) { return 0; }

/* ---- queue pairs ---- */

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	ENTER(id, attr->send_cq, attr->recv_cq, attr->qp_type);
	id->qp = calloc(1, sizeof(*id->qp));
	id->qp->context = id->verbs;
	id->qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd ?
			     attr->pd : id->pd;
	id->qp->qp_type = attr->qp_type;
	id->qp->qp_num = 0x77;
	id->pd = id->qp->pd;
	return stand_leave(0);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ENTER(id, id->qp, 0, 0);
	free(id->qp);
	id->qp = NULL;
	stand_leave(0);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	ENTER(id, attr->cq, attr->srq_type, 0);
	return stand_leave(ENOMEM);
}
