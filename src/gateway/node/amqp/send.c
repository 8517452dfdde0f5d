/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes to the server: messages, and what it tells about them. */
#define LOG_ROOM "gateway/amqp"
#include "gateway/node/amqp/amqp.h"

#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Of a message: the frames around it, and what the kernel needs for up to three packets. */
#define OVERHEAD 8192
/* Kept free for acknowledgements and heartbeats. */
#define RESERVE 16384
/* Type, channel and size of a frame. */
#define FRAME_HEAD 7
/* What precedes the body of a message, with names of up to 255 bytes. */
#define HEAD_MAX 1280

/*
 * The library sends by a socket that does not block, but when this takes no more, it waits
 * with poll(), for as long as the server's silence lasts. So the node asks the kernel first.
 */

static uint64_t cost_of(size_t len)
{
	return len + len / 4 + OVERHEAD;
}

/* Bytes that the socket takes now, and `*most`, when it is empty. */
static uint64_t look_for_room(int fd, uint64_t *most)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);
	int size = 0, queued = 0;
	uint64_t used;

	if (!getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) &&
	    len > SK_MEMINFO_WMEM_QUEUED * sizeof(info[0])) {
		*most = info[SK_MEMINFO_SNDBUF];
		used = info[SK_MEMINFO_WMEM_QUEUED];
	} else {
		/* A kernel without SO_MEMINFO: half of the buffer is for its own use. */
		len = sizeof(size);
		if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len) ||
		    ioctl(fd, SIOCOUTQ, &queued))
			size = queued = 0;
		*most = (uint64_t)size / 2;
		used = (uint64_t)queued;
	}
	return *most > used ? *most - used : 0;
}

bool amqp_node_has_room(struct amqp_node *a, size_t len)
{
	uint64_t most;

	/* Only looked up again when what was known is used up. */
	if (a->room < cost_of(len))
		a->room = look_for_room(amqp_get_sockfd(a->state), &most);
	if (a->room < cost_of(len))
		return false;
	a->room -= cost_of(len);
	return true;
}

void amqp_node_make_room(struct amqp_node *a, int fd)
{
	uint64_t want = cost_of((size_t)a->outside.message_max) + RESERVE, most;
	/* The kernel allows twice of this. */
	int size = (int)MIN(want, (uint64_t)INT32_MAX / 2), all = -1;

	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &all, sizeof(all));
	look_for_room(fd, &most);
	if (most < want)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

/* The room is looked at again soon, and then less often. */
static int postpone(struct amqp_node *a)
{
	a->room_wait_ns = a->room_wait_ns ? MIN(2 * a->room_wait_ns, UINT64_C(16000000)) :
					    UINT64_C(1000000);
	return -EAGAIN;
}

/* 0, -EAGAIN: not now, or -EMSGSIZE: never. */
static int check_room(struct amqp_node *a, size_t len)
{
	uint64_t most;

	if (amqp_node_has_room(a, len + RESERVE)) {
		a->room += cost_of(len + RESERVE) - cost_of(len);
		return 0;
	}
	look_for_room(amqp_get_sockfd(a->state), &most);
	if (most < cost_of(len + RESERVE))
		return outside_fail(&a->outside, -EMSGSIZE,
				    "a message of %zu bytes: the socket's buffer has %llu (net.core.wmem_max)",
				    len, (unsigned long long)most);
	return postpone(a);
}

/* ---- messages ---- */

/* Writes the number `n` of `bytes` bytes; returns the end. */
static unsigned char *put(unsigned char *at, uint64_t n, unsigned bytes)
{
	while (bytes--)
		*at++ = (unsigned char)(n >> 8 * bytes);
	return at;
}

static unsigned char *begin_frame(unsigned char *at, unsigned type, size_t size)
{
	return put(put(put(at, type, 1), AMQP_NODE_CHANNEL, 2), size, 4);
}

/* Writes what precedes a body of `len` bytes: a frame for the method, one for the properties, and
 * the beginning of a third. Returns the length. */
static size_t put_head(unsigned char head[HEAD_MAX], amqp_basic_publish_t *method,
		       amqp_basic_properties_t *properties, size_t len)
{
	unsigned char *at = head + FRAME_HEAD + 4;
	/* Names have up to 255 bytes, and are the longest part of both. */
	int size = amqp_encode_method(AMQP_BASIC_PUBLISH_METHOD, method,
				      (amqp_bytes_t){ 3 * 256, at });

	assert(size > 0);
	put(begin_frame(head, AMQP_FRAME_METHOD, 4 + (size_t)size), AMQP_BASIC_PUBLISH_METHOD, 4);
	at = put(at + size, AMQP_FRAME_END, 1);
	size = amqp_encode_properties(AMQP_BASIC_CLASS, properties,
				      (amqp_bytes_t){ 256, at + FRAME_HEAD + 12 });
	assert(size > 0);
	at = begin_frame(at, AMQP_FRAME_HEADER, 12 + (size_t)size);
	at = put(put(at, AMQP_BASIC_CLASS << 16, 4), len, 8);
	at = put(at + size, AMQP_FRAME_END, 1);
	return (size_t)(begin_frame(at, AMQP_FRAME_BODY, len) - head);
}

