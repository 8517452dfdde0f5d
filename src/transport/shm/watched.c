/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the transport with a capture; see watch.h. */
#include "transport/list.h"
#include "transport/packet/show.h"
#include "transport/shm/ack.h"
#include "transport/shm/copy.h"
#include "transport/shm/receive.h"
#include "transport/shm/state.h"
#include "transport/shm/watch.h"

bool shm_watches;
struct hca_transport_ops shm_watched_ops;

static bool receive(struct shm_link *l, bool wait)
{
	bool moved = false;

	if (!shm_lock_for(&l->rx_lock, wait))
		return false;
	if (atomic_load(&l->state) == SHM_LINK_UP)
		moved = shm_receive_watched(l);
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
	if (shm_harvest_due(l, true, &look) || wait)
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
	shm_watch_connected(qp);
	return shm_ops.connect(qp);
}

static void close_watched(struct hca_qp *qp)
{
	shm_ops.close(qp);
	shm_watch_closed(qp);
}

const struct hca_transport_ops *shm_watch_variant(void)
{
	if (!packet_show_wanted())
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
	return &shm_watched_ops;
}
