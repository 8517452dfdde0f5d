/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners: callers send their request, for which a child is made. */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/id/id.h"
#include "rdmacm/id/port.h"
#include "rdmacm/mpa/mpa.h"
#include "rdmacm/resolve/resolve.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "verbs/private.h"

/* Callers that have not sent a whole request: each has a few seconds for it. */
#define CALLERS_MAX 256u
/* Accepted in one go. */
#define ACCEPTS 64
/* TCP connections that wait to be accepted. The identifier's backlog is of requests. */
#define WAITING_MAX 1024
/* Behind a failure to accept one. */
#define PAUSE_NS (50 * UINT64_C(1000000))

/* A caller whose request has not come as a whole. */
struct mpa_caller {
	struct list entry; /* in mpa_side.callers; under the listener's lock */
	struct mpa_side *listener;
	bool ends; /* mpa_callers_settle() frees it */
	struct mpa_call call;
	struct progress_timer timer;
};

/* ---- children ---- */

/* Addresses and device. 0 or a negative errno. */
static int child_address(struct cma_id *child, int fd)
{
	struct rdma_addr *to = &child->pub.route.addr;
	struct sockaddr_storage local, peer;
	socklen_t length = sizeof(local);
	struct cma_gid_place place;
	int ret;

	if (getsockname(fd, (struct sockaddr *)&local, &length))
		return -errno;
	length = sizeof(peer);
	if (getpeername(fd, (struct sockaddr *)&peer, &length))
		return -errno;
	/* IPv4 as such, if it came to an IPv6 socket. */
	cma_addr_copy(&to->src_storage, (struct sockaddr *)&local);
	cma_addr_copy(&to->dst_storage, (struct sockaddr *)&peer);
	ret = cma_device_find(&to->src_addr, IBV_TRANSPORT_IWARP, &place);
	if (!ret)
		ret = cma_id_bind_device(child, &place);
	if (ret)
		return ret;
	cma_addr_to_gid(&to->dst_addr, &to->addr.ibaddr.dgid);
	child->network = true;
	return cma_route_fill(child);
}

