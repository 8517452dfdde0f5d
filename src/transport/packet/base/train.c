/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that leave together: carriers of datagrams take several packets of equal length in
 * one call to the kernel (generic segmentation offload), at much less than the price of
 * one call each.
 */
#include <errno.h>
#include <string.h>

#include "hca/limits.h"
#include "engine/rc/rules.h"
#include "transport/packet/base/train.h"
#include "util/container_of.h"

_Static_assert(CARRIER_IOV_MAX >= 2 * (2 + HCA_MAX_SGE), "two packets have room");

/* Length of the trailer of a packet with this payload. */
static uint32_t trailer_bytes(const struct packet_train *t, uint32_t payload)
{
	return t->port->medium->seal ? 4 + (-payload & 3) : 0;
}

uint32_t packet_train_room(const struct packet_train *t, uint32_t payload)
{
	uint32_t length = t->length + payload + trailer_bytes(t, payload);
	uint32_t most;

	if (!t->packets)
		return MIN(t->most, MAX(1u, PACKET_TRAIN_BYTES / length));
	if (t->ended || t->packets >= t->most || length > t->segment ||
	    t->pieces + 2 + HCA_MAX_SGE > CARRIER_IOV_MAX)
		return 0;
	most = MIN(t->most - t->packets, (PACKET_TRAIN_BYTES - t->bytes) / length);
	/* A shorter packet is the last one. */
	return MIN(most, length < t->segment ? 1u : PACKET_TRAIN_MAX);
}

struct iovec *packet_train_begin(struct packet_train *t, const struct packet_frame *f)
{
	t->length = (uint32_t)t->port->medium->encode(f, t->text + t->text_bytes);
	if (unlikely(!packet_train_room(t, f->rc.bytes)))
		return NULL;
	return &t->iov[t->pieces + 1];
}

/* Adds the next `bytes` of text; directly behind other text they extend its piece. True: they are
 * a piece of their own. */
static bool add_text(struct packet_train *t, uint32_t bytes)
{
	uint8_t *text = t->text + t->text_bytes;
	struct iovec *before = t->pieces ? &t->iov[t->pieces - 1] : NULL;

	t->text_bytes += bytes;
	if (before && (uint8_t *)before->iov_base + before->iov_len == text) {
		before->iov_len += bytes;
		return false;
	}
	t->iov[t->pieces++] = (struct iovec){ text, bytes };
	return true;
}

static size_t seal(struct packet_train *t, unsigned k)
{
	const struct packet_part_of_train *p = &t->packet[k];
	uint8_t *header = t->text + p->header;

	return t->port->medium->seal(t->route, t->series, k, t->fragments, header,
				     p->header_bytes, &t->iov[p->payload], p->pieces,
				     header + p->header_bytes);
}

/* Ends a packet: its header is behind the text, its `n` pieces of payload are behind the next
 * piece. */
static void end(struct packet_train *t, uint32_t header_bytes, unsigned n)
{
	struct packet_part_of_train *p = &t->packet[t->packets];
	uint32_t length = header_bytes;
	const struct iovec *payload = &t->iov[t->pieces + 1];

	p->header = (uint16_t)t->text_bytes;
	p->header_bytes = (uint8_t)header_bytes;
	p->pieces = (uint8_t)n;
	if (!add_text(t, header_bytes))
		memmove(&t->iov[t->pieces], payload, n * sizeof(*payload));
	p->payload = (uint8_t)t->pieces;
	for (unsigned i = 0; i < n; i++)
		length += (uint32_t)t->iov[t->pieces++].iov_len;
	if (t->port->medium->seal) {
		uint32_t bytes = (uint32_t)seal(t, t->packets);

		add_text(t, bytes);
		length += bytes;
	}
	if (!t->packets)
		t->segment = length;
	else if (length != t->segment)
		t->ended = true;
	t->packets++;
	t->bytes += length;
}

void packet_train_end(struct packet_train *t, unsigned n)
{
	end(t, t->length, n);
}

uint32_t packet_train_more(struct packet_train *t, const struct rc_packet *like, uint8_t *payload)
{
	const struct packet_part_of_train *before = &t->packet[t->packets - 1];
	const uint32_t header_bytes = before->header_bytes;
	const uint32_t more = MIN(like->more, packet_train_room(t, like->bytes));

	for (uint32_t i = 1; i <= more; i++) {
		uint8_t *header = t->text + t->text_bytes;

		memcpy(header, t->text + before->header, header_bytes);
		t->port->medium->renumber(header, rc_psn_add(like->psn, i));
		t->iov[t->pieces + 1] = (struct iovec){ payload, like->bytes };
		end(t, header_bytes, 1);
		payload += like->bytes;
	}
	return more;
}

/* Seals all packets again, for fragments. */
static void seal_again(struct packet_train *t)
{
	t->fragments = true;
	for (unsigned k = 0; t->port->medium->seal && k < t->packets; k++)
		seal(t, k);
}

static int emit(const struct packet_train *t)
{
	const struct packet_route *r = t->route;
	const struct carrier_unit unit = {
		.iov = t->iov,
		.count = t->pieces,
		.segment = t->packets > 1 ? t->segment : 0,
		.to = r->to,
		.from = r->from,
		.known = (uint16_t)(r->known | (t->fragments ? CARRIER_FRAGMENTS : 0) |
				    (t->lost ? CARRIER_LOST : 0)),
		.tos = r->tos,
		.ttl = r->ttl,
		.interface = r->interface,
		.flow = t->qpn,
	};
	int ret = carrier_emit(atomic_load_explicit(&t->port->carrier, memory_order_acquire),
			       &unit, 1);

	return ret == 1 ? 0 : ret < 0 ? ret : -EAGAIN;
}

int packet_train_emit(struct packet_train *t)
{
	const struct packet_medium *m = t->port->medium;
	int ret = emit(t);

	if (unlikely(ret == -EMSGSIZE) && !t->fragments && m->too_long &&
	    m->too_long(t->route, t->segment)) {
		atomic_store_explicit(&t->route->fragments, true, memory_order_relaxed);
		seal_again(t);
		ret = emit(t);
	}
	if (ret)
		return ret;
	if (unlikely(atomic_load_explicit(&t->port->holds_back, memory_order_relaxed)))
		packet_look_later(t->port);
	return 0;
}
