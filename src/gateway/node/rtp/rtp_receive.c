/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading packets: the samples of those that the session delivers. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

/* Counts a packet that is not delivered. */
static void note_dropped(struct rtp_node *r, enum rtp_verdict v, const struct rtp_header *h,
			 const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	switch (v) {
	case RTP_DROP_REPEATED:
		node_figure_add(r->ends.node, RTP_FIGURE_REPEATED, 1);
		break;
	case RTP_DROP_STRAY:
		node_figure_add(r->ends.node, RTP_FIGURE_STRAY, 1);
		break;
	case RTP_DROP_FOREIGN:
		fault_note(&r->ends.faults, FAULT_FOREIGN, 1,
			   "from %s, SSRC 0x%08x, which another address has",
			   socket_address_print(from, text), h->ssrc);
		break;
	default:
		rtcp_note_collision(r, v, from);
	}
}

static void show(struct rtp_node *r, unsigned peer)
{
	const struct rtp_session *s = &r->session;

	node_figure_set(r->ends.node, RTP_FIGURE_IN_LOST, s->lost > 0 ? (uint64_t)s->lost : 0);
	node_figure_set(r->ends.node, RTP_FIGURE_IN_JITTER,
			(uint64_t)(s->peers[peer].source.jitter >> 4) * 1000000 /
				s->clock_rate);
}

/* take() of a datagram_reader. */
static bool take_packet(struct socket_ends *e, struct datagram *d)
{
	struct rtp_node *r = container_of(e, struct rtp_node, ends);
	struct message *m = &d->message;
	const struct rtp_arrival a = { .from = d->from, .now_ns = clock_now_ns(),
				       .wall_ns = sample_time_to_ns(m->received) };
	struct rtp_payload payload;
	struct rtp_header h;
	enum rtp_verdict v;
	const char *why;
	bool fresh;

	if (r->ends.verify_source && !rtp_is_peer(r, d->from, 0))
		return false;
	if (rtp_header_decode((const uint8_t *)m->at, m->len, &h, &payload, &why)) {
		fault_note(&r->ends.faults, FAULT_MALFORMED, 1, "%s", why);
		return false;
	}
	if (h.payload_type != r->payload_type) {
		fault_note(&r->ends.faults, FAULT_MALFORMED, 1, "its payload type is %u, not %lld",
			   h.payload_type, (long long)r->payload_type);
		return false;
	}
	v = rtp_session_take(&r->session, &h, &a, &d->source, &fresh);
	if (v != RTP_DELIVER && v != RTP_DELIVER_LATE) {
		note_dropped(r, v, &h, d->from);
		return false;
	}
	node_figure_add(r->ends.node, RTP_FIGURE_PACKETS_RECEIVED, 1);
	if (v == RTP_DELIVER_LATE)
		node_figure_add(r->ends.node, RTP_FIGURE_LATE, 1);
	if (fresh && r->readers[d->source])
		r->readers[d->source]->type->reset(r->readers[d->source]);
	show(r, d->source);
	m->at += payload.at;
	m->len = payload.len;
	return true;
}

static unsigned scan_packet(struct socket_ends *e, struct datagram *d, struct sample *smps[],
			    unsigned cnt)
{
	struct rtp_node *r = container_of(e, struct rtp_node, ends);

	return message_scan(&d->message, r->readers[d->source], smps, cnt, &e->faults);
}

int rtp_receiver_open(struct rtp_node *r)
{
	struct datagram_reader *receiver = datagram_reader_new(&r->ends);
	int ret = 0;

	r->receiver = receiver;
	if (!receiver)
		return -ENOMEM;
	receiver->take = take_packet;
	if (!r->ends.reader->type->reset)
		return 0;
	receiver->scan = scan_packet;
	for (unsigned i = 0; i < RTP_PEERS && !ret; i++)
		ret = socket_ends_new_reader(&r->ends, &r->readers[i]);
	return ret;
}

void rtp_receiver_close(struct rtp_node *r)
{
	for (unsigned i = 0; i < RTP_PEERS; i++) {
		format_destroy(r->readers[i]);
		r->readers[i] = NULL;
	}
	datagram_reader_free(r->receiver);
	r->receiver = NULL;
}
