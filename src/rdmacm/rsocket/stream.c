/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending and receiving on a stream: messages are posted out of the send ring;
 * receive slots are read, posted again and granted to the peer. Rules: wire.h.
 */
#define LOG_ROOM "rsocket"
#include <string.h>

#include "rdmacm/rsocket/rs.h"
#include "util/log.h"

#define HEADER ((uint32_t)sizeof(struct rs_header))
#define INLINE_MAX 1024u
/* A message is signaled at least that often per round of ring and send queue. */
#define SIGNALS 4

static bool needs_credit(enum rs_type type)
{
	return type < RS_CREDIT;
}

/* ---- the send ring ---- */

/* Position of `len` contiguous free bytes; UINT64_MAX: there are none. */
static uint64_t ring_place(const struct rs *rs, uint32_t len)
{
	uint64_t size = rs->opt.send_size, head = rs->tx.ring_head;
	uint64_t at = head % size;

	if (at + len > size)
		head += size - at;
	return head + len - rs->tx.ring_tail <= size ? head : UINT64_MAX;
}

bool rs_stream_has_ring(const struct rs *rs, uint32_t len)
{
	return ring_place(rs, len) != UINT64_MAX;
}

uint8_t *rs_stream_ring(struct rs *rs, uint32_t len)
{
	uint64_t place = ring_place(rs, len);

	if (place == UINT64_MAX)
		return NULL;
	rs->tx.ring_head = place + len;
	return rs->tx.ring + place % rs->opt.send_size;
}

bool rs_stream_room(const struct rs *rs, enum rs_type type, uint32_t len)
{
	const struct rs_tx *tx = &rs->tx;
	uint64_t under_way = tx->posted - tx->done;

	if (!needs_credit(type))
		return under_way < tx->sq_entries + RS_SQ_SPARE;
	if (under_way >= tx->sq_entries || tx->sent_credits == tx->granted)
		return false;
	return HEADER + len <= tx->inline_max ||
	       ring_place(rs, HEADER + len) != UINT64_MAX;
}

int rs_stream_post(struct rs *rs, struct ibv_send_wr *wr, uint32_t len)
{
	struct rs_tx *tx = &rs->tx;
	struct ibv_send_wr *bad;
	bool signal = tx->posted + 1 - tx->signaled >= tx->sq_entries / SIGNALS ||
		      tx->ring_head - tx->ring_signaled >=
			      rs->opt.send_size / SIGNALS;
	int ret;

	wr->wr_id = tx->posted;
	if (signal)
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (wr->send_flags & IBV_SEND_SIGNALED) {
		tx->signaled = tx->posted + 1;
		tx->ring_signaled = tx->ring_head;
	}
	tx->sent[tx->posted % (tx->sq_entries + RS_SQ_SPARE)].ring_end = tx->ring_head;
	ret = ibv_post_send(rs->qp, wr, &bad);
	if (unlikely(ret)) {
		log_debug("socket %d: post of %u bytes: %s", rs->fd, len,
			  strerror(ret));
		rs_gone(rs);
		return -ECONNRESET;
	}
	tx->posted++;
	return 0;
}

int rs_stream_message(struct rs *rs, enum rs_type type, struct rs_iter *it,
		      uint32_t len)
{
	struct rs_header header = {
		.type = (uint8_t)type,
		.granted = htonl(rs->rx.granted),
	};
	struct rs_tx *tx = &rs->tx;
	uint8_t small[INLINE_MAX];
	bool in_line = HEADER + len <= tx->inline_max;
	uint8_t *at = in_line || !it ? small : rs_stream_ring(rs, HEADER + len);
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = HEADER + len,
			       .lkey = tx->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = in_line ? IBV_SEND_INLINE : 0,
	};
	int ret;

	/* Without inline data a message that is only a header has its place behind
	 * the ring. */
	if (!in_line && !it) {
		at = tx->ring + rs->opt.send_size +
		     RS_CONTROL_SIZE * (tx->control++ % RS_CONTROL_PLACES);
		sge.addr = (uintptr_t)at;
	}
	memcpy(at, &header, HEADER);
	if (len)
		rs_iter_read(it, at + HEADER, len);
	if (type == RS_END)
		wr.send_flags |= IBV_SEND_SIGNALED;
	ret = rs_stream_post(rs, &wr, HEADER + len);
	if (ret)
		return ret;
	rs->rx.told = rs->rx.granted;
	tx->sent_credits += needs_credit(type);
	return 0;
}

void rs_stream_sent(struct rs *rs, uint64_t number)
{
	struct rs_tx *tx = &rs->tx;

	tx->done = number + 1;
	tx->ring_tail = tx->sent[number % (tx->sq_entries + RS_SQ_SPARE)].ring_end;
}

void rs_stream_end(struct rs *rs)
{
	struct rs_tx *tx = &rs->tx;

	if (tx->end_sent || !tx->shut || rs->state != RS_CONNECTED ||
	    !rs_stream_room(rs, RS_END, 0))
		return;
	if (!rs_stream_message(rs, RS_END, NULL, 0)) {
		tx->end_sent = true;
		tx->end = tx->posted;
	}
}

