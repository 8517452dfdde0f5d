/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections: reading, times, closing; see service.h. */
#define LOG_ROOM "gateway/http"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/http/service.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define SCRATCH_BYTES 16384
#define READS_MAX 64 /* of one connection in a row */
#define REQUESTS_MAX 4 /* likewise, of those that are answered at once */
#define STREAM_READS_MAX 4 /* what comes may go to many others */

static void watch(struct http_conn *c)
{
	uint32_t wanted = 0;
	struct epoll_event e = { .data.ptr = c };

	switch (c->state) {
	case HTTP_IDLE:
	case HTTP_BODY:
	case HTTP_LEAVING:
		wanted = (uint32_t)stream_events(&c->socket, true, false);
		break;
	case HTTP_ANSWERING:
		wanted = (uint32_t)stream_events(&c->socket, false, true);
		break;
	case HTTP_STREAM:
		/* Who does not take what he gets is not heard for ever. */
		wanted = (uint32_t)stream_events(&c->socket, http_stream_may_read(c), false);
		break;
	case HTTP_WORKING:
	case HTTP_CLOSED:
		break;
	}
	if (c->state == HTTP_CLOSED || wanted == c->events)
		return;
	e.events = c->events = wanted;
	epoll_ctl(c->server->epoll_fd, EPOLL_CTL_MOD, c->socket.fd, &e);
}

static uint64_t after(const struct http_conn *c, double seconds)
{
	return c->server->now_ns + (uint64_t)(seconds * 1e9);
}

void http_conn_set_state(struct http_conn *c, enum http_state state)
{
	const struct http_settings *s = c->server->settings;

	c->state = state;
	switch (state) {
	case HTTP_IDLE:
		c->deadline_ns = after(c, s->idle_timeout_s);
		break;
	case HTTP_BODY:
		c->deadline_ns = after(c, s->header_timeout_s);
		break;
	case HTTP_WORKING:
		c->deadline_ns = c->is_command ? after(c, c->wait_s) : UINT64_MAX;
		break;
	case HTTP_ANSWERING:
	case HTTP_STREAM:
		c->deadline_ns = after(c, s->write_timeout_s);
		break;
	case HTTP_LEAVING:
		c->deadline_ns = c->server->now_ns + HTTP_LEAVE_NS;
		break;
	case HTTP_CLOSED:
		c->deadline_ns = UINT64_MAX;
		break;
	}
}

void http_conn_accept(struct http_server *s, int fd)
{
	struct http_conn *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	if (!c) {
		close(fd);
		return;
	}
	c->server = s;
	list_init(&c->turn);
	stream_init(&c->socket, fd);
	c->events = EPOLLIN;
	if ((s->tls && stream_start_tls(&c->socket, s->tls_ops, s->tls, NULL)) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		stream_close(&c->socket);
		free(c);
		return;
	}
	http_peer_read(fd, http_access_asks_owner(s->access), &c->peer);
	c->peer.has_certificate = s->settings->ssl_ca != NULL;
	c->client = http_share_client(s, &c->peer);
	list_push(&s->conns, &c->entry);
	s->conn_count++;
	http_conn_set_state(c, HTTP_IDLE);
	/* Who connects has something to say. */
	c->deadline_ns = after(c, s->settings->header_timeout_s);
}

/* Events of this round may still name it, so it is freed later. */
void http_conn_close(struct http_conn *c)
{
	struct http_server *s = c->server;

	if (c->state == HTTP_CLOSED)
		return;
	http_stream_close(c);
	http_reply_clear(c);
	s->bytes -= c->body_size;
	c->body_size = 0;
	if (c->job)
		c->job->owner = NULL;
	c->job = NULL;
	/* A child between fork() and exec() has the descriptor, too: until exec(), close() alone
	 * would leave it in the set. */
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, c->socket.fd, NULL);
	stream_close(&c->socket);
	list_remove(&c->turn);
	list_remove(&c->entry);
	list_push(&s->closed, &c->entry);
	s->conn_count--;
	http_conn_set_state(c, HTTP_CLOSED);
}

