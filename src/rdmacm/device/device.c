/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soft0 devices, each opened once and kept open while the library is loaded,
 * and the lookup of device, port and GID index by a local address. Devices of the
 * system's library are handled by the system's librdmacm (system/system.h).
 *
 * A failed device is opened again with a new record, and its users are
 * told. The old record and context stay: programs have pointers to them.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rdmacm/base/addr.h"
#include "util/log.h"
#include "verbs/private.h"

#define GIDS_MAX 1024
/* Headers of a packet of RoCE v2 at most, as Linux counts them: IPv6, UDP, BTH, XRC or DETH,
 * atomic, ICRC. */
#define HEADERS 96

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list devices = { &devices, &devices };
static struct list removed_devices = { &removed_devices, &removed_devices };
static unsigned device_count;
static bool started;
/* The user whose removed() runs; set by the progress thread alone. */
static struct cma_device_user *removing;
static pthread_cond_t removed_one = PTHREAD_COND_INITIALIZER;

static uint8_t limit_of(int value)
{
	return (uint8_t)(value < 0 ? 0 : MIN(value, 0xfe));
}

static void device_event(void *arg, uint32_t events);

static void device_add(struct ibv_device *dev)
{
	struct ibv_device_attr attr;
	struct cma_device *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return;
	d->verbs = ibv_open_device(dev);
	if (!d->verbs) {
		log_error("device %s: cannot be opened: %s",
			  ibv_get_device_name(dev), strerror(errno));
		goto err_free;
	}
	if (ibv_query_device(d->verbs, &attr)) {
		log_error("device %s: cannot be queried",
			  ibv_get_device_name(dev));
		goto err_close;
	}
	d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd) {
		log_error("device %s: no protection domain: %s",
			  ibv_get_device_name(dev), strerror(errno));
		goto err_close;
	}
	d->guid = attr.node_guid;
	d->port_count = attr.phys_port_cnt;
	d->datagrams = attr.max_ah > 0;
	d->multicast = attr.max_mcast_grp > 0;
	d->max_responder_resources = limit_of(attr.max_qp_rd_atom);
	d->max_initiator_depth = limit_of(attr.max_qp_init_rd_atom);
	list_init(&d->users);
	/* Edge-triggered, because the events are left to the program to read. */
	ret = busbar_progress_watch(d->verbs->async_fd, EPOLLIN | EPOLLET,
				    device_event, d);
	if (ret) {
		log_error("device %s: its events cannot be watched: %s",
			  ibv_get_device_name(dev), strerror(-ret));
		goto err_pd;
	}
	list_push(&devices, &d->entry);
	device_count++;
	return;

err_pd:
	ibv_dealloc_pd(d->pd);
err_close:
	ibv_close_device(d->verbs);
err_free:
	free(d);
}

/*
 * In a forked child, which has neither the progress thread nor the contexts: opens
 * the devices anew on next use. The parent's records are not freed, because the
 * parent's identifiers point to them.
 */
static void devices_forked(void)
{
	pthread_mutex_init(&devices_lock, NULL);
	pthread_cond_init(&removed_one, NULL);
	list_init(&devices);
	list_init(&removed_devices);
	removing = NULL;
	device_count = 0;
	started = false;
}

__attribute__((constructor)) static void devices_load(void)
{
	pthread_atfork(NULL, NULL, devices_forked);
}

/*
 * Replaces failed devices, so that a lookup finds the new one even before the
 * progress thread has told the users of the old one. The lock is held.
 */
static void devices_replace_failed(void)
{
	list_for_each_safe(d, &devices, struct cma_device, entry) {
		if (!busbar_context_failed(d->verbs))
			continue;
		d->removed = true;
		list_remove(&d->entry);
		list_push(&removed_devices, &d->entry);
		device_count--;
		device_add(d->verbs->device);
	}
}

static bool device_known(const struct ibv_device *dev)
{
	list_for_each(d, &devices, struct cma_device, entry)
		if (d->verbs->device == dev)
			return true;
	return false;
}

