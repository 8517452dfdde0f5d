/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the transport with a capture or faults; see watch.h, faults.h. */
#include "hca/memory/promising.h"
#include "transport/list.h"
#include "transport/packet/show.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/state.h"
#include "transport/shm/watch/watch.h"
#include "util/probe.h"

bool shm_watches;
struct hca_transport_ops shm_watched_ops;

/* One slot; true if it was marked, so that the sender has to act. */
static bool take(struct shm_link *l, struct shm_slot *s, const struct shm_header *h,
		 enum shm_fate fate)
{
	struct shm_part_shown shown;
	bool marked;

	if (fate == SHM_LOSE) {
		atomic_store_explicit(&s->status, SHM_DROPPED, memory_order_relaxed);
		return true;
	}
	shm_watch_received(l, s, h, &shown);
	marked = shm_receive_other(l, s, *h);
	shm_watch_answered(s, &shown, marked);
	return marked;
}

/* The same steps as in shm_receive(), which knows no other than the usual way. */
bool shm_receive_watched(struct shm_link *l, bool at_once)
{
	uint32_t start = atomic_load_explicit(&l->rx_pos, memory_order_relaxed);
	uint32_t pos = start, ack;
	struct shm_header h;
	struct shm_slot *s;
	bool kick = false;

	if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP ||
	    atomic_load_explicit(&l->broken, memory_order_relaxed))
		return false;
	while (pos - start < SHM_RECEIVE_BUDGET && (s = shm_slot_ready(l, pos))) {
		enum shm_fate fate = shm_faults_receive(l, pos);

		if (fate == SHM_WAIT && !at_once)
			break;
		shm_slot_read(s, &h, &ack);
		shm_take_hint(l, hca_qp_find(h.dst_qpn), ack);
		PROBE(receive, h.dst_qpn, h.src_qpn, h.psn, h.length, h.op);
		if (take(l, s, &h, fate)) {
			l->rx_marks++;
			kick = true;
		}
		kick |= !!(h.flags & SHM_KICK_ON_ACK);
		atomic_store_explicit(&l->rx_pos, ++pos, memory_order_relaxed);
		shm_tell_received(l, pos);
	}
	if (pos == start)
		return false;
	atomic_store_explicit(&l->rx->ack.word, shm_ack_word(pos, l->rx_marks),
			      memory_order_release);
	if (kick)
		shm_kick(l);
	return true;
}

static bool receive(struct shm_link *l, bool wait)
{
	bool moved = false;

	if (!shm_lock_for(&l->rx_lock, wait))
		return false;
	if (atomic_load(&l->state) == SHM_LINK_UP)
		moved = shm_receive_watched(l, false);
	hca_unlock(&l->rx_lock);
	return moved;
}

static bool harvest(struct shm_link *l, bool wait)
{
	bool moved = false, look;

	/* A sender that has published a slot and not counted it yet, as in shm.c. */
	if (wait) {
		hca_lock(&l->tx_lock);
		hca_unlock(&l->tx_lock);
	}
	if (!shm_lock_for(&l->ack_lock, wait))
		return false;
	/* As in shm.c: it may be another one by now. */
	if (shm_link_is_up(l) && (shm_harvest_due(l, true, &look) || wait))
		moved = shm_harvest(l, true);
	hca_unlock(&l->ack_lock);
	return moved;
}

/* As shm_poll(), but for what that does for speed: nothing is put off, and no promise is
 * taken. */
static bool poll_watched(struct hca_cq *cq, bool wait)
{
	unsigned count = atomic_load_explicit(&shm.link_count, memory_order_acquire);
	bool moved = false;


	if (wait)
		shm_copy_hurry();
	for (unsigned i = 0; i < count; i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP)
			continue;
		moved |= receive(l, wait);
		if (shm_outstanding(l) || wait)
			moved |= harvest(l, wait || !cq);
	}
	return moved;
}

static int start_watched(void)
{
	int ret = shm_ops.start();

	if (!ret)
		shm_watch_start();
	return ret;
}

static void stop_watched(void)
{
	shm_ops.stop();
	shm_watch_stop();
}

static void forked_watched(void)
{
	shm_ops.forked();
	shm_watch_forked();
}

static int connect_watched(struct hca_qp *qp)
{
	qp->always_flags |= HCA_SWQE_WATCHED;
	/* What was promised must not be lost. */
	if (shm_faults_wanted())
		hca_promise_end(qp);
	shm_watch_connected(qp);
	return shm_ops.connect(qp);
}

static void close_watched(struct hca_qp *qp)
{
	shm_ops.close(qp);
	shm_watch_closed(qp);
}

static bool pending_watched(void)
{
	unsigned count = atomic_load(&shm.link_count);

	for (unsigned i = 0; i < count; i++)
		if (shm_faults_hold(shm.links[i]))
			return true;
	return shm_ops.pending();
}

const struct hca_transport_ops *shm_watch_variant(void)
{
	if (!packet_show_wanted() && !shm_faults_wanted())
		return &shm_ops;
	shm_watches = true;
	shm_watched_ops = shm_ops;
	shm_watched_ops.start = start_watched;
	shm_watched_ops.stop = stop_watched;
	shm_watched_ops.forked = forked_watched;
	shm_watched_ops.connect = connect_watched;
	shm_watched_ops.close = close_watched;
	shm_watched_ops.post = NULL; /* the short way shows nothing */
	shm_watched_ops.poll = poll_watched;
	shm_watched_ops.pending = pending_watched;
	return &shm_watched_ops;
}