/* ---- receiving ---- */

static void violation(struct rs *rs, const char *what)
{
	log_warn("socket %d: the peer breaks the protocol: %s", rs->fd, what);
	rs->rx.broken = true;
	rs_fail(rs, EPROTO);
}

/* Posts the slots in `unposted` again and counts them as granted. */
static void slots_post(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;

	if (rs->state == RS_CONNECTED &&
	    rs_post_recv(rs, rx->unposted, rx->unposted_count))
		rs_gone(rs);
	rx->granted += rx->unposted_count;
	rx->unposted_count = 0;
}

static void slot_read(struct rs *rs, uint32_t slot)
{
	struct rs_rx *rx = &rs->rx;

	rx->unposted[rx->unposted_count++] = slot;
	if (rx->unposted_count >= MAX(rs->opt.rq_size / 8, 1u))
		slots_post(rs);
}

/* The slot of a message without credit is posted at once and not granted. */
static void slot_return(struct rs *rs, uint32_t slot)
{
	if (rs->state == RS_CONNECTED && rs_post_recv(rs, &slot, 1))
		rs_gone(rs);
}

void rs_stream_credit(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;

	if (rs->tx.shut && !rs->tx.end_sent)
		rs_stream_end(rs);
	if (likely(rx->granted - rx->told < MAX(rs->opt.rq_size / 2, 1u)) ||
	    rx->ended)
		return;
	if (rs_stream_room(rs, RS_CREDIT, 0))
		rs_stream_message(rs, RS_CREDIT, NULL, 0);
}

static bool granted_take(struct rs *rs, uint32_t granted)
{
	struct rs_tx *tx = &rs->tx;

	/* `granted` never decreases and never exceeds the peer's number of slots. */
	if (granted - tx->granted > tx->peer_slots ||
	    granted - tx->sent_credits > tx->peer_slots)
		return false;
	tx->granted = granted;
	return true;
}

static void data_received(struct rs *rs, uint32_t slot, uint32_t len)
{
	struct rs_rx *rx = &rs->rx;

	if (rx->shut || rs->closing || !len) {
		slot_read(rs, slot);
		return;
	}
	rx->ready[rx->ready_head++ % rx->slot_count] =
		(struct rs_ready){ .slot = slot, .at = HEADER, .len = len };
	rx->ready_bytes += len;
	rs->edges[RS_EDGE_IN]++;
}

void rs_stream_received(struct rs *rs, uint32_t slot, uint32_t bytes)
{
	struct rs_rx *rx = &rs->rx;
	struct rs_header header;
	uint32_t len;

	/* After a violation further messages are ignored. */
	if (rx->broken)
		return;
	if (bytes < HEADER || slot >= rx->slot_count) {
		violation(rs, "a message without header");
		return;
	}
	len = bytes - HEADER;
	memcpy(&header, rs_slot(rs, slot), HEADER);
	if (!granted_take(rs, ntohl(header.granted))) {
		violation(rs, "more credits than slots");
		return;
	}
	if (header.type < RS_CREDIT && rx->ended) {
		violation(rs, "bytes after the end");
		return;
	}
	switch (header.type) {
	case RS_DATA:
		data_received(rs, slot, len);
		break;
	case RS_MAP:
	case RS_UNMAP:
		if (!rs_map_received(rs, header.type, rs_slot(rs, slot) + HEADER,
				     len))
			violation(rs, "an invalid mapping");
		slot_read(rs, slot);
		break;
	case RS_CREDIT:
		slot_return(rs, slot);
		break;
	case RS_END:
		rx->ended = true;
		rs->edges[RS_EDGE_STATE]++;
		break;
	default:
		violation(rs, "an unknown kind of message");
		break;
	}
}

size_t rs_stream_take(struct rs *rs, struct rs_iter *it, bool peek)
{
	struct rs_rx *rx = &rs->rx;
	uint32_t tail = rx->ready_tail;
	size_t taken = 0;

	while (it->left && tail != rx->ready_head) {
		struct rs_ready *r = &rx->ready[tail % rx->slot_count];
		uint32_t n = (uint32_t)MIN((size_t)r->len, it->left);

		rs_iter_write(it, rs_slot(rs, r->slot) + r->at, n);
		taken += n;
		if (peek) {
			tail++;
			continue;
		}
		r->at += n;
		r->len -= n;
		rx->ready_bytes -= n;
		if (r->len)
			break;
		rx->ready_tail = ++tail;
		slot_read(rs, r->slot);
	}
	if (!peek && rs->state == RS_CONNECTED)
		rs_stream_credit(rs);
	return taken;
}

void rs_stream_discard(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;

	while (rx->ready_tail != rx->ready_head)
		slot_read(rs, rx->ready[rx->ready_tail++ % rx->slot_count].slot);
	rx->ready_bytes = 0;
	if (rs->state == RS_CONNECTED)
		rs_stream_credit(rs);
}
