/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting by the connection manager (connect = cm). The receiver listens and tells its
 * address and port by the control connection; the adapters are those that have the addresses.
 *
 * UC needs rdma_create_id2(), which not every librdmacm has: busbar's own does.
 */
#define LOG_ROOM "bench/hca"
#include <arpa/inet.h>
#include <busbar/rdma_cma.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>

#include "bench/hca/end.h"

#define TIMEOUT_MS 5000
#define POLL_MS 50

extern __typeof__(rdma_create_id2) rdma_create_id2 __attribute__((weak));

union address {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

static int say(const char *what, int err)
{
	return log_fail(err ? -err : -EIO, "connection management: %s: %s", what, strerror(err));
}

static int id_create(struct hca_end *e, struct rdma_cm_id **id)
{
	enum rdma_port_space ps = e->c->type == HCA_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	int err;

	if (e->c->type == HCA_UC && !rdma_create_id2)
		return log_fail(-EOPNOTSUPP, "type = UC with connect = cm needs a librdmacm.so.1 with rdma_create_id2(), as busbar's own; connect = plain does without");
	err = e->c->type == HCA_UC ?
		      rdma_create_id2(e->cm_events, id, e, RDMA_PS_IPOIB, IBV_QPT_UC) :
		      rdma_create_id(e->cm_events, id, e, ps);
	return err ? say("no identifier", errno) : 0;
}

/* Waits for an event of this kind, which is acknowledged and copied to *out. */
static int await(struct hca_end *e, enum rdma_cm_event_type wanted,
		 struct rdma_cm_event *out)
{
	struct pollfd pfd = { .fd = e->cm_events->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	for (int waited_ms = 0; poll(&pfd, 1, POLL_MS) <= 0; waited_ms += POLL_MS) {
		if (hca_end_stopped(e))
			return -EINTR;
		if (waited_ms > 2 * TIMEOUT_MS)
			return say(rdma_event_str(wanted), ETIMEDOUT);
	}
	if (rdma_get_cm_event(e->cm_events, &event))
		return say("no event", errno);
	*out = *event;
	rdma_ack_cm_event(event);
	if (out->event == wanted)
		return 0;
	return log_fail(-ECONNREFUSED, "connection management: %s (status %d) instead of %s",
			rdma_event_str(out->event), out->status, rdma_event_str(wanted));
}

static int resolve(const char *text, uint16_t port, union address *a)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(text, NULL, &hints, &found))
		return log_fail(-EINVAL, "address = '%s' is no IP address", text);
	memset(a, 0, sizeof(*a));
	memcpy(a, found->ai_addr, MIN(found->ai_addrlen, sizeof(*a)));
	freeaddrinfo(found);
	a->in4.sin_port = htons(port); /* at the same place in both */
	return 0;
}

/* Has the interface this hardware address? */
static bool is_of(const struct ifaddrs *list, const char *interface, const union ibv_gid *gid)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct sockaddr_ll *at = (const void *)i->ifa_addr;

		if (at && at->sll_family == AF_PACKET && at->sll_halen == 6 &&
		    !strcmp(i->ifa_name, interface))
			return !memcmp(at->sll_addr, gid->raw, 6);
	}
	return false;
}

/* The device's own interface before others, loopback last, IPv4 before IPv6; 0: not usable. */
static int fitness(const struct ifaddrs *list, const struct ifaddrs *i, const union ibv_gid *gid)
{
	const struct sockaddr *a = i->ifa_addr;

	if (!a || !(i->ifa_flags & IFF_UP) ||
	    (a->sa_family != AF_INET && a->sa_family != AF_INET6) ||
	    (a->sa_family == AF_INET6 &&
	     IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr)))
		return 0;
	return 1 + 4 * is_of(list, i->ifa_name, gid) + 2 * !(i->ifa_flags & IFF_LOOPBACK) +
	       (a->sa_family == AF_INET);
}

/* An address of this host for an iWARP device, whose GID is none: it is the hardware address of the
 * device's interface. 0 or a negative errno, logged. */
