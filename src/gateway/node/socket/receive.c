/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading datagrams. As many as are there are taken with one system call, into
 * buffers that were made before; what they hold beyond the samples asked for waits
 * in them.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/* Takes what the kernel says beside the data. */
static void take_control(struct socket_node *s, struct msghdr *h,
			 struct datagram_message *m)
{
	struct datagram_rx *rx = &s->datagram->rx;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		uint32_t lost;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&m->message.received, CMSG_DATA(c), sizeof(m->message.received));
		} else if (c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&lost, CMSG_DATA(c), sizeof(lost));
			if (lost == rx->overruns)
				continue;
			fault_note(&s->faults, FAULT_OVERRUN,
				   lost - rx->overruns,
				   "a larger in.buffer_size may help");
			rx->overruns = lost;
		}
	}
}

/* Of a raw IPv4 socket the header comes too. */
static bool cut_header(struct socket_node *s, struct datagram_message *m)
{
	size_t header = m->message.len ? (size_t)(m->message.at[0] & 15) * 4 : 0;

	if (s->layer != LAYER_IP ||
	    s->datagram->rx.from[0].sa.sa_family != AF_INET)
		return true;
	if (header < 20 || header > m->message.len) {
		fault_note(&s->faults, FAULT_MALFORMED, 1,
			   "no IPv4 header in %zu bytes", m->message.len);
		return false;
	}
	m->message.at += header;
	m->message.len -= header;
	return true;
}

static bool is_wanted(struct socket_node *s, const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	if (s->layer == LAYER_ETH) {
		if (from->ll.sll_pkttype == PACKET_OUTGOING)
			return false;
		/* Another program has set the card to promiscuous mode. */
		if (from->ll.sll_pkttype == PACKET_OTHERHOST &&
		    !s->datagram->accept_others)
			return false;
	}
	if (!s->verify_source)
		return true;
	if (socket_address_equal(from, &s->remote, s->layer == LAYER_UDP &&
				 s->remote.in4.sin_port))
		return true;
	fault_note(&s->faults, FAULT_FOREIGN, 1, "from %s",
		   socket_address_print(from, text));
	return false;
}

static void take_message(struct socket_node *s, unsigned i,
			 struct timespec now)
{
	struct datagram_rx *rx = &s->datagram->rx;
	struct msghdr *h = &rx->headers[i].msg_hdr;
	struct datagram_message *m = &rx->messages[rx->count];

	*m = (struct datagram_message){
		.message = { .at = rx->pieces[i].iov_base,
			     .padded = s->layer == LAYER_ETH,
			     .len = rx->headers[i].msg_len,
			     .received = now },
		.from = &rx->from[i],
	};
	rx->from[i].len = h->msg_namelen;
	if (h->msg_controllen)
		take_control(s, h, m);
	if (unlikely(h->msg_flags & MSG_TRUNC)) {
		fault_note(&s->faults, FAULT_TRUNCATED, 1,
			   "more than %u bytes", DATAGRAM_MAX);
		return;
	}
	if ((s->layer == LAYER_ETH || s->verify_source) &&
	    !is_wanted(s, &rx->from[i]))
		return;
	if (unlikely(s->layer == LAYER_IP) && !cut_header(s, m))
		return;
	/* Senders of a single line often omit its line end. */
	if (m->message.len && s->reader->type->lines &&
	    m->message.at[m->message.len - 1] != s->reader->delimiter)
		m->message.at[m->message.len++] = s->reader->delimiter;
	if (m->message.len)
		rx->count++;
}

