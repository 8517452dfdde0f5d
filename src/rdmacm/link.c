/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: CM messages between processes of one host, one packet each, over a
 * connected AF_UNIX socket. The kernel delivers them in order and without loss
 * and says at once when the other end is gone, so nothing is sent twice.
 *
 * A peer's packets are not trusted: they are of the right length and form, and
 * the peer runs as the same user (or one of the two is root), or the link ends.
 */
#define LOG_ROOM "rdmacm"
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdmacm/cma.h"
#include "util/clock.h"
#include "util/log.h"
#include "verbs/private.h"

#define NSEC_PER_MSEC UINT64_C(1000000)
/* Between two tries of a listener that is busy or not there. */
#define RETRY_NS (5 * NSEC_PER_MSEC)
/* For a caller that connected and says nothing. */
#define SILENCE_NS (5 * NSEC_PER_SEC)
/* Without a descriptor for a caller. */
#define PAUSE_NS (50 * NSEC_PER_MSEC)
#define INCOMING_MAX 256
#define BATCH 16

/* A connection to a listener whose request has not come yet. */
struct cma_incoming {
	struct list entry;       /* of the listener; its lock */
	struct cma_id *listener;
	int fd;
	uint64_t deadline_ns;
};

static int peer_check(int fd, const char *who)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	uid_t self = geteuid();

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	if (cred.uid == self || cred.uid == 0 || self == 0)
		return 0;
	log_warn("%s refused: process %d runs as user %u, we as %u; both must be the same or one be root",
		 who, (int)cred.pid, (unsigned)cred.uid, (unsigned)self);
	return -EACCES;
}

/* A message, -EAGAIN: none now, or another error: the link is over. */
static int packet_read(int fd, struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE + 1];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* An error of the past is reported first, packets before it come next. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (wire_cm_decode(bytes, (size_t)n, mad)) {
		log_warn("peer sent %zd bytes that are no cm message; link closed",
			 n);
		return -EBADMSG;
	}
	return 0;
}

static void link_drop(struct cma_id *id)
{
	int fd = id->link_fd;

	cma_link_detach(id);
	close(fd);
}

/* On the progress thread. */
static void link_ready(void *arg, uint32_t events)
{
	struct cma_id *id = arg;
	struct cm_mad mad;
	int ret = 0;

	pthread_mutex_lock(&id->lock);
	for (int i = 0; i < BATCH && id->link_fd >= 0 && !ret; i++) {
		ret = packet_read(id->link_fd, &mad);
		if (!ret && !cma_conn_accepts(id, &mad)) {
			log_debug("%s for another connection dropped",
				  wire_cm_name(mad.type));
			continue;
		}
		if (!ret)
			cma_conn_input(id, cm_state_input_of(&mad), &mad);
	}
	if (ret && ret != -EAGAIN && id->link_fd >= 0) {
		link_drop(id);
		cma_conn_input(id, CM_PEER_GONE, NULL);
	}
	pthread_mutex_unlock(&id->lock);
}

