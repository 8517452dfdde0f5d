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

/* Adds `bytes` at `at`; directly behind the piece before they extend it. True: they are a piece of
 * their own. */
static bool add_bytes(struct packet_train *t, uint8_t *at, uint32_t bytes)
{
	struct iovec *before = t->pieces ? &t->iov[t->pieces - 1] : NULL;

	if (before && (uint8_t *)before->iov_base + before->iov_len == at) {
		before->iov_len += bytes;
		return false;
	}
	t->iov[t->pieces++] = (struct iovec){ at, bytes };
	return true;
}

static size_t seal(struct packet_train *t, unsigned k)
{
	const struct packet_part_of_train *p = &t->packet[k];
	const struct iovec behind = { p->header + p->header_bytes, p->placed };
	uint8_t *end = p->header + p->header_bytes + p->placed;

	return t->port->medium->seal(t->route, t->series, k, t->fragments, p->header,
				     p->header_bytes, p->placed ? &behind : &t->iov[p->payload],
				     p->placed ? 1 : p->pieces, end);
}

/* Ends a packet of `length` bytes. */
static void count(struct packet_train *t, uint32_t length)
{
	if (!t->packets)
		t->segment = length;
	else if (length != t->segment)
		t->ended = true;
	t->packets++;
	t->bytes += length;
}

void packet_train_end(struct packet_train *t, unsigned n)
{
	struct packet_part_of_train *p = &t->packet[t->packets];
	const struct iovec *payload = &t->iov[t->pieces + 1];
	uint32_t length = t->length;

	*p = (struct packet_part_of_train){
		.header = t->text + t->text_bytes,
		.header_bytes = (uint8_t)length,
		.pieces = (uint8_t)n,
	};
	if (!add_bytes(t, p->header, length))
		memmove(&t->iov[t->pieces], payload, n * sizeof(*payload));
	t->text_bytes += length;
	p->payload = (uint8_t)t->pieces;
	for (unsigned i = 0; i < n; i++)
		length += (uint32_t)t->iov[t->pieces++].iov_len;
	if (t->port->medium->seal) {
		uint32_t bytes = (uint32_t)seal(t, t->packets);

		add_bytes(t, t->text + t->text_bytes, bytes);
		t->text_bytes += bytes;
		length += bytes;
	}
	count(t, length);
}

uint8_t *packet_train_place(const struct packet_train *t, uint32_t bytes, uint32_t *stride)
{
	*stride = t->length + bytes + trailer_bytes(t, bytes);
	return t->room + t->room_bytes + t->length;
}

void packet_train_placed(struct packet_train *t, const struct rc_packet *like, uint32_t i)
{
	struct packet_part_of_train *p = &t->packet[t->packets];
	uint32_t length = t->length + like->bytes;

	*p = (struct packet_part_of_train){
		.header = t->room + t->room_bytes,
		.header_bytes = (uint8_t)t->length,
		.placed = (uint16_t)like->bytes,
	};
	memcpy(p->header, t->text + t->text_bytes, t->length);
	if (i)
		t->port->medium->renumber(p->header, rc_psn_add(like->psn, i));
	if (t->port->medium->seal)
		length += (uint32_t)seal(t, t->packets);
	add_bytes(t, p->header, length);
	t->room_bytes += length;
	count(t, length);
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