static int host_address(const union ibv_gid *gid, struct sockaddr_storage *to)
{
	const struct ifaddrs *best = NULL;
	struct ifaddrs *list;
	int highest = 0;

	if (getifaddrs(&list))
		return log_fail(-errno, "the addresses of this host cannot be read: %s",
				strerror(errno));
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		int fits = fitness(list, i, gid);

		if (fits > highest) {
			highest = fits;
			best = i;
		}
	}
	if (best)
		memcpy(to, best->ifa_addr, best->ifa_addr->sa_family == AF_INET ?
						   sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6));
	freeifaddrs(list);
	if (best)
		return 0;
	return log_fail(-EADDRNOTAVAIL,
			"this host has no address, not even of loopback; 'ip link set lo up'");
}

/* By the GID of the open adapter, which is an address on Ethernet, but for iWARP. */
static int address_by_gid(const struct hca_end *e, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (hca_end_is_iwarp(e))
		return host_address(&e->gid, &a->storage);
	if (e->port_attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return log_fail(-EDESTADDRREQ, "the addresses of %s are unknown; say address = RECEIVER or SENDER,RECEIVER, or connect = plain",
				e->report->device);
	if (IN6_IS_ADDR_V4MAPPED((struct in6_addr *)&e->gid)) {
		a->in4.sin_family = AF_INET;
		memcpy(&a->in4.sin_addr, e->gid.raw + 12, 4);
	} else {
		a->in6.sin6_family = AF_INET6;
		memcpy(&a->in6.sin6_addr, &e->gid, 16);
	}
	return 0;
}

static int address_of_device(struct hca_end *e, union address *a)
{
	int ret = bench_hca_device_open(e) ?: bench_hca_device_query(e) ?: address_by_gid(e, a);

	if (e->verbs)
		ibv_close_device(e->verbs);
	e->verbs = NULL;
	e->verbs_own = false;
	return ret;
}

/* This end's own address. */
static int own_address(struct hca_end *e, union address *a)
{
	const char *given = e->c->address[e->side];
	socklen_t len = sizeof(*a);
	int ret = 0;

	if (*given) {
		ret = resolve(given, 0, a);
	} else if (!e->c->remote) {
		ret = address_of_device(e, a);
	} else if (getsockname(e->fd, &a->sa, &len)) {
		ret = -errno;
	} else if (a->sa.sa_family == AF_INET6 &&
		   IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
		struct sockaddr_in in4 = { .sin_family = AF_INET };

		memcpy(&in4.sin_addr, a->in6.sin6_addr.s6_addr + 12, 4);
		memset(a, 0, sizeof(*a));
		a->in4 = in4;
	}
	a->in4.sin_port = 0;
	return ret;
}

/* The identifier has an adapter now: all that it is needed for. */
static int on_device(struct hca_end *e)
{
	const char *wanted = e->c->device[e->side];

	e->verbs = e->cm_id->verbs;
	e->port = e->cm_id->port_num;
	if (!e->verbs)
		return say("no adapter", ENODEV);
	if (strcmp(ibv_get_device_name(e->verbs->device), wanted))
		return log_fail(-EXDEV, "device = %s: the connection goes over %s; address = names one of its addresses, and BUSBAR_DEVICES shows one device alone",
				wanted, ibv_get_device_name(e->verbs->device));
	return bench_hca_device_query(e) ?: bench_hca_device_prepare(e) ?: bench_hca_qp_create(e);
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static int listen_on(struct hca_end *e)
{
	union address a;
	int ret = own_address(e, &a) ?: id_create(e, &e->cm_listener);

	if (ret)
		return ret;
	if (rdma_bind_addr(e->cm_listener, &a.sa) || rdma_listen(e->cm_listener, 1))
		return say("cannot listen", errno);
	e->mine.port = ntohs(rdma_get_src_port(e->cm_listener));
	if (getnameinfo(&a.sa, sizeof(a.storage), e->mine.ip, sizeof(e->mine.ip), NULL, 0,
			NI_NUMERICHOST))
		return say("the address has no text", EINVAL);
	return 0;
}

static int accept_one(struct hca_end *e)
{
	struct rdma_conn_param param = conn_param();
	struct rdma_cm_event event;
	int ret = await(e, RDMA_CM_EVENT_CONNECT_REQUEST, &event);

	if (ret)
		return ret;
	e->cm_id = event.id;
	ret = on_device(e);
	if (ret)
		return ret;
	param.qp_num = e->qp->qp_num;
	if (rdma_accept(e->cm_id, &param))
		return say("cannot accept", errno);
	e->remote_qkey = RDMA_UDP_QKEY;
	/* Datagrams have no connection: that was all. */
	return e->c->type == HCA_UD ? 0 : await(e, RDMA_CM_EVENT_ESTABLISHED, &event);
}

/* Not part of the public interface that all have: whether it helped is seen afterwards. */
static void ask_mtu(struct hca_end *e)
{
	struct rdma_route *route = &e->cm_id->route;

	if (e->c->mtu && route->num_paths > 0 && route->path_rec)
		route->path_rec->mtu = (uint8_t)hca_mtu_of(e->c->mtu);
}

static int check_mtu(struct hca_end *e)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int err;

	if (!e->c->mtu || e->c->type == HCA_UD)
		return 0;
	err = ibv_query_qp(e->qp, &attr, IBV_QP_PATH_MTU, &init);
	if (err)
		return say("cannot query the queue pair", err);
	if (attr.path_mtu == hca_mtu_of(e->c->mtu))
		return 0;
	return log_fail(-EOPNOTSUPP, "mtu = %u: this connection manager chose %u; connect = plain lets the program choose",
			e->c->mtu, 128u << attr.path_mtu);
}

static int reach(struct hca_end *e)
{
	union address from, to;
	struct rdma_cm_event event;
	int ret = own_address(e, &from) ?: resolve(e->theirs.ip, e->theirs.port, &to) ?:
		  id_create(e, &e->cm_id);

	if (ret)
		return ret;
	if (rdma_resolve_addr(e->cm_id, &from.sa, &to.sa, TIMEOUT_MS))
		return say("cannot resolve the address", errno);
	ret = await(e, RDMA_CM_EVENT_ADDR_RESOLVED, &event) ?: on_device(e);
	if (ret)
		return ret;
	if (rdma_resolve_route(e->cm_id, TIMEOUT_MS))
		return say("no route", errno);
	return await(e, RDMA_CM_EVENT_ROUTE_RESOLVED, &event);
}

static int call(struct hca_end *e)
{
	struct rdma_conn_param param = conn_param();
	struct rdma_cm_event event;
	int ret = reach(e);

	if (ret)
		return ret;
	ask_mtu(e);
	if (rdma_connect(e->cm_id, &param))
		return say("cannot connect", errno);
	ret = await(e, RDMA_CM_EVENT_ESTABLISHED, &event);
	if (ret || e->c->type != HCA_UD)
		return ret ?: check_mtu(e);
	e->remote_qpn = event.param.ud.qp_num;
	e->remote_qkey = event.param.ud.qkey;
	return hca_address_handle(e, &event.param.ud.ah_attr);
}

int hca_cm_connect(struct hca_end *e)
{
	bool receiver = e->side == HCA_RECEIVER;

	e->cm_events = rdma_create_event_channel();
	if (!e->cm_events)
		return say("not to be had", errno);
	/* The second hello is with what is known only then. */
	return (receiver ? listen_on(e) : 0) ?: hca_control_hello(e) ?:
	       (receiver ? accept_one(e) : call(e)) ?: hca_control_hello(e);
}

void hca_cm_close(struct hca_end *e)
{
	if (e->cm_id)
		rdma_destroy_id(e->cm_id);
	if (e->cm_listener)
		rdma_destroy_id(e->cm_listener);
	if (e->cm_events)
		rdma_destroy_event_channel(e->cm_events);
}
