/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: CM messages between processes of one host, one packet each, over a connected
 * AF_UNIX socket. The kernel delivers them in order and without loss, and reports
 * at once when the peer has closed its end; so the state machine rarely repeats a
 * message. link_reader finds the connection to which a message belongs.
 *
 * Two processes share one link for all their connections. A caller connects to the
 * name of the port and reads from the socket which process has it. If there is a
 * link to that process already, it closes the new socket and uses the link. A link
 * stays open until one of the processes ends.
 *
 * Peers are not trusted: a packet of the wrong length or form ends the link. Both
 * ends check by hca/share/peers.h whether they may talk to each other. A caller that may
 * not gets a link for some seconds on which each request is rejected, so that its
 * program learns it without a timeout.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/link/link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "util/user.h"
#include "verbs/private.h"

/* After that a link on which the caller sent nothing, or whose caller is refused, is
 * closed. */
#define SILENCE_NS (5 * NSEC_PER_SEC)
/* Links of refused callers at a time; further ones are closed without an answer. */
#define REFUSED_MAX 16
/* Links of another user, over all its processes. */
#define LINKS_PER_USER 256
#define BATCH 64
/* Messages queued for a peer whose socket is full; further ones are dropped, and the
 * state machine repeats them. */
#define WAITING_MAX 65536

static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list links = { &links, &links };

/* ---- sending ---- */

/* link->lock is held for this and the next function. 0, -EAGAIN, or another error:
 * the link is broken, and link_ready() will end it. */
