/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams in a capture (BUSBAR_CAPTURE): segments of TCP, as they might have been on the wire, with
 * the set-up before them. The kernel's own segments have other borders.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "hca/host/gid.h"
#include "transport/iwarp/stream.h"

static void gid_of(const struct sockaddr_storage *at, uint8_t gid[16], uint16_t *port)
{
	if (at->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)at;

		memcpy(gid, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const void *)at;

		memset(gid, 0, 10);
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
	}
}

static struct packet_ends reversed(const struct packet_ends *e)
{
	struct packet_ends r = { .src_port = e->dst_port, .dst_port = e->src_port };

	memcpy(r.src, e->dst, sizeof(r.src));
	memcpy(r.dst, e->src, sizeof(r.dst));
	return r;
}

/* One segment, and its sequence numbers. */
static void segment(struct iwarp_stream *s, bool out, struct packet_tcp flags, const void *data,
		    size_t bytes)
{
	uint32_t *own = out ? &s->show.sent : &s->show.received;
	const struct packet_ends ends = out ? s->show.ends : reversed(&s->show.ends);

	flags.seq = *own;
	flags.ack = out ? s->show.received : s->show.sent;
	packet_show_tcp(iwarp_port.ops, out ? CARRIER_OUT : CARRIER_IN, &ends, &flags, data, bytes);
	*own += (uint32_t)bytes + flags.syn + flags.fin;
}

void iwarp_show_bytes(struct iwarp_stream *s, bool out, const uint8_t *data, size_t bytes)
{
	if (!s->show.on)
		return;
	for (size_t at = 0; at < bytes; at += PACKET_SHOW_STREAM)
		segment(s, out, (struct packet_tcp){ .acks = true }, data + at,
			MIN(bytes - at, (size_t)PACKET_SHOW_STREAM));
}

void iwarp_show_pieces(struct iwarp_stream *s, const struct iovec *iov, unsigned n, size_t bytes)
{
	uint8_t buffer[PACKET_SHOW_STREAM];
	size_t there = 0;

	if (!s->show.on)
		return;
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *from = iov[i].iov_base;
		size_t left = MIN(iov[i].iov_len, bytes);

		bytes -= left;
		while (left) {
			size_t part = MIN(left, sizeof(buffer) - there);

			memcpy(buffer + there, from, part);
			there += part;
			from += part;
			left -= part;
			if (there == sizeof(buffer)) {
				iwarp_show_bytes(s, true, buffer, there);
				there = 0;
			}
		}
	}
	if (there)
		iwarp_show_bytes(s, true, buffer, there);
}

void iwarp_show_end(struct iwarp_stream *s, bool out, bool reset)
{
	if (s->show.on)
		segment(s, out, (struct packet_tcp){ .fin = !reset, .rst = reset, .acks = true },
			NULL, 0);
}

static void show_setup(struct iwarp_stream *s, bool out, const struct hca_stream *from)
{
	iwarp_show_bytes(s, out, out ? from->sent : from->received,
			 out ? from->sent_bytes : from->received_bytes);
}

void iwarp_show_begin(struct iwarp_stream *s, const struct hca_stream *from)
{
	struct sockaddr_storage local, peer;
	socklen_t local_bytes = sizeof(local), peer_bytes = sizeof(peer);
	const bool first = !s->responder;

	if (!packet_show_wanted() || getsockname(s->fd, (struct sockaddr *)&local, &local_bytes) ||
	    getpeername(s->fd, (struct sockaddr *)&peer, &peer_bytes))
		return;
	gid_of(&local, s->show.ends.src, &s->show.ends.src_port);
	gid_of(&peer, s->show.ends.dst, &s->show.ends.dst_port);
	s->show.on = true;
	segment(s, first, (struct packet_tcp){ .syn = true }, NULL, 0);
	segment(s, !first, (struct packet_tcp){ .syn = true, .acks = true }, NULL, 0);
	segment(s, first, (struct packet_tcp){ .acks = true }, NULL, 0);
	show_setup(s, first, from);
	show_setup(s, !first, from);
}
