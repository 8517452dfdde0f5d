/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket; see server.h. Nothing here waits for a client: what cannot
 * be written waits in his buffer, and he is not read until it is gone. Who is
 * silent for longest has to leave when there are too many.
 */
#define LOG_ROOM "gateway/control"
#include "gateway/control/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "gateway/base/own_thread.h"
#include "gateway/base/thread.h"
#include "gateway/control/api.h"
#include "gateway/stream/stream.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/user.h"
#include "util/wakeup.h"

#define CLIENTS_MAX 16
#define LINE_MAX_BYTES (1u << 20)
#define READ_BYTES 4096
#define BACKLOG 128

struct client {
	struct stream socket; /* fd -1: the place is free */
	char *in;
	size_t in_len, in_size;
	uint64_t active_ns; /* when he was last heard */
	bool leaving;       /* once the answer is sent */
};

struct control_server {
	struct super_node *sn;
	struct sockaddr_un address;
	socklen_t address_len;
	int listener, wake_fd;
	pthread_t thread;
	bool stopping;      /* of the thread */
	struct client clients[CLIENTS_MAX];
};

static char *answer_text(json_t *body, int status, json_t *id)
{
	json_t *o = json_pack("{si so}", "status", status, "body",
			      body ? body : json_object());
	char *text, *line;
	size_t len;

	if (o && id)
		json_object_set(o, "id", id);
	text = json_dumps(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
	json_decref(o);
	len = text ? strlen(text) : 0;
	line = text ? realloc(text, len + 2) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + len, "\n", 2);
	return line;
}

static char *refuse(int status, const char *text)
{
	return answer_text(json_pack("{ss}", "error", text), status, NULL);
}

/* For a request that came too late; with its identifier, where it has one. */
static char *refuse_line(const char *line, size_t len)
{
	json_t *request = json_loadb(line, len, 0, NULL);
	char *answer = answer_text(
		json_pack("{ss}", "error",
			  "the gateway ends or starts anew, ask again later"),
		503, json_object_get(request, "id"));

	json_decref(request);
	return answer;
}

char *control_line(struct super_node *sn, const char *line, size_t len)
{
	const char *method = "GET", *path = NULL;
	json_t *request, *body = NULL, *id = NULL;
	json_error_t error;
	json_t *reply;
	int status;
	char *answer;

	request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
	if (!request)
		return answer_text(json_pack("{so}", "error",
					     json_sprintf("no JSON object: %s",
							  error.text)),
				   400, NULL);
	if (json_unpack_ex(request, &error, 0, "{s?s s:s s?o s?o}", "method",
			   &method, "path", &path, "body", &body, "id", &id)) {
		answer = answer_text(json_pack("{so}", "error",
					       json_sprintf("expected {\"method\": ..., \"path\": ..., \"body\": ...}: %s",
							    error.text)),
				     400, id);
	} else {
		reply = control_handle(sn, method, path, body, &status);
		answer = answer_text(reply, status, id);
	}
	json_decref(request);
	return answer;
}

static void drop(struct client *c)
{
	stream_close(&c->socket);
	free(c->in);
	*c = (struct client){ .socket.fd = -1 };
}

static bool is_there(const struct client *c)
{
	return c->socket.fd >= 0;
}

/* Whether an answer waits for the client. */
static bool is_behind(const struct client *c)
{
	return is_there(c) && stream_buffer_filled(&c->socket.out);
}

static void flush(struct client *c)
{
	if (!is_there(c))
		return;
	if (stream_flush(&c->socket, NULL) || (c->leaving && !is_behind(c)))
		drop(c);
	else if (!is_behind(c))
		stream_buffer_free(&c->socket.out);
}

static void say(struct client *c, char *line)
{
	if (line && !stream_buffer_put(&c->socket.out, line, strlen(line)))
		flush(c);
	else
		drop(c);
	free(line);
}

/* Answers whole lines, one after the other's answer is gone. */
static void serve_lines(struct control_server *s, struct client *c)
{
	char *end;

	while (is_there(c) && !is_behind(c) && c->in_len &&
	       (end = memchr(c->in, '\n', c->in_len))) {
		size_t len = (size_t)(end - c->in);

		if (len)
			say(c, control_line(s->sn, c->in, len));
		if (!is_there(c))
			return;
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
	}
	if (is_there(c) && !is_behind(c) && c->in_len >= LINE_MAX_BYTES) {
		c->leaving = true;
		say(c, refuse(413, "a line is too long"));
	}
}