int cma_link_send(struct cma_id *id, const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE];
	int ret = wire_cm_encode(mad, bytes);

	if (ret) {
		log_error("%s cannot be encoded", wire_cm_name(mad->type));
		return ret;
	}
	if (id->link_fd < 0)
		return -ENOTCONN;
	/* When the peer is gone the watch says so; nothing to do here. */
	if (send(id->link_fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

int cma_link_attach(struct cma_id *id, int fd)
{
	int ret;

	id->link_fd = fd;
	ret = busbar_progress_watch(fd, EPOLLIN, link_ready, id);
	if (ret) {
		log_error("link: cannot be watched: %s", strerror(-ret));
		id->link_fd = -1;
	}
	return ret;
}

void cma_link_detach(struct cma_id *id)
{
	busbar_progress_unwatch(id->link_fd);
	id->link_fd = -1;
}

int cma_link_connect(struct cma_id *id)
{
	struct sockaddr_un names[CMA_PORT_NAMES];
	socklen_t lens[CMA_PORT_NAMES];
	int count = cma_port_names(id->pub.ps, &id->pub.route.addr.dst_addr,
				   names, lens);
	int ret = -ECONNREFUSED;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	for (int i = 0; i < count && ret == -ECONNREFUSED; i++)
		ret = connect(fd, (struct sockaddr *)&names[i], lens[i]) ?
			      -errno : 0;
	if (!ret)
		ret = peer_check(fd, "listener");
	if (!ret)
		ret = cma_link_attach(id, fd);
	if (ret)
		close(fd);
	return ret;
}

/* ---- timers ---- */

static void incoming_sweep(struct cma_id *listener, uint64_t now);

static void link_retry(struct cma_id *id, uint64_t now)
{
	int ret = cma_link_connect(id);

	if ((ret == -EAGAIN && now < id->deadline_ns) ||
	    (ret == -ECONNREFUSED && now < id->patience_ns)) {
		busbar_progress_timer_arm(&id->timer, now + RETRY_NS);
		return;
	}
	id->link_retry = false;
	if (!ret) {
		struct cm_step again = { .send = cma_id_is_datagram(id) ?
							 CM_SIDR_REQ : CM_REQ };

		cma_conn_send(id, &again);
		busbar_progress_timer_arm(&id->timer, id->deadline_ns);
	} else if (ret == -EAGAIN) {
		cma_conn_input(id, CM_TIMEOUT, NULL);
	} else {
		cma_conn_input(id, CM_NO_LISTENER, NULL);
	}
}

/* On the progress thread. */
static void link_timeout(struct progress_timer *t)
{
	struct cma_id *id = container_of(t, struct cma_id, timer);
	uint64_t now = clock_monotonic_ns_slow();

	pthread_mutex_lock(&id->lock);
	if (id->state == CM_LISTEN) {
		if (id->paused)
			busbar_progress_rewatch(id->port_fd, EPOLLIN);
		id->paused = false;
		incoming_sweep(id, now);
	} else if (id->link_retry) {
		link_retry(id, now);
	} else if (id->deadline_ns && now + id->interval_ns / 2 >= id->deadline_ns) {
		/* Else it was armed anew while this call waited for the lock. */
		id->deadline_ns = 0;
		cma_conn_input(id, CM_TIMEOUT, NULL);
	}
	pthread_mutex_unlock(&id->lock);
}

void cma_link_timer_init(struct cma_id *id)
{
	busbar_progress_timer_init(&id->timer, link_timeout);
}

void cma_link_timer(struct cma_id *id, uint64_t interval_ns)
{
	id->interval_ns = interval_ns;
	/* One that is off may still fire once; link_timeout() ignores it. */
	id->deadline_ns = interval_ns ? clock_monotonic_ns_slow() + interval_ns : 0;
	if (id->link_retry)
		busbar_progress_timer_arm(&id->timer,
					  clock_monotonic_ns_slow() + RETRY_NS);
	else if (interval_ns)
		busbar_progress_timer_arm(&id->timer, id->deadline_ns);
}

/* ---- listening ---- */

static void incoming_drop(struct cma_incoming *in)
{
	list_remove(&in->entry);
	in->listener->incoming_count--;
	busbar_progress_unwatch(in->fd);
	close(in->fd);
	free(in);
}

static void incoming_sweep(struct cma_id *listener, uint64_t now)
{
	list_for_each_safe(in, &listener->incoming, struct cma_incoming, entry) {
		if (in->deadline_ns > now)
			continue;
		log_warn("caller said nothing for %u s; link closed",
			 (unsigned)(SILENCE_NS / NSEC_PER_SEC));
		incoming_drop(in);
	}
	if (!list_empty(&listener->incoming))
		busbar_progress_timer_arm(&listener->timer, now + SILENCE_NS / 4);
}

/* The request of a new link: becomes a child, or is refused and closed. */
static void request_take(struct cma_id *listener, int fd,
			 const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE];
	struct cm_mad answer;
	int reason = cma_conn_request(listener, mad, fd);

	if (!reason)
		return;
	if (!cma_conn_refusal(mad, reason, &answer) &&
	    !wire_cm_encode(&answer, bytes) &&
	    send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("refusal not sent: %s", strerror(errno));
	close(fd);
}

/* On the progress thread: the request of a caller that was slow with it. */
static void incoming_ready(void *arg, uint32_t events)
{
	struct cma_incoming *in = arg;
	struct cma_id *listener = in->listener;
	struct cm_mad mad;
	int ret;

	pthread_mutex_lock(&listener->lock);
	/* When the listener closes, cma_link_close() takes care of it. */
	if (listener->state != CM_LISTEN)
		goto out;
	ret = packet_read(in->fd, &mad);
	if (ret == -EAGAIN)
		goto out;
	if (ret) {
		incoming_drop(in);
		goto out;
	}
	list_remove(&in->entry);
	listener->incoming_count--;
	busbar_progress_unwatch(in->fd);
	request_take(listener, in->fd, &mad);
	free(in);
out:
	pthread_mutex_unlock(&listener->lock);
}

static void incoming_add(struct cma_id *listener, int fd)
{
	struct cma_incoming *in = NULL;

	if (listener->incoming_count < INCOMING_MAX)
		in = calloc(1, sizeof(*in));
	if (!in) {
		log_warn("too many callers that say nothing; link closed");
		goto err_close;
	}
	in->listener = listener;
	in->fd = fd;
	in->deadline_ns = clock_monotonic_ns_slow() + SILENCE_NS;
	if (busbar_progress_watch(fd, EPOLLIN, incoming_ready, in))
		goto err_free;
	list_push(&listener->incoming, &in->entry);
	if (!listener->incoming_count++)
		busbar_progress_timer_arm(&listener->timer, in->deadline_ns);
	return;

err_free:
	free(in);
err_close:
	close(fd);
}

/* The caller stays where it is, and the socket readable: it is left alone for a
 * while. */
static void listener_pause(struct cma_id *listener)
{
	log_warn("port %u: a caller waits: %s",
		 cma_addr_port(&listener->pub.route.addr.src_addr),
		 strerror(errno));
	listener->paused = true;
	busbar_progress_rewatch(listener->port_fd, 0);
	busbar_progress_timer_arm(&listener->timer,
				  clock_monotonic_ns_slow() + PAUSE_NS);
}

/* On the progress thread. */
static void listener_ready(void *arg, uint32_t events)
{
	struct cma_id *listener = arg;
	struct cm_mad mad;

	pthread_mutex_lock(&listener->lock);
	for (int i = 0; i < BATCH && listener->state == CM_LISTEN; i++) {
		int fd = accept4(listener->port_fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		int ret;

		if (fd < 0 && (errno == EMFILE || errno == ENFILE ||
			       errno == ENOBUFS || errno == ENOMEM))
			listener_pause(listener);
		if (fd < 0)
			break;
		if (peer_check(fd, "caller")) {
			close(fd);
			continue;
		}
		ret = packet_read(fd, &mad);
		if (!ret)
			request_take(listener, fd, &mad);
		else if (ret == -EAGAIN)
			incoming_add(listener, fd);
		else
			close(fd);
	}
	pthread_mutex_unlock(&listener->lock);
}

int cma_link_listen(struct cma_id *id)
{
	if (listen(id->port_fd, (int)id->backlog))
		return -errno;
	return busbar_progress_watch(id->port_fd, EPOLLIN, listener_ready, id);
}

void cma_link_close(struct cma_id *id)
{
	struct list *entry;
	bool listening;
	int fd;

	pthread_mutex_lock(&id->lock);
	fd = id->link_fd;
	id->link_fd = -1;
	listening = id->backlog > 0;
	pthread_mutex_unlock(&id->lock);

	if (listening)
		busbar_progress_unwatch(id->port_fd);
	/* The state is not CM_LISTEN any more: callbacks leave the list alone. */
	while ((entry = list_pop(&id->incoming))) {
		struct cma_incoming *in = list_entry(entry, struct cma_incoming,
						     entry);

		busbar_progress_unwatch(in->fd);
		close(in->fd);
		free(in);
	}
	if (fd >= 0) {
		busbar_progress_unwatch(fd);
		close(fd);
	}
	busbar_progress_timer_cancel(&id->timer);
	cma_port_release(id);
}