void http_conn_free(struct http_conn *c)
{
	list_remove(&c->entry);
	free(c->body);
	free(c->accept);
	free(c->in);
	free(c);
}

bool http_conns_dismiss(struct http_server *s)
{
	struct list *next;
	bool busy = false;

	for (struct list *l = s->conns.next; l != &s->conns; l = next) {
		struct http_conn *c = container_of(l, struct http_conn, entry);

		next = l->next;
		/* What was asked by now is refused, and not left without an answer. */
		if (c->state == HTTP_IDLE)
			http_conn_pump(c);
		if (c->state == HTTP_BODY || (c->state == HTTP_IDLE && c->in_len)) {
			c->keep = false;
			http_reply_error(c, 503, HTTP_ENDING);
			http_conn_pump(c);
		}
		if (c->state == HTTP_STREAM)
			http_stream_goodbye(c);
		if (c->state == HTTP_IDLE || c->state == HTTP_STREAM)
			http_conn_close(c);
		/* Of who leaves nothing is unread that has come by now. */
		busy |= c->state == HTTP_WORKING || c->state == HTTP_ANSWERING;
	}
	return busy;
}

/* Reads what the state asks for. False: nothing came for now, or it is closed. */
static bool read_some(struct http_conn *c)
{
	char scratch[SCRATCH_BYTES];
	ssize_t n;

	switch (c->state) {
	case HTTP_IDLE:
		if (!c->in)
			c->in = malloc(HTTP_HEADER_MAX);
		n = c->in ? stream_recv(&c->socket, c->in + c->in_len, HTTP_HEADER_MAX - c->in_len) :
			    -ENOMEM;
		break;
	case HTTP_BODY:
		n = stream_recv(&c->socket, c->body + c->body_len, c->body_size - c->body_len);
		break;
	case HTTP_LEAVING:
	case HTTP_STREAM:
		n = stream_recv(&c->socket, scratch, sizeof(scratch));
		break;
	default:
		return false;
	}
	if (n == -EAGAIN) {
		/* An idle connection needs no room. */
		if (c->state == HTTP_IDLE && !c->in_len) {
			free(c->in);
			c->in = NULL;
		}
		return false;
	}
	if (n <= 0) {
		http_conn_close(c);
		return false;
	}
	if (c->state == HTTP_STREAM) {
		http_stream_received(c, scratch, (size_t)n);
	} else if (c->state == HTTP_BODY) {
		c->body_len += (size_t)n;
	} else if (c->state == HTTP_IDLE) {
		if (!c->in_len)
			c->deadline_ns = after(c, c->server->settings->header_timeout_s);
		c->in_len += (size_t)n;
		list_remove(&c->entry);
		list_push(&c->server->conns, &c->entry);
	}
	return true;
}

/* A header that does not end. */
static void refuse_long(struct http_conn *c)
{
	bool target = !memchr(c->in, '\n', c->in_len);

	c->keep = false;
	http_reply_error(c, target ? 414 : 431,
			 target ? "the path is too long" :
				  "the header is longer than 8192 bytes");
}

/* The first `len` bytes of what has come are used. */
static void consume(struct http_conn *c, size_t len)
{
	c->in_len -= len;
	c->in_searched = 0;
	memmove(c->in, c->in + len, c->in_len);
}

/* A part of the body came with the header. */
static void take_body(struct http_conn *c)
{
	size_t n = MIN(c->in_len, c->body_size - c->body_len);

	if (!n)
		return;
	memcpy(c->body + c->body_len, c->in, n);
	c->body_len += n;
	consume(c, n);
}

/* Handles one request of those that have come. False: none is complete. */
static bool take_request(struct http_conn *c)
{
	struct http_request r;
	const char *why;
	size_t skip = 0, len;
	int status;

	/* Empty lines in front are left out (RFC 9112, 2.2). */
	while (skip + 1 < c->in_len && c->in[skip] == '\r' && c->in[skip + 1] == '\n')
		skip += 2;
	if (skip)
		consume(c, skip);
	len = http_header_end(c->in, c->in_len, c->in_searched);
	c->in_searched = c->in_len;
	if (!len) {
		if (c->in_len == HTTP_HEADER_MAX)
			refuse_long(c);
		return c->in_len == HTTP_HEADER_MAX;
	}
	c->keep = c->is_head = c->is_command = false;
	*c->origin = '\0';
	status = http_parse(c->in, len, &r, &why);
	if (status)
		http_reply_error(c, status, why);
	else
		http_request(c, &r);
	if (c->state != HTTP_CLOSED)
		consume(c, len);
	return true;
}

