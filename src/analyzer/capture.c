/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a capture file for an analyzer; see capture.h. */
#include "analyzer/capture.h"

#include <string.h>

#include "wire/capture/link.h"

/* Later times are no times; sums of times below do not overflow. */
#define WHEN_NS_MAX (INT64_MAX / 4)

void analyzer_capture_begin(struct analyzer_capture *c)
{
	memset(c, 0, sizeof(*c));
	capture_begin(&c->reader);
}

static void give(struct analyzer_capture *c, struct analyzer *a, const struct capture_packet *from,
		 const struct capture_rdma_packet *rdma)
{
	struct analyzer_packet p = {
		.number = c->packets,
		.src.family = rdma->family,
		.dst.family = rdma->family,
		.bytes = rdma->bytes,
		.marked = rdma->marked,
		.origin = from->interface << 2 | from->direction,
	};

	if (!ib_decode_captured(rdma->bth, rdma->captured, rdma->bytes, &p.ib)) {
		c->malformed++;
		return;
	}
	if (from->timed)
		c->last_ns = from->when_ns < WHEN_NS_MAX ? (int64_t)from->when_ns : WHEN_NS_MAX;
	else
		c->untimed++;
	p.when_ns = c->last_ns;
	memcpy(p.src.bytes, rdma->src, sizeof(p.src.bytes));
	memcpy(p.dst.bytes, rdma->dst, sizeof(p.dst.bytes));
	c->lost += rdma->lost;
	analyzer_untimed(a, !from->timed);
	analyzer_packet(a, &p);
}

static void packet(struct analyzer_capture *c, struct analyzer *a, const struct capture_packet *p)
{
	struct capture_rdma_packet rdma;

	c->packets++;
	switch (capture_find_rdma(p->link, p->data, p->captured, &rdma)) {
	case CAPTURE_RDMA:
		give(c, a, p, &rdma);
		break;
	case CAPTURE_NO_RDMA:
		c->others++;
		break;
	case CAPTURE_CUT:
		c->cut++;
		break;
	case CAPTURE_LINK_UNKNOWN:
		if (!c->links_unknown++)
			c->link_unknown = p->link;
		break;
	}
}

size_t analyzer_capture_feed(struct analyzer_capture *c, struct analyzer *a, const uint8_t *data,
			     size_t size)
{
	size_t all = 0, used;
	struct capture_packet p;

	for (;;) {
		switch (capture_next(&c->reader, data + all, size - all, &used, &p)) {
		case CAPTURE_PACKET:
			packet(c, a, &p);
			break;
		case CAPTURE_OTHER:
			break;
		case CAPTURE_MORE:
			return all;
		case CAPTURE_CORRUPT:
			c->corrupt = true;
			return all;
		}
		all += used;
	}
}

bool analyzer_capture_end(struct analyzer_capture *c, size_t left)
{
	if (c->corrupt)
		return false;
	c->corrupt = !capture_end(&c->reader, left);
	return !c->corrupt;
}

uint64_t analyzer_capture_lost(const struct analyzer_capture *c)
{
	return capture_dropped(&c->reader) + c->lost;
}