/* One system call. The number of datagrams, also unwanted ones, or -errno. */
static int receive(struct socket_node *s)
{
	struct datagram_rx *rx = &s->datagram->rx;
	unsigned want = rx->want;
	struct timespec now;
	int n;

	for (unsigned i = 0; i < want; i++) {
		struct msghdr *h = &rx->headers[i].msg_hdr;

		h->msg_name = &rx->from[i].storage;
		h->msg_namelen = sizeof(rx->from[i].storage);
		h->msg_controllen = CONTROL_SIZE;
	}
	n = recvmmsg(s->datagram->fd, rx->headers, want, MSG_DONTWAIT, NULL);
	rx->drained = n < (int)want;
	if (n <= 0)
		return n ? -errno : -EAGAIN;
	/* Always one more than is expected: less than asked for says that the
	 * queue is empty, without another system call. */
	rx->want = rx->drained ? (unsigned)n + 1 : MIN(2 * want, RX_BATCH);
	now = clock_realtime();
	rx->next = rx->count = 0;
	for (int i = 0; i < n; i++)
		take_message(s, (unsigned)i, now);
	return n;
}

static unsigned take_samples(struct socket_node *s, struct sample *smps[],
			     unsigned cnt)
{
	struct datagram_rx *rx = &s->datagram->rx;
	unsigned n = 0;

	while (n < cnt && rx->next < rx->count) {
		struct datagram_message *m = &rx->messages[rx->next];
		struct format *reader = sources_reader(s, m->from);
		unsigned got = message_scan(&m->message, reader, smps + n, cnt - n,
					    &s->faults);

		n += got;
		if (got)
			sources_prove(&s->datagram->sources);
		if (m->message.pos < m->message.len)
			break;
		rx->next++;
	}
	return n;
}

/* For a path that waits for the descriptors: never sleeps. */
static int read_polled(struct socket_node *s, struct sample *smps[],
		       unsigned cnt)
{
	struct datagram_rx *rx = &s->datagram->rx;
	unsigned n;
	int ret = 0;

	socket_wait_clear(&s->wait);
	n = take_samples(s, smps, cnt);
	if (!n)
		ret = receive(s);
	if (ret > 0)
		n = take_samples(s, smps, cnt);
	if (rx->next < rx->count)
		socket_wait_kick(&s->wait); /* not seen at the socket any more */
	return n ? (int)n : ret < 0 && ret != -EAGAIN ? ret : 0;
}

/* For a path that waits itself: asks the kernel once. */
static int read_awaited(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	unsigned n = take_samples(s, smps, cnt);
	int ret;

	if (n)
		return (int)n;
	if (socket_wait_interrupted(&s->wait))
		return -EINTR;
	ret = receive(s);
	if (ret > 0)
		return (int)take_samples(s, smps, cnt);
	return ret == -EINTR || ret == -ECONNREFUSED ? 0 : ret;
}

int datagram_read(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	struct datagram_rx *rx = &s->datagram->rx;
	struct socket_idle idle = { 0 };

	if (atomic_load_explicit(&s->wait.polled, memory_order_relaxed))
		return read_polled(s, smps, cnt);
	if (s->node->in.awaited)
		return read_awaited(s, smps, cnt);
	for (;;) {
		unsigned n = take_samples(s, smps, cnt);
		int ret;

		if (n)
			return (int)n;
		if (socket_wait_interrupted(&s->wait))
			return -EINTR;
		/* Nothing was left there: sleep first, ask then. */
		if (rx->drained && !socket_wait_spin(&s->wait, &idle))
			socket_wait_sleep(&s->wait, s->datagram->fd, UINT64_MAX);
		ret = receive(s);
		if (ret > 0)
			idle = (struct socket_idle){ 0 };
		else if (ret != -EAGAIN && ret != -EINTR &&
			 ret != -ECONNREFUSED)
			return ret;
	}
}

int datagram_poll_fds(struct socket_node *s, int fds[], int max)
{
	bool possible = max >= 2 && s->wait.polling != POLLING_BUSY;

	/* Messages from before the wait must not be missed. */
	if (atomic_exchange(&s->wait.polled, possible) != possible && possible)
		socket_wait_kick(&s->wait);
	if (!possible)
		return 0;
	fds[0] = s->datagram->fd;
	fds[1] = s->wait.wake_fd;
	return 2;
}
