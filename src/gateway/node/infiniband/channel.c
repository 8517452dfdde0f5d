/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's side of a channel: making it, giving it a queue pair, taking that
 * away again, and seeing to it that every sample which the queue pair held is
 * handed to the reader or released, exactly once. See channel.h.
 */
#define LOG_ROOM "gateway/infiniband"

#include "gateway/node/infiniband/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/wakeup.h"

static bool table_init(struct ib_table *t, unsigned depth)
{
	t->samples = calloc(depth, sizeof(*t->samples));
	t->free = calloc(depth, sizeof(*t->free));
	if (!t->samples || !t->free)
		return false;
	t->depth = t->free_count = depth;
	/* Lowest index first, so that a shallow use stays in few lines. */
	for (unsigned i = 0; i < depth; i++)
		t->free[i] = depth - 1 - i;
	return true;
}

static void table_destroy(struct ib_table *t)
{
	free(t->samples);
	free(t->free);
}

static void table_release(struct ib_table *t)
{
	for (unsigned i = 0; i < t->depth && ib_table_used(t); i++) {
		struct sample *s = ib_table_take(t, (uint64_t)i + 1);

		if (s)
			sample_put(s);
	}
}

int ib_channel_init(struct ib_channel *ch, const struct ib_channel_config *cfg)
{
	memset(ch, 0, sizeof(*ch));
	ch->cfg = *cfg;
	ch->notify_fd = cfg->notify_fd;
	ch->wake_fd = wakeup_open_signal();
	if (ch->wake_fd < 0)
		return ch->wake_fd;
	ch->rx.threshold = cfg->rx_threshold;
	ch->rx.ud = cfg->ud;
	ch->rx.keys.registrar = ch->tx.keys.registrar = cfg->registrar;
	ch->rx.spares = calloc(cfg->rx_depth, sizeof(*ch->rx.spares));
	ch->rx.pending = calloc(cfg->rx_depth, sizeof(*ch->rx.pending));
	if (ch->rx.spares && ch->rx.pending && table_init(&ch->rx.table, cfg->rx_depth) &&
	    table_init(&ch->tx.table, cfg->tx_depth))
		return 0;
	ib_channel_destroy(ch);
	return -ENOMEM;
}

void ib_channel_destroy(struct ib_channel *ch)
{
	table_destroy(&ch->rx.table);
	table_destroy(&ch->tx.table);
	free(ch->rx.spares);
	free(ch->rx.pending);
	if (ch->wake_fd >= 0)
		close(ch->wake_fd);
	memset(ch, 0, sizeof(*ch));
	ch->wake_fd = ch->notify_fd = -1;
}

/* Clears `bits` and waits until all threads that may have seen them are outside. */
static void shut(struct ib_channel *ch, unsigned bits, atomic_uint *busy)
{
	atomic_fetch_and(&ch->control, ~bits);
	if (busy == &ch->reading)
		wakeup_post(ch->wake_fd);
	while (atomic_load(busy))
		sched_yield();
}

void ib_channel_open_rx(struct ib_channel *ch, const struct ib_channel_qp *q)
{
	/* Pending samples stay and are handed out first. */
	shut(ch, IB_RX_OPEN | IB_RX_PENDING, &ch->reading);
	shut(ch, IB_TX_OPEN, &ch->writing);
	ch->q = *q;
	ib_keys_forget(&ch->rx.keys);
	ib_keys_forget(&ch->tx.keys);
	ch->rx.armed = false;
	ch->tx.unsignaled = 0;
	ch->tx.flushing = false;
	atomic_store(&ch->filled, false);
	atomic_fetch_or(&ch->control, IB_RX_OPEN);
	wakeup_post(ch->wake_fd);
}

void ib_channel_open_tx(struct ib_channel *ch, struct ibv_ah *ah, uint32_t qpn,
			uint32_t qkey)
{
	shut(ch, IB_TX_OPEN, &ch->writing);
	ch->tx.ah = ah;
	ch->tx.remote_qpn = qpn;
	ch->tx.remote_qkey = qkey;
	atomic_fetch_or(&ch->control, IB_TX_OPEN);
}

void ib_channel_close_rx(struct ib_channel *ch)
{
	shut(ch, IB_RX_OPEN | IB_RX_PENDING, &ch->reading);
}

void ib_channel_close_tx(struct ib_channel *ch)
{
	shut(ch, IB_TX_OPEN, &ch->writing);
}