int cma_devices_open(void)
{
	struct ibv_device **list;
	int ret = 0;

	pthread_mutex_lock(&devices_lock);
	devices_replace_failed();
	if (started && device_count)
		goto out;
	list = ibv_get_device_list(NULL);
	if (!list) {
		ret = errno ? -errno : -ENODEV;
		goto out;
	}
	for (size_t i = 0; list[i]; i++)
		if (busbar_owns_device(list[i]) && !device_known(list[i]))
			device_add(list[i]);
	ibv_free_device_list(list);
	/* The progress thread, too, is needed as long as the library is loaded. */
	if (!device_count)
		ret = -ENODEV;
	else if (!started)
		ret = busbar_progress_hold();
	if (ret && device_count)
		log_error("progress thread: %s", strerror(-ret));
	started |= !ret;
out:
	pthread_mutex_unlock(&devices_lock);
	return ret;
}

/* ---- removal ---- */

int cma_device_join(struct cma_device *d, struct cma_device_user *user)
{
	int ret = 0;

	pthread_mutex_lock(&devices_lock);
	if (d->removed) {
		ret = -ENODEV;
	} else {
		list_remove(&user->entry);
		list_push(&d->users, &user->entry);
	}
	pthread_mutex_unlock(&devices_lock);
	return ret;
}

void cma_device_leave(struct cma_device_user *user)
{
	pthread_mutex_lock(&devices_lock);
	list_remove(&user->entry);
	while (removing == user && !busbar_progress_is_self())
		pthread_cond_wait(&removed_one, &devices_lock);
	pthread_mutex_unlock(&devices_lock);
}

/* Takes the next user of a failed device out of its list; NULL: none is left. */
static struct cma_device_user *remove_next(struct cma_device *d)
{
	struct cma_device_user *user = NULL;
	struct list *entry;

	pthread_mutex_lock(&devices_lock);
	entry = list_pop(&d->users);
	if (entry)
		user = list_entry(entry, struct cma_device_user, entry);
	removing = user;
	pthread_cond_broadcast(&removed_one);
	pthread_mutex_unlock(&devices_lock);
	return user;
}

/* On the progress thread. */
static void device_event(void *arg, uint32_t events)
{
	struct cma_device *d = arg;
	struct cma_device_user *user;

	if (!busbar_context_failed(d->verbs))
		return;
	busbar_progress_unwatch(d->verbs->async_fd);
	pthread_mutex_lock(&devices_lock);
	devices_replace_failed();
	pthread_mutex_unlock(&devices_lock);
	while ((user = remove_next(d)))
		user->removed(user);
}

/* ---- looking devices up ---- */

bool cma_devices_present(void)
{
	bool present;

	pthread_mutex_lock(&devices_lock);
	present = device_count > 0;
	pthread_mutex_unlock(&devices_lock);
	return present;
}

bool cma_devices_have_datagrams(void)
{
	bool have = false;

	pthread_mutex_lock(&devices_lock);
	list_for_each(d, &devices, struct cma_device, entry)
		have |= d->datagrams;
	pthread_mutex_unlock(&devices_lock);
	return have;
}

struct ibv_context **cma_devices_contexts(unsigned *count)
{
	struct ibv_context **out;
	unsigned i = 0;

	pthread_mutex_lock(&devices_lock);
	out = calloc(device_count + 1, sizeof(*out));
	if (out)
		list_for_each(d, &devices, struct cma_device, entry)
			out[i++] = d->verbs;
	pthread_mutex_unlock(&devices_lock);
	*count = i;
	return out;
}

struct ibv_xrcd *cma_device_xrcd(struct cma_device *d)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	pthread_mutex_lock(&devices_lock);
	if (!d->xrcd)
		d->xrcd = ibv_open_xrcd(d->verbs, &attr);
	xrcd = d->xrcd;
	pthread_mutex_unlock(&devices_lock);
	return xrcd;
}

