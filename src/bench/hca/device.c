/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter of an end: its context, port, GID, queues. */
#define LOG_ROOM "bench/hca"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/hca/queue.h"

#define PORT 1

int bench_hca_device_open(struct hca_end *e)
{
	const char *name = e->c->device[e->side];
	struct ibv_device **list = ibv_get_device_list(NULL);
	int err = 0;

	for (int i = 0; list && list[i] && !e->verbs && !err; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		e->verbs = ibv_open_device(list[i]);
		err = e->verbs ? 0 : errno;
	}
	if (list)
		ibv_free_device_list(list);
	if (!e->verbs)
		return log_fail(err ? -err : -ENODEV, "device = %s: %s; 'busbar devices' lists all",
				name, err ? strerror(err) : "there is none");
	e->verbs_own = true;
	return 0;
}

static bool is_mapped_ipv4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid);
}

/* The address by which the control connection leaves: as a GID has it. */
static bool control_address(const struct hca_end *e, union ibv_gid *gid)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	memset(gid, 0, sizeof(*gid));
	if (!e->c->remote || getsockname(e->fd, (struct sockaddr *)&a, &len))
		return false;
	if (a.ss_family == AF_INET6) {
		memcpy(gid, &((struct sockaddr_in6 *)&a)->sin6_addr, 16);
		return true;
	}
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &((struct sockaddr_in *)&a)->sin_addr, 4);
	return a.ss_family == AF_INET;
}

/* How well an entry fits: RoCE v2 before others, addresses of IPv4 before IPv6. */
static int fitness(const struct ibv_gid_entry *entry, const union ibv_gid *wanted)
{
	if (wanted && !memcmp(&entry->gid, wanted, sizeof(*wanted)))
		return 10 + (entry->gid_type == IBV_GID_TYPE_ROCE_V2);
	return 1 + 4 * (entry->gid_type == IBV_GID_TYPE_ROCE_V2) +
	       2 * is_mapped_ipv4(&entry->gid);
}

static int choose_gid(struct hca_end *e)
{
	union ibv_gid control;
	bool wanted = control_address(e, &control);
	int best = 0;

	e->gid_index = e->c->gid_index;
	for (int i = 0; e->c->gid_index < 0 && i < e->port_attr.gid_tbl_len; i++) {
		struct ibv_gid_entry entry;
		int fits;

		if (ibv_query_gid_ex(e->verbs, e->port, (uint32_t)i, &entry, 0))
			continue;
		fits = fitness(&entry, wanted ? &control : NULL);
		if (fits > best) {
			best = fits;
			e->gid_index = i;
		}
	}
	if (e->gid_index >= 0 && !ibv_query_gid(e->verbs, e->port, e->gid_index, &e->gid))
		return 0;
	return log_fail(-ENODEV, "gid = %d: the adapter has no such GID", e->gid_index);
}

int bench_hca_device_query(struct hca_end *e)
{
	int err;

	strncpy(e->report->device, ibv_get_device_name(e->verbs->device),
		sizeof(e->report->device) - 1);
	if (!e->port)
		e->port = PORT;
	err = ibv_query_port(e->verbs, e->port, &e->port_attr);
	if (err)
		return log_fail(-err, "cannot query port %u of %s: %s", e->port, e->report->device,
				strerror(err));
	if (e->port_attr.state != IBV_PORT_ACTIVE)
		return log_fail(-ENETDOWN, "port %u of %s is not active", e->port,
				e->report->device);
	return choose_gid(e);
}

int bench_hca_device_prepare(struct hca_end *e)
{
	int ret;

	e->pd = ibv_alloc_pd(e->verbs);
	if (!e->pd)
		return log_fail(-errno, "cannot allocate a protection domain: %s", strerror(errno));
	ret = hca_buffers_make(e);
	if (!ret)
		ret = hca_queue_open(e, &e->send, e->c->poll_send, (int)e->send_depth + 1);
	if (!ret)
		ret = hca_queue_open(e, &e->recv, e->c->poll_recv, (int)e->recv_depth + 1);
	return ret;
}

void bench_hca_device_close(struct hca_end *e)
{
	if (e->ah)
		ibv_destroy_ah(e->ah);
	hca_queue_close(&e->send);
	hca_queue_close(&e->recv);
	hca_buffers_free(e);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->verbs_own)
		ibv_close_device(e->verbs);
}

int hca_address_handle(struct hca_end *e, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;

	e->ah = ibv_create_ah(e->pd, &copy);
	if (e->ah)
		return 0;
	return log_fail(-errno, "cannot make an address handle: %s", strerror(errno));
}
