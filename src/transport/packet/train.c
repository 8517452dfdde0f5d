/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that leave together: carriers of datagrams take several packets of equal length in
 * one call to the kernel (generic segmentation offload), at much less than the price of
 * one call each.
 */
#include <errno.h>

#include "hca/limits.h"
#include "transport/packet/state.h"
#include "util/container_of.h"

_Static_assert(CARRIER_IOV_MAX >= 2 * (2 + HCA_MAX_SGE), "two packets have room");

struct iovec *packet_train_begin(struct packet_train *t, const struct packet_frame *f)
{
	const struct packet_medium *m = t->port->medium;
	uint8_t *header;
	size_t bytes;

	if (unlikely(t->packets &&
		     (t->ended || t->packets >= m->train() ||
		      t->pieces + 2 + HCA_MAX_SGE > CARRIER_IOV_MAX)))
		return NULL;
	header = t->header[t->packets];
	bytes = m->encode(f, header);
	t->length = (uint32_t)bytes;
	/* With its trailer it may be longer; then it is the last one all the same. */
	if (t->packets) {
		uint32_t length = t->length + f->rc.bytes +
				  (m->seal ? 4 + (-f->rc.bytes & 3) : 0);

		if (length > t->segment || t->bytes + length > PACKET_TRAIN_BYTES)
			return NULL;
	}
	t->iov[t->pieces] = (struct iovec){ header, bytes };
	return &t->iov[t->pieces + 1];
}

void packet_train_end(struct packet_train *t, unsigned n)
{
	const struct packet_medium *m = t->port->medium;
	struct iovec *iov = &t->iov[t->pieces];
	uint32_t length = t->length;

	for (unsigned i = 1; i <= n; i++)
		length += (uint32_t)iov[i].iov_len;
	n++;
	if (m->seal) {
		uint8_t *trailer = t->trailer[t->packets];
		size_t bytes = m->seal(t->route, t->packets, t->fragments, iov, n,
				       trailer);

		iov[n++] = (struct iovec){ trailer, bytes };
		length += (uint32_t)bytes;
	}
	if (!t->packets)
		t->segment = length;
	else if (length != t->segment)
		t->ended = true;
	t->packets++;
	t->pieces += n;
	t->bytes += length;
}

/* All packets once more, as they leave in fragments. */
static void seal_again(struct packet_train *t)
{
	unsigned piece = 0;

	t->fragments = true;
	for (unsigned k = 0; t->port->medium->seal && k < t->packets; k++) {
		unsigned first = piece;

		while (t->iov[piece].iov_base != t->trailer[k])
			piece++;
		t->port->medium->seal(t->route, k, true, &t->iov[first], piece - first,
				      t->trailer[k]);
		piece++;
	}
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
		.known = (uint16_t)(r->known | (t->fragments ? CARRIER_FRAGMENTS : 0)),
		.tos = r->tos,
		.ttl = r->ttl,
		.interface = r->interface,
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