/* Sends all of it. 0; -EAGAIN, and nothing was sent; or another errno, and the connection is
 * broken. */
static int send_all(struct amqp_node *a, struct iovec *part, size_t count)
{
	struct pollfd p = { .fd = amqp_get_sockfd(a->state), .events = POLLOUT };
	bool begun = false;

	while (count) {
		struct msghdr m = { .msg_iov = part, .msg_iovlen = count };
		ssize_t n = sendmsg(p.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0 && !begun)
			return -EAGAIN;
		/* The kernel had room for the message, but no memory. As long as the library waits. */
		if (n < 0 && !poll(&p, 1, 2 * (int)a->heartbeat_s * 1000))
			return -ETIMEDOUT;
		for (begun = true; n > 0 && (size_t)n >= part->iov_len; part++, count--)
			n -= (ssize_t)part->iov_len;
		if (n > 0) {
			part->iov_base = (char *)part->iov_base + n;
			part->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* The library sends each frame of a message by itself. Most messages need only three, which go
 * by one call. As amqp_basic_publish(), but returns as send_all(). */
static int publish_at_once(struct amqp_node *a, amqp_basic_properties_t *properties,
			   const struct outbox_message *m)
{
	amqp_basic_publish_t method = { .exchange = amqp_cstring_bytes(a->exchange),
					.routing_key = amqp_cstring_bytes(a->out_key ?: ""),
					.mandatory = a->mandatory };
	unsigned char head[HEAD_MAX], end = AMQP_FRAME_END;
	struct iovec parts[] = { { head, put_head(head, &method, properties, m->len) },
				 { (void *)(uintptr_t)m->data, m->len }, { &end, 1 } };

	return send_all(a, parts, ARRAY_SIZE(parts));
}
/* 0 or a negative errno. */
static int publish(struct amqp_node *a, amqp_basic_properties_t *properties,
		   const struct outbox_message *m)
{
	/* With the end of the frame. */
	bool is_one_frame = m->len && m->len + FRAME_HEAD + 1 <= (size_t)amqp_get_frame_max(a->state);
	int ret, status;

	if (!a->tls.enabled && is_one_frame) {
		ret = publish_at_once(a, properties, m);
		if (ret == -EAGAIN)
			return postpone(a);
		a->failed = ret;
		return ret ? outside_fail(&a->outside, ret, "sending: %s", strerror(-ret)) : 0;
	}
	status = amqp_basic_publish(a->state, AMQP_NODE_CHANNEL, amqp_cstring_bytes(a->exchange),
				    amqp_cstring_bytes(a->out_key ?: ""), a->mandatory, 0, properties,
				    (amqp_bytes_t){ m->len, (void *)(uintptr_t)m->data });
	a->failed = status;
	return status ? amqp_node_fail(a, -EIO, "sending", status) : 0;
}

int amqp_node_send(struct outside *o, struct outbox_message *m)
{
	struct amqp_node *a = amqp_node_of(o);
	amqp_basic_properties_t p = { ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG,
				      .delivery_mode = a->persistent ? 2 : 1 };
	char id[24];
	int ret;

	if (a->blocked)
		return -EAGAIN;
	if (a->mandatory) {
		/* By this the node knows it when it comes back. */
		snprintf(id, sizeof(id), "%llu", (unsigned long long)a->published + 1);
		p._flags |= AMQP_BASIC_MESSAGE_ID_FLAG;
		p.message_id = amqp_cstring_bytes(id);
	}
	ret = check_room(a, m->len) ?: publish(a, &p, m);
	if (ret)
		return ret;
	a->room_wait_ns = 0;
	m->tag = ++a->published;
	return OUTSIDE_UNCONFIRMED;
}

/* ---- what the server tells about them ---- */

int amqp_node_on_confirm(struct amqp_node *a, uint64_t tag, bool all_before, bool taken)
{
	struct outside *o = &a->outside;

	/* 0 with all_before: all of them. */
	if (!tag && all_before)
		tag = a->published;
	if (tag > a->published)
		return outside_fail(o, -EPROTO, "the server confirms what was not sent");
	if (taken)
		outside_confirm(o, tag, all_before);
	else if (all_before)
		outside_reject_all(o, tag, "the server cannot take it (basic.nack)");
	else
		outside_reject(o, tag, "the server cannot take it (basic.nack)");
	return 0;
}

void amqp_node_on_return(struct amqp_node *a, amqp_bytes_t id)
{
	uint64_t tag = 0;

	for (size_t i = 0; i < id.len && i < 20; i++) {
		unsigned digit = (unsigned)((const unsigned char *)id.bytes)[i] - '0';

		if (digit > 9)
			return;
		tag = tag * 10 + digit;
	}
	node_figure_add(a->outside.node, AMQP_NODE_RETURNED, 1);
	outside_reject(&a->outside, tag, "no queue takes it (mandatory)");
}
