/* SPDX-License-Identifier: BSD-2-Clause */
/* The carrier over the connection to a running fabric; see plugged.h. */
#include "transport/fabric/plugged.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/carrier/drainer.h"
#include "transport/fabric/link.h"
#include "util/cancel.h"
#include "util/cancel_net.h"
#include "util/clock.h"
#include "util/container_of.h"

#define BATCH 32u /* messages that one system call reads */
#define MESSAGE_BYTES (sizeof(struct plug_head) + PLUG_PACKET_BYTES)
#define SEND_NS NSEC_PER_SEC
#define QPN_GSI 1
/* Of a train: a head for each packet, and at each border of packets a piece may be cut. */
#define PIECES (CARRIER_IOV_MAX + 2 * PLUGGED_TRAIN_PACKETS)

_Static_assert(MESSAGE_BYTES >= sizeof(struct plug_head) + sizeof(struct plug_welcome) &&
	       MESSAGE_BYTES >= sizeof(struct plug_head) + sizeof(struct plug_port), "has room");

struct message {
	uint32_t bytes;
	_Alignas(struct plug_head) uint8_t at[MESSAGE_BYTES];
};

struct plugged {
	struct carrier carrier;
	int fd;
	void (*message)(const struct plug_head *head, const void *body);
	void (*management)(const struct carrier_unit *unit);
	void (*ended)(void);
	atomic_bool blocked; /* an emit waits for room */
	atomic_bool gone;    /* the connection has ended */
	bool told;           /* `ended` was called; of who drains */
	atomic_uint_fast64_t malformed;

	pthread_mutex_t lock; /* a leaf: one thread sends at a time; of the next two */
	struct message *left; /* packets of a train that the socket had no room for */
	_Atomic unsigned left_at, left_count;

	struct drainer drainer;
	struct message in[BATCH];
	struct mmsghdr heads[BATCH];
	struct iovec iov[BATCH];
};

static struct plugged *plugged_of(struct carrier *c)
{
	return container_of(c, struct plugged, carrier);
}

/* ---- emitting ---- */

/* The messages of a unit. */
struct burst {
	struct {
		struct plug_head plug;
		uint8_t link[FABRIC_LINK_BYTES];
	} heads[PLUGGED_TRAIN_PACKETS];
	struct mmsghdr messages[PLUGGED_TRAIN_PACKETS];
	struct iovec iov[PIECES];
};

/* A place in the pieces of a unit. */
struct cursor {
	const struct iovec *piece;
	size_t offset;
};

/* Refers to the next `bytes` of the unit; how many pieces that took. */
static unsigned cut(struct cursor *at, size_t bytes, struct iovec *to)
{
	unsigned n = 0;

	while (bytes) {
		size_t here = MIN(bytes, at->piece->iov_len - at->offset);

		if (here)
			to[n++] = (struct iovec){ (uint8_t *)at->piece->iov_base + at->offset, here };
		bytes -= here;
		at->offset += here;
		if (at->offset == at->piece->iov_len) {
			at->piece++;
			at->offset = 0;
		}
	}
	return n;
}

static bool is_acknowledgement(const struct mmsghdr *m)
{
	const uint8_t *bth = m->msg_hdr.msg_iov[1].iov_base;

	return (bth[0] & IB_OPERATION_MASK) == IB_ACKNOWLEDGE;
}

/* A train may end with the acknowledgement of what its first packets answer. Programs expect to find
 * the completion of a message before the answer to it; a train that arrives as one unit is delivered
 * so (transport/packet), and of this one the acknowledgement leaves first. */
static void order(struct burst *b, unsigned packets)
{
	const struct mmsghdr last = b->messages[packets - 1];

	if (packets < 2 || !is_acknowledgement(&last))
		return;
	memmove(&b->messages[1], &b->messages[0], (packets - 1) * sizeof(last));
	b->messages[0] = last;
}

/* How many messages there are. */
static unsigned prepare(const struct carrier_unit *unit, size_t bytes, struct burst *b)
{
	const unsigned packets = carrier_unit_packets(unit, bytes);
	struct cursor at = { .piece = unit->iov };
	struct fabric_link link;
	unsigned pieces = 0;

	fabric_link_of(&unit->to, &unit->from, false, &link);
	for (unsigned k = 0; k < packets; k++) {
		const size_t length = carrier_packet_bytes(unit, bytes, k);
		const size_t headers = fabric_link_encode(&link, length, b->heads[k].link);
		struct iovec *iov = &b->iov[pieces];
		unsigned n = 1;

		b->heads[k].plug = (struct plug_head){ .type = PLUG_PACKET,
						       .bytes = (uint16_t)(headers + length) };
		iov[0] = (struct iovec){ &b->heads[k], sizeof(struct plug_head) + headers };
		n += cut(&at, length, iov + 1);
		b->messages[k] = (struct mmsghdr){ .msg_hdr = { .msg_iov = iov, .msg_iovlen = n } };
		pieces += n;
	}
	order(b, packets);
	return packets;
}

