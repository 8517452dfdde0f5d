/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter that an instance uses: chosen by a local address, and all that hangs on it. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ripc/instance/instance.h"

#define CQ_ENTRIES 2048
#define READS_MAX 16
#define UD_INLINE 256

/* ---- the address ---- */

/* Binds r->listener to it, on an adapter. */
static int try_address(struct ripc *r, const struct sockaddr *a, socklen_t len)
{
	union sockaddr_any any;
	int ret;

	memset(&any, 0, sizeof(any));
	memcpy(&any, a, len);
	if (any.any.sa_family == AF_INET)
		any.v4.sin_port = 0;
	else
		any.v6.sin6_port = 0;
	if (rdma_create_id(r->cm, &r->listener, NULL, RDMA_PS_TCP))
		return -errno;
	ret = rdma_bind_addr(r->listener, &any.any) ? -errno :
	      r->listener->verbs ? 0 : -EADDRNOTAVAIL;
	if (ret) {
		rdma_destroy_id(r->listener);
		r->listener = NULL;
	}
	return ret;
}

/* Better ones are lower: IPv4 of a network, IPv6 of one, loopback; -1: not usable. */
static int rank(const struct ifaddrs *i)
{
	bool loopback = i->ifa_flags & IFF_LOOPBACK;

	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP))
		return -1;
	if (i->ifa_addr->sa_family == AF_INET)
		return loopback ? 2 : 0;
	if (i->ifa_addr->sa_family != AF_INET6 ||
	    IN6_IS_ADDR_LINKLOCAL(
		    &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr))
		return -1;
	return loopback ? 3 : 1;
}

static int choose_address(struct ripc *r)
{
	struct ifaddrs *all;
	int ret = -EADDRNOTAVAIL;

	if (getifaddrs(&all))
		return ripc_fail(-errno, "getifaddrs: %s", strerror(errno));
	for (int wanted = 0; wanted <= 3 && ret; wanted++)
		for (struct ifaddrs *i = all; i && ret; i = i->ifa_next)
			if (rank(i) == wanted)
				ret = try_address(r, i->ifa_addr,
						  wanted & 1 ? sizeof(struct sockaddr_in6) :
							       sizeof(struct sockaddr_in));
	freeifaddrs(all);
	return ret ? ripc_fail(-EADDRNOTAVAIL,
			       "no address of this host belongs to an RDMA adapter") : 0;
}

static int given_address(struct ripc *r, const char *text)
{
	union sockaddr_any a;
	int ret;

	memset(&a, 0, sizeof(a));
	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1)
		a.any.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1)
		a.any.sa_family = AF_INET6;
	else
		return ripc_fail(-EINVAL, "address \"%s\" is no IP address", text);
	ret = try_address(r, &a.any, a.any.sa_family == AF_INET ? sizeof(a.v4) : sizeof(a.v6));
	return ret ? ripc_fail(-EADDRNOTAVAIL, "address %s belongs to no RDMA adapter: %s", text,
			       strerror(-ret)) : 0;
}

/* ---- datagrams ---- */

static bool find_gid(struct device *d, const struct sockaddr *a)
{
	const union sockaddr_any *any = (const void *)a;
	uint8_t want[16] = { [10] = 0xff, [11] = 0xff };
	struct ibv_port_attr port;

	if (a->sa_family == AF_INET)
		memcpy(want + 12, &any->v4.sin_addr, 4);
	else
		memcpy(want, &any->v6.sin6_addr, 16);
	if (ibv_query_port(d->verbs, d->port, &port))
		return false;
	for (int i = port.gid_tbl_len - 1; i >= 0; i--) {
		struct ibv_gid_entry e;

		/* The later entries of an address are of RoCE v2. */
		if (ibv_query_gid_ex(d->verbs, d->port, (uint32_t)i, &e, 0) ||
		    memcmp(e.gid.raw, want, 16) || i > UINT8_MAX)
			continue;
		d->gid = e.gid;
		d->gid_index = (uint8_t)i;
		return true;
	}
	return false;
}

static int ud_ready(struct device *d)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = d->port,
				 .qkey = d->ud_qkey };

	if (ibv_modify_qp(d->ud, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
		return -errno;
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(d->ud, &a, IBV_QP_STATE))
		return -errno;
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = 0;
	return ibv_modify_qp(d->ud, &a, IBV_QP_STATE | IBV_QP_SQ_PSN) ? -errno : 0;
}