static bool make_room(struct client *c)
{
	size_t size = c->in_size ? c->in_size * 2 : READ_BYTES;
	char *more;

	if (c->in_size - c->in_len >= READ_BYTES)
		return true;
	more = realloc(c->in, size);
	if (!more)
		return false;
	c->in = more;
	c->in_size = size;
	return c->in_size - c->in_len > 0;
}

static void hear(struct control_server *s, struct client *c)
{
	ssize_t n;

	if (!make_room(c)) {
		drop(c);
		return;
	}
	/* Little at a time: lines that wait for an answer are moved each time. */
	n = stream_recv(&c->socket, c->in + c->in_len, READ_BYTES);
	if (n <= 0) {
		if (n != -EAGAIN)
			drop(c);
		return;
	}
	c->in_len += (size_t)n;
	c->active_ns = clock_now_ns();
	serve_lines(s, c);
}

/* Does a file lead to the socket, whose mode lets in its owner only? */
static bool has_private_file(const struct control_server *s)
{
	struct stat st;

	return s->address.sun_path[0] && !lstat(s->address.sun_path, &st) &&
	       !(st.st_mode & 077);
}

static bool may_command(const struct control_server *s, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	/* Where a user namespace does not map our user, others have the same number. */
	return user_is_ours_or_root(peer.uid) ||
	       (peer.uid == geteuid() && has_private_file(s));
}

static struct client *free_place(struct control_server *s)
{
	struct client *oldest = &s->clients[0];

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &s->clients[i];

		if (!is_there(c))
			return c;
		if (c->active_ns < oldest->active_ns)
			oldest = c;
	}
	log_debug("more than %d clients, the one that is silent for longest has to leave",
		  CLIENTS_MAX);
	drop(oldest);
	return oldest;
}

static void greet(struct control_server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;

	if (fd < 0) {
		/* No descriptor left: he waits, and is not asked for all the
		 * time. */
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&(struct timespec){ .tv_nsec = 50000000 },
				  NULL);
		return;
	}
	if (!may_command(s, fd)) {
		close(fd);
		return;
	}
	c = free_place(s);
	stream_init(&c->socket, fd);
	c->active_ns = clock_now_ns();
}

static void *run(void *arg)
{
	struct control_server *s = arg;

	own_thread_keep(OWN_PRIORITY | OWN_AFFINITY);
	while (!s->stopping) {
		struct pollfd fds[CLIENTS_MAX + 2] = {
			{ .fd = s->wake_fd, .events = POLLIN },
			{ .fd = s->listener, .events = POLLIN },
		};
		unsigned count = 2;

		for (unsigned i = 0; i < CLIENTS_MAX; i++) {
			fds[i + 2] = (struct pollfd){
				.fd = s->clients[i].socket.fd,
				.events = is_behind(&s->clients[i]) ? POLLOUT : POLLIN,
			};
			if (is_there(&s->clients[i]))
				count = i + 3;
		}
		/* The kernel refuses more places than a process may have descriptors. */
		if (poll(fds, count, -1) < 0)
			continue;
		for (unsigned i = 0; i < CLIENTS_MAX; i++) {
			struct client *c = &s->clients[i];

			if (!is_there(c) || !fds[i + 2].revents)
				continue;
			if (!is_behind(c)) {
				hear(s, c);
				continue;
			}
			flush(c);
			if (!is_behind(c))
				serve_lines(s, c);
			else if (fds[i + 2].revents & POLLERR)
				drop(c);
		}
		s->stopping = fds[0].revents;
		if (fds[1].revents && !s->stopping)
			greet(s);
	}
	return NULL;
}

