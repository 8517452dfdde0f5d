/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection of libnats: its event loop and its helper thread. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "util/clock.h"

/* The helper asks for a confirmation at most so often. */
#define ASK_NS (5 * UINT64_C(1000000))
/* A server that does not answer for so long has been given up before, by `keepalive`. */
#define ANSWER_MS 3600000

/* TLS: a call of the library that lasts longer has its connection ended. */
#define STUCK_NS NSEC_PER_SEC
#define WATCH_NS (NSEC_PER_SEC / 4)
/* A record of TLS: its head, of which the last two bytes are the length of the rest. */
#define RECORD_HEAD 5
/* A helper ends within this time, unless it waits for a server. */
#define LEAVE_NS (100 * UINT64_C(1000000))
/* Records that are taken before others have their turn. */
#define READS_MAX 16

static __thread bool inside;

void nats_link_enter(void)
{
	inside = true;
}

void nats_link_leave(void)
{
	inside = false;
}

static void drop(struct nats_link *l)
{
	int fd;

	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	fd = atomic_load(&l->fd);
	if (fd >= 0)
		close(fd);
	if (l->event_fd >= 0)
		close(l->event_fd);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	natsOptions_Destroy(l->options);
	free(l);
}

int nats_link_fail(struct nats_link *l, natsStatus s, const char *what)
{
	const char *text = nats_GetLastError(NULL);
	size_t len = 0;

	if (what)
		len = (size_t)snprintf(l->why, sizeof(l->why), "%.100s: ", what);
	snprintf(l->why + len, sizeof(l->why) - len, "%.150s%s%s", natsStatus_GetText(s),
		 text && *text ? ": " : "", text && *text ? text : "");
	return s == NATS_NO_MEMORY ? -ENOMEM : -EIO;
}

/* ---- what the library asks of an event loop ---- */

static natsStatus attach(void **data, void *loop, natsConnection *connection, natsSock fd)
{
	struct nats_link *l = loop;
	/* The library may close its own while somebody waits for it. */
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return NATS_SYS_ERROR;
	*data = l;
	atomic_store(&l->fd, copy);
	return NATS_OK;
}

static natsStatus want_read(void *data, bool add)
{
	return NATS_OK;
}

static natsStatus want_write(void *data, bool add)
{
	struct nats_link *l = data;

	atomic_store(&l->want_write, add);
	if (add && !inside)
		eventfd_write(l->event_fd, 1);
	return NATS_OK;
}

static natsStatus detach(void *data)
{
	struct nats_link *l = data;

	eventfd_write(l->event_fd, 1);
	return NATS_OK;
}

/*
 * With TLS the library waits inside its calls: to read, until a record is complete, and to write,
 * until the socket takes all. So it is called only when it will not have to wait, as far as this
 * can be known, and watch() ends what lasts too long.
 */
static bool has_record(struct nats_link *l, int fd)
{
	unsigned char head[RECORD_HEAD];
	ssize_t n = recv(fd, head, sizeof(head), MSG_PEEK | MSG_DONTWAIT);
	int available = 0;

	l->partial = false;
	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	if (!n)
		return true;
	ioctl(fd, FIONREAD, &available);
	l->partial = n < RECORD_HEAD || available < RECORD_HEAD + (head[3] << 8 | head[4]);
	return !l->partial;
}

static bool has_room(const struct nats_link *l)
{
	int fd = atomic_load(&l->fd), size = 0, used = 0;
	int buffered = natsConnection_Buffered(l->connection);
	socklen_t len = sizeof(size);

	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len) || ioctl(fd, SIOCOUTQ, &used))
		return true;
	/* The kernel counts more than the bytes. */
	return !used || (int64_t)used * 8 + (int64_t)buffered * 2 < size;
}

