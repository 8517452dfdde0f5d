/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing datagrams; see datagrams.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/datagrams.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

#define ARENA_BYTES (256u << 10)

struct datagram_writer *datagram_writer_new(struct socket_ends *e)
{
	struct datagram_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->ends = e;
	w->samples_max = UINT_MAX;
	w->arena = malloc(ARENA_BYTES);
	if (!w->arena) {
		free(w);
		return NULL;
	}
	for (unsigned i = 0; i < DATAGRAM_TX_BATCH; i++)
		w->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &e->remote.storage,
			.msg_namelen = e->remote.len,
			.msg_iov = &w->pieces[i],
			.msg_iovlen = 1,
		};
	return w;
}

void datagram_writer_free(struct datagram_writer *w)
{
	if (w)
		free(w->arena);
	free(w);
}

/* The destination does not exist (yet), as far as the system knows. */
static bool is_absence(int err)
{
	return err == ECONNREFUSED || err == ENOENT || err == ENETUNREACH ||
	       err == EHOSTUNREACH || err == ENETDOWN || err == EHOSTDOWN ||
	       err == ENOTCONN;
}

/* `lose`: node_refuse() or node_lose(). */
static void note_unsent(struct datagram_writer *w, size_t len, int err, unsigned samples,
			void (*lose)(struct node *n, enum node_loss cause, uint64_t count,
				     const char *fmt, ...))
{
	struct node *n = w->ends->node;
	char text[SOCKET_ADDRESS_MAX];

	socket_address_print(&w->ends->remote, text);
	if (err == EMSGSIZE)
		lose(n, NODE_LOSS_TOO_LONG, samples,
		     "%zu bytes are more than the network to %s takes; %s limits what is put together",
		     len, text, w->size_key);
	else if (err == EAGAIN)
		lose(n, w->drop ? NODE_LOSS_FULL : NODE_LOSS_STUCK, samples,
		     "%s takes too little", text);
	else
		lose(n, is_absence(err) ? NODE_LOSS_ABSENT : NODE_LOSS_REFUSED, samples,
		     "to %s: %s", text, strerror(err));
}

/*
 * Tries one datagram again that was refused with `err`. SO_SNDTIMEO ends each attempt after
 * SOCKET_BLOCK_MS. 0, or a positive errno: EAGAIN if the peer takes nothing.
 */
static int send_again(struct datagram_writer *w, struct msghdr *h, int err)
{
	struct socket_ends *e = w->ends;
	unsigned asked = atomic_load(&e->write_interrupts);
	uint64_t since_ns = clock_now_ns();
	bool block = !w->drop && !w->stuck;

	/* ECONNREFUSED of UDP tells of an earlier datagram; this one did not go. */
	if (err != EAGAIN && err != ENOBUFS && err != EINTR &&
	    (err != ECONNREFUSED || e->layer == LAYER_UNIX))
		return err;
	for (;;) {
		if (sendmsg(e->fd, h, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT)) >= 0) {
			w->stuck -= w->stuck > 0;
			return 0;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != ENOBUFS)
			return errno;
		if (!block)
			return EAGAIN;
		if (clock_now_ns() - since_ns > w->patience_ns ||
		    atomic_load(&e->write_interrupts) - asked >= SOCKET_INTERRUPTS) {
			w->stuck = w->stuck_max;
			return EAGAIN;
		}
	}
}

unsigned datagram_send(struct datagram_writer *w, unsigned first)
{
	struct mmsghdr *h = &w->headers[first];
	unsigned left = w->count - first;
	int fd = w->ends->fd, n, err;

	if (left == 1)
		n = sendmsg(fd, &h->msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1 : 1;
	else
		n = sendmmsg(fd, h, left, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (likely(n > 0)) {
		w->stuck -= MIN(w->stuck, (unsigned)n);
		return (unsigned)n;
	}
	err = send_again(w, &h->msg_hdr, errno);
	if (!err)
		return 1;
	note_unsent(w, w->pieces[first].iov_len, err, w->samples[first], node_refuse);
	return 0;
}

void datagram_send_late(struct datagram_writer *w, char *buf, size_t len)
{
	struct iovec piece = { .iov_base = buf, .iov_len = len };
	struct msghdr h = w->headers[0].msg_hdr;
	int err = 0;

	h.msg_iov = &piece;
	if (sendmsg(w->ends->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		err = send_again(w, &h, errno);
	/* How many samples are in it is not known any more: one at least. */
	if (err)
		note_unsent(w, len, err, 1, node_lose);
}

/* Sends what has been put together; returns the samples that went. */
static unsigned flush(struct datagram_writer *w)
{
	unsigned done = 0, samples = 0;

	while (done < w->count) {
		unsigned n = w->send ? w->send(w->ends, done) : datagram_send(w, done);

		done += !n;
		for (; n > 0; n--)
			samples += w->samples[done++];
	}
	w->count = 0;
	w->used = 0;
	return samples;
}

/*
 * A format asks for the room that a sample may need; what it does need may be less.
 * Prints one sample with ample room. False after it has counted the loss.
 */
static bool print_amply(struct datagram_writer *w, struct sample *smp, size_t *used)
{
	struct format *f = w->ends->writer;
	size_t max = w->size_max - w->head;
	int n = f->type->print(f, w->arena + w->head, ARENA_BYTES - w->head, used, &smp, 1);

	if (n == 1 && *used <= max)
		return true;
	message_refuse(w->ends->node, f, smp, n, *used, w->limit, max);
	return false;
}

int datagram_write(struct datagram_writer *w, struct sample *smps[], unsigned cnt)
{
	struct format *f = w->ends->writer;
	unsigned done = 0, sent = 0;

	while (done < cnt) {
		size_t room = MIN(w->pack_max, ARENA_BYTES - w->used), used = 0;
		int n = 0;

		if (likely(room > w->head))
			n = f->type->print(f, w->arena + w->used + w->head, room - w->head,
					   &used, smps + done, MIN(cnt - done, w->samples_max));
		if (n <= 0 && w->count) {
			/* Perhaps for want of room only. */
			sent += flush(w);
			continue;
		}
		if (unlikely(n <= 0)) {
			n = print_amply(w, smps[done], &used);
			done += !n;
			if (!n)
				continue;
		}
		if (w->add)
			w->add(w->ends, w->count, smps[done]);
		w->pieces[w->count].iov_base = w->arena + w->used;
		w->pieces[w->count].iov_len = w->head + used;
		w->samples[w->count++] = (unsigned)n;
		w->used += w->head + used;
		done += (unsigned)n;
		if (w->count == DATAGRAM_TX_BATCH)
			sent += flush(w);
	}
	return (int)(sent + flush(w));
}