/* Keeps what has been received for the reader. */
static void drain_rx(struct ib_channel *ch)
{
	struct ib_rx *rx = &ch->rx;
	int n = ibv_poll_cq(ch->q.recv_cq, IB_BATCH, rx->wc);
	const struct timespec now = clock_realtime();

	for (int i = 0; i < n; i++) {
		struct sample *s = ib_table_take(&rx->table, rx->wc[i].wr_id);

		if (s && ib_rx_accept(ch, s, &rx->wc[i], now))
			rx->pending[rx->pending_count++] = s;
		else if (s)
			sample_put(s);
	}
}

void ib_channel_drain(struct ib_channel *ch, uint64_t timeout_ns)
{
	uint64_t deadline = clock_now_ns() + timeout_ns;
	struct ib_rx *rx = &ch->rx;

	if (rx->pending_first) {
		memmove(rx->pending, rx->pending + rx->pending_first,
			rx->pending_count * sizeof(*rx->pending));
		rx->pending_first = 0;
	}
	for (;;) {
		drain_rx(ch);
		ib_tx_collect(ch);
		if ((!ib_table_used(&rx->table) && !ib_table_used(&ch->tx.table)) ||
		    clock_now_ns() >= deadline)
			return;
		sched_yield();
	}
}

/* Posts a request that is answered by the peer's adapter and seen by nobody there: a write
 * of zero bytes. Not for UD, which has no writes. */
static bool post_flush(struct ib_channel *ch)
{
	struct ibv_send_wr wr = {
		.wr_id = IB_WR_ID_FLUSH,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	if (!ch->tx.flushing) {
		ch->tx.flushed = false;
		ch->tx.flushing = !ibv_post_send(ch->q.qp, &wr, &bad);
	}
	return ch->tx.flushing;
}

bool ib_channel_flush(struct ib_channel *ch, uint64_t timeout_ns)
{
	uint64_t deadline = clock_now_ns() + timeout_ns;

	/* Inline requests give no completion, so something signaled has to go
	 * behind them. UD requests need no answer. */
	ch->tx.flushing = ch->tx.flushed = ch->rx.ud;
	do {
		post_flush(ch);
		ib_tx_collect(ch);
		if (ch->tx.flushed && ib_table_used(&ch->tx.table) == 0)
			return true;
		sched_yield();
	} while (clock_now_ns() < deadline);
	return false;
}

int ib_channel_probe(struct ib_channel *ch)
{
	if (!post_flush(ch))
		return -EIO;
	ib_tx_collect(ch);
	if (!ch->tx.flushed)
		return 0;
	ch->tx.flushing = false;
	return atomic_load(&ch->error) ? -EIO : 1;
}

void ib_channel_detach(struct ib_channel *ch)
{
	struct ib_rx *rx = &ch->rx;

	ib_rx_acknowledge(ch);
	table_release(&rx->table);
	table_release(&ch->tx.table);
	sample_put_many(rx->spares, rx->spare_count);
	rx->spare_count = 0;
	ch->q = (struct ib_channel_qp){ 0 };
	ch->tx.ah = NULL;
	/* What was flushed came back with one, too. */
	atomic_store(&ch->error, 0);
	if (rx->pending_count) {
		atomic_fetch_or(&ch->control, IB_RX_PENDING);
		wakeup_post(ch->wake_fd);
	}
}

void ib_channel_release_all(struct ib_channel *ch)
{
	struct ib_rx *rx = &ch->rx;

	ib_channel_close_rx(ch);
	ib_channel_close_tx(ch);
	ib_channel_detach(ch);
	atomic_fetch_and(&ch->control, ~(unsigned)IB_RX_PENDING);
	sample_put_many(rx->pending + rx->pending_first, rx->pending_count);
	rx->pending_first = rx->pending_count = 0;
}

unsigned ib_channel_held(const struct ib_channel *ch)
{
	return ib_table_used(&ch->rx.table) + ib_table_used(&ch->tx.table) +
	       ch->rx.spare_count + ch->rx.pending_count;
}

void ib_channel_wait(struct ib_channel *ch, int timeout_ms)
{
	struct pollfd pfd = { .fd = ch->wake_fd, .events = POLLIN };

	/* Left over from an earlier wake-up, or the one that is waited for. */
	wakeup_poll(&pfd, 1, clock_now_ns() + (uint64_t)timeout_ms * 1000000);
	atomic_fetch_and(&ch->control, ~(unsigned)IB_INTERRUPT);
	/* What came since the caller looked: nobody reads before a descriptor
	 * is readable, so that has to stay as it was. */
	if (atomic_load_explicit(&ch->polled, memory_order_relaxed) &&
	    atomic_load(&ch->control) & (IB_RX_OPEN | IB_RX_PENDING))
		wakeup_post(ch->wake_fd);
}
