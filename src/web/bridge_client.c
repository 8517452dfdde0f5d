/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client of the bridge. One request at a time; what it sends meanwhile (pipelining) stays in
 * its buffer, and when that is full in the socket.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "web/bridge_private.h"

/* After the last answer: how long it is read and thrown away what the client still sends, so
 * that a reset does not overtake the answer. */
#define ENDING_MS 1000

static void set_time(struct bridge_client *c, unsigned ms)
{
	c->until_ms = bridge_now_ms() + ms;
}

static void want(struct bridge_client *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (c->events != events && !epoll_ctl(c->b->epoll, EPOLL_CTL_MOD, c->fd, &e))
		c->events = events;
}

int bridge_client_open(struct bridge *b, int fd)
{
	struct bridge_client *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };
	const int one = 1;

	if (!c)
		return -ENOMEM;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &e)) {
		free(c);
		return -errno;
	}
	c->b = b;
	c->fd = fd;
	c->events = e.events;
	while (b->slots[c->slot])
		c->slot++;
	b->slots[c->slot] = c;
	b->count++;
	b->n->clients++;
	list_push(&b->clients, &c->entry);
	set_time(c, b->o->idle_ms);
	return 0;
}

static void drop_answer(struct bridge_client *c)
{
	if (c->has_message) {
		c->b->held_bytes -= c->content_bytes;
		ripc_release(&c->message);
	}
	free(c->head);
	free(c->request);
	c->head = c->request = NULL;
	c->content = NULL;
	c->has_message = false;
	c->content_bytes = c->head_bytes = c->written = 0;
}

