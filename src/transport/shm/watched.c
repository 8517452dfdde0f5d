/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the transport with a capture or faults; see watch.h, faults.h. */

#include "hca/memory/promising.h"
#include "transport/packet/frame/show.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/watch/watch.h"
#include "transport/shm/watched.h"

static const struct hca_transport_ops *usual; /* the table without a capture or faults */

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

	if (wait)
		shm_wait_for_sender(l);
	if (!shm_lock_for(&l->ack_lock, wait))
		return false;
	/* The link may have ended meanwhile, as in shm.c. */
	if (shm_link_is_up(l) && (shm_harvest_due(l, true, &look) || wait))
		moved = shm_harvest(l, true);
	hca_unlock(&l->ack_lock);
	return moved;
}

/* As shm_poll(), but without its shortcuts: nothing is put off, and no promise is used. */
static bool poll_watched(struct hca_cq *cq, bool wait)
{
	bool moved = false;

	if (wait)
		shm_copy_hurry();
	shm_each_link(l) {
		if (!shm_link_is_up(l))
			continue;
		moved |= receive(l, wait);
		if (shm_outstanding(l) || wait)
			moved |= harvest(l, wait || !cq);
	}
	return moved;
}

static int start_watched(void)
{
	int ret = usual->start();

	if (!ret)
		shm_watch_start();
	return ret;
}

static void stop_watched(void)
{
	usual->stop();
	shm_watch_stop();
}

static void forked_watched(void)
{
	usual->forked();
	shm_watch_forked();
}

static int connect_watched(struct hca_qp *qp)
{
	qp->always_flags |= HCA_SWQE_WATCHED;
	/* Faults must not drop a message whose receive is promised. */
	if (shm_faults_wanted())
		hca_promise_end(qp);
	shm_watch_connected(qp);
	return usual->connect(qp);
}

static void close_watched(struct hca_qp *qp)
{
	usual->close(qp);
	shm_watch_closed(qp);
}

static bool pending_watched(void)
{
	shm_each_link(l)
		if (shm_faults_hold(l))
			return true;
	return usual->pending();
}

const struct hca_transport_ops *shm_watched_variant(const struct hca_transport_ops *ops)
{
	if (!packet_show_wanted() && !shm_faults_wanted())
		return ops;
	usual = ops;
	shm_watches = true;
	shm_watched_ops = *ops;
	shm_watched_ops.start = start_watched;
	shm_watched_ops.stop = stop_watched;
	shm_watched_ops.forked = forked_watched;
	shm_watched_ops.connect = connect_watched;
	shm_watched_ops.close = close_watched;
	shm_watched_ops.post = NULL; /* shm_post_plain() shows nothing */
	shm_watched_ops.poll = poll_watched;
	shm_watched_ops.pending = pending_watched;
	return &shm_watched_ops;
}
