/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding the link to the owner of a QP number, and attaching QPs to links. */
#define LOG_ROOM "shm"
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/gid.h"
#include "hca/host/names.h"
#include "hca/object/qp.h"
#include "hca/queue/receive.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copiers.h"
#include "transport/shm/ring/ring.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define RESOLVE_LIMIT_S 1
#define AGAIN_NS 2000000 /* until a process with many callers is called again */

static bool owns_block(const struct shm_link *l, uint32_t block)
{
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (atomic_load_explicit(&l->peer->blocks[i], memory_order_relaxed) == block)
			return true;
	return false;
}

/*
 * True if a link that is being made will lead to the owner of the block, also one that
 * the owner has begun. A second link would be harmful: the two sides might use different
 * links for the same queue pairs, which drop what comes by the other link.
 */
static bool is_on_its_way(const struct shm_link *l, int state, uint32_t block)
{
	/* The process itself: one link is enough for all of its blocks. */
	if (l->pid == getpid())
		return state == SHM_LINK_CONNECTING && atomic_load(&hca_process.blocks[block]);
	if (state == SHM_LINK_CONNECTING)
		return l->target_block == block;
	return shm_link_is_greeted(l) && owns_block(l, block) && shm_block_is_of(block, l->pid);
}

/* The link to the owner of a block, up or being made; NULL: none. */
static struct shm_link *link_known(uint32_t block)
{
	struct shm_link *l = atomic_load(&shm.by_block[block]);

	if (l)
		return l;
	shm_each_link(other) {
		int state = atomic_load(&other->state);

		if (state == SHM_LINK_UP && owns_block(other, block) &&
		    shm_block_is_of(block, other->pid)) {
			atomic_store(&shm.by_block[block], other);
			return other;
		}
		if (is_on_its_way(other, state, block))
			return other;
	}
	return NULL;
}

struct shm_link *shm_link_get(uint32_t block, bool *refused)
{
	struct shm_link *l = link_known(block);
	int ret;

	*refused = false;
	if (l)
		return l;
	ret = block ? shm_link_connect(block, &l) : -ECONNREFUSED;
	if (ret) {
		/* EAGAIN: the owner's backlog is full, it is alive. */
		*refused = ret != -EAGAIN;
		return NULL;
	}
	if (l->pid == getpid())
		shm_link_to_self(block, l);
	return l;
}

/* 1 if the owner of the block is a process that may talk to us, else 0; -EAGAIN: it has many
 * callers. Checked before a HELLO is sent, which would make a process that refuses us log a
 * warning. */
static int may_call(uint32_t block)
{
	struct ucred cred;
	int fd = hca_block_connect(block);
	bool may;

	if (fd < 0)
		return fd == -EAGAIN ? fd : 0;
	may = hca_peer_cred(fd, &cred) && hca_peer_may_talk(&cred);
	close(fd);
	return may;
}

int shm_link_reach(uint32_t block)
{
	struct shm_link *l = link_known(block);
	bool refused;
	int ret;

	if (!l) {
		ret = may_call(block);
		if (ret <= 0)
			return ret;
		l = shm_link_get(block, &refused);
		if (!l)
			return refused ? 0 : -EAGAIN;
	}
	return atomic_load(&l->state) != SHM_LINK_UP;
}

static void qp_attach(struct hca_qp *qp, struct shm_link *l)
{
	list_remove(&shm_qp(qp)->link_entry);
	list_push(&l->qps, &shm_qp(qp)->link_entry);
	hca_lock(&qp->sq_lock);
	shm_qp_set_link(qp, l, shm_find_remote(l, qp->attr.dest_qp_num));
	hca_unlock(&qp->sq_lock);
	/* Not earlier: only now does the QP accept messages from this link. */
	hca_promise_posted(qp);
}

bool shm_wait_for_change(uint64_t until_ns, bool soon)
{
	uint64_t now = clock_monotonic_ns_slow();
	struct timespec look = timespec_from_ns(soon ? MIN(until_ns, now + AGAIN_NS) : until_ns);

	pthread_cond_clockwait(&shm.changed, &shm.lock, CLOCK_MONOTONIC, &look);
	return clock_monotonic_ns_slow() < until_ns;
}

enum shm_peer_known shm_qp_resolve(struct hca_qp *qp, bool wait)
{
	const struct ibv_ah_attr *ah = &qp->attr.ah_attr;
	uint64_t until_ns = clock_monotonic_ns_slow() + RESOLVE_LIMIT_S * NSEC_PER_SEC;
	bool refused = false, found;

	if (hca_qp_state(qp) < IBV_QPS_RTR)
		return SHM_PEER_ABSENT;
	if (ah->is_global && !hca_gid_is_local(&ah->grh.dgid)) {
		char to[INET6_ADDRSTRLEN];

		if (wait)
			log_warn("qp 0x%x: destination %s is no address of this host, only peers on this host are reached",
				 qp->ibv.qp_num,
				 inet_ntop(AF_INET6, ah->grh.dgid.raw, to,
					   sizeof(to)));
		return SHM_PEER_ABSENT;
	}
	pthread_mutex_lock(&shm.lock);
	while (!shm_qp(qp)->link) {
		struct shm_link *l = shm_link_get(
			qp->attr.dest_qp_num >> HCA_QPN_BLOCK_BITS, &refused);

		if (l && atomic_load(&l->state) == SHM_LINK_UP) {
			qp_attach(qp, l);
			break;
		}
		if (refused || !wait || progress_is_self() || !shm_wait_for_change(until_ns, !l))
			break;
	}
	found = shm_qp(qp)->link != NULL;
	pthread_mutex_unlock(&shm.lock);
	return found ? SHM_PEER_LINKED : refused ? SHM_PEER_ABSENT : SHM_PEER_CALLED;
}

void shm_qp_forget(struct hca_qp *qp)
{
	shm_copy_forget(qp);
	pthread_mutex_lock(&shm.lock);
	list_remove(&shm_qp(qp)->link_entry);
	hca_lock(&qp->sq_lock);
	shm_qp_set_link(qp, NULL, NULL);
	hca_unlock(&qp->sq_lock);
	shm_each_link(l) {
		shm_link_lock(l);
		for (unsigned s = 0; l->inflight && s < SHM_SLOTS; s++)
			if (l->inflight[s].qp == qp)
				l->inflight[s].qp = NULL;
		list_for_each_safe(q, &l->backlog_qps, struct shm_qp, backlog_entry) {
			if (q == shm_qp(qp))
				list_remove(&q->backlog_entry);
		}
		shm_link_unlock(l);
	}
	hca_lock(&qp->sq_lock);
	shm_qp(qp)->backlog_of = NULL;
	hca_unlock(&qp->sq_lock);
	pthread_mutex_unlock(&shm.lock);
}

