/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading packets. As many as are there are taken with one system call, into buffers that
 * were made before; what they hold beyond the samples asked for waits in them.
 */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

#define RX_BATCH 32
#define CONTROL_SIZE 32

struct rtp_message {
	struct message message;
	unsigned peer;
};

struct rtp_receiver {
	struct mmsghdr headers[RX_BATCH];
	struct iovec pieces[RX_BATCH];
	struct socket_address from[RX_BATCH];
	_Alignas(8) char control[RX_BATCH][CONTROL_SIZE];
	char *buffers;             /* RX_BATCH times RTP_DATAGRAM_MAX + 1 */
	struct rtp_message messages[RX_BATCH];
	unsigned next, count;      /* of messages that hold something yet */
	unsigned want;             /* how many to ask for; grows with success */
	bool drained;              /* the last call brought less than asked for */
	uint32_t overruns;         /* the kernel's counter */
	/* A format that keeps something between messages keeps it of each source. */
	struct format *readers[RTP_PEERS];
};

int rtp_receiver_open(struct rtp_node *r)
{
	struct rtp_receiver *rx = calloc(1, sizeof(*rx));
	int ret = 0;

	r->receiver = rx;
	if (!rx)
		return -ENOMEM;
	/* Pages that are never used cost nothing. */
	rx->buffers = malloc(RX_BATCH * (size_t)(RTP_DATAGRAM_MAX + 1));
	if (!rx->buffers)
		return -ENOMEM;
	rx->want = 2;
	for (unsigned i = 0; i < RX_BATCH; i++) {
		rx->pieces[i].iov_base = rx->buffers + i * (size_t)(RTP_DATAGRAM_MAX + 1);
		rx->pieces[i].iov_len = RTP_DATAGRAM_MAX;
		rx->headers[i].msg_hdr = (struct msghdr){
			.msg_iov = &rx->pieces[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i],
		};
	}
	for (unsigned i = 0; r->reader->type->reset && i < RTP_PEERS && !ret; i++) {
		ret = format_new(&rx->readers[i], r->config, r->in_format,
				 RTP_DEFAULT_FORMAT, r->node->in.signals);
		if (!ret)
			rx->readers[i]->message = true;
	}
	return ret;
}

void rtp_receiver_close(struct rtp_node *r)
{
	struct rtp_receiver *rx = r->receiver;

	if (!rx)
		return;
	for (unsigned i = 0; i < RTP_PEERS; i++)
		format_destroy(rx->readers[i]);
	free(rx->buffers);
	free(rx);
	r->receiver = NULL;
}

/* Takes what the kernel says beside the data. */
static void take_control(struct rtp_node *r, struct msghdr *h)
{
	struct rtp_receiver *rx = r->receiver;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		uint32_t lost;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_RXQ_OVFL)
			continue;
		memcpy(&lost, CMSG_DATA(c), sizeof(lost));
		if (lost != rx->overruns)
			fault_note(&r->faults, FAULT_OVERRUN, lost - rx->overruns,
				   "a larger in.buffer_size may help");
		rx->overruns = lost;
	}
}

/* Counts a packet that is not delivered. */
static void note_dropped(struct rtp_node *r, enum rtp_verdict v, const struct rtp_header *h,
			 const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	switch (v) {
	case RTP_DROP_REPEATED:
		node_figure_add(r->node, RTP_FIGURE_REPEATED, 1);
		break;
	case RTP_DROP_STRAY:
		node_figure_add(r->node, RTP_FIGURE_STRAY, 1);
		break;
	case RTP_DROP_FOREIGN:
		fault_note(&r->faults, FAULT_FOREIGN, 1,
			   "from %s, SSRC 0x%08x, which another address has",
			   socket_address_print(from, text), h->ssrc);
		break;
	default:
		rtcp_note_collision(r, v, from);
	}
}

/* True when the message holds what is to be read. */
static bool take_packet(struct rtp_node *r, const struct rtp_arrival *a, struct rtp_message *m)
{
	struct rtp_receiver *rx = r->receiver;
	struct rtp_payload payload;
	struct rtp_header h;
	enum rtp_verdict v;
	const char *why;
	bool fresh;

	if (rtp_header_decode((const uint8_t *)m->message.at, m->message.len, &h, &payload,
			      &why)) {
		fault_note(&r->faults, FAULT_MALFORMED, 1, "%s", why);
		return false;
	}
	if (h.payload_type != r->payload_type) {
		fault_note(&r->faults, FAULT_MALFORMED, 1, "its payload type is %u, not %lld",
			   h.payload_type, (long long)r->payload_type);
		return false;
	}
	v = rtp_session_take(&r->session, &h, a, &m->peer, &fresh);
	if (v != RTP_DELIVER && v != RTP_DELIVER_LATE) {
		note_dropped(r, v, &h, a->from);
		return false;
	}
	node_figure_add(r->node, RTP_FIGURE_PACKETS_RECEIVED, 1);
	if (v == RTP_DELIVER_LATE)
		node_figure_add(r->node, RTP_FIGURE_LATE, 1);
	if (fresh && rx->readers[m->peer])
		rx->readers[m->peer]->type->reset(rx->readers[m->peer]);
	m->message.at += payload.at;
	m->message.len = payload.len;
	return payload.len;
}