void http_conn_leave(struct http_conn *c)
{
	http_stream_close(c);
	stream_shut(&c->socket);
	http_conn_set_state(c, HTTP_LEAVING);
}

/* The answer is gone: the next request, or the end. */
static void answered(struct http_conn *c)
{
	http_reply_clear(c);
	if (c->keep) {
		http_conn_set_state(c, HTTP_IDLE);
		if (c->in_len)
			c->deadline_ns = after(c, c->server->settings->header_timeout_s);
		return;
	}
	http_conn_leave(c);
}

/* Others have their turn, too, unless the kernel would not tell of what is left. */
static bool may_go_on(const struct http_conn *c, unsigned reads)
{
	return reads < (c->state == HTTP_STREAM ? STREAM_READS_MAX : READS_MAX) || stream_pending(&c->socket);
}

void http_conns_go_on(struct http_server *s)
{
	struct list turn, *first;

	list_init(&turn);
	list_splice(&turn, &s->turns);
	while ((first = list_pop(&turn)))
		http_conn_pump(container_of(first, struct http_conn, turn));
}

/* Goes on as far as it can without waiting, and without making other connections wait. */
void http_conn_pump(struct http_conn *c)
{
	unsigned reads = 0, requests = 0;
	int ret;

	for (;;) {
		switch (c->state) {
		case HTTP_ANSWERING:
			ret = http_reply_write(c);
			if (ret < 0)
				http_conn_close(c);
			else if (ret > 0)
				goto wait;
			else
				answered(c);
			continue;
		case HTTP_IDLE:
			if (requests == REQUESTS_MAX) {
				/* The kernel need not report again what it has reported. */
				list_remove(&c->turn);
				list_push(&c->server->turns, &c->turn);
				goto wait;
			}
			requests += c->in_len > 0;
			if (c->in_len && take_request(c))
				continue;
			break;
		case HTTP_BODY:
			take_body(c);
			if (c->body_len == c->body_size) {
				http_request_ready(c);
				continue;
			}
			break;
		case HTTP_STREAM:
			if (c->in_len) {
				http_stream_received(c, c->in, c->in_len);
				c->in_len = 0;
			}
			free(c->in);
			c->in = NULL;
			ret = http_stream_flush(c);
			if (ret < 0) {
				http_conn_leave(c);
				continue;
			}
			if (!http_stream_may_read(c))
				goto wait;
			break;
		case HTTP_LEAVING:
			break;
		case HTTP_WORKING:
		case HTTP_CLOSED:
			goto wait;
		}
		if (!may_go_on(c, reads++) || !read_some(c))
			goto wait;
	}
wait:
	watch(c);
}

void http_conn_flush(struct http_conn *c)
{
	if (c->state != HTTP_STREAM)
		return;
	if (http_stream_flush(c) < 0)
		http_conn_leave(c);
	watch(c);
}

void http_conn_event(struct http_conn *c, uint32_t events)
{
	if (c->state == HTTP_CLOSED)
		return;
	/* Nobody takes an answer any more. */
	if (events & EPOLLERR || (events & EPOLLHUP && c->state != HTTP_IDLE)) {
		http_conn_close(c);
		return;
	}
	http_conn_pump(c);
}

void http_conn_expire(struct http_conn *c)
{
	switch (c->state) {
	case HTTP_BODY:
		c->keep = false;
		http_reply_error(c, 408, "the body did not come in time");
		break;
	case HTTP_IDLE:
		if (!c->in_len) {
			http_conn_close(c);
			return;
		}
		c->keep = false;
		http_reply_error(c, 408, "the header did not come in time");
		break;
	case HTTP_WORKING:
		http_jobs_accepted(c);
		break;
	default:
		http_conn_close(c);
		return;
	}
	http_conn_pump(c);
}
