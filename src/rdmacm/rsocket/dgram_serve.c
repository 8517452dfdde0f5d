/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of addresses of datagram sockets (SIDR). One thread per process answers the
 * requests for all its datagram sockets, so that they can be found while the program
 * makes no calls.
 */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/library_thread.h"
#include "util/log.h"
#include "util/wakeup.h"

#define LOOKUP_MS 2000

static struct {
	pthread_mutex_t lock;
	pthread_cond_t noticed;
	struct list sockets;
	unsigned count;
	uint64_t changes, seen; /* of the list: number, and number seen by the thread */
	int wake_fd;
	bool running;
} serve = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.noticed = PTHREAD_COND_INITIALIZER,
	.sockets = { &serve.sockets, &serve.sockets },
	.wake_fd = -1,
};

/* The thread and the sockets do not exist in a forked child. */
static void serve_forked(void)
{
	pthread_mutex_init(&serve.lock, NULL);
	pthread_cond_init(&serve.noticed, NULL);
	list_init(&serve.sockets);
	serve.count = 0;
	serve.running = false;
	if (serve.wake_fd >= 0)
		close(serve.wake_fd);
	serve.wake_fd = -1;
}

__attribute__((constructor)) static void serve_load(void)
{
	pthread_atfork(NULL, NULL, serve_forked);
}

/* ---- answering requests ---- */

static void request_answer(struct rs *rs, struct rdma_cm_event *ev)
{
	struct rdma_cm_id *id = ev->id;
	struct rdma_conn_param param = { 0 };
	struct rs_hello hello, peer;
	bool known = rs_hello_decode(ev->param.ud.private_data,
				     ev->param.ud.private_data_len,
				     RS_KIND_DATAGRAM, &peer);
	int ret = known ? 0 : -EPROTONOSUPPORT;

	rdma_ack_cm_event(ev);
	rs_hello_encode(&hello, RS_KIND_DATAGRAM, 0, 0, 0);
	pthread_mutex_lock(&rs->lock);
	if (!ret)
		ret = rs->closing ? -EBADF : rs_dgram_open(rs, id);
	if (!ret)
		param.qp_num = rs->qp->qp_num;
	pthread_mutex_unlock(&rs->lock);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	if (ret)
		rdma_reject(id, &hello, sizeof(hello));
	else
		rdma_accept(id, &param);
	rdma_destroy_id(id);
}

static void socket_serve(struct rs *rs)
{
	struct rdma_cm_event *ev;

	while (!rdma_get_cm_event(rs->channel, &ev)) {
		if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			request_answer(rs, ev);
		else
			rdma_ack_cm_event(ev);
	}
}

/* A copy of the list, with a reference to each socket; NULL: out of memory. */
static struct rs **list_take(unsigned *count)
{
	struct rs **all;
	unsigned n = 0;

	pthread_mutex_lock(&serve.lock);
	serve.seen = serve.changes;
	pthread_cond_broadcast(&serve.noticed);
	all = calloc(serve.count + 1, sizeof(*all));
	if (all)
		list_for_each(rs, &serve.sockets, struct rs, serve_entry) {
			atomic_fetch_add(&rs->refs, 1);
			all[n++] = rs;
		}
	pthread_mutex_unlock(&serve.lock);
	*count = n;
	return all;
}

static void round_serve(void)
{
	unsigned count;
	struct rs **all = list_take(&count);
	struct pollfd *fds = calloc(count + 1, sizeof(*fds));

	if (!all || !fds) {
		log_error("lookups are not answered: out of memory");
		usleep(100000);
		goto out;
	}
	for (unsigned i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = all[i]->channel->fd,
					  .events = POLLIN };
	fds[count] = (struct pollfd){ .fd = serve.wake_fd, .events = POLLIN };
	if (poll(fds, count + 1, -1) < 0)
		goto out;
	wakeup_drain(serve.wake_fd);
	for (unsigned i = 0; i < count; i++)
		if (fds[i].revents)
			socket_serve(all[i]);
out:
	for (unsigned i = 0; i < count; i++)
		rs_put(all[i]);
	free(all);
	free(fds);
}

static void *serve_run(void *arg)
{
	(void)arg;
	for (;;)
		round_serve();
	return NULL;
}

/* ---- adding and removing sockets ---- */

static void notice(void)
{
	serve.changes++;
	wakeup_post(serve.wake_fd);
}

static int thread_start(void)
{
	pthread_t thread;
	int ret;

	if (serve.running)
		return 0;
	serve.wake_fd = wakeup_open_signal();
	if (serve.wake_fd < 0)
		return serve.wake_fd;
	ret = library_thread_start(&thread, NULL, serve_run, NULL);
	if (ret) {
		close(serve.wake_fd);
		serve.wake_fd = -1;
		return ret;
	}
	pthread_setname_np(thread, "rsocket-lookup");
	pthread_detach(thread);
	serve.running = true;
	return 0;
}

int rs_serve(struct rs *rs)
{
	int ret;

	pthread_mutex_lock(&serve.lock);
	ret = thread_start();
	if (!ret) {
		list_push(&serve.sockets, &rs->serve_entry);
		serve.count++;
		rs->served = true;
		notice();
	}
	pthread_mutex_unlock(&serve.lock);
	return ret;
}