static int report_request(struct cma_id *child)
{
	struct mpa_side *s = mpa_side_of(child);
	const struct iwarp_mpa *mpa = &s->call.setup.peer;
	struct cma_event *ev = cma_event_new(child->listener, &child->pub,
					     RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_conn_param *p;

	if (!ev)
		return -ENOMEM;
	p = &ev->pub.param.conn;
	ev->pub.listen_id = &child->listener->pub;
	ev->deliver = cma_request_deliver;
	p->private_data = ev->private_data;
	p->private_data_len = (uint8_t)mpa->private_bytes;
	if (mpa->private_bytes)
		memcpy(ev->private_data, mpa->private_data, mpa->private_bytes);
	/* Revision 1 says nothing about READs. */
	child->conn.responder_resources =
		(uint8_t)(mpa->enhanced ? MIN(mpa->ord, MPA_READS_MAX) : MPA_READS_MAX);
	child->conn.initiator_depth =
		(uint8_t)(mpa->enhanced ? MIN(mpa->ird, MPA_READS_MAX) : MPA_READS_MAX);
	p->responder_resources = child->conn.responder_resources;
	p->initiator_depth = child->conn.initiator_depth;
	cma_event_post(ev);
	return 0;
}

/* Makes a child of the locked listener, which takes the call. 0 or a negative errno. */
static int make_child(struct mpa_side *listener, struct mpa_call *call)
{
	static struct log_limit refusals;
	struct cma_id *id = listener->id, *child;
	struct mpa_side *s;
	int ret;

	if (call->setup.peer.private_bytes > UINT8_MAX)
		return -EMSGSIZE;
	if (id->unclaimed_count >= id->backlog) {
		log_limited(LOG_WARN, &refusals, clock_monotonic_ns_slow(),
			    "port %u: %u requests wait for the application (its backlog), one refused",
			    cma_addr_port(&id->pub.route.addr.src_addr), id->unclaimed_count);
		return -ENOBUFS;
	}
	ret = cma_id_create(id->pub.channel, id->pub.context, id->pub.ps, IBV_QPT_RC, &child);
	if (ret)
		return ret;
	pthread_mutex_lock(&child->lock);
	ret = child_address(child, call->fd);
	if (ret)
		goto err;
	child->listener = id;
	child->begun = true;
	s = mpa_side_of(child);
	s->call = *call;
	/* Private data of the request lie in the structure itself. */
	s->call.setup.peer.private_data =
		s->call.setup.in + (call->setup.peer.private_data - call->setup.in);
	s->state = MPA_CALLED;
	list_push(&id->unclaimed, &child->sibling);
	id->unclaimed_count++;
	ret = report_request(child);
	if (!ret) {
		call->fd = -1;
		pthread_mutex_unlock(&child->lock);
		return 0;
	}
	s->call.fd = -1;
	list_remove(&child->sibling);
	id->unclaimed_count--;
err:
	pthread_mutex_unlock(&child->lock);
	cma_id_free(child);
	return ret;
}

/* ---- callers ---- */

/* On the progress thread, with the listener's lock. */
static void caller_free(struct mpa_caller *c)
{
	list_remove(&c->entry);
	c->listener->caller_count--;
	if (c->call.fd >= 0)
		busbar_progress_unwatch_async(c->call.fd);
	busbar_progress_timer_cancel(&c->timer);
	mpa_call_close(&c->call);
	free(c);
}

/* The request is there, or never will be. */
static void caller_moved(struct mpa_caller *c)
{
	struct mpa_side *listener = c->listener;
	int fd = c->call.fd, ret;

	if (c->call.result || c->call.setup.state == IWARP_SETUP_FAILED) {
		log_debug("a caller is refused: %s", strerror(-c->call.result));
		caller_free(c);
		return;
	}
	if (c->call.setup.state != IWARP_SETUP_DECIDING)
		return;
	busbar_progress_unwatch_async(fd);
	ret = make_child(listener, &c->call);
	if (ret) {
		log_debug("a request is refused: %s", strerror(-ret));
		iwarp_setup_reject(&c->call.setup, NULL, 0);
		mpa_call_step(&c->call);
	}
	caller_free(c);
}

static void caller_step(struct mpa_caller *c, bool expired)
{
	pthread_mutex_t *lock = &c->listener->id->lock;

	pthread_mutex_lock(lock);
	if (!c->ends && (expired ? mpa_call_expire(&c->call) : mpa_call_step(&c->call)))
		caller_moved(c);
	pthread_mutex_unlock(lock);
}

static void on_caller(void *arg, uint32_t events)
{
	(void)events;
	caller_step(arg, false);
}

static void on_caller_timer(struct progress_timer *t)
{
	caller_step(container_of(t, struct mpa_caller, timer), true);
}

/* Did it come to an address by which this host may be reached? */
static bool is_allowed(int fd)
{
	struct sockaddr_storage local, plain;
	socklen_t length = sizeof(local);
	union ibv_gid gid;

	if (getsockname(fd, (struct sockaddr *)&local, &length))
		return false;
	cma_addr_copy(&plain, (struct sockaddr *)&local);
	cma_addr_to_gid((struct sockaddr *)&plain, &gid);
	return busbar_network_allows(&gid);
}

static void caller_new(struct mpa_side *s, int fd)
{
	struct mpa_caller *c;

	if (!is_allowed(fd)) {
		close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c || mpa_call_take(&c->call, fd)) {
		if (!c)
			close(fd);
		free(c);
		return;
	}
	c->listener = s;
	busbar_progress_timer_init(&c->timer, on_caller_timer);
	list_push(&s->callers, &c->entry);
	s->caller_count++;
	if (busbar_progress_watch(fd, EPOLLIN, on_caller, c)) {
		list_remove(&c->entry);
		s->caller_count--;
		mpa_call_close(&c->call);
		free(c);
		return;
	}
	busbar_progress_timer_arm(&c->timer, mpa_call_deadline(&c->call));
}

/* The oldest caller, which has not sent its request, makes room for a new one. */
static void make_room(struct mpa_side *s)
{
	struct list *oldest = s->callers.next;

	if (s->caller_count >= CALLERS_MAX)
		caller_free(list_entry(oldest, struct mpa_caller, entry));
}

/* The process has no descriptors left, or the kernel no memory: callers stay in the socket's queue,
 * and the socket ready, until the timer expires. */
static void listener_pause(struct mpa_side *s)
{
	static struct log_limit pauses;

	log_limited(LOG_WARN, &pauses, clock_monotonic_ns_slow(),
		    "port %u: cannot accept a caller, trying again soon: %s",
		    cma_addr_port(&s->id->pub.route.addr.src_addr), strerror(errno));
	busbar_progress_rewatch(s->listen_fd, 0);
	busbar_progress_timer_arm(&s->timer, clock_monotonic_ns_slow() + PAUSE_NS);
}

void mpa_listen_on(struct mpa_side *s)
{
	if (s->listen_fd >= 0 && busbar_progress_rewatch(s->listen_fd, EPOLLIN))
		busbar_progress_timer_arm(&s->timer, clock_monotonic_ns_slow() + PAUSE_NS);
}

static void on_callers(void *arg, uint32_t events)
{
	struct mpa_side *s = arg;

	(void)events;
	pthread_mutex_lock(&s->id->lock);
	for (unsigned i = 0; i < ACCEPTS && s->listen_fd >= 0; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			       errno == ENOMEM))
			listener_pause(s);
		if (fd < 0)
			break;
		make_room(s);
		caller_new(s, fd);
	}
	pthread_mutex_unlock(&s->id->lock);
}