static int packet_write(struct cma_link *link, const uint8_t *bytes)
{
	if (send(link->fd, bytes, CM_MAD_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

static struct log_limit link_lines; /* that peers cause */

static void packet_wait(struct cma_link *link, const uint8_t *bytes)
{
	struct link_waiting *w = NULL;

	if (link->waiting_count < WAITING_MAX)
		w = malloc(sizeof(*w));
	if (!w) {
		log_limited(LOG_WARN, &link_lines, clock_monotonic_ns_slow(),
			    "process %d takes no messages; one is lost", (int)link->pid);
		return;
	}
	memcpy(w->bytes, bytes, CM_MAD_SIZE);
	list_init(&w->entry);
	list_push(&link->waiting, &w->entry);
	if (!link->waiting_count++)
		busbar_progress_rewatch(link->fd, EPOLLIN | EPOLLOUT);
}

void link_send(struct cma_link *link, const struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE];

	if (!link)
		return;
	if (wire_cm_encode(mad, bytes)) {
		log_error("%s cannot be encoded", wire_cm_name(mad->type));
		return;
	}
	if (link->is_network) {
		link_network_send(link, bytes);
		return;
	}
	pthread_mutex_lock(&link->lock);
	if (link->fd >= 0 &&
	    (link->waiting_count || packet_write(link, bytes) == -EAGAIN))
		packet_wait(link, bytes);
	pthread_mutex_unlock(&link->lock);
}

static void waiting_send(struct cma_link *link)
{
	pthread_mutex_lock(&link->lock);
	while (link->waiting_count) {
		struct link_waiting *w = list_entry(link->waiting.next, struct link_waiting,
					       entry);

		if (packet_write(link, w->bytes) == -EAGAIN)
			break;
		list_remove(&w->entry);
		free(w);
		if (!--link->waiting_count)
			busbar_progress_rewatch(link->fd, EPOLLIN);
	}
	pthread_mutex_unlock(&link->lock);
}

/* ---- the links to processes ---- */

static void links_add(struct cma_link *link)
{
	pthread_mutex_lock(&links_lock);
	list_push(&links, &link->entry);
	pthread_mutex_unlock(&links_lock);
}

static void links_remove(struct cma_link *link)
{
	pthread_mutex_lock(&links_lock);
	list_remove(&link->entry);
	pthread_mutex_unlock(&links_lock);
	link_reader->gone(link);
}

/* Number of links with that user. */
static unsigned links_of(uid_t uid)
{
	unsigned count = 0;

	pthread_mutex_lock(&links_lock);
	list_for_each(link, &links, struct cma_link, entry)
		count += link->uid == uid;
	pthread_mutex_unlock(&links_lock);
	return count;
}

/* The open link to that process, with a reference for the caller, or NULL. */
static struct cma_link *links_to_process(pid_t pid)
{
	struct cma_link *found = NULL;

	pthread_mutex_lock(&links_lock);
	list_for_each(link, &links, struct cma_link, entry) {
		if (!pid || link->pid != pid || !atomic_load(&link->in_use))
			continue;
		link_hold(link);
		found = link;
		break;
	}
	pthread_mutex_unlock(&links_lock);
	return found;
}

/* ---- receiving ---- */

/* 0 and a message; -EAGAIN: there is none; another error: the link is broken. */
static int packet_read(int fd, struct cm_mad *mad)
{
	uint8_t bytes[CM_MAD_SIZE + 1];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* ECONNRESET is reported once; packets that came before it can still be read. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (n == 0)
		return -ECONNRESET;
	if (wire_cm_decode(bytes, (size_t)n, mad)) {
		log_limited(LOG_WARN, &link_lines, clock_monotonic_ns_slow(),
			    "peer sent %zd bytes that are no cm message; link closed", n);
		return -EBADMSG;
	}
	return 0;
}

/* Of links with is_refused. On the progress thread only. */
static unsigned refused_count;

/* On the progress thread. */
static void link_end(struct cma_link *link)
{
	int fd = link->fd;

	busbar_progress_unwatch(fd);
	busbar_progress_timer_cancel(&link->silence);
	refused_count -= link->is_refused;
	pthread_mutex_lock(&link->lock);
	link->fd = -1;
	pthread_mutex_unlock(&link->lock);
	close(fd);
	links_remove(link);
	link_put(link);
}

/* On the progress thread. */
static void link_ready(void *arg, uint32_t events)
{
	struct cma_link *link = arg;
	struct cm_mad mad;
	int ret = 0;

	if (events & EPOLLOUT)
		waiting_send(link);
	for (int i = 0; i < BATCH && !ret; i++) {
		ret = packet_read(link->fd, &mad);
		if (ret)
			break;
		if (link->is_refused) {
			link_reader->refused(link, &mad);
			continue;
		}
		atomic_store(&link->in_use, true);
		link_reader->message(link, &mad);
	}
	if (!ret || ret == -EAGAIN)
		return;
	log_debug("link to process %d: %s", (int)link->pid, strerror(-ret));
	link_end(link);
}

static void link_silent(struct progress_timer *t)
{
	struct cma_link *link = container_of(t, struct cma_link, silence);

	if (atomic_load(&link->in_use))
		return;
	if (!link->is_refused)
		log_limited(LOG_WARN, &link_lines, clock_monotonic_ns_slow(),
			    "caller said nothing for %u s; link closed",
			    (unsigned)(SILENCE_NS / NSEC_PER_SEC));
	link_end(link);
}

enum link_end_of { LINK_OURS, LINK_CALLER, LINK_REFUSED };

/* Makes a link that owns `fd`, held once for the caller of this function. Unless this
 * side called, the peer has SILENCE_NS to send a message. On failure `fd` stays open. */
static int link_make(int fd, pid_t pid, uid_t uid, enum link_end_of whose,
		     struct cma_link **out)
{
	struct cma_link *link = link_new();
	int ret;

	if (!link)
		return -ENOMEM;
	link->fd = fd;
	link->peer = (uint64_t)(uintptr_t)link;
	link->pid = pid;
	link->uid = uid;
	atomic_init(&link->in_use, whose == LINK_OURS);
	link->is_refused = whose == LINK_REFUSED;
	busbar_progress_timer_init(&link->silence, link_silent);
	/* The caller's reference, because the link may end as soon as it is watched. */
	link_hold(link);
	links_add(link);
	ret = busbar_progress_watch(fd, EPOLLIN, link_ready, link);
	if (ret) {
		log_error("link: cannot be watched: %s", strerror(-ret));
		link->fd = -1;
		links_remove(link);
		link_put(link);
		link_put(link);
		return ret;
	}
	if (whose != LINK_OURS)
		busbar_progress_timer_arm(&link->silence,
					  clock_monotonic_ns_slow() + SILENCE_NS);
	*out = link;
	return 0;
}

/* ---- calling ---- */

/* A descriptor connected to the socket of that name. -ECONNREFUSED: nobody listens;
 * -EACCES: its owner may not talk to us. */
static int call(const struct abstract_name *name, pid_t *pid)
{
	int fd = abstract_connect(name), ret;

	if (fd < 0)
		return fd;
	ret = busbar_peer_check(fd, "listener", pid);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* Has the peer closed its end, though the progress thread has not seen it yet? */
static bool is_ending(struct cma_link *link)
{
	struct pollfd p = { .events = 0 };

	pthread_mutex_lock(&link->lock);
	p.fd = link->fd;
	if (p.fd >= 0)
		poll(&p, 1, 0);
	pthread_mutex_unlock(&link->lock);
	return p.fd < 0 || p.revents & (POLLHUP | POLLERR);
}

int link_call(const struct abstract_name *names, int count, struct cma_link **out)
{
	struct cma_link *link = NULL;
	bool refused = false;
	int ret = -ECONNREFUSED, fd = -1;
	pid_t pid = 0;

	/* Any process can bind the name of a port. A process that may not talk to us
	 * is skipped: the listener may have one of the other names. */
	for (int i = 0; i < count && (ret == -ECONNREFUSED || ret == -EACCES); i++) {
		ret = fd = call(&names[i], &pid);
		refused = refused || ret == -EACCES;
	}
	if (ret == -ECONNREFUSED && refused)
		return -EACCES;
	if (ret < 0)
		return ret;
	link = links_to_process(pid);
	if (link && is_ending(link)) {
		link_put(link);
		link = NULL;
	}
	if (link) {
		close(fd);
		ret = 0;
	} else {
		ret = link_make(fd, pid, geteuid(), LINK_OURS, &link);
		if (ret)
			close(fd);
	}
	*out = link;
	return ret;
}

/* ---- callers ---- */

/* Each link costs a descriptor; other users must not use them up. */
static bool user_has_room(int fd, pid_t pid, uid_t *uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	*uid = cred.uid;
	if (user_is_ours(cred.uid) || links_of(cred.uid) < LINKS_PER_USER)
		return true;
	log_debug("caller pid %d: uid %u has %d links already", (int)pid,
		  (unsigned)cred.uid, LINKS_PER_USER);
	return false;
}

void link_accept(int fd)
{
	enum link_end_of whose = LINK_CALLER;
	struct cma_link *link;
	uid_t uid = geteuid();
	pid_t pid;
	int ret;

	ret = busbar_peer_check(fd, "caller", &pid);
	if (!ret && !user_has_room(fd, pid, &uid))
		goto err_close;
	if (ret == -EACCES && refused_count < REFUSED_MAX)
		whose = LINK_REFUSED;
	else if (ret)
		goto err_close;
	if (link_make(fd, pid, uid, whose, &link))
		goto err_close;
	refused_count += whose == LINK_REFUSED;
	link_put(link);
	return;

err_close:
	close(fd);
}

/* ---- fork ---- */

/* Otherwise peers would not see the end of the parent while the child lives. */
static void links_forked(void)
{
	refused_count = 0;
	pthread_mutex_init(&links_lock, NULL);
	list_for_each(link, &links, struct cma_link, entry) {
		if (link->fd >= 0)
			close(link->fd);
		link->fd = -1;
		pthread_mutex_init(&link->lock, NULL);
	}
	list_init(&links);
}

__attribute__((constructor)) static void links_load(void)
{
	pthread_atfork(NULL, NULL, links_forked);
}