/* A file of a gateway that is gone is no obstacle; one that listens is. */
static int clear_place(const struct control_server *s)
{
	struct stat st;
	int fd, ret;

	if (!s->address.sun_path[0] || lstat(s->address.sun_path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	ret = connect(fd, (const struct sockaddr *)&s->address, s->address_len);
	ret = ret && errno == ECONNREFUSED ? 0 : -EADDRINUSE;
	close(fd);
	if (!ret && unlink(s->address.sun_path) && errno != ENOENT)
		ret = -errno;
	return ret;
}

static int open_listener(struct control_server *s, const char *path)
{
	size_t len = strlen(path);
	int ret;

	if (!len || len >= sizeof(s->address.sun_path))
		return -ENAMETOOLONG;
	s->address.sun_family = AF_UNIX;
	memcpy(s->address.sun_path, path, len);
	s->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				     len + (path[0] != '@'));
	if (path[0] == '@')
		s->address.sun_path[0] = '\0';
	ret = clear_place(s);
	if (ret)
		return ret;
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			     0);
	/* The file gets the socket's mode, so that it is never wider. */
	if (s->listener < 0 || fchmod(s->listener, 0600) ||
	    bind(s->listener, (const struct sockaddr *)&s->address,
		 s->address_len) ||
	    listen(s->listener, BACKLOG))
		return -errno;
	return 0;
}

static int start_thread(struct control_server *s)
{
	return thread_start(&s->thread, "control", THREAD_NORMAL, run, s);
}

int control_server_start(struct control_server **out, struct super_node *sn,
			 const char *path)
{
	struct control_server *s = calloc(1, sizeof(*s));
	int ret = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->sn = sn;
	s->listener = -1;
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		s->clients[i].socket.fd = -1;
	s->wake_fd = wakeup_open_signal();
	if (s->wake_fd < 0) {
		ret = s->wake_fd;
		goto err_server;
	}
	ret = open_listener(s, path);
	if (ret)
		goto err_listener;
	ret = start_thread(s);
	if (ret)
		goto err_listener;
	log_info("control socket %s", path);
	*out = s;
	return 0;
err_listener:
	if (s->listener >= 0)
		close(s->listener);
	close(s->wake_fd);
err_server:
	log_error("cannot offer the control socket %s: %s%s", path,
		  strerror(-ret),
		  ret == -EADDRINUSE ? "; another gateway listens there" :
		  ret == -EEXIST     ? "; this is no socket" :
				       "");
	free(s);
	return ret;
}

/* All of it, for a client that reads; not for ever. */
static void flush_all(struct client *c)
{
	for (int i = 0; is_behind(c) && i < 10; i++) {
		struct pollfd p = { .fd = c->socket.fd, .events = POLLOUT };

		flush(c);
		if (is_behind(c))
			poll(&p, 1, 10);
	}
}

/*
 * Says goodbye: what was asked by now is refused, not left without an answer. Once our
 * side takes no more, who sends is told so, and nothing is lost between the two.
 */
static void dismiss(struct client *c)
{
	ssize_t n;
	char *end;

	if (!is_there(c))
		return;
	flush_all(c);
	if (is_there(c))
		shutdown(c->socket.fd, SHUT_RD);
	while (is_there(c) && c->in_len < LINE_MAX_BYTES && make_room(c) &&
	       (n = stream_recv(&c->socket, c->in + c->in_len, READ_BYTES)) > 0)
		c->in_len += (size_t)n;
	while (is_there(c) && !is_behind(c) && c->in_len &&
	       (end = memchr(c->in, '\n', c->in_len))) {
		size_t len = (size_t)(end - c->in) + 1;

		if (len > 1)
			say(c, refuse_line(c->in, len - 1));
		flush_all(c);
		if (!is_there(c))
			break;
		c->in_len -= len;
		memmove(c->in, end + 1, c->in_len);
	}
	drop(c);
}

void control_server_stop(struct control_server *s)
{
	int fd;

	if (!s)
		return;
	/* False: it is in a request that does not return. */
	if (!wakeup_post(s->wake_fd) && !thread_join_in_time(s->thread)) {
		/* Its thread still uses all that is here. */
		if (s->address.sun_path[0])
			unlink(s->address.sun_path);
		return;
	}
	/* Who comes later finds nobody; who has come already is answered. */
	if (s->address.sun_path[0])
		unlink(s->address.sun_path);
	shutdown(s->listener, SHUT_RDWR);
	for (unsigned i = 0; i < CLIENTS_MAX; i++)
		dismiss(&s->clients[i]);
	while ((fd = accept4(s->listener, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct client late = { .socket.fd = fd };

		if (!may_command(s, fd))
			close(fd);
		else
			dismiss(&late);
	}
	close(s->listener);
	close(s->wake_fd);
	free(s);
}
