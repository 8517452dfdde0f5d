/* SPDX-License-Identifier: BSD-2-Clause */
/* Calling and listening: the link to a listener, callers of this host, the timer. */
#define LOG_ROOM "rdmacm"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/cm/cm.h"
#include "rdmacm/id/port.h"
#include "util/clock.h"
#include "util/log.h"
#include "verbs/private.h"

/* How long a listener does not accept after there was no free descriptor. */
#define PAUSE_NS (50 * UINT64_C(1000000))
#define BATCH 64

/* The interface of a link-local destination; 0: it is not link-local. */
static uint32_t scope_of(const struct cma_id *id)
{
	const struct rdma_addr *addr = &id->pub.route.addr;
	const uint8_t *gid = addr->addr.ibaddr.dgid.raw;

	if (gid[0] != 0xfe || (gid[1] & 0xc0) != 0x80)
		return 0;
	if (addr->dst_addr.sa_family == AF_INET6 && addr->dst_sin6.sin6_scope_id)
		return addr->dst_sin6.sin6_scope_id;
	return id->interface;
}

static struct cma_link *network_link(const struct cma_id *id)
{
	const struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
	struct hca_gsi_address way = { .interface = scope_of(id) };

	memcpy(way.source, ib->sgid.raw, sizeof(way.source));
	memcpy(way.destination, ib->dgid.raw, sizeof(way.destination));
	return link_network(&way);
}

int cma_call(struct cma_id *id)
{
	struct abstract_name names[CMA_PORT_NAMES];
	struct cma_link *link = NULL;
	int ret, count;

	if (id->network) {
		link = network_link(id);
		ret = link ? 0 : -ENOMEM;
	} else {
		count = cma_port_names(id->pub.ps, &id->pub.route.addr.dst_addr, names);
		ret = link_call(names, count, &link);
	}
	if (ret)
		return ret;
	ret = route_attach(cma_side_of(id), link);
	link_put(link);
	return ret == -ECONNRESET && !id->network ? -EAGAIN : ret;
}

static void call_again(struct cma_id *id, uint64_t now)
{
	struct cma_side *s = cma_side_of(id);
	int ret = cma_call(id);

	if ((ret == -EAGAIN && s->cm.state != CM_ANSWERED &&
	     s->cm.state != CM_DONE) ||
	    (ret == -ECONNREFUSED && now < s->listener_until_ns)) {
		if (s->cm.deadline_ns && now >= s->cm.deadline_ns)
			cma_conn_tick(id, now);
		return;
	}
	s->link_retry = false;
	if (ret)
		cma_conn_input(id, ret == -EACCES ? CM_REFUSED : CM_NO_LISTENER,
			       NULL);
	else
		link_send(s->link, &s->cm.sent);
}

/* ---- listening ---- */

/* Behind a pause; again later, when the kernel has no memory to watch it. */
static void listener_go_on(struct cma_side *listener)
{
	int ret = listener->paused ? busbar_progress_rewatch(listener->id->port_fd, EPOLLIN) : 0;

	listener->paused = ret == -ENOMEM || ret == -ENOSPC;
	if (listener->paused)
		busbar_progress_timer_arm(&listener->timer,
					  clock_monotonic_ns_slow() + PAUSE_NS);
}

void cma_call_expired(struct progress_timer *t)
{
	struct cma_side *s = container_of(t, struct cma_side, timer);
	struct cma_id *id = s->id;
	uint64_t now = clock_monotonic_ns_slow();

	pthread_mutex_lock(&id->lock);
	s->armed_ns = 0;
	if (s->cm.state == CM_LISTEN) {
		listener_go_on(s);
	} else if (s->link_retry) {
		call_again(id, now);
		cma_side_update(s);
	} else {
		cma_conn_tick(id, now);
		cma_side_update(s);
	}
	pthread_mutex_unlock(&id->lock);
}

/* The caller stays in the socket's queue; listening goes on when the timer expires. */
static void listener_pause(struct cma_side *listener)
{
	log_warn("port %u: cannot accept a caller, trying again soon: %s",
		 cma_addr_port(&listener->id->pub.route.addr.src_addr),
		 strerror(errno));
	listener->paused = true;
	busbar_progress_rewatch(listener->id->port_fd, 0);
	busbar_progress_timer_arm(&listener->timer,
				  clock_monotonic_ns_slow() + PAUSE_NS);
}

/* On the progress thread. */
static void listener_ready(void *arg, uint32_t events)
{
	struct cma_side *listener = arg;

	pthread_mutex_lock(&listener->id->lock);
	for (int i = 0; i < BATCH && listener->cm.state == CM_LISTEN; i++) {
		char byte;
		int fd = accept4(listener->id->port_fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE ||
			       errno == ENOBUFS || errno == ENOMEM))
			listener_pause(listener);
		if (fd < 0)
			break;
		/* Most callers only read which process has the port, close the
		 * socket and use an existing link. */
		if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
			log_debug("a caller uses an existing link");
			close(fd);
		}
		else
			link_accept(fd);
	}
	pthread_mutex_unlock(&listener->id->lock);
}

int cma_call_listen(struct cma_id *id)
{
	struct cma_side *s = cma_side_of(id);
	int ret;

	if (listen(id->port_fd, (int)id->backlog))
		return -errno;
	/* First, so that no request comes which finds no listener. It waits for the lock. */
	route_listen(s);
	ret = cma_service_listen(s);
	if (ret)
		goto err_route;
	ret = busbar_progress_watch(id->port_fd, EPOLLIN, listener_ready, s);
	if (ret)
		goto err_service;
	return 0;

err_service:
	cma_service_give(s);
err_route:
	route_unlisten(s);
	return ret;
}

void cma_call_unlisten(struct cma_id *id)
{
	struct cma_side *s = cma_side_of(id);

	busbar_progress_unwatch(id->port_fd);
	cma_service_give(s);
	route_forget(s);
	s->paused = false;
}