static int ud_post(struct ripc *r, struct slot *slot)
{
	struct ibv_sge sge = { (uintptr_t)slot->bytes, GRH_BYTES + SLOT_BYTES,
			       r->device.ud_ref.lkey };
	struct ibv_recv_wr wr = { .wr_id = work_id(slot, WORK_UD_RECEIVE), .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	return ibv_post_recv(r->device.ud, &wr, &bad) ? -EIO : 0;
}

void device_ud_repost(struct slot *slot)
{
	atomic_fetch_add_explicit(&slot->r->device.ud_reposted, 1, memory_order_relaxed);
	ud_post(slot->r, slot);
}

static int ud_memory(struct ripc *r)
{
	struct device *d = &r->device;
	size_t each = GRH_BYTES + SLOT_BYTES + 24; /* whole cache lines */
	size_t all = UD_SLOTS * each + UD_SEND_SLOTS * (size_t)SLOT_BYTES;

	_Static_assert((GRH_BYTES + SLOT_BYTES + 24) % 64 == 0, "slots are aligned");
	d->ud_bytes = pool_alloc(r->pool, all);
	d->ud_slots = calloc(UD_SLOTS, sizeof(*d->ud_slots));
	if (!d->ud_bytes || !d->ud_slots)
		return -ENOMEM;
	d->ud_send_bytes = d->ud_bytes + UD_SLOTS * each;
	for (unsigned i = 0; i < UD_SLOTS; i++) {
		d->ud_slots[i].r = r;
		d->ud_slots[i].bytes = d->ud_bytes + i * each;
		d->ud_slots[i].message.slot = &d->ud_slots[i];
	}
	return pool_get(r->pool, d->ud_bytes, all, POOL_LOCAL, &d->ud_ref);
}

static void ud_close(struct ripc *r)
{
	struct device *d = &r->device;

	if (d->ud)
		ibv_destroy_qp(d->ud);
	d->ud = NULL;
	if (d->ud_ref.region)
		pool_put(r->pool, &d->ud_ref);
	d->ud_ref.region = NULL;
	if (d->ud_bytes)
		pool_free(r->pool, d->ud_bytes);
	free(d->ud_slots);
	d->ud_bytes = NULL;
	d->ud_slots = NULL;
}

/* Without it the instance has connections only. */
static void ud_open(struct ripc *r)
{
	struct device *d = &r->device;
	struct ibv_qp_init_attr a = {
		.send_cq = d->cq, .recv_cq = d->cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = UD_SEND_SLOTS, .max_recv_wr = UD_SLOTS,
			 .max_send_sge = 1, .max_recv_sge = 1,
			 .max_inline_data = UD_INLINE },
	};
	int ret;

	if (!find_gid(d, rdma_get_local_addr(r->listener)))
		return;
	d->ud = ibv_create_qp(d->pd, &a);
	if (!d->ud) {
		a.cap.max_inline_data = 0;
		d->ud = ibv_create_qp(d->pd, &a);
	}
	if (!d->ud)
		return;
	d->ud_inline = a.cap.max_inline_data;
	if (getrandom(&d->ud_qkey, sizeof(d->ud_qkey), 0) != sizeof(d->ud_qkey))
		d->ud_qkey = (uint32_t)now_ns();
	d->ud_qkey &= 0x7fffffff; /* those above are privileged */
	ret = ud_memory(r);
	if (!ret)
		ret = ud_ready(d);
	for (unsigned i = 0; !ret && i < UD_SLOTS; i++)
		ret = ud_post(r, &d->ud_slots[i]);
	if (ret)
		ud_close(r);
}

/* ---- the adapter ---- */

static int open_queues(struct ripc *r)
{
	struct device *d = &r->device;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	d->verbs = r->listener->verbs;
	d->port = r->listener->port_num ? r->listener->port_num : 1;
	if (ibv_query_device(d->verbs, &attr) || ibv_query_port(d->verbs, d->port, &port))
		return -EIO;
	d->mtu_bytes = 128u << port.active_mtu;
	d->reads_max = (uint8_t)(attr.max_qp_rd_atom < 1 ? 1 :
				 attr.max_qp_rd_atom > READS_MAX ? READS_MAX :
				 attr.max_qp_rd_atom);
	d->cq_max = attr.max_cqe;
	d->windows = attr.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
					      IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	d->read_into = d->verbs->device->transport_type == IBV_TRANSPORT_IWARP ? POOL_SINK :
										 POOL_LOCAL;
	d->pd = ibv_alloc_pd(d->verbs);
	d->channel = d->pd ? ibv_create_comp_channel(d->verbs) : NULL;
	d->cq_entries = CQ_ENTRIES < d->cq_max ? CQ_ENTRIES : d->cq_max;
	d->cq = d->channel ? ibv_create_cq(d->verbs, d->cq_entries, NULL, d->channel, 0) : NULL;
	return d->cq ? 0 : -(errno ? errno : EIO);
}

int device_open(struct ripc *r)
{
	int ret;

	r->cm = rdma_create_event_channel();
	if (!r->cm)
		return ripc_fail(-errno, "the connection manager: %s", strerror(errno));
	ret = r->config.address ? given_address(r, r->config.address) : choose_address(r);
	if (ret)
		return ret;
	ret = open_queues(r);
	if (ret)
		return ripc_fail(ret, "the adapter: %s", strerror(-ret));
	ret = pool_open(&r->pool, r->device.pd, r->config.c.pool_bytes_max);
	if (ret)
		return ripc_fail(ret, "registered memory: %s", strerror(-ret));
	if (!device_reserve(r, UD_SLOTS + UD_SEND_SLOTS))
		ud_open(r);
	if (rdma_listen(r->listener, 128))
		return ripc_fail(-errno, "listening: %s", strerror(errno));
	return 0;
}

void device_close(struct ripc *r)
{
	struct device *d = &r->device;

	ud_close(r);
	if (r->listener)
		rdma_destroy_id(r->listener);
	if (d->cq)
		ibv_destroy_cq(d->cq);
	if (d->channel)
		ibv_destroy_comp_channel(d->channel);
	if (r->pool)
		pool_close(r->pool);
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (r->cm)
		rdma_destroy_event_channel(r->cm);
}

/* On the instance's thread, or before there is one. */
int device_reserve(struct ripc *r, int entries)
{
	struct device *d = &r->device;
	int wanted = atomic_load(&d->cq_used) + entries, size = d->cq_entries;

	if (wanted > d->cq_max)
		return -ENOBUFS;
	while (size < wanted)
		size = size > d->cq_max / 2 ? d->cq_max : 2 * size;
	if (size != d->cq_entries) {
		if (ibv_resize_cq(d->cq, size))
			return -ENOBUFS;
		d->cq_entries = size;
	}
	atomic_store(&d->cq_used, wanted);
	return 0;
}

void device_unreserve(struct ripc *r, int entries)
{
	atomic_fetch_sub(&r->device.cq_used, entries);
}
