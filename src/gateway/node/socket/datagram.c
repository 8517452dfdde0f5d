/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing datagrams: the samples of one write in as few as they fit in (or in one
 * each), all of them with one system call.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/* A peer that takes one datagram in two seconds would delay each one by two seconds. */
#define STUCK_UNTIL 16

/* The destination does not exist (yet), as far as the system knows. */
static bool is_absence(int err)
{
	return err == ECONNREFUSED || err == ENOENT || err == ENETUNREACH ||
	       err == EHOSTUNREACH || err == ENETDOWN || err == EHOSTDOWN ||
	       err == ENOTCONN;
}

/* `lose`: node_refuse() or node_lose(). */
static void note_unsent(struct socket_node *s, size_t len, int err,
			unsigned samples,
			void (*lose)(struct node *n, enum node_loss cause,
				     uint64_t count, const char *fmt, ...))
{
	char text[SOCKET_ADDRESS_MAX];

	socket_address_print(&s->remote, text);
	if (err == EMSGSIZE)
		lose(s->node, NODE_LOSS_TOO_LONG, samples,
		     "%zu bytes are more than the network to %s takes; out.datagram_size limits what is put together",
		     len, text);
	else if (err == EAGAIN)
		lose(s->node, s->out.full == FULL_DROP ? NODE_LOSS_FULL :
							 NODE_LOSS_STUCK,
		     samples, "%s takes too little", text);
	else
		lose(s->node, is_absence(err) ? NODE_LOSS_ABSENT :
						NODE_LOSS_REFUSED,
		     samples, "to %s: %s", text, strerror(err));
}

/*
 * One datagram that the first attempt had no room for. SO_SNDTIMEO lets the
 * attempts look around now and then. 0 or a positive errno.
 */
static int send_patiently(struct socket_node *s, struct msghdr *h)
{
	struct datagram_tx *tx = &s->datagram->tx;
	unsigned asked = atomic_load(&s->write_interrupts);
	uint64_t since_ns = clock_now_ns();
	bool block = s->out.full == FULL_BLOCK && !tx->stuck;

	for (;;) {
		if (sendmsg(s->datagram->fd, h,
			    MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT)) >= 0) {
			tx->stuck -= tx->stuck > 0;
			return 0;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != ENOBUFS)
			return errno;
		if (!block)
			return EAGAIN;
		if (clock_now_ns() - since_ns > SOCKET_STUCK_NS ||
		    atomic_load(&s->write_interrupts) - asked >= SOCKET_INTERRUPTS) {
			tx->stuck = STUCK_UNTIL;
			return EAGAIN;
		}
	}
}

/* A datagram was refused; 0 when it went after all, else a positive errno. */
static int repair(struct socket_node *s, struct msghdr *h, int err)
{
	/* ECONNREFUSED of UDP tells of an earlier one, this one did not go. */
	if (err == EAGAIN || err == ENOBUFS || err == EINTR ||
	    (err == ECONNREFUSED && s->layer != LAYER_UNIX))
		err = send_patiently(s, h);
	return err;
}

/* Sends what has been put together; returns the samples that went. */
static unsigned flush(struct socket_node *s)
{
	struct datagram_tx *tx = &s->datagram->tx;
	unsigned done = 0, samples = 0;

	while (done < tx->count) {
		struct mmsghdr *h = &tx->headers[done];
		unsigned left = tx->count - done;
		int n = left == 1 ?
			(sendmsg(s->datagram->fd, &h->msg_hdr,
				 MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1) :
			sendmmsg(s->datagram->fd, h, left,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (unlikely(n <= 0)) {
			int err = repair(s, &h->msg_hdr, errno);

			if (!err)
				samples += tx->samples[done];
			else
				note_unsent(s, h->msg_hdr.msg_iov->iov_len, err,
					    tx->samples[done], node_refuse);
			done++;
			continue;
		}
		tx->stuck -= MIN(tx->stuck, (unsigned)n);
		for (int i = 0; i < n; i++)
			samples += tx->samples[done++];
	}
	tx->count = 0;
	tx->used = 0;
	return samples;
}

void datagram_send_delayed(void *node, char *buf, size_t len)
{
	struct socket_node *s = node;
	struct iovec piece = { .iov_base = buf, .iov_len = len };
	struct msghdr h = {
		.msg_name = &s->remote.storage,
		.msg_namelen = s->remote.len,
		.msg_iov = &piece,
		.msg_iovlen = 1,
	};

	int err = 0;

	if (sendmsg(s->datagram->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		err = repair(s, &h, errno);
	/* How many samples are in it is not known any more: one at least. */
	if (err)
		note_unsent(s, len, err, 1, node_lose);
}

/* Through the emulated network: what it loses was accepted all the same. */
static unsigned flush_netem(struct socket_node *s)
{
	struct datagram_tx *tx = &s->datagram->tx;
	unsigned samples = 0;

	for (unsigned i = 0; i < tx->count; i++) {
		netem_put(s->netem, tx->pieces[i].iov_base,
			  tx->pieces[i].iov_len);
		samples += tx->samples[i];
	}
	tx->count = 0;
	tx->used = 0;
	return samples;
}

static unsigned flush_either(struct socket_node *s)
{
	return unlikely(s->netem != NULL) ? flush_netem(s) : flush(s);
}

/*
 * A format asks for the room that a sample may need; what it does need may be less.
 * Prints one sample with ample room. False after it has told that it is too long.
 */
static bool print_amply(struct socket_node *s, struct sample *smp, size_t *used)
{
	struct datagram_tx *tx = &s->datagram->tx;
	struct format *f = s->writer;
	int n = f->type->print(f, tx->arena, TX_ARENA, used, &smp, 1);

	if (n == 1 && *used <= tx->size_max)
		return true;
	if (n < 0)
		node_refuse(s->node, NODE_LOSS_FORMAT, 1, "format %s: %s",
			    f->type->name,
			    *format_error(f) ? format_error(f) : strerror(-n));
	else
		node_refuse(s->node, NODE_LOSS_TOO_LONG, 1,
			    "a sample of %u values is %zu bytes, a datagram has at most %zu",
			    smp->length,
			    n ? *used : message_sample_size(f, smp), tx->size_max);
	return false;
}

int datagram_write(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	struct datagram_tx *tx = &s->datagram->tx;
	struct format *f = s->writer;
	unsigned done = 0, sent = 0;

	while (done < cnt) {
		size_t room = MIN(tx->size_max, TX_ARENA - tx->used), used = 0;
		int n = f->type->print(f, tx->arena + tx->used, room, &used,
				       smps + done, s->out.pack ? cnt - done : 1);

		if (n <= 0 && tx->count) {
			/* Perhaps for want of room only. */
			sent += flush_either(s);
			continue;
		}
		if (unlikely(n <= 0)) {
			n = print_amply(s, smps[done], &used);
			done += !n;
			if (!n)
				continue;
		}
		tx->pieces[tx->count].iov_base = tx->arena + tx->used;
		tx->pieces[tx->count].iov_len = used;
		tx->samples[tx->count++] = (unsigned)n;
		tx->used += used;
		done += (unsigned)n;
		if (tx->count == TX_BATCH)
			sent += flush_either(s);
	}
	return (int)(sent + flush_either(s));
}