static void process_tls(struct nats_link *l, bool read)
{
	int fd = atomic_load(&l->fd);

	atomic_store(&l->busy_ns, clock_now_ns());
	for (unsigned i = 0; read && i < READS_MAX && has_record(l, fd) &&
			     !natsConnection_IsClosed(l->connection); i++)
		natsConnection_ProcessReadEvent(l->connection);
	l->full = atomic_load(&l->want_write) && !has_room(l);
	if (atomic_load(&l->want_write) && !l->full)
		natsConnection_ProcessWriteEvent(l->connection);
	atomic_store(&l->busy_ns, 0);
}

void nats_link_process(struct nats_link *l, bool read)
{
	inside = true;
	if (l->tls) {
		process_tls(l, read);
	} else {
		if (read)
			natsConnection_ProcessReadEvent(l->connection);
		if (atomic_load(&l->want_write))
			natsConnection_ProcessWriteEvent(l->connection);
	}
	inside = false;
}

static void *watch(void *arg)
{
	struct nats_link *l = arg;

	pthread_mutex_lock(&l->lock);
	while (!l->closed) {
		struct timespec until = timespec_from_ns(clock_monotonic_ns_slow() + WATCH_NS);
		uint64_t busy_ns = atomic_load(&l->busy_ns);

		if (busy_ns && clock_now_ns() - busy_ns > STUCK_NS)
			shutdown(atomic_load(&l->fd), SHUT_RDWR);
		pthread_cond_clockwait(&l->changed, &l->lock, CLOCK_MONOTONIC, &until);
	}
	pthread_mutex_unlock(&l->lock);
	drop(l);
	return NULL;
}

/* ---- the helper ---- */

static void set_state(struct nats_link *l, enum nats_link_state state)
{
	atomic_store_explicit(&l->state, state, memory_order_release);
	pthread_cond_broadcast(&l->changed);
	eventfd_write(l->event_fd, 1);
}

/* Connects. True: the node still wants it, and the state is NATS_LINK_SETUP. */
static bool make_connection(struct nats_link *l, natsConnection **connection)
{
	natsStatus s = natsConnection_Connect(connection, l->options);
	bool wanted;

	pthread_mutex_lock(&l->lock);
	wanted = !s && !l->ending;
	if (wanted) {
		l->connection = *connection;
		set_state(l, NATS_LINK_SETUP);
	} else if (s) {
		nats_link_fail(l, s, NULL);
		set_state(l, NATS_LINK_FAILED);
	}
	pthread_mutex_unlock(&l->lock);
	return wanted;
}

/* Sleeps until a message was sent, and then so long that others can join it. */
static void await_messages(struct nats_link *l)
{
	struct timespec until;

	l->idle = true;
	while (!l->ending && atomic_load(&l->asked) == atomic_load(&l->answered))
		pthread_cond_wait(&l->changed, &l->lock);
	l->idle = false;
	until = timespec_from_ns(clock_monotonic_ns_slow() + ASK_NS);
	while (!l->ending &&
	       !pthread_cond_clockwait(&l->changed, &l->lock, CLOCK_MONOTONIC, &until))
		;
}

/* May the node publish? The server's refusal comes before its confirmation. */
static void note_refusal(struct nats_link *l)
{
	const char *text = NULL;

	if (natsConnection_GetLastError(l->connection, &text) != NATS_NOT_PERMITTED || !text ||
	    !strcasestr(text, "publish") || atomic_load(&l->refused))
		return;
	pthread_mutex_lock(&l->lock);
	snprintf(l->why, sizeof(l->why), "%.250s", text);
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->refused, true);
}

/* Asks the server again and again which messages it has, until the end of the connection. */
static void confirm(struct nats_link *l)
{
	pthread_mutex_lock(&l->lock);
	while (!l->ending) {
		uint64_t tag;
		natsStatus s;

		await_messages(l);
		tag = atomic_load(&l->asked);
		if (l->ending)
			break;
		pthread_mutex_unlock(&l->lock);
		s = natsConnection_FlushTimeout(l->connection, ANSWER_MS);
		if (!s) {
			note_refusal(l);
			atomic_store(&l->answered, tag);
			eventfd_write(l->event_fd, 1);
		}
		pthread_mutex_lock(&l->lock);
		/* The connection is closed: turn() finds out, and the node ends it. */
		while (s && !l->ending)
			pthread_cond_wait(&l->changed, &l->lock);
	}
	pthread_mutex_unlock(&l->lock);
}

