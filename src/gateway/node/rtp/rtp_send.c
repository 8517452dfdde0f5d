/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing packets: the samples of one write in as few as they fit in, all of them with one
 * system call. Samples beyond the sending rate are held back before that.
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

#define TX_BATCH 64
#define TX_ARENA (256u << 10)
#define TX_KEPT 64
#define UDP4_MAX 65507u
#define UDP6_MAX 65527u

struct tx_packet {
	int64_t origin_ns;
	unsigned samples;
	bool marker;
};

struct rtp_sender {
	struct mmsghdr headers[TX_BATCH];
	struct iovec pieces[TX_BATCH];
	struct rtp_header rtp[TX_BATCH];
	struct tx_packet packets[TX_BATCH];
	unsigned count;
	char *arena;
	size_t used, size_max;     /* size_max: of a packet with its header */
	struct rtp_gate gate;
	bool began;                /* the first packet has been made */
	bool stuck;                /* the last one found no room: the next does not wait */
};

int rtp_sender_open(struct rtp_node *r)
{
	struct rtp_sender *tx = calloc(1, sizeof(*tx));

	r->sender = tx;
	if (!tx)
		return -ENOMEM;
	tx->arena = malloc(TX_ARENA);
	if (!tx->arena)
		return -ENOMEM;
	tx->size_max = r->remote.sa.sa_family == AF_INET6 ? UDP6_MAX : UDP4_MAX;
	for (unsigned i = 0; i < TX_BATCH; i++)
		tx->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &r->remote.storage,
			.msg_namelen = r->remote.len,
			.msg_iov = &tx->pieces[i],
			.msg_iovlen = 1,
		};
	return 0;
}

void rtp_sender_close(struct rtp_node *r)
{
	if (r->sender)
		free(r->sender->arena);
	free(r->sender);
	r->sender = NULL;
}

/* The destination does not exist (yet), as far as the system knows. */
static bool is_absence(int err)
{
	return err == ECONNREFUSED || err == ENETUNREACH || err == EHOSTUNREACH ||
	       err == ENETDOWN || err == EHOSTDOWN;
}

static void note_unsent(struct rtp_node *r, size_t len, int err, unsigned samples)
{
	char text[SOCKET_ADDRESS_MAX];

	socket_address_print(&r->remote, text);
	if (err == EMSGSIZE)
		node_refuse(r->node, NODE_LOSS_TOO_LONG, samples,
			    "%zu bytes are more than the network to %s takes", len, text);
	else if (err == EAGAIN || err == ENOBUFS)
		node_refuse(r->node, NODE_LOSS_STUCK, samples,
			    "the network to %s takes too little", text);
	else
		node_refuse(r->node, is_absence(err) ? NODE_LOSS_ABSENT : NODE_LOSS_REFUSED,
			    samples, "to %s: %s", text, strerror(err));
}

/* A packet was refused: tries it once more, and waits for room then (SO_SNDTIMEO). 0 when it
 * went, else a positive errno. */
static int send_again(struct rtp_node *r, struct msghdr *h, int err)
{
	struct rtp_sender *tx = r->sender;

	/* ECONNREFUSED tells of an earlier one, this one did not go. */
	if (err != EAGAIN && err != ENOBUFS && err != EINTR && err != ECONNREFUSED)
		return err;
	if (sendmsg(r->fd, h, MSG_NOSIGNAL | (tx->stuck ? MSG_DONTWAIT : 0)) >= 0) {
		tx->stuck = false;
		return 0;
	}
	err = errno;
	tx->stuck = err == EAGAIN || err == ENOBUFS;
	return err;
}

static void number(struct rtp_node *r)
{
	struct rtp_sender *tx = r->sender;

	spin_lock(&r->session.lock);
	for (unsigned i = 0; i < tx->count; i++) {
		tx->rtp[i] = (struct rtp_header){
			.marker = tx->packets[i].marker,
			.payload_type = (uint8_t)r->payload_type,
		};
		rtp_session_number(&r->session, &tx->rtp[i], tx->packets[i].origin_ns);
	}
	spin_unlock(&r->session.lock);
	for (unsigned i = 0; i < tx->count; i++)
		rtp_header_encode(tx->pieces[i].iov_base, &tx->rtp[i]);
}

/* Packets from `first` on, `count` of them, have gone. */
static unsigned account(struct rtp_node *r, unsigned first, unsigned count)
{
	struct rtp_sender *tx = r->sender;
	unsigned samples = 0;
	size_t octets = 0;

	for (unsigned i = first; i < first + count; i++) {
		samples += tx->packets[i].samples;
		octets += tx->pieces[i].iov_len - RTP_HEADER_SIZE;
	}
	rtp_session_sent(&r->session, &tx->rtp[first + count - 1], count, octets,
			 timespec_to_ns(clock_realtime()));
	node_figure_add(r->node, RTP_FIGURE_PACKETS_SENT, count);
	return samples;
}

