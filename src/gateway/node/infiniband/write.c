/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: one work request for each sample, linked into one post.
 *
 * A small sample goes inline: the adapter copies it during the call, nobody
 * waits for a completion and the sample goes back at once. But a request that
 * is not signaled holds its place in the send queue until a later signaled one
 * completes, so now and then one that could go inline goes the other way.
 * All others belong to the channel until their completion is taken, by this
 * call or a later one: write never waits.
 */
#define LOG_ROOM "gateway/infiniband"

#include <errno.h>

#include "gateway/node/infiniband/channel.h"
#include "util/log.h"

static void tx_unsendable(struct ib_channel *ch, const struct sample *s,
			  const char *why)
{
	if (ib_count_fault(ch, IB_COUNT_UNSENDABLE) == 0)
		log_warn("%s: cannot send a sample of %u values: %s; further ones are only counted",
			 ch->cfg.name, s->length, why);
}

static bool tx_prepare(struct ib_channel *ch, unsigned i, struct sample *s,
		       unsigned *unsignaled, bool *full)
{
	struct ib_tx *tx = &ch->tx;
	size_t size = sample_wire_size(s->length);
	struct ibv_send_wr *wr = &tx->wr[i];
	struct ibv_sge *sge = &tx->sge[i];

	if (unlikely(ch->q.size_max && size > ch->q.size_max)) {
		tx_unsendable(ch, s, "a UD message must fit into one packet");
		return false;
	}
	*sge = (struct ibv_sge){
		.addr = (uintptr_t)sample_wire(s),
		.length = (uint32_t)size,
	};
	if (size <= ch->q.inline_limit && ++*unsignaled < ch->cfg.signal_every) {
		wr->send_flags = IBV_SEND_INLINE;
		wr->wr_id = IB_WR_ID_NONE;
	} else {
		if (unlikely(!ib_keys_get(&tx->keys, s, &sge->lkey))) {
			tx_unsendable(ch, s, "its memory is not registered");
			return false;
		}
		wr->send_flags = IBV_SEND_SIGNALED;
		wr->wr_id = ib_table_add(&tx->table, s);
		if (wr->wr_id == IB_WR_ID_NONE) {
			*full = true;
			return false;
		}
		*unsignaled = 0;
	}
	wr->sg_list = sge;
	wr->num_sge = 1;
	wr->opcode = IBV_WR_SEND;
	wr->next = NULL;
	if (tx->ah) {
		wr->wr.ud.ah = tx->ah;
		wr->wr.ud.remote_qpn = tx->remote_qpn;
		wr->wr.ud.remote_qkey = tx->remote_qkey;
	}
	if (i)
		tx->wr[i - 1].next = wr;
	return true;
}

/* Posts smps[0..cnt) in one chain; returns how many were accepted. *full: fewer, because
 * the queue is full. */
static unsigned tx_post_chain(struct ib_channel *ch, struct sample *smps[],
			      unsigned cnt, bool *full)
{
	struct ib_tx *tx = &ch->tx;
	unsigned unsignaled = tx->unsignaled;
	struct ibv_send_wr *bad = NULL;
	unsigned n = 0, posted;
	int err;

	while (n < cnt && tx_prepare(ch, n, smps[n], &unsignaled, full))
		n++;
	if (n == 0)
		return 0;
	posted = n;
	STAMP_WRITE(ch, IB_WRITE_PREPARED);
	err = ibv_post_send(ch->q.qp, tx->wr, &bad);
	STAMP_WRITE(ch, IB_WRITE_POSTED);
	if (unlikely(err)) {
		/* ENOMEM is a full queue, all else one that cannot send. */
		if (err != ENOMEM)
			ib_channel_break(ch, IB_TX_OPEN, -err);
		else
			*full = true;
		posted = bad ? (unsigned)(bad - tx->wr) : 0;
	}
	for (unsigned i = 0; i < n; i++) {
		bool is_inline = tx->wr[i].send_flags & IBV_SEND_INLINE;

		if (likely(i < posted))
			tx->unsignaled = is_inline ? tx->unsignaled + 1 : 0;
		else if (!is_inline)
			ib_table_take(&tx->table, tx->wr[i].wr_id);
	}
	return posted;
}

/*
 * Takes up to `max` completions; their samples go to smps[]. Returns how many
 * samples that are.
 */
static unsigned tx_take(struct ib_channel *ch, struct sample *smps[],
			   unsigned max)
{
	struct ib_tx *tx = &ch->tx;
	unsigned taken = 0;

	while (taken < max) {
		unsigned want = MIN(max - taken, IB_BATCH);
		int n = ibv_poll_cq(ch->q.send_cq, (int)want, tx->wc);

		if (unlikely(n < 0)) {
			ib_channel_break(ch, IB_TX_OPEN, n);
			break;
		}
		for (int i = 0; i < n; i++) {
			struct ibv_wc *wc = &tx->wc[i];
			struct sample *s;

			if (unlikely(wc->status != IBV_WC_SUCCESS)) {
				if (wc->wr_id != IB_WR_ID_FLUSH)
					ib_count_fault(ch, IB_COUNT_FAILED);
				ib_channel_break(ch, IB_TX_OPEN, wc->status);
				tx->flushed = true;
			}
			/* Flushed inline requests come back too. */
			s = ib_table_take(&tx->table, wc->wr_id);
			if (likely(s))
				smps[taken++] = s;
			else if (wc->wr_id == IB_WR_ID_FLUSH)
				tx->flushed = true;
		}
		if ((unsigned)n < want)
			break;
	}
	return taken;
}

void ib_tx_collect(struct ib_channel *ch)
{
	struct sample *done[IB_BATCH];

	sample_put_many(done, tx_take(ch, done, IB_BATCH));
}

int ib_channel_write(struct ib_channel *ch, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct ib_tx *tx = &ch->tx;
	unsigned accepted = 0, back = 0, done = 0;
	bool full = false;

	*release = cnt;
	if (cnt == 0 || !ib_enter(&ch->writing, &ch->control, IB_TX_OPEN))
		return 0;
	STAMP_WRITE(ch, IB_WRITE_ENTERED);
	while (done < cnt && accepted == done) {
		unsigned n = MIN(cnt - done, IB_BATCH);
		unsigned posted = tx_post_chain(ch, smps + done, n, &full);

		for (unsigned i = 0; i < posted; i++)
			if (tx->wr[i].send_flags & IBV_SEND_INLINE)
				smps[back++] = smps[done + i];
		accepted += posted;
		done += n;
	}
	for (unsigned i = accepted; i < cnt; i++)
		smps[back++] = smps[i];
	ib_count(&ch->counters.sent, accepted);
	if (unlikely(accepted < cnt)) {
		if (full)
			ib_count_fault(ch, IB_COUNT_QUEUE_FULL);
		/* smps[] has no place for a completion, but adapters free a place in the queue
		 * only when its completion is polled. */
		if (back == cnt)
			ib_tx_collect(ch);
	}
	STAMP_WRITE(ch, IB_WRITE_SORTED);
	*release = back + tx_take(ch, smps + back, cnt - back);
	STAMP_WRITE(ch, IB_WRITE_COLLECTED);
	ib_leave(&ch->writing);
	return (int)accepted;
}
