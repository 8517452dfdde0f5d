/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading datagrams; see datagrams.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/datagrams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

struct datagram_reader *datagram_reader_new(struct socket_ends *e)
{
	const size_t size = DATAGRAM_MAX + 1;
	struct datagram_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->ends = e;
	r->want = 2;
	/* Pages that are never used cost nothing. */
	r->buffers = malloc(DATAGRAM_RX_BATCH * size);
	if (!r->buffers) {
		free(r);
		return NULL;
	}
	for (unsigned i = 0; i < DATAGRAM_RX_BATCH; i++) {
		r->pieces[i] = (struct iovec){ .iov_base = r->buffers + i * size,
					       .iov_len = DATAGRAM_MAX };
		r->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &r->from[i].storage,
			.msg_iov = &r->pieces[i],
			.msg_iovlen = 1,
			.msg_control = r->control[i],
		};
	}
	return r;
}

void datagram_reader_free(struct datagram_reader *r)
{
	if (r)
		free(r->buffers);
	free(r);
}

/* Takes the kernel's time stamp, and its counter of datagrams that found no room. */
static void take_control(struct datagram_reader *r, struct msghdr *h, struct datagram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		uint32_t lost;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&d->message.received, CMSG_DATA(c), sizeof(d->message.received));
		} else if (c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&lost, CMSG_DATA(c), sizeof(lost));
			if (lost == r->overruns)
				continue;
			fault_note(&r->ends->faults, FAULT_OVERRUN, lost - r->overruns,
				   "a larger in.buffer_size may help");
			r->overruns = lost;
		}
	}
}

static void take_datagram(struct datagram_reader *r, unsigned i, struct timespec now)
{
	const struct format *f = r->ends->reader;
	struct msghdr *h = &r->headers[i].msg_hdr;
	struct datagram *d = &r->datagrams[r->count];
	struct message *m = &d->message;

	*d = (struct datagram){
		.message = { .at = r->pieces[i].iov_base,
			     .len = r->headers[i].msg_len,
			     .padded = r->ends->layer == LAYER_ETH,
			     .received = now },
		.from = &r->from[i],
	};
	r->from[i].len = h->msg_namelen;
	if (h->msg_controllen)
		take_control(r, h, d);
	if (unlikely(h->msg_flags & MSG_TRUNC)) {
		fault_note(&r->ends->faults, FAULT_TRUNCATED, 1, "more than %u bytes",
			   DATAGRAM_MAX);
		return;
	}
	if ((r->take && !r->take(r->ends, d)) || !m->len)
		return;
	/* Senders of a single line often omit its line end. */
	if (f->type->lines && m->at[m->len - 1] != f->delimiter)
		m->at[m->len++] = f->delimiter;
	r->count++;
}

/* One system call. The number of datagrams, also unwanted ones, or -errno. */
static int receive(struct datagram_reader *r)
{
	unsigned want = r->want;
	struct timespec now;
	int n;

	for (unsigned i = 0; i < want; i++) {
		r->headers[i].msg_hdr.msg_namelen = sizeof(r->from[i].storage);
		r->headers[i].msg_hdr.msg_controllen = DATAGRAM_CONTROL_SIZE;
	}
	n = recvmmsg(r->ends->fd, r->headers, want, MSG_DONTWAIT, NULL);
	r->drained = n < (int)want;
	if (n <= 0)
		return n ? -errno : -EAGAIN;
	/* Always one more than is expected: less than asked for says that the queue is
	 * empty, without another system call. */
	r->want = r->drained ? (unsigned)n + 1 : MIN(2 * want, DATAGRAM_RX_BATCH);
	now = clock_realtime();
	r->next = r->count = 0;
	for (int i = 0; i < n; i++)
		take_datagram(r, (unsigned)i, now);
	return n;
}

static unsigned take_samples(struct datagram_reader *r, struct sample *smps[], unsigned cnt)
{
	struct socket_ends *e = r->ends;
	unsigned n = 0;

	while (n < cnt && r->next < r->count) {
		struct datagram *d = &r->datagrams[r->next];

		if (r->scan)
			n += r->scan(e, d, smps + n, cnt - n);
		else
			n += message_scan(&d->message, e->reader, smps + n, cnt - n, &e->faults);
		if (d->message.pos < d->message.len)
			break;
		r->next++;
	}
	return n;
}

/* For a path that waits for the descriptors: never sleeps. */
static int read_polled(struct datagram_reader *r, struct sample *smps[], unsigned cnt)
{
	struct socket_wait *wait = &r->ends->wait;
	unsigned n;
	int ret = 0;

	socket_wait_clear(wait);
	n = take_samples(r, smps, cnt);
	if (!n)
		ret = receive(r);
	if (ret > 0)
		n = take_samples(r, smps, cnt);
	if (r->next < r->count)
		socket_wait_kick(wait); /* not seen at the socket any more */
	return n ? (int)n : ret < 0 && ret != -EAGAIN ? ret : 0;
}

/* For a path that waits itself: asks the kernel once. */
static int read_awaited(struct datagram_reader *r, struct sample *smps[], unsigned cnt)
{
	unsigned n = take_samples(r, smps, cnt);
	int ret;

	if (n)
		return (int)n;
	if (socket_wait_interrupted(&r->ends->wait))
		return -EINTR;
	ret = receive(r);
	if (ret > 0)
		return (int)take_samples(r, smps, cnt);
	return ret == -EINTR || ret == -ECONNREFUSED ? 0 : ret;
}

int datagram_read(struct datagram_reader *r, struct sample *smps[], unsigned cnt)
{
	struct socket_ends *e = r->ends;
	struct socket_idle idle = { 0 };

	if (atomic_load_explicit(&e->wait.polled, memory_order_relaxed))
		return read_polled(r, smps, cnt);
	if (e->node->in.awaited)
		return read_awaited(r, smps, cnt);
	for (;;) {
		unsigned n = take_samples(r, smps, cnt);
		int ret;

		if (n)
			return (int)n;
		if (socket_wait_interrupted(&e->wait))
			return -EINTR;
		/* Nothing was left there: sleep first, ask then. */
		if (r->drained && !socket_wait_spin(&e->wait, &idle))
			socket_wait_sleep(&e->wait, e->fd, UINT64_MAX);
		ret = receive(r);
		if (ret > 0)
			idle = (struct socket_idle){ 0 };
		else if (ret != -EAGAIN && ret != -EINTR && ret != -ECONNREFUSED)
			return ret;
	}
}
