/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes completions and connection events, and computes what rpoll() reports. */
#define LOG_ROOM "rsocket"
#include "rdmacm/rsocket/rs.h"
#include "util/log.h"

#define BATCH 16
/* After that many polls without a completion connection events are looked for, which
 * is a system call. They wake a sleeping thread anyway. */
#define IDLE_LOOKS 1024

static void completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		if (!rs_is_stream(rs))
			return rs_dgram_failed(rs, wc);
		/* A flushed completion says only that the QP is in the error state; the
		 * reason comes as a connection event. */
		if (wc->status != IBV_WC_WR_FLUSH_ERR) {
			log_debug("socket %d: %s", rs->fd,
				  ibv_wc_status_str(wc->status));
			rs->lost = true;
		} else {
			rs->lost = rs->lost || rs->state == RS_CONNECTED;
		}
		return;
	}
	if (wc->wr_id & RS_WR_RECV) {
		uint32_t slot = (uint32_t)wc->wr_id;

		/* A message may arrive before the event ESTABLISHED. */
		if (unlikely(rs->state == RS_ACCEPTING)) {
			rs->state = RS_CONNECTED;
			rs->edges[RS_EDGE_OUT]++;
		}
		if (rs_is_stream(rs))
			rs_stream_received(rs, slot, wc->byte_len);
		else
			rs_dgram_received(rs, wc, slot);
	} else {
		rs_stream_sent(rs, wc->wr_id);
	}
}

/* Notes that there is room again. */
static void room_look(struct rs *rs)
{
	if (rs_events(rs) & POLLOUT) {
		rs->out_full = false;
		rs->edges[RS_EDGE_OUT]++;
	}
}

static uint32_t edges_count(const struct rs *rs)
{
	return rs->edges[RS_EDGE_IN] + rs->edges[RS_EDGE_OUT] + rs->edges[RS_EDGE_STATE];
}

/* Threads in epoll_wait() look at the socket at once: the channel reports no event for completions
 * that this thread has taken. */
static void watches_wake(struct rs *rs)
{
	list_for_each(w, &rs->waiters, struct rs_waiter, entry)
		if (w->wake)
			w->wake(w);
}

void rs_progress(struct rs *rs)
{
	uint32_t before = edges_count(rs);
	struct ibv_wc wc[BATCH];
	bool found = false;
	int n;

	if (likely(rs->cq)) {
		do {
			n = ibv_poll_cq(rs->cq, BATCH, wc);
			for (int i = 0; i < n; i++)
				completed(rs, &wc[i]);
			found |= n > 0;
		} while (n == BATCH);
	}
	if (unlikely(rs->lost)) {
		rs->lost = false;
		rs_gone(rs);
	}
	if (found)
		rs->idle = 0;
	if (unlikely(rs->out_full) && found)
		room_look(rs);
	if (found && edges_count(rs) != before)
		watches_wake(rs);
	if (rs->state == RS_CONNECTED && rs_is_stream(rs)) {
		rs_stream_credit(rs);
		if (likely(rs->idle++ < IDLE_LOOKS))
			return;
		rs->idle = 0;
	}
	/* The messages that came before the disconnect are taken first. */
	if (!rs->served && rs->state != RS_GONE && rs_cm_progress(rs))
		rs_progress(rs);
}

void rs_progress_all(struct rs *rs)
{
	rs->idle = IDLE_LOOKS;
	rs_progress(rs);
}

static short stream_events(struct rs *rs)
{
	const struct rs_rx *rx = &rs->rx;
	const struct rs_tx *tx = &rs->tx;
	bool gone = rs->state == RS_GONE;
	short events = 0;

	if (rx->ready_bytes || rx->ended || rx->shut || rs->error || gone)
		events |= POLLIN | POLLRDNORM;
	if (gone || rs->error || tx->shut ||
	    (rs->state == RS_CONNECTED &&
	     rs_stream_room(rs, RS_DATA, tx->payload_max)))
		events |= POLLOUT | POLLWRNORM;
	else if (rs->state == RS_CONNECTED)
		rs->out_full = true;
	if (rx->ended || rx->shut || gone)
		events |= POLLRDHUP;
	if (gone || ((rx->ended || rx->shut) && tx->shut))
		events |= POLLHUP;
	return events;
}

short rs_events(struct rs *rs)
{
	short events = rs->error ? POLLERR : 0;

	if (rs->closing)
		return POLLNVAL;
	if (!rs_is_stream(rs)) {
		if (rs->rx.ready_head != rs->rx.ready_tail || rs->error ||
		    rs->rx.shut)
			events |= POLLIN | POLLRDNORM;
		if (!rs->qp || rs_dgram_room(rs))
			events |= POLLOUT | POLLWRNORM;
		else
			rs->out_full = true;
		return events;
	}
	switch (rs->state) {
	case RS_OPEN:
	case RS_BOUND:
		return events | POLLOUT | POLLHUP;
	case RS_LISTENING:
		return events | (rs->pending ? POLLIN | POLLRDNORM : 0);
	case RS_ACCEPTING:
	case RS_CONNECTED:
	case RS_GONE:
		return events | stream_events(rs);
	default: /* connecting */
		return events;
	}
}

short rs_events_tcp(struct rs *rs)
{
	short events = rs_events(rs);

	if (rs_is_stream(rs) && rs->state == RS_GONE && rs->rx.ended && !rs->tx.shut &&
	    !rs->error)
		events &= (short)~POLLHUP;
	return events;
}