void bridge_client_close(struct bridge_client *c)
{
	drop_answer(c);
	c->b->slots[c->slot] = NULL;
	c->b->count--;
	list_remove(&c->entry);
	/* close() alone would leave it in the epoll set while a forked child has it, too. */
	epoll_ctl(c->b->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	free(c);
}

/* ---- giving the answer ---- */

static void work(struct bridge_client *c);

static void end(struct bridge_client *c)
{
	drop_answer(c);
	if (c->end_read || shutdown(c->fd, SHUT_WR)) {
		bridge_client_close(c);
		return;
	}
	c->state = BRIDGE_ENDING;
	set_time(c, ENDING_MS);
	want(c, EPOLLIN);
}

/* 1: all is written; 0: the socket is full; negative: it has ended. */
static int write_some(struct bridge_client *c)
{
	size_t all = c->head_bytes + (c->head_only ? 0 : c->content_bytes);

	while (c->written < all) {
		struct iovec v[2];
		struct msghdr m = { .msg_iov = v };
		size_t at = c->written;
		ssize_t n;

		if (at < c->head_bytes)
			v[m.msg_iovlen++] = (struct iovec){ c->head + at, c->head_bytes - at };
		at = at < c->head_bytes ? 0 : at - c->head_bytes;
		if (all > c->head_bytes)
			v[m.msg_iovlen++] = (struct iovec){ (char *)c->content + at,
							    c->content_bytes - at };
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		c->written += (size_t)n;
		set_time(c, c->b->o->idle_ms);
	}
	return 1;
}

static void go_on_writing(struct bridge_client *c)
{
	int ret = write_some(c);

	if (ret < 0) {
		bridge_client_close(c);
	} else if (!ret) {
		want(c, EPOLLOUT);
	} else if (c->close_after) {
		end(c);
	} else {
		drop_answer(c);
		c->state = BRIDGE_READING;
		set_time(c, c->b->o->idle_ms);
		work(c);
	}
}

static void begin_writing(struct bridge_client *c)
{
	c->state = BRIDGE_WRITING;
	c->number = 0;
	set_time(c, c->b->o->idle_ms);
	go_on_writing(c);
}

void bridge_client_fail(struct bridge_client *c, unsigned status, const char *why)
{
	char body[200];
	int bytes = snprintf(body, sizeof(body), "%u %s: %s\n", status, head_reason(status), why);
	/* What follows a head that was not understood is not understood either. */
	bool bad = status < 500 || status == 501 || status == 505;
	int n;

	c->b->n->bad_requests += bad;
	c->b->n->failed += !bad;
	c->close_after |= bad;
	drop_answer(c);
	n = asprintf(&c->head, "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
		     "Content-Length: %d\r\nConnection: %s\r\n\r\n%s", status,
		     head_reason(status), bytes, c->close_after ? "close" : "keep-alive",
		     c->head_only ? "" : body);
	if (n < 0) {
		c->head = NULL;
		bridge_client_close(c);
		return;
	}
	c->head_bytes = (size_t)n;
	begin_writing(c);
}

/* Fields that are between two neighbours only (RFC 9110, 7.6.1), and our own. */
static bool is_passed_on(const struct head *h, const struct head_field *f)
{
	static const char *const names[] = {
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
		"Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"Expect", "Ripc-Request",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (head_is(f->name, names[i]))
			return false;
	for (unsigned i = 0; i < h->count; i++)
		if (head_is(h->fields[i].name, "Connection") &&
		    head_lists(h->fields[i].value, f->name))
			return false;
	return true;
}

static size_t put(char *out, size_t at, struct head_text t, const char *end)
{
	memcpy(out + at, t.at, t.bytes);
	return (size_t)(stpcpy(out + at + t.bytes, end) - out);
}

/* First line and fields, from another head, without the end; `more` bytes are left for what
 * comes behind. NULL: no memory. */
static char *copy_head(const struct head *h, struct head_text first, size_t more, size_t *bytes)
{
	/* A line of a field is at most as long as it was, but for a blank. */
	char *out = malloc(first.bytes + h->bytes + 2 * h->count + more + 16);
	size_t at = 0;

	if (!out)
		return NULL;
	at = put(out, at, first, "\r\n");
	for (unsigned i = 0; i < h->count; i++) {
		if (!is_passed_on(h, &h->fields[i]))
			continue;
		at = put(out, at, h->fields[i].name, ": ");
		at = put(out, at, h->fields[i].value, "\r\n");
	}
	*bytes = at;
	return out;
}

/* Is the length that the head says the length of what is there? */
static bool is_whole(const struct bridge_client *c, const struct head_answer *a, size_t bytes)
{
	const struct head_field *f = head_find(&a->head, "Content-Length");
	uint64_t length;

	if (a->status < 200 || head_count(&a->head, "Content-Length") > 1 ||
	    head_find(&a->head, "Transfer-Encoding"))
		return false;
	if (c->head_only || a->status == 204 || a->status == 304)
		return !bytes;
	return f && head_number(f->value, &length) && length == bytes;
}

void bridge_client_answer(struct bridge_client *c, struct ripc_message *m,
			  const struct head_answer *a)
{
	struct bridge *b = c->b;

	if (!is_whole(c, a, m->items[1].bytes)) {
		ripc_release(m);
		bridge_client_fail(c, 502, "the service's answer is not one");
		return;
	}
	drop_answer(c);
	c->head = copy_head(&a->head, a->head.first, 64, &c->head_bytes);
	if (!c->head) {
		ripc_release(m);
		bridge_client_close(c);
		return;
	}
	c->head_bytes += (size_t)sprintf(c->head + c->head_bytes, "Connection: %s\r\n\r\n",
					 c->close_after ? "close" : "keep-alive");
	c->message = *m;
	c->has_message = true;
	c->content = m->items[1].data;
	c->content_bytes = m->items[1].bytes;
	b->held_bytes += c->content_bytes;
	b->n->answered++;
	begin_writing(c);
}

/* ---- taking requests ---- */

static bool wants_close(const struct head_request *q)
{
	static const struct head_text word = { "close", 5 };

	for (unsigned i = 0; i < q->head.count; i++)
		if (head_is(q->head.fields[i].name, "Connection") &&
		    head_lists(q->head.fields[i].value, word))
			return true;
	return !q->minor;
}

static bool has_body(const struct head_request *q)
{
	const struct head_field *f = head_find(&q->head, "Content-Length");
	uint64_t bytes;

	return head_find(&q->head, "Transfer-Encoding") ||
	       head_count(&q->head, "Content-Length") > 1 ||
	       (f && (!head_number(f->value, &bytes) || bytes));
}

static void ask(struct bridge_client *c)
{
	c->state = BRIDGE_ASKED;
	set_time(c, c->b->o->timeout_ms);
	want(c, 0);
	if (bridge_service_ask(c->b, c->number, c->request, c->request_bytes)) {
		bridge_client_close(c);
		return;
	}
	free(c->request);
	c->request = NULL;
}

void bridge_client_go_on(struct bridge_client *c)
{
	ask(c);
}

/* A number that other processes cannot guess and from which the slot follows. 0: the kernel gave no
 * random number. */
static uint64_t new_number(const struct bridge_client *c)
{
	const uint64_t slots = c->b->o->clients_max;
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return 0;
	/* The number in a head has 63 bits (head_number()). */
	return ((n >> 2) / slots + 1) * slots + c->slot;
}

static void take_request(struct bridge_client *c, const struct head_request *q)
{
	struct bridge *b = c->b;
	struct head_text first = q->head.first;
	char line[64 + BRIDGE_HEAD_MAX];

	b->n->requests++;
	c->head_only = q->method == HEAD_HEAD;
	c->close_after = wants_close(q);
	if (has_body(q)) {
		bridge_client_fail(c, 501, "the bridge carries no content of requests");
		return;
	}
	/* The service is asked in our own version. */
	first = (struct head_text){ line, (size_t)snprintf(line, sizeof(line), "%.*s HTTP/1.1",
		(int)(q->target.at + q->target.bytes - first.at), first.at) };
	c->request = copy_head(&q->head, first, 128, &c->request_bytes);
	if (!c->request) {
		bridge_client_close(c);
		return;
	}
	c->number = new_number(c);
	if (!c->number) {
		bridge_client_fail(c, 503, "no random number");
		return;
	}
	c->request_bytes += (size_t)sprintf(c->request + c->request_bytes,
		"%sRipc-Request: %" PRIu64 "\r\n\r\n", q->minor ? "" : "Host: ripc\r\n",
		c->number);
	if (b->held_bytes >= b->o->held_bytes_max) {
		c->state = BRIDGE_HELD;
		set_time(c, b->o->timeout_ms);
		want(c, 0);
	} else {
		ask(c);
	}
}

static void refuse(struct bridge_client *c, int err)
{
	c->head_only = false;
	bridge_client_fail(c, err == -E2BIG ? 431 : err == -EPROTONOSUPPORT ? 505 : 400,
			   err == -E2BIG ? "the head is too long" :
			   "not a request of HTTP/1.1");
}

/* Empty lines before a request are allowed (RFC 9112, 2.2). */
static void skip_empty_lines(struct bridge_client *c)
{
	size_t n = 0;

	while (n + 1 < c->have && c->bytes[n] == '\r' && c->bytes[n + 1] == '\n')
		n += 2;
	memmove(c->bytes, c->bytes + n, c->have - n);
	c->have -= n;
}

/* The next request of what was read. */
static void work(struct bridge_client *c)
{
	struct head_request q;
	int ret;

	skip_empty_lines(c);
	ret = head_request_parse(&q, c->bytes, c->have);
	if (ret == -EAGAIN && c->have == sizeof(c->bytes))
		ret = -E2BIG;
	if (ret == -EAGAIN && c->end_read) {
		bridge_client_close(c);
	} else if (ret == -EAGAIN) {
		want(c, EPOLLIN);
	} else if (ret) {
		refuse(c, ret);
	} else {
		size_t bytes = q.head.bytes;
		char *rest = c->bytes + bytes;
		size_t left = c->have - bytes;
		struct bridge_client **slot = &c->b->slots[c->slot];

		/* The text of the head is needed until it was copied. */
		c->have = bytes;
		take_request(c, &q);
		if (*slot) { /* else it was closed */
			memmove(c->bytes, rest, left);
			c->have = left;
		}
	}
}

/* False: it was closed. */
static bool read_some(struct bridge_client *c)
{
	size_t room = sizeof(c->bytes) - c->have;
	ssize_t n = recv(c->fd, c->bytes + c->have, room, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0 || (!n && !c->have)) {
		bridge_client_close(c);
		return false;
	}
	c->end_read |= !n;
	c->have += (size_t)n;
	return true;
}

void bridge_client_ready(struct bridge_client *c, uint32_t events)
{
	if (c->state == BRIDGE_ENDING) {
		c->have = 0;
		read_some(c);
	} else if (c->state == BRIDGE_WRITING) {
		go_on_writing(c);
	} else if (c->state == BRIDGE_READING) {
		if (read_some(c))
			work(c);
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		bridge_client_close(c);
	}
}

void bridge_client_late(struct bridge_client *c)
{
	if (c->state == BRIDGE_ASKED || c->state == BRIDGE_HELD) {
		bridge_client_fail(c, 504, "the service has not answered in time");
	} else if (c->state == BRIDGE_READING && c->have) {
		c->head_only = false;
		bridge_client_fail(c, 408, "the request did not come to its end");
	} else {
		c->b->n->cut += c->state == BRIDGE_WRITING;
		bridge_client_close(c);
	}
}