/* Finds the GID's entry; RoCE v2 is preferred to RoCE v1 and InfiniBand. */
static bool gid_find(struct cma_device *d, const union ibv_gid *gid,
		     struct ibv_gid_entry *entries, struct cma_gid_place *place)
{
	ssize_t n = ibv_query_gid_table(d->verbs, entries, GIDS_MAX, 0);
	const struct ibv_gid_entry *best = NULL;
	struct ibv_port_attr port;

	for (ssize_t i = 0; i < n; i++) {
		if (memcmp(&entries[i].gid, gid, sizeof(*gid)))
			continue;
		if (!best || entries[i].gid_type == IBV_GID_TYPE_ROCE_V2)
			best = &entries[i];
		if (best->gid_type == IBV_GID_TYPE_ROCE_V2)
			break;
	}
	if (!best || ibv_query_port(d->verbs, (uint8_t)best->port_num, &port))
		return false;
	place->device = d;
	place->port_num = (uint8_t)best->port_num;
	place->index = (uint8_t)best->gid_index;
	/* What the way of the connection takes is seen later (cma_interface_mtu()). */
	place->mtu = (uint8_t)(busbar_subnet_on() ? port.active_mtu : port.max_mtu);
	place->interface = best->ndev_ifindex;
	place->gid = *gid;
	return true;
}

/* The only GID of an iWARP device is no address; its addresses are those of the host. */
static bool host_find(struct cma_device *d, const struct sockaddr *addr, const union ibv_gid *gid,
		      struct cma_gid_place *place)
{
	struct ibv_port_attr port;

	if (cma_addr_check_local(addr) || ibv_query_port(d->verbs, 1, &port))
		return false;
	*place = (struct cma_gid_place){ .device = d, .port_num = 1, .mtu = (uint8_t)port.max_mtu,
					 .gid = *gid };
	return true;
}

static bool has_transport(const struct cma_device *d, enum ibv_transport_type transport)
{
	return transport == IBV_TRANSPORT_UNKNOWN ||
	       d->verbs->device->transport_type == transport;
}

bool cma_devices_have(enum ibv_transport_type transport)
{
	bool have = false;

	pthread_mutex_lock(&devices_lock);
	list_for_each(d, &devices, struct cma_device, entry)
		have |= has_transport(d, transport);
	pthread_mutex_unlock(&devices_lock);
	return have;
}

int cma_device_find(const struct sockaddr *addr, enum ibv_transport_type transport,
		    struct cma_gid_place *place)
{
	struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof(*entries));
	struct sockaddr_storage loopback;
	union ibv_gid gid;
	int ret = -ENODEV;

	if (!entries)
		return -ENOMEM;
	cma_addr_to_gid(addr, &gid);
	pthread_mutex_lock(&devices_lock);
	devices_replace_failed();
	list_for_each(d, &devices, struct cma_device, entry)
		if (ret && has_transport(d, transport) &&
		    (d->verbs->device->transport_type == IBV_TRANSPORT_IWARP ?
			     host_find(d, addr, &gid, place) :
			     gid_find(d, &gid, entries, place)))
			ret = 0;
	pthread_mutex_unlock(&devices_lock);
	free(entries);
	/* All of 127.0.0.0/8 is local; the GID table has only the interface's address. */
	cma_addr_copy(&loopback, addr);
	cma_addr_set_loopback((struct sockaddr *)&loopback);
	if (ret && cma_addr_is_loopback(addr) &&
	    !cma_addr_same_host(addr, (struct sockaddr *)&loopback))
		return cma_device_find((struct sockaddr *)&loopback, transport, place);
	return ret;
}

uint8_t cma_interface_mtu(uint32_t interface)
{
	struct ifreq request = { .ifr_mtu = 0 };
	uint8_t mtu = IBV_MTU_256;
	int fd, ret;

	/* The port's is all there is to it. */
	if (busbar_subnet_on())
		return IBV_MTU_4096;
	if (!if_indextoname(interface, request.ifr_name))
		return IBV_MTU_1024;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return IBV_MTU_1024;
	ret = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	if (ret)
		return IBV_MTU_1024;
	while (mtu < IBV_MTU_4096 && (256 << mtu) + HEADERS <= request.ifr_mtu)
		mtu++;
	return mtu;
}