/* Sends what has been put together; returns the samples that went. */
static unsigned flush(struct rtp_node *r)
{
	struct rtp_sender *tx = r->sender;
	unsigned done = 0, samples = 0;

	number(r);
	while (done < tx->count) {
		struct mmsghdr *h = &tx->headers[done];
		int n = sendmmsg(r->fd, h, tx->count - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (unlikely(n <= 0)) {
			int err = send_again(r, &h->msg_hdr, errno);

			n = 1;
			if (err) {
				note_unsent(r, tx->pieces[done].iov_len, err,
					    tx->packets[done].samples);
				done++;
				continue;
			}
		} else {
			tx->stuck = false;
		}
		samples += account(r, done, (unsigned)n);
		done += (unsigned)n;
	}
	tx->count = 0;
	tx->used = 0;
	return samples;
}

/* Prints one sample with ample room, which may be more than packet_size. False after the
 * loss was counted. */
static bool print_amply(struct rtp_node *r, struct sample *smp, size_t *used)
{
	struct rtp_sender *tx = r->sender;
	struct format *f = r->writer;
	size_t max = tx->size_max - RTP_HEADER_SIZE;
	int n = f->type->print(f, tx->arena + RTP_HEADER_SIZE, TX_ARENA - RTP_HEADER_SIZE, used,
			       &smp, 1);

	if (n == 1 && *used <= max)
		return true;
	if (n < 0)
		node_refuse(r->node, NODE_LOSS_FORMAT, 1, "format %s: %s", f->type->name,
			    *format_error(f) ? format_error(f) : strerror(-n));
	else
		node_refuse(r->node, NODE_LOSS_TOO_LONG, 1,
			    "a sample of %u values is %zu bytes, a packet has at most %zu",
			    smp->length, n ? *used : message_sample_size(f, smp), max);
	return false;
}

static void add_packet(struct rtp_node *r, const struct sample *first, unsigned samples,
		       size_t used)
{
	struct rtp_sender *tx = r->sender;
	struct timespec origin = first->flags & SAMPLE_HAS_ORIGIN ? first->origin :
								     clock_realtime();

	tx->pieces[tx->count].iov_base = tx->arena + tx->used;
	tx->pieces[tx->count].iov_len = RTP_HEADER_SIZE + used;
	tx->packets[tx->count] = (struct tx_packet){
		.origin_ns = sample_time_to_ns(origin),
		.samples = samples,
		.marker = !tx->began ||
			  first->flags & (SAMPLE_NEW_SIMULATION | SAMPLE_NEW_FRAME),
	};
	tx->began = true;
	tx->used += RTP_HEADER_SIZE + used;
	tx->count++;
}

/* All of these go. The number that went. */
static unsigned write_all(struct rtp_node *r, struct sample *smps[], unsigned cnt)
{
	struct rtp_sender *tx = r->sender;
	struct format *f = r->writer;
	size_t packet = MIN((size_t)r->out.packet_size, tx->size_max) - RTP_HEADER_SIZE;
	unsigned done = 0, sent = 0;

	while (done < cnt) {
		size_t used = 0, room = TX_ARENA - tx->used, head = RTP_HEADER_SIZE;
		int n = 0;

		if (room > head)
			n = f->type->print(f, tx->arena + tx->used + head,
					   MIN(packet, room - head), &used, smps + done,
					   cnt - done);
		if (n <= 0 && tx->count) {
			/* Perhaps for want of room only. */
			sent += flush(r);
			continue;
		}
		if (unlikely(n <= 0)) {
			n = print_amply(r, smps[done], &used);
			if (!n) {
				done++;
				continue;
			}
		}
		add_packet(r, smps[done], (unsigned)n, used);
		done += (unsigned)n;
		if (tx->count == TX_BATCH)
			sent += flush(r);
	}
	return sent + (tx->count ? flush(r) : 0);
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
			sent += write_all(r, kept, n);
			n = 0;
		}
	}
	if (n)
		sent += write_all(r, kept, n);
	if (held) {
		node_figure_add(r->node, RTP_FIGURE_THROTTLED, held);
		node_refuse(r->node, NODE_LOSS_FULL, held, "%s",
			    "held back by the sending rate (aimd), because the peer reports losses");
	}
	return sent;
}

int rtp_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct rtp_node *r = n->private_data;
	uint64_t step;

	if (unlikely(!r->writer || !r->sender))
		return -EBADF;
	step = atomic_load_explicit(&r->step, memory_order_relaxed);
	if (likely(!step)) {
		r->sender->gate.began = false;
		return (int)write_all(r, smps, cnt);
	}
	return (int)write_some(r, smps, cnt, step);
}
