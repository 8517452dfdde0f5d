/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing packets. Samples beyond the sending rate are held back before that. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <stdlib.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

#define TX_KEPT 64
#define UDP4_MAX 65507u
#define UDP6_MAX 65527u
/* How long a write waits for room in the socket's buffer. */
#define PATIENCE_NS (NSEC_PER_SEC / 10)

struct tx_packet {
	struct rtp_header header;
	int64_t origin_ns;
	bool marker;
};

struct rtp_sender {
	struct datagram_writer *writer;
	struct tx_packet packets[DATAGRAM_TX_BATCH];
	struct rtp_gate gate;
	bool began;                /* the first packet has been made */
};

/* add() of the datagram_writer. */
static void add_packet(struct socket_ends *e, unsigned i, const struct sample *first)
{
	struct rtp_sender *tx = container_of(e, struct rtp_node, ends)->sender;
	struct timespec origin = first->flags & SAMPLE_HAS_ORIGIN ? first->origin :
								     clock_realtime();

	tx->packets[i].origin_ns = sample_time_to_ns(origin);
	tx->packets[i].marker = !tx->began ||
				first->flags & (SAMPLE_NEW_SIMULATION | SAMPLE_NEW_FRAME);
	tx->began = true;
}

static void number(struct rtp_node *r)
{
	struct rtp_sender *tx = r->sender;
	unsigned count = tx->writer->count;

	spin_lock(&r->session.lock);
	for (unsigned i = 0; i < count; i++) {
		struct tx_packet *p = &tx->packets[i];

		p->header = (struct rtp_header){
			.marker = p->marker,
			.payload_type = (uint8_t)r->payload_type,
		};
		rtp_session_number(&r->session, &p->header, p->origin_ns);
	}
	spin_unlock(&r->session.lock);
	for (unsigned i = 0; i < count; i++)
		rtp_header_encode(tx->writer->pieces[i].iov_base, &tx->packets[i].header);
}

/* send() of the datagram_writer. */
static unsigned send_packets(struct socket_ends *e, unsigned first)
{
	struct rtp_node *r = container_of(e, struct rtp_node, ends);
	struct rtp_sender *tx = r->sender;
	size_t octets = 0;
	unsigned count;

	if (!first)
		number(r);
	count = datagram_send(tx->writer, first);
	if (!count)
		return 0;
	for (unsigned i = first; i < first + count; i++)
		octets += tx->writer->pieces[i].iov_len - RTP_HEADER_SIZE;
	rtp_session_sent(&r->session, &tx->packets[first + count - 1].header, count, octets,
			 timespec_to_ns(clock_realtime()));
	node_figure_add(r->ends.node, RTP_FIGURE_PACKETS_SENT, count);
	return count;
}

int rtp_sender_open(struct rtp_node *r)
{
	struct rtp_sender *tx = calloc(1, sizeof(*tx));
	struct datagram_writer *w;

	r->sender = tx;
	if (!tx)
		return -ENOMEM;
	tx->writer = w = datagram_writer_new(&r->ends);
	if (!w)
		return -ENOMEM;
	w->head = RTP_HEADER_SIZE;
	w->size_max = r->ends.remote.sa.sa_family == AF_INET6 ? UDP6_MAX : UDP4_MAX;
	w->pack_max = MIN((size_t)r->packet_size, w->size_max);
	w->patience_ns = PATIENCE_NS;
	w->stuck_max = 1;
	w->limit = "a packet has at most";
	w->size_key = "out.packet_size";
	w->add = add_packet;
	w->send = send_packets;
	return 0;
}

void rtp_sender_close(struct rtp_node *r)
{
	if (r->sender)
		datagram_writer_free(r->sender->writer);
	free(r->sender);
	r->sender = NULL;
}

/* Those that the sending rate admits. The number that went. */
static unsigned write_some(struct rtp_node *r, struct sample *smps[], unsigned cnt,
			   uint64_t step)
{
	struct sample *kept[TX_KEPT];
	unsigned sent = 0, held = 0, n = 0;
	uint64_t now = clock_now_ns();

	for (unsigned i = 0; i < cnt; i++) {
		if (!rtp_gate_admits(&r->sender->gate, rtp_throttle(r), step, now)) {
			held++;
			continue;
		}
		kept[n++] = smps[i];
		if (n == TX_KEPT) {
			sent += (unsigned)datagram_write(r->sender->writer, kept, n);
			n = 0;
		}
	}
	if (n)
		sent += (unsigned)datagram_write(r->sender->writer, kept, n);
	if (held) {
		node_figure_add(r->ends.node, RTP_FIGURE_THROTTLED, held);
		node_refuse(r->ends.node, NODE_LOSS_FULL, held, "%s",
			    "held back by the sending rate (aimd), because the peer reports losses");
	}
	return sent;
}

int rtp_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct rtp_node *r = n->private_data;
	uint64_t step;

	if (unlikely(!r->ends.writer))
		return -EBADF;
	step = atomic_load_explicit(&r->step, memory_order_relaxed);
	if (likely(!step)) {
		r->sender->gate.began = false;
		return datagram_write(r->sender->writer, smps, cnt);
	}
	return (int)write_some(r, smps, cnt, step);
}