/* ---- listeners ---- */

/* A socket at the identifier's address, or a negative errno. */
static int open_socket(const struct cma_id *id)
{
	const struct sockaddr *at = &id->pub.route.addr.src_addr;
	int fd, ret, on = 1, v6_only = id->v6_only;

	if (at->sa_family != AF_INET && at->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
	if (!bind(fd, at, cma_addr_len(at)) && !listen(fd, WAITING_MAX))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int mpa_listen(struct mpa_side *s)
{
	int fd = open_socket(s->id), ret;

	if (fd < 0) {
		char text[CMA_ADDR_TEXT];

		log_warn("listening by iWARP at %s port %u: %s",
			 cma_addr_text(&s->id->pub.route.addr.src_addr, text),
			 cma_addr_port(&s->id->pub.route.addr.src_addr), strerror(-fd));
		return fd;
	}
	ret = busbar_progress_watch(fd, EPOLLIN, on_callers, s);
	if (ret) {
		close(fd);
		return ret;
	}
	s->listen_fd = fd;
	s->state = MPA_LISTENING;
	return 0;
}

/* The next caller, which ends; NULL: there is none. */
static struct mpa_caller *next_ends(struct mpa_side *s)
{
	struct mpa_caller *c = NULL;

	pthread_mutex_lock(&s->id->lock);
	if (!list_empty(&s->callers)) {
		c = list_entry(s->callers.next, struct mpa_caller, entry);
		c->ends = true;
	}
	pthread_mutex_unlock(&s->id->lock);
	return c;
}

void mpa_callers_settle(struct mpa_side *s)
{
	struct mpa_caller *c;

	while ((c = next_ends(s))) {
		busbar_progress_unwatch(c->call.fd);
		busbar_progress_timer_cancel(&c->timer);
		mpa_call_close(&c->call);
		pthread_mutex_lock(&s->id->lock);
		caller_free(c);
		pthread_mutex_unlock(&s->id->lock);
	}
}

static void close_listener(struct mpa_side *s)
{
	const int fd = s->listen_fd;

	s->listen_fd = -1;
	if (fd >= 0)
		close(fd);
}

void mpa_unlisten(struct mpa_side *s)
{
	close_listener(s);
	while (!list_empty(&s->callers))
		caller_free(list_entry(s->callers.next, struct mpa_caller, entry));
}

void mpa_side_forked(struct mpa_side *s)
{
	struct list *entry;

	/* The name of the port, too: callers would reach nobody. */
	if (s->listen_fd >= 0)
		cma_port_release(s->id);
	close_listener(s);
	mpa_call_close(&s->call);
	s->watched = false;
	while ((entry = list_pop(&s->callers)))
		mpa_call_close(&list_entry(entry, struct mpa_caller, entry)->call);
	s->caller_count = 0;
}
