/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: a first phase that fills the receive queue with the samples it is
 * given, then the exchange of empty samples for received ones.
 *
 * The exchange puts every empty sample that it takes on the stack of spares and
 * posts from there, so that a post that fails delays no data: what could not
 * be posted stays with the channel and is the first to be posted next time.
 * Spares, pending and posted samples together are never more than the queue is
 * deep, because only the filling phase adds to their number and it first posts
 * all spares.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "gateway/node/infiniband/channel.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/spin.h"
#include "util/wakeup.h"

/* Empty polls until the reader lets others run, and between such turns. */
#define RX_SPIN_FIRST 256
#define RX_SPIN_NEXT 64

static bool rx_prepare(struct ib_channel *ch, unsigned i, struct sample *s)
{
	struct ib_rx *rx = &ch->rx;
	struct ibv_sge *sge = &rx->sge[2 * i];
	struct ibv_recv_wr *wr = &rx->wr[i];
	uint32_t lkey;

	if (!ib_keys_get(&rx->keys, s, &lkey))
		return false;
	wr->wr_id = ib_table_add(&rx->table, s);
	if (wr->wr_id == IB_WR_ID_NONE)
		return false;
	if (rx->ud)
		*sge++ = ch->q.grh;
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)sample_wire(s),
		.length = (uint32_t)sample_wire_size(s->capacity),
		.lkey = lkey,
	};
	wr->sg_list = &rx->sge[2 * i];
	wr->num_sge = rx->ud ? 2 : 1;
	wr->next = NULL;
	if (i)
		rx->wr[i - 1].next = wr;
	return true;
}

/* Posts smps[0..cnt) in one chain; returns how many were accepted. */
static unsigned rx_post_chain(struct ib_channel *ch, struct sample *smps[],
			      unsigned cnt)
{
	struct ib_rx *rx = &ch->rx;
	struct ibv_recv_wr *bad = NULL;
	unsigned n = 0, posted;

	while (n < cnt && rx_prepare(ch, n, smps[n]))
		n++;
	if (n == 0)
		return 0;
	posted = n;
	if (unlikely(ibv_post_recv(ch->q.qp, rx->wr, &bad)))
		posted = bad ? (unsigned)(bad - rx->wr) : 0;
	for (unsigned i = posted; i < n; i++)
		ib_table_take(&rx->table, rx->wr[i].wr_id);
	return posted;
}

static unsigned rx_post(struct ib_channel *ch, struct sample *smps[], unsigned cnt)
{
	unsigned done = 0;

	while (done < cnt) {
		unsigned n = MIN(cnt - done, IB_BATCH);
		unsigned posted = rx_post_chain(ch, smps + done, n);

		done += posted;
		if (posted < n)
			break;
	}
	return done;
}

static void rx_post_spares(struct ib_channel *ch)
{
	struct ib_rx *rx = &ch->rx;
	unsigned posted = rx_post(ch, rx->spares, rx->spare_count);

	rx->spare_count -= posted;
	if (unlikely(rx->spare_count && posted))
		memmove(rx->spares, rx->spares + posted,
			rx->spare_count * sizeof(*rx->spares));
}

/* Below the threshold: keeps what the queue takes, hands back the rest. */
static unsigned rx_fill(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
			unsigned *release)
{
	unsigned posted = 0;

	rx_post_spares(ch);
	if (ch->rx.spare_count == 0)
		posted = rx_post(ch, smps, cnt);
	*release = cnt - posted;
	memmove(smps, smps + posted, *release * sizeof(*smps));
	return posted;
}

bool ib_rx_accept(struct ib_channel *ch, struct sample *s,
		  const struct ibv_wc *wc, struct timespec now)
{
	uint32_t len = wc->byte_len;

	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		ib_channel_break(ch, IB_RX_OPEN, wc->status);
		return false;
	}
	if (ch->rx.ud)
		len = len >= IB_GRH_SIZE ? len - IB_GRH_SIZE : 0;
	if (unlikely(len < SAMPLE_WIRE_HEADER ||
		     len > sample_wire_size(s->capacity) ||
		     (len - SAMPLE_WIRE_HEADER) % sizeof(union signal_data))) {
		if (ib_count_fault(ch, IB_COUNT_MALFORMED) == 0)
			log_warn("%s: dropped a message of %u bytes: a sample has 24 plus 8 for each value, here at most %u values; further ones are only counted",
				 ch->cfg.name, len, s->capacity);
		return false;
	}
	s->length = (uint32_t)((len - SAMPLE_WIRE_HEADER) /
			       sizeof(union signal_data));
	s->received = now;
	s->signals = ch->cfg.signals;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	return true;
}

/* Exchanges the received ones of n completions; returns how many there are. */
static unsigned rx_take(struct ib_channel *ch, struct sample *smps[],
			unsigned n)
{
	const struct timespec now = clock_realtime();
	struct ib_rx *rx = &ch->rx;
	unsigned valid = 0;

	STAMP_READ(ch, IB_READ_STAMPED);
	for (unsigned i = 0; i < n; i++) {
		struct sample *s = ib_table_take(&rx->table, rx->wc[i].wr_id);

		if (unlikely(!s))
			continue;
		if (likely(ib_rx_accept(ch, s, &rx->wc[i], now))) {
			rx->spares[rx->spare_count++] = smps[valid];
			smps[valid++] = s;
		} else {
			rx->spares[rx->spare_count++] = s;
		}
	}
	return valid;
}