/* How many of the messages left: 0 to n, or a negative errno that ends the connection. */
static int send_some(struct plugged *p, struct mmsghdr *messages, unsigned n)
{
	int sent = cancel_free_sendmmsg(p->fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM ? 0 : -errno;
}

/* lock is held. */
static void keep(struct plugged *p, const struct burst *b, unsigned from, unsigned to)
{
	p->left_at = 0;
	for (unsigned k = from; k < to; k++) {
		struct message *m = &p->left[k - from];
		const struct msghdr *h = &b->messages[k].msg_hdr;

		m->bytes = 0;
		for (size_t i = 0; i < h->msg_iovlen; i++) {
			memcpy(m->at + m->bytes, h->msg_iov[i].iov_base, h->msg_iov[i].iov_len);
			m->bytes += (uint32_t)h->msg_iov[i].iov_len;
		}
	}
	p->left_count = to - from;
}

/* Sends what is left of a train. True: nothing is left. lock is held. */
static bool send_left(struct plugged *p)
{
	while (p->left_at < p->left_count) {
		struct message *m = &p->left[p->left_at];
		struct iovec iov = { m->at, m->bytes };
		struct mmsghdr message = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
		int sent = send_some(p, &message, 1);

		if (sent < 0) {
			atomic_store(&p->gone, true);
			break;
		}
		if (!sent)
			return false;
		p->left_at++;
	}
	p->left_at = p->left_count = 0;
	return true;
}

/* 0, or why it was not taken. */
static int emit_one(struct plugged *p, const struct carrier_unit *unit)
{
	const size_t bytes = carrier_unit_bytes(unit);
	struct burst b;
	unsigned n;
	int sent;

	if (!bytes || unit->count > CARRIER_IOV_MAX ||
	    carrier_unit_packets(unit, bytes) > PLUGGED_TRAIN_PACKETS)
		return -EINVAL;
	if (carrier_packet_bytes(unit, bytes, 0) + FABRIC_LINK_BYTES > PLUG_PACKET_BYTES)
		return -EMSGSIZE;
	if (atomic_load_explicit(&p->gone, memory_order_relaxed))
		return 0;
	if (!send_left(p))
		return -EAGAIN;
	n = prepare(unit, bytes, &b);
	sent = send_some(p, b.messages, n);
	if (sent < 0)
		atomic_store(&p->gone, true);
	else if (!sent)
		return -EAGAIN;
	else if ((unsigned)sent < n)
		keep(p, &b, (unsigned)sent, n);
	return 0;
}

static int plugged_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct plugged *p = plugged_of(c);
	unsigned taken = 0;
	int err = 0;

	pthread_mutex_lock(&p->lock);
	while (taken < n && !(err = emit_one(p, &units[taken])))
		taken++;
	pthread_mutex_unlock(&p->lock);
	if (err == -EAGAIN)
		atomic_store(&p->blocked, true);
	return taken ? (int)taken : err;
}

int plugged_send(struct carrier *c, enum plug_type type, uint32_t a, uint32_t b, const void *body,
		 size_t bytes)
{
	struct plugged *p = plugged_of(c);
	struct pollfd room = { .fd = p->fd, .events = POLLOUT };
	const uint64_t until_ns = clock_monotonic_ns_slow() + SEND_NS;
	int ret;

	CANCEL_OFF;
	for (;;) {
		pthread_mutex_lock(&p->lock);
		ret = send_left(p) ? plug_send(p->fd, type, a, b, body, bytes) : -EAGAIN;
		pthread_mutex_unlock(&p->lock);
		if (ret != -EAGAIN || clock_monotonic_ns_slow() > until_ns)
			return ret;
		poll(&room, 1, 10);
	}
}

/* ---- draining ---- */

