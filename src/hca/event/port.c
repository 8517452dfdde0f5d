/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of interfaces and addresses, reported by the kernel (rtnetlink(7)).
 *
 * A message only causes the state to be read again, so a lost one does no harm. Messages are
 * read on the progress thread. Raising events needs process.lock, which threads hold that
 * wait for the progress thread. So a timer raises them, and only tries to take the lock.
 */
#define LOG_ROOM "hca"
#include "hca/event/port.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/event/async.h"
#include "hca/host/gid.h"
#include "hca/host/subnet.h"
#include "hca/object/context.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define RETRY_NS 1000000

static void changed(struct progress_timer *t);

/* Only the progress thread accesses it while it is watched; hca_port_start() and hca_port_stop()
 * are called with process.lock held. */
static struct {
	int fd;
	bool up;
	uint64_t gids;
	/* Events that are due, bits by enum ibv_event_type. */
	atomic_uint due;
	struct progress_timer timer;
} port = {
	.fd = -1,
	.timer = PROGRESS_TIMER(port.timer, changed),
};

/* All contexts are told. process.lock is held. */
static void tell(enum ibv_event_type type)
{
	struct list *contexts = &hca_process.contexts;

	list_for_each(ctx, contexts, struct hca_context, entry)
		hca_async_port_event(ctx, type);
}

/* ---- a subnet ---- */

/* In the order in which they are told: a port is active last. */
static const enum ibv_event_type of_ports[] = {
	IBV_EVENT_PORT_ERR, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE, IBV_EVENT_GID_CHANGE,
	IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_PORT_ACTIVE,
};

/* process.lock is held. */
static void tell_due(void)
{
	const unsigned due = atomic_exchange(&port.due, 0);

	for (unsigned i = 0; i < ARRAY_SIZE(of_ports); i++)
		if (due & 1u << of_ports[i])
			tell(of_ports[i]);
}

static unsigned changes(const struct plug_port *was, const struct plug_port *is)
{
	const bool was_up = was->state == IBV_PORT_ACTIVE, up = is->state == IBV_PORT_ACTIVE;
	unsigned due = 0;

	if (up != was_up)
		due |= 1u << (up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	if (is->lid != was->lid || is->lmc != was->lmc)
		due |= 1u << IBV_EVENT_LID_CHANGE;
	if (is->sm_lid != was->sm_lid || is->sm_sl != was->sm_sl)
		due |= 1u << IBV_EVENT_SM_CHANGE;
	if (memcmp(is->pkeys, was->pkeys, sizeof(is->pkeys)) != 0)
		due |= 1u << IBV_EVENT_PKEY_CHANGE;
	if (is->subnet_prefix != was->subnet_prefix ||
	    memcmp(is->guids, was->guids, sizeof(is->guids)) != 0)
		due |= 1u << IBV_EVENT_GID_CHANGE;
	if (is->client_reregister)
		due |= 1u << IBV_EVENT_CLIENT_REREGISTER;
	return due;
}

static void make_due(unsigned due)
{
	if (!due)
		return;
	atomic_fetch_or(&port.due, due);
	progress_timer_arm(&port.timer, progress_now_ns());
}

void hca_port_is_now(const struct plug_port *is)
{
	struct plug_port was;

	hca_subnet_port(&was);
	hca_subnet_set_port(is);
	make_due(changes(&was, is));
}

void hca_port_event(enum ibv_event_type type)
{
	for (unsigned i = 0; i < ARRAY_SIZE(of_ports); i++)
		if (of_ports[i] == type)
			make_due(1u << type);
}

/* ---- interfaces ---- */

static void changed(struct progress_timer *t)
{
	uint64_t gids;
	bool up;

	if (pthread_mutex_trylock(&hca_process.lock)) {
		progress_timer_arm(t, progress_now_ns() + RETRY_NS);
		return;
	}
	if (hca_subnet_on()) {
		tell_due();
	} else if (!hca_gid_digest(&gids, &up)) {
		if (gids != port.gids)
			tell(IBV_EVENT_GID_CHANGE);
		if (up != port.up)
			tell(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
		port.gids = gids;
		port.up = up;
	}
	pthread_mutex_unlock(&hca_process.lock);
}

static void readable(void *arg, uint32_t events)
{
	char message[4096];

	/* ENOBUFS: messages were lost; the socket can be read further. */
	while (recv(port.fd, message, sizeof(message), MSG_DONTWAIT | MSG_TRUNC) > 0 ||
	       errno == EINTR || errno == ENOBUFS)
		;
	progress_timer_arm(&port.timer, progress_now_ns());
}

void hca_port_start(void)
{
	const struct sockaddr_nl groups = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int ret = 0;

	if (hca_subnet_on())
		return;
	port.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 NETLINK_ROUTE);
	if (port.fd < 0 || bind(port.fd, (const struct sockaddr *)&groups, sizeof(groups)))
		ret = -errno;
	/* After the socket was opened, so that no change in between is missed. */
	if (!ret)
		ret = hca_gid_digest(&port.gids, &port.up);
	if (!ret)
		ret = progress_watch(port.fd, EPOLLIN, readable, NULL);
	if (!ret)
		return;
	log_debug("changes of interfaces are not told: %s", strerror(-ret));
	if (port.fd >= 0)
		close(port.fd);
	port.fd = -1;
}

void hca_port_stop(void)
{
	progress_timer_cancel(&port.timer);
	atomic_store(&port.due, 0);
	if (port.fd < 0)
		return;
	progress_unwatch(port.fd);
	progress_timer_cancel(&port.timer);
	close(port.fd);
	port.fd = -1;
}

void hca_port_forked(void)
{
	if (port.fd >= 0)
		close(port.fd);
	port.fd = -1;
	atomic_store(&port.due, 0);
	progress_timer_init(&port.timer, changed);
}