static void await_close(struct nats_link *l)
{
	pthread_mutex_lock(&l->lock);
	while (!l->closed)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

static void end_connection(struct nats_link *l, natsConnection *connection)
{
	for (unsigned i = 0; i < l->sub_count; i++)
		natsSubscription_Destroy(l->subs[i]);
	if (l->answers)
		natsSubscription_Destroy(l->answers);
	natsInbox_Destroy(l->inbox);
	natsConnection_Destroy(connection);
}

static void *run(void *arg)
{
	struct nats_link *l = arg;
	natsConnection *connection = NULL;

	if (make_connection(l, &connection)) {
		int ret = l->setup(l);

		pthread_mutex_lock(&l->lock);
		set_state(l, ret ? NATS_LINK_FAILED : NATS_LINK_READY);
		pthread_mutex_unlock(&l->lock);
		if (!ret && l->confirms)
			confirm(l);
		await_close(l);
	}
	end_connection(l, connection);
	nats_ReleaseThreadMemory();
	drop(l);
	return NULL;
}

/* ---- of the node ---- */

static natsStatus set_loop(struct nats_link *l)
{
	return natsOptions_SetEventLoop(l->options, l, attach, want_read, want_write, detach);
}

/* Starts a thread that uses the connection. */
static int start_thread(struct nats_link *l, const char *name, void *(*f)(void *))
{
	pthread_t thread;
	int ret;

	atomic_fetch_add(&l->refs, 1);
	ret = thread_start(&thread, name, THREAD_AS_CALLER, f, l);
	if (ret)
		drop(l);
	else
		pthread_detach(thread);
	return ret;
}

int nats_link_start(struct nats_node *m, natsOptions *options,
		    int (*setup)(struct nats_link *l))
{
	struct nats_link *l = calloc(1, sizeof(*l));
	int ret;

	if (!l) {
		natsOptions_Destroy(options);
		return -ENOMEM;
	}
	*l = (struct nats_link){ .refs = 1, .node = m, .options = options,
				 .setup = setup, .fd = -1,
				 .event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
				 .asked = m->outside.next_tag,
				 .answered = m->outside.next_tag,
				 .tls = m->tls.enabled,
				 .confirms = m->outside.node->is_destination && !m->js.enabled };
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	ret = l->event_fd < 0 ? -errno : set_loop(l) ? -ENOMEM : 0;
	if (!ret && l->tls)
		ret = start_thread(l, "nats-watch", watch);
	if (!ret)
		ret = start_thread(l, "nats", run);
	if (!ret) {
		m->link = l;
		return 0;
	}
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	drop(l);
	return ret;
}

void nats_link_end(struct nats_node *m)
{
	struct nats_link *l = m->link;

	m->link = NULL;
	pthread_mutex_lock(&l->lock);
	l->ending = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	/* The helper does not destroy it before `closed`. */
	if (l->connection) {
		/* What the socket takes at once; then calls of the helper come back. */
		nats_link_process(l, false);
		natsConnection_Close(l->connection);
	}
	pthread_mutex_lock(&l->lock);
	l->closed = true;
	pthread_cond_broadcast(&l->changed);
	while (atomic_load(&l->state) == NATS_LINK_SETUP)
		pthread_cond_wait(&l->changed, &l->lock);
	pthread_mutex_unlock(&l->lock);
	m->left = l;
	nats_link_forget(m);
}

bool nats_link_forget(struct nats_node *m)
{
	struct nats_link *l = m->left;

	if (l && atomic_load(&l->refs) > 1)
		return false;
	if (l)
		drop(l);
	m->left = NULL;
	return true;
}

void nats_link_leave_behind(struct nats_node *m)
{
	uint64_t end_ns = clock_now_ns() + LEAVE_NS;

	while (!nats_link_forget(m) && clock_now_ns() < end_ns)
		usleep(1000);
	if (m->left)
		drop(m->left);
	m->left = NULL;
}
