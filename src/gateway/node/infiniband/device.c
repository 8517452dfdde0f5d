/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses, the adapter with its protection domain, queue pairs.
 *
 * The adapter is chosen before the node starts, because sample pools are made
 * before and have to be registered with it. A connection that the connection
 * manager would later set up on another adapter is refused with a message.
 */
#define LOG_ROOM "gateway/infiniband"

#include <busbar/rdma_cma.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/infiniband/infiniband.h"
#include "util/clock.h"
#include "util/log.h"

#define DRAIN_NS (100 * NSEC_PER_SEC / 1000)

/* The addresses of `text`, at most `max`; how many, or a negative errno, which is logged. */
static int resolve(struct infiniband *ib, const char *text, struct socket_address out[],
		   unsigned max)
{
	char why[SOCKET_WHY_MAX];
	int family = socket_address_is_any(text) ? AF_INET : AF_UNSPEC;
	int found = socket_address_resolve_all(LAYER_TCP_SERVER, text, family, out, max, why);

	if (found < 0)
		log_error("%s: cannot resolve the address %s", ib->node->name, why);
	return found;
}

/*
 * Not in every librdmacm: in busbar's, and in ones that were changed for it. Weak,
 * so that the program runs with the others as well.
 */
extern __typeof__(rdma_create_id2) rdma_create_id2 __attribute__((weak));

bool ib_uc_available(void)
{
	return rdma_create_id2 != NULL;
}

int ib_id_create(struct infiniband *ib, struct rdma_cm_id **id)
{
	if (ib->mode != IB_UC)
		return rdma_create_id(ib->events, id, ib, ib->space);
	return rdma_create_id2(ib->events, id, ib, ib->space, IBV_QPT_UC);
}

int ib_call(struct infiniband *ib, struct rdma_cm_id **id)
{
	struct socket_address from = ib->local;

	from.in4.sin_port = 0; /* in.address's port is the listener's */
	if (ib_id_create(ib, id))
		return -1;
	return rdma_resolve_addr(*id, ib->has_local ? &from.sa : NULL,
				 &ib->remotes[ib->remote_at].sa,
				 (int)ib->out.resolution_timeout_ms);
}

const char *ib_resolve_route(struct infiniband *ib, struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, (int)ib->out.resolution_timeout_ms) ? strerror(errno) : NULL;
}

const char *ib_mode_name(enum ib_mode mode)
{
	static const char *const names[] = { "RC", "UC", "UD" };

	return names[mode];
}

bool ib_peer_may_call(const struct infiniband *ib, const struct rdma_cm_id *caller)
{
	return peers_have(&ib->peers, &caller->route.addr.dst_addr);
}

struct caller_ip ib_peer_ip(const struct rdma_cm_id *id)
{
	struct caller_ip ip = { 0 };

	socket_address_ip(&id->route.addr.dst_addr, ip.bytes);
	return ip;
}

static int no_adapter(struct infiniband *ib, const char *what, int err)
{
	log_error("%s: no RDMA adapter %s: %s; `busbar devices -v` lists adapters and their addresses",
		  ib->node->name, what, strerror(err));
	return err ? -err : -ENODEV;
}