static void rx_yield(struct ib_channel *ch)
{
	pthread_cleanup_push(ib_leave_cancelled, &ch->reading);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	sched_yield();
}

/* Between two empty polls; false when the reader shall go home. */
static bool rx_may_poll(struct ib_channel *ch, struct ib_idle *idle)
{
	unsigned control = atomic_load_explicit(&ch->control,
						memory_order_relaxed);

	if (unlikely((control & (IB_RX_OPEN | IB_INTERRUPT)) != IB_RX_OPEN)) {
		atomic_fetch_and(&ch->control, ~(unsigned)IB_INTERRUPT);
		return false;
	}
	cpu_relax();
	if (unlikely(++idle->polls >= RX_SPIN_FIRST + RX_SPIN_NEXT)) {
		idle->polls = RX_SPIN_FIRST;
		rx_yield(ch);
	}
	if (ch->cfg.events)
		ib_rx_rest(ch, idle);
	return true;
}

/* One poll; returns the completions, and in *valid the samples received. */
static inline int rx_poll(struct ib_channel *ch, struct sample *smps[], int max,
			  unsigned *valid)
{
	struct ib_rx *rx = &ch->rx;
	int n;

	STAMP_READ(ch, IB_READ_ENTERED);
	n = ibv_poll_cq(ch->q.recv_cq, max, rx->wc);
	STAMP_READ(ch, IB_READ_POLLED);
	*valid = 0;
	if (likely(n > 0)) {
		*valid = rx_take(ch, smps, (unsigned)n);
		STAMP_READ(ch, IB_READ_TAKEN);
		/* A broken queue pair would flush them at once. */
		if (likely(atomic_load_explicit(&ch->control,
						memory_order_relaxed) &
			   IB_RX_OPEN))
			rx_post_spares(ch);
		STAMP_READ(ch, IB_READ_REFILLED);
	} else if (unlikely(n < 0)) {
		ib_channel_break(ch, IB_RX_OPEN, n);
	}
	return n;
}

/* Polls until there is something; returns how many samples were received. */
static unsigned rx_exchange(struct ib_channel *ch, struct sample *smps[],
			    unsigned cnt)
{
	int max = (int)MIN(cnt, IB_BATCH);
	struct ib_idle idle = { 0 };
	unsigned valid;

	ch->rx.armed = false;
	do {
		rx_poll(ch, smps, max, &valid);
		if (likely(valid))
			return valid;
	} while (rx_may_poll(ch, &idle));
	return 0;
}

/* Polls once, because the reader waits elsewhere: for the descriptors, or in
 * ib_channel_sleep(). */
static unsigned rx_exchange_once(struct ib_channel *ch, struct sample *smps[],
				 unsigned cnt, bool descriptors)
{
	int max = (int)MIN(cnt, IB_BATCH), n;
	unsigned valid;

	if (unlikely(descriptors))
		ib_rx_arm(ch);
	n = rx_poll(ch, smps, max, &valid);
	if (unlikely(descriptors && n == max))
		wakeup_post(ch->wake_fd); /* there may be more */
	if (unlikely(atomic_load_explicit(&ch->control, memory_order_relaxed) &
		     IB_INTERRUPT))
		atomic_fetch_and(&ch->control, ~(unsigned)IB_INTERRUPT);
	return valid;
}

/* Samples that a queue pair received before it was destroyed. */
static unsigned rx_pending(struct ib_channel *ch, struct sample *smps[],
			   unsigned cnt)
{
	struct ib_rx *rx = &ch->rx;
	unsigned n = MIN(cnt, rx->pending_count);

	for (unsigned i = 0; i < n; i++) {
		rx->spares[rx->spare_count++] = smps[i];
		smps[i] = rx->pending[rx->pending_first++];
	}
	rx->pending_count -= n;
	if (rx->pending_count == 0) {
		rx->pending_first = 0;
		atomic_fetch_and(&ch->control, ~(unsigned)IB_RX_PENDING);
	}
	return n;
}

int ib_channel_read(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		    unsigned *release)
{
	struct ib_rx *rx = &ch->rx;
	unsigned received = 0;

	*release = cnt;
	if (cnt == 0 || !ib_enter(&ch->reading, &ch->control,
				  IB_RX_OPEN | IB_RX_PENDING))
		return 0;
	if (unlikely(rx->pending_count)) {
		received = rx_pending(ch, smps, cnt);
	} else if (ib_table_used(&rx->table) < rx->threshold &&
		   rx_fill(ch, smps, cnt, release)) {
		/* Nothing is polled before the queue is full enough. */
	} else if (unlikely(ib_table_used(&rx->table) == 0)) {
		/* Takes nothing and holds nothing: nothing can ever arrive. */
		ib_channel_break(ch, IB_RX_OPEN, -ENOBUFS);
	} else {
		if (unlikely(!atomic_load_explicit(&ch->filled,
						   memory_order_relaxed)))
			atomic_store_explicit(&ch->filled, true,
					      memory_order_relaxed);
		if (ch->awaited || atomic_load_explicit(&ch->polled, memory_order_relaxed))
			received = rx_exchange_once(ch, smps, cnt, !ch->awaited);
		else
			received = rx_exchange(ch, smps, cnt);
	}
	ib_count(&ch->counters.received, received);
	ib_leave(&ch->reading);
	return (int)received;
}
