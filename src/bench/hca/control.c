/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the ends tell each other beside the measurement, by a stream socket: who they are, and
 * the beginning and the end of each burst. Within a host the end of a burst is a word in
 * shared memory, because the receiver looks at it between two polls.
 */
#define LOG_ROOM "bench/hca"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/hca/end.h"

#define MAGIC 0x31616368u /* "hca1" */
#define LOOK_NS (1 * UINT64_C(1000000))
#define POLL_MS 50
#define READY 'R'
#define SENT 'S'

static int gone(int err)
{
	return log_fail(-ECONNRESET, "the other end is gone%s%s", err ? ": " : "",
			err ? strerror(err) : "");
}

int hca_control_send(struct hca_end *e, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(e->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR) {
			if (hca_end_stopped(e))
				return -EINTR;
			continue;
		}
		if (n < 0)
			return gone(errno);
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int hca_control_receive(struct hca_end *e, void *data, size_t len)
{
	struct pollfd pfd = { .fd = e->fd, .events = POLLIN };
	char *p = data;

	while (len) {
		ssize_t n;

		if (hca_end_stopped(e))
			return -EINTR;
		if (poll(&pfd, 1, POLL_MS) <= 0)
			continue;
		n = recv(e->fd, p, len, 0);
		if (n == 0)
			return hca_end_stopped(e) ? -EINTR : gone(0);
		if (n < 0 && errno != EINTR)
			return gone(errno);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int hca_control_hello(struct hca_end *e)
{
	int ret;

	e->mine.magic = MAGIC;
	ret = hca_control_send(e, &e->mine, sizeof(e->mine)) ?:
	      hca_control_receive(e, &e->theirs, sizeof(e->theirs));
	if (ret)
		return ret;
	e->theirs.ip[sizeof(e->theirs.ip) - 1] = '\0';
	if (e->theirs.magic == MAGIC)
		return 0;
	return log_fail(-EPROTO, "the other end speaks another version of this protocol");
}

static int take_byte(struct hca_end *e, char expected)
{
	char byte;
	int ret = hca_control_receive(e, &byte, 1);

	if (ret || byte == expected)
		return ret;
	return log_fail(-EPROTO, "the other end sent '%c' instead of '%c'", byte, expected);
}

int hca_control_ready(struct hca_end *e)
{
	const char ready = READY;

	if (e->side == HCA_RECEIVER)
		return hca_control_send(e, &ready, 1);
	return take_byte(e, READY);
}

/* Remote: the word of the sender, if it is there. */
static int look_remote(struct hca_end *e, uint64_t now_ns)
{
	char byte;
	ssize_t n;

	if (e->peer_done)
		return 1;
	if (now_ns - e->control_ns < LOOK_NS)
		return 0;
	e->control_ns = now_ns;
	n = recv(e->fd, &byte, 1, MSG_DONTWAIT);
	if (n == 0)
		return gone(0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : gone(errno);
	e->peer_done = true;
	return byte == SENT ? 1 : -EPROTO;
}

int hca_control_look(struct hca_end *e, unsigned burst, uint64_t now_ns)
{
	if (hca_end_stopped(e))
		return -EINTR;
	if (e->c->remote)
		return look_remote(e, now_ns);
	return atomic_load_explicit(&e->s->bursts_sent, memory_order_acquire) > burst;
}

int hca_control_sent(struct hca_end *e)
{
	const char sent = SENT;
	int ret = 0;

	if (e->side == HCA_SENDER) {
		if (e->c->remote)
			return hca_control_send(e, &sent, 1);
		atomic_store(&e->s->nudge, true);
		atomic_fetch_add(&e->s->bursts_sent, 1);
		return 0;
	}
	if (e->c->remote && !e->peer_done)
		ret = take_byte(e, SENT);
	e->peer_done = false;
	return ret;
}