static void deliver_packet(struct plugged *p, uint8_t *packet, size_t bytes)
{
	struct carrier_unit unit = { .count = 1 };
	struct fabric_link link;
	size_t headers = fabric_link_decode(packet, bytes, &link);
	struct iovec iov = { packet + headers, bytes - headers };

	if (!headers) {
		atomic_fetch_add(&p->malformed, 1);
		return;
	}
	fabric_link_ends(&link, &unit.to, &unit.from);
	unit.iov = &iov;
	if (unlikely(!packet[headers + 5] && !packet[headers + 6] && packet[headers + 7] == QPN_GSI))
		p->management(&unit);
	else
		carrier_deliver(&p->carrier, &unit);
}

static void take(struct plugged *p, struct message *m, size_t bytes)
{
	struct plug_head head;

	memcpy(&head, m->at, MIN(sizeof(head), bytes));
	if (!plug_check(&head, bytes)) {
		atomic_fetch_add(&p->malformed, 1);
		return;
	}
	if (head.type == PLUG_PACKET)
		deliver_packet(p, m->at + sizeof(head), head.bytes);
	else
		p->message(&head, m->at + sizeof(head));
}

/* How many messages came. The connection may have ended then. */
static unsigned read_some(struct plugged *p, unsigned most)
{
	int n = cancel_free_recvmmsg(p->fd, p->heads, most, MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ENOMEM && errno != ENOBUFS)
			atomic_store(&p->gone, true);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (!p->heads[i].msg_len) { /* there are no empty messages */
			atomic_store(&p->gone, true);
			return (unsigned)i;
		}
		if (p->heads[i].msg_hdr.msg_flags & MSG_TRUNC)
			atomic_fetch_add(&p->malformed, 1);
		else
			take(p, &p->in[i], p->heads[i].msg_len);
	}
	return (unsigned)n;
}

static void tell_writable(struct plugged *p)
{
	bool room;

	if (!atomic_load(&p->blocked))
		return;
	pthread_mutex_lock(&p->lock);
	room = send_left(p);
	pthread_mutex_unlock(&p->lock);
	if (room && atomic_exchange(&p->blocked, false))
		carrier_writable(&p->carrier);
}

static void tell_ended(struct plugged *p)
{
	if (likely(!atomic_load_explicit(&p->gone, memory_order_relaxed)) || p->told)
		return;
	p->told = true;
	p->ended();
}

static unsigned plugged_poll(struct carrier *c, unsigned budget)
{
	struct plugged *p = plugged_of(c);
	unsigned done = 0, n;

	do {
		if (!drainer_enter(&p->drainer))
			return done;
		do {
			n = atomic_load(&p->gone) ? 0 : read_some(p, MIN(BATCH, budget - done));
			done += n;
		} while (n == BATCH && done < budget);
		if (atomic_load_explicit(&p->left_count, memory_order_relaxed))
			atomic_store(&p->blocked, true);
		tell_writable(p);
		tell_ended(p);
	} while (drainer_leave(&p->drainer) && done < budget);
	return done;
}

static uint64_t plugged_next_ns(struct carrier *c)
{
	struct plugged *p = plugged_of(c);

	return atomic_load_explicit(&p->left_count, memory_order_relaxed) ? 0 : UINT64_MAX;
}

static void plugged_close(struct carrier *c)
{
	struct plugged *p = plugged_of(c);

	close(p->fd);
	free(p->left);
	free(p);
}

static const struct carrier_ops plugged_ops = {
	.emit = plugged_emit,
	.poll = plugged_poll,
	.next_ns = plugged_next_ns,
	.close = plugged_close,
};

int plugged_open(const struct plugged_params *params, struct carrier **out)
{
	struct plugged *p = calloc(1, sizeof(*p));

	if (p)
		p->left = calloc(PLUGGED_TRAIN_PACKETS, sizeof(*p->left));
	if (!p || !p->left) {
		free(p);
		return -ENOMEM;
	}
	p->carrier.ops = &plugged_ops;
	p->fd = params->fd;
	p->message = params->message;
	p->management = params->management;
	p->ended = params->ended;
	pthread_mutex_init(&p->lock, NULL);
	for (unsigned i = 0; i < BATCH; i++) {
		p->iov[i] = (struct iovec){ p->in[i].at, sizeof(p->in[i].at) };
		p->heads[i].msg_hdr = (struct msghdr){ .msg_iov = &p->iov[i], .msg_iovlen = 1 };
	}
	*out = &p->carrier;
	return 0;
}

void plugged_count(struct carrier *c, struct plugged_counters *out)
{
	out->malformed = atomic_load(&plugged_of(c)->malformed);
}