void rs_unserve(struct rs *rs)
{
	uint64_t change;

	pthread_mutex_lock(&serve.lock);
	if (rs->served) {
		list_remove(&rs->serve_entry);
		serve.count--;
		notice();
		/* Until the thread has taken a list without this socket. */
		for (change = serve.changes; serve.seen < change;)
			pthread_cond_wait(&serve.noticed, &serve.lock);
	}
	pthread_mutex_unlock(&serve.lock);
}

/* ---- sending requests ---- */

/* Waits until `end_ns` for the next event of `channel`, which must be `type`; the
 * caller acknowledges it. */
static int event_wait(struct rdma_event_channel *channel,
		      enum rdma_cm_event_type type, uint64_t end_ns,
		      struct rdma_cm_event **out)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	int ret;

	while (rdma_get_cm_event(channel, &ev)) {
		uint64_t now_ns = clock_monotonic_ns_slow();

		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (now_ns >= end_ns)
			return -EHOSTUNREACH;
		if (poll(&pfd, 1, (int)((end_ns - now_ns) / RS_NSEC_PER_MSEC) + 1) < 0 &&
		    errno != EINTR)
			return -errno;
	}
	if (ev->event == type) {
		*out = ev;
		return 0;
	}
	if (ev->event == RDMA_CM_EVENT_ADDR_ERROR ||
	    ev->event == RDMA_CM_EVENT_ROUTE_ERROR)
		ret = ev->status < 0 ? ev->status : -EHOSTUNREACH;
	else
		ret = -ECONNREFUSED;
	rdma_ack_cm_event(ev);
	return ret;
}

static int event_pass(struct rdma_event_channel *channel,
		      enum rdma_cm_event_type type, uint64_t end_ns)
{
	struct rdma_cm_event *ev;
	int ret = event_wait(channel, type, end_ns, &ev);

	if (!ret)
		rdma_ack_cm_event(ev);
	return ret;
}

static int answer_take(struct rs *rs, struct rdma_cm_id *id,
		       const struct rdma_ud_param *ud, struct rs_peer *peer)
{
	struct rs_hello theirs;
	struct ibv_ah_attr attr = ud->ah_attr;

	if (!rs_hello_decode(ud->private_data, ud->private_data_len,
			     RS_KIND_DATAGRAM, &theirs))
		return -ECONNREFUSED;
	rs_addr_copy(&peer->local, rdma_get_local_addr(id));
	peer->qpn = ud->qp_num;
	peer->qkey = ud->qkey;
	peer->ah = ibv_create_ah(rs->qp->pd, &attr);
	return peer->ah ? 0 : -errno;
}

static int ask(struct rs *rs, struct rdma_cm_id *id, const struct sockaddr *addr,
	       struct rs_peer *peer)
{
	uint64_t end_ns = clock_monotonic_ns_slow() + LOOKUP_MS * RS_NSEC_PER_MSEC;
	struct sockaddr_storage from, to;
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_event *ev;
	struct rs_hello hello;
	bool bound;
	int ret;

	rs_addr_copy(&to, addr);
	rs_addr_copy(&from, rdma_get_local_addr(rs->id));
	bound = !rs_addr_is_any((struct sockaddr *)&from);
	rs_addr_set_port((struct sockaddr *)&from, 0); /* the socket has the port */
	if (rdma_resolve_addr(id, bound ? (struct sockaddr *)&from : NULL,
			      (struct sockaddr *)&to, LOOKUP_MS))
		return -errno;
	ret = event_pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, end_ns);
	if (!ret && rdma_resolve_route(id, LOOKUP_MS))
		ret = -errno;
	if (!ret)
		ret = event_pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, end_ns);
	if (ret)
		return ret;
	pthread_mutex_lock(&rs->lock);
	ret = rs->closing ? -EBADF : rs_dgram_open(rs, id);
	if (!ret)
		param.qp_num = rs->qp->qp_num;
	pthread_mutex_unlock(&rs->lock);
	if (ret)
		return ret;
	rs_hello_encode(&hello, RS_KIND_DATAGRAM, 0, 0, 0);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	if (rdma_connect(id, &param))
		return -errno;
	ret = event_wait(id->channel, RDMA_CM_EVENT_ESTABLISHED, end_ns, &ev);
	if (ret)
		return ret;
	pthread_mutex_lock(&rs->lock);
	ret = rs->closing ? -EBADF : answer_take(rs, id, &ev->param.ud, peer);
	pthread_mutex_unlock(&rs->lock);
	rdma_ack_cm_event(ev);
	return ret;
}

int rs_lookup(struct rs *rs, const struct sockaddr *addr, struct rs_peer *peer)
{
	CANCEL_OFF;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	int ret;

	if (!channel)
		return -errno;
	ret = fcntl(channel->fd, F_SETFL, O_NONBLOCK) ? -errno : 0;
	if (!ret && rdma_create_id(channel, &id, NULL, RDMA_PS_UDP))
		ret = -errno;
	if (!ret) {
		ret = ask(rs, id, addr, peer);
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(channel);
	return ret;
}