static void take_datagram(struct rtp_node *r, unsigned i, struct timespec now, uint64_t now_ns)
{
	struct rtp_receiver *rx = r->receiver;
	struct msghdr *h = &rx->headers[i].msg_hdr;
	struct rtp_message *m = &rx->messages[rx->count];
	const struct rtp_arrival a = { .from = &rx->from[i], .now_ns = now_ns,
				       .wall_ns = sample_time_to_ns(now) };

	*m = (struct rtp_message){
		.message = { .at = rx->pieces[i].iov_base,
			     .len = rx->headers[i].msg_len,
			     .received = now },
	};
	rx->from[i].len = h->msg_namelen;
	if (h->msg_controllen)
		take_control(r, h);
	if (unlikely(h->msg_flags & MSG_TRUNC)) {
		fault_note(&r->faults, FAULT_TRUNCATED, 1, "more than %u bytes",
			   RTP_DATAGRAM_MAX);
		return;
	}
	if ((r->verify_source && !rtp_is_peer(r, a.from, 0)) || !take_packet(r, &a, m))
		return;
	/* Senders of a single line often omit its line end. */
	if (r->reader->type->lines &&
	    m->message.at[m->message.len - 1] != r->reader->delimiter)
		m->message.at[m->message.len++] = r->reader->delimiter;
	rx->count++;
}

static void show(struct rtp_node *r, unsigned peer)
{
	const struct rtp_session *s = &r->session;

	node_figure_set(r->node, RTP_FIGURE_IN_LOST, s->lost > 0 ? (uint64_t)s->lost : 0);
	node_figure_set(r->node, RTP_FIGURE_IN_JITTER,
			(uint64_t)(s->peers[peer].source.jitter >> 4) * 1000000 /
				s->clock_rate);
}

/* One system call. The number of datagrams, also unwanted ones, or -errno. */
static int receive(struct rtp_node *r)
{
	struct rtp_receiver *rx = r->receiver;
	unsigned want = rx->want;
	struct timespec now;
	uint64_t now_ns;
	int n;

	for (unsigned i = 0; i < want; i++) {
		struct msghdr *h = &rx->headers[i].msg_hdr;

		h->msg_name = &rx->from[i].storage;
		h->msg_namelen = sizeof(rx->from[i].storage);
		h->msg_controllen = CONTROL_SIZE;
	}
	n = recvmmsg(r->fd, rx->headers, want, MSG_DONTWAIT, NULL);
	rx->drained = n < (int)want;
	if (n <= 0)
		return n ? -errno : -EAGAIN;
	/* Always one more than is expected: less than asked for says that the queue is
	 * empty, without another system call. */
	rx->want = rx->drained ? (unsigned)n + 1 : MIN(2 * want, RX_BATCH);
	now = clock_realtime();
	now_ns = clock_now_ns();
	rx->next = rx->count = 0;
	for (int i = 0; i < n; i++)
		take_datagram(r, (unsigned)i, now, now_ns);
	if (rx->count)
		show(r, rx->messages[rx->count - 1].peer);
	return n;
}

static unsigned take_samples(struct rtp_node *r, struct sample *smps[], unsigned cnt)
{
	struct rtp_receiver *rx = r->receiver;
	unsigned n = 0;

	while (n < cnt && rx->next < rx->count) {
		struct rtp_message *m = &rx->messages[rx->next];
		struct format *f = rx->readers[m->peer] ? rx->readers[m->peer] : r->reader;

		n += message_scan(&m->message, f, smps + n, cnt - n, &r->faults);
		if (m->message.pos < m->message.len)
			break;
		rx->next++;
	}
	return n;
}

/* For a path that waits for the descriptors: never sleeps. */
static int read_polled(struct rtp_node *r, struct sample *smps[], unsigned cnt)
{
	struct rtp_receiver *rx = r->receiver;
	unsigned n;
	int ret = 0;

	socket_wait_clear(&r->wait);
	n = take_samples(r, smps, cnt);
	if (!n)
		ret = receive(r);
	if (ret > 0)
		n = take_samples(r, smps, cnt);
	if (rx->next < rx->count)
		socket_wait_kick(&r->wait); /* not seen at the socket any more */
	return n ? (int)n : ret < 0 && ret != -EAGAIN ? ret : 0;
}

/* For a path that waits itself: asks the kernel once. */
static int read_awaited(struct rtp_node *r, struct sample *smps[], unsigned cnt)
{
	unsigned n = take_samples(r, smps, cnt);
	int ret;

	if (n)
		return (int)n;
	if (socket_wait_interrupted(&r->wait))
		return -EINTR;
	ret = receive(r);
	if (ret > 0)
		return (int)take_samples(r, smps, cnt);
	return ret == -EINTR || ret == -ECONNREFUSED ? 0 : ret;
}

int rtp_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct rtp_node *r = n->private_data;

	if (unlikely(!r->reader || !r->receiver))
		return -ENODATA;
	if (atomic_load_explicit(&r->wait.polled, memory_order_relaxed))
		return read_polled(r, smps, cnt);
	if (n->in.awaited)
		return read_awaited(r, smps, cnt);
	for (;;) {
		unsigned got = take_samples(r, smps, cnt);
		int ret;

		if (got)
			return (int)got;
		if (socket_wait_interrupted(&r->wait))
			return -EINTR;
		/* Nothing was left there: sleep first, ask then. */
		if (r->receiver->drained)
			socket_wait_sleep(&r->wait, r->fd, UINT64_MAX);
		ret = receive(r);
		if (ret <= 0 && ret != -EAGAIN && ret != -EINTR && ret != -ECONNREFUSED)
			return ret;
	}
}

int rtp_poll_fds(struct node *n, int fds[], int max)
{
	struct rtp_node *r = n->private_data;
	bool possible = max >= 2;

	/* Messages from before the wait must not be missed. */
	if (atomic_exchange(&r->wait.polled, possible) != possible && possible)
		socket_wait_kick(&r->wait);
	if (!possible)
		return 0;
	fds[0] = r->fd;
	fds[1] = r->wait.wake_fd;
	return 2;
}