/* The adapter on the way to one address of the peer; false when none shows up in time. */
static bool choose_by_route_to(struct infiniband *ib, struct socket_address *remote)
{
	int timeout_ms = (int)ib->out.resolution_timeout_ms;
	struct pollfd pfd = { .fd = ib->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	bool found = false;

	if (rdma_resolve_addr(ib->device_id, NULL, &remote->sa, timeout_ms))
		return false;
	/* It reports an error by itself when the time is over. */
	if (poll(&pfd, 1, timeout_ms + 1000) <= 0 ||
	    rdma_get_cm_event(ib->events, &event))
		return false;
	found = event->event == RDMA_CM_EVENT_ADDR_RESOLVED;
	rdma_ack_cm_event(event);
	if (found)
		ib->verbs = ib->device_id->verbs;
	return found && ib->verbs;
}

static int choose_first(struct infiniband *ib)
{
	int count = 0;

	ib->devices = rdma_get_devices(&count);
	if (!ib->devices || count == 0)
		return no_adapter(ib, "found", ib->devices ? ENODEV : errno);
	ib->verbs = ib->devices[0];
	log_info("%s: in.address names no adapter, using the first, %s",
		 ib->node->name, ibv_get_device_name(ib->verbs->device));
	return 0;
}

static bool is_any(const struct socket_address *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
	return a->in4.sin_addr.s_addr == htonl(INADDR_ANY);
}

static int choose_device(struct infiniband *ib)
{
	struct socket_address any_port = ib->local;

	if (!ib->has_local || is_any(&ib->local)) {
		for (unsigned i = 0; i < ib->remotes_found; i++)
			if (choose_by_route_to(ib, &ib->remotes[i]))
				return 0;
		return choose_first(ib);
	}
	/* Only the adapter is wanted now, the port when listening. */
	any_port.in4.sin_port = 0;
	if (rdma_bind_addr(ib->device_id, &any_port.sa))
		return no_adapter(ib, "has the address in.address", errno);
	ib->verbs = ib->device_id->verbs;
	return ib->verbs ? 0 : no_adapter(ib, "has the address in.address", ENODEV);
}

static int check_limits(struct infiniband *ib)
{
	const char *device = ibv_get_device_name(ib->verbs->device);
	int64_t wrs = MAX(ib->in.max_wrs, ib->out.max_wrs);
	int64_t cqe = MAX(ib->in.cq_size, ib->out.cq_size);
	struct ibv_device_attr attr;
	int err = ibv_query_device(ib->verbs, &attr);

	if (err) {
		log_error("%s: cannot query adapter %s: %s", ib->node->name,
			  device, strerror(err));
		return -err;
	}
	if (wrs > attr.max_qp_wr || cqe > attr.max_cqe) {
		log_error("%s: adapter %s offers at most max_wrs %d and cq_size %d",
			  ib->node->name, device, attr.max_qp_wr, attr.max_cqe);
		return -ERANGE;
	}
	return 0;
}

/* UD puts a routing header in front of what it receives: a place for it. */
static int prepare_ud(struct infiniband *ib)
{
	uint8_t port = ib->device_id->port_num ? ib->device_id->port_num : 1;
	struct ibv_port_attr attr;

	if (ibv_query_port(ib->verbs, port, &attr)) {
		log_error("%s: cannot query port %u of the adapter: %s",
			  ib->node->name, port, strerror(errno));
		return -EIO;
	}
	ib->mtu = (size_t)128 << attr.active_mtu;
	ib->grh_mr = ibv_reg_mr(ib->registrar.pd, ib->grh, sizeof(ib->grh),
				IBV_ACCESS_LOCAL_WRITE);
	if (!ib->grh_mr) {
		log_error("%s: cannot register memory: %s", ib->node->name,
			  strerror(errno));
		return -errno;
	}
	return 0;
}

void ib_device_close(struct infiniband *ib)
{
	if (ib->grh_mr)
		ibv_dereg_mr(ib->grh_mr);
	ib->grh_mr = NULL;
	if (ib->registrar.pd && ibv_dealloc_pd(ib->registrar.pd))
		log_warn("%s: the protection domain is still in use",
			 ib->node->name);
	ib->registrar.pd = NULL;
	ib->verbs = NULL;
	if (ib->devices)
		rdma_free_devices(ib->devices);
	ib->devices = NULL;
	if (ib->device_id)
		rdma_destroy_id(ib->device_id);
	ib->device_id = NULL;
	if (ib->events)
		rdma_destroy_event_channel(ib->events);
	ib->events = NULL;
}

static int open_device(struct infiniband *ib)
{
	int ret;

	if (ib->in.address) {
		ret = resolve(ib, ib->in.address, &ib->local, 1);
		if (ret < 0)
			return ret;
		ib->has_local = true;
	}
	if (ib->out.address) {
		ret = resolve(ib, ib->out.address, ib->remotes, IB_ADDRESSES_MAX);
		if (ret < 0)
			return ret;
		ib->remotes_found = (unsigned)ret;
		ib->remote_at = 0;
	}
	ib->events = rdma_create_event_channel();
	if (!ib->events)
		return no_adapter(ib, "can be used", errno);
	fcntl(ib->events->fd, F_SETFL, O_NONBLOCK);
	if (ib_id_create(ib, &ib->device_id))
		return no_adapter(ib, "can be used", errno);
	ret = choose_device(ib);
	if (!ret)
		ret = check_limits(ib);
	if (ret)
		return ret;
	ib->registrar.pd = ibv_alloc_pd(ib->verbs);
	if (!ib->registrar.pd) {
		ret = -errno;
		log_error("%s: cannot allocate a protection domain: %s",
			  ib->node->name, strerror(-ret));
		return ret;
	}
	return ib->mode == IB_UD ? prepare_ud(ib) : 0;
}

int ib_device_open(struct infiniband *ib)
{
	int err = open_device(ib);

	if (err)
		ib_device_close(ib);
	return err;
}

static int create_cqs(struct infiniband *ib)
{
	ib->recv_cq = ibv_create_cq(ib->verbs, (int)ib->in.cq_size, NULL,
				    ib->recv_events, 0);
	ib->send_cq = ibv_create_cq(ib->verbs, (int)ib->out.cq_size, NULL, NULL,
				    0);
	if (ib->recv_cq && ib->send_cq)
		return 0;
	log_error("%s: cannot create completion queues of %lld and %lld entries: %s",
		  ib->node->name, (long long)ib->in.cq_size,
		  (long long)ib->out.cq_size, strerror(errno));
	return errno ? -errno : -ENOMEM;
}

static void destroy_cqs(struct infiniband *ib)
{
	if (ib->recv_cq)
		ibv_destroy_cq(ib->recv_cq);
	if (ib->send_cq)
		ibv_destroy_cq(ib->send_cq);
	ib->recv_cq = ib->send_cq = NULL;
}

/* Inline sending is no part of the standard: go on without it. */
static int create_qp(struct infiniband *ib, struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_init_attr wanted = *attr;

	if (rdma_create_qp(ib->conn, ib->registrar.pd, attr) == 0)
		return 0;
	if (wanted.cap.max_inline_data) {
		*attr = wanted;
		attr->cap.max_inline_data = 0;
		if (rdma_create_qp(ib->conn, ib->registrar.pd, attr) == 0) {
			log_warn("%s: the adapter does not send %u bytes inline, sending nothing inline",
				 ib->node->name, wanted.cap.max_inline_data);
			ib->no_inline = true;
			return 0;
		}
	}
	log_error("%s: cannot create a queue pair (in.max_wrs %lld, out.max_wrs %lld): %s",
		  ib->node->name, (long long)ib->in.max_wrs,
		  (long long)ib->out.max_wrs, strerror(errno));
	return errno ? -errno : -ENOMEM;
}

int ib_qp_create(struct infiniband *ib)
{
	uint32_t wanted = ib->out.send_inline && !ib->no_inline ?
			  (uint32_t)ib->out.max_inline_data : 0;
	static const enum ibv_qp_type types[] = { [IB_RC] = IBV_QPT_RC,
						  [IB_UC] = IBV_QPT_UC,
						  [IB_UD] = IBV_QPT_UD };
	bool ud = ib->mode == IB_UD;
	int err;

	if (ib->conn->verbs != ib->verbs) {
		log_error("%s: the connection goes over adapter %s, but the samples are registered with %s; in.address has to be an address of the adapter that reaches the peer",
			  ib->node->name,
			  ib->conn->verbs ? ibv_get_device_name(
						    ib->conn->verbs->device) :
					    "none",
			  ibv_get_device_name(ib->verbs->device));
		return -EXDEV;
	}
	err = create_cqs(ib);
	if (err)
		goto err_cqs;
	struct ibv_qp_init_attr attr = {
		.send_cq = ib->send_cq,
		.recv_cq = ib->recv_cq,
		.qp_type = types[ib->mode],
		.sq_sig_all = 0,
		.cap = { .max_send_wr = (uint32_t)ib->out.max_wrs,
			 .max_recv_wr = (uint32_t)ib->in.max_wrs,
			 .max_send_sge = 1,
			 .max_recv_sge = ud ? 2 : 1,
			 .max_inline_data = wanted },
	};
	err = create_qp(ib, &attr);
	if (err)
		goto err_cqs;
	struct ib_channel_qp q = {
		.qp = ib->conn->qp,
		.recv_cq = ib->recv_cq,
		.send_cq = ib->send_cq,
		.inline_limit = wanted && !ib->no_inline ?
				attr.cap.max_inline_data : 0,
		.size_max = ud ? ib->mtu : 0,
	};
	if (ud)
		q.grh = (struct ibv_sge){ .addr = (uintptr_t)ib->grh,
					  .length = sizeof(ib->grh),
					  .lkey = ib->grh_mr->lkey };
	ib_channel_open_rx(ib->channel, &q);
	return 0;

err_cqs:
	destroy_cqs(ib);
	return err;
}

void ib_qp_destroy(struct infiniband *ib)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (!ib->conn || !ib->conn->qp)
		return;
	ib_channel_close_tx(ib->channel);
	ib_channel_close_rx(ib->channel);
	/* Flushes what is open; whatever arrived before stays in front. */
	ibv_modify_qp(ib->conn->qp, &attr, IBV_QP_STATE);
	ib_channel_drain(ib->channel, DRAIN_NS);
	rdma_destroy_qp(ib->conn);
	if (ib->ah)
		ibv_destroy_ah(ib->ah);
	ib->ah = NULL;
	ib_channel_detach(ib->channel);
	destroy_cqs(ib);
}
