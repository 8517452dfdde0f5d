/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks on a peer and limits on what it may use: the number of links of a process and a user;
 * that its wake-up descriptor is a non-blocking eventfd; that a block of QP numbers belongs to
 * it.
 *
 * The contents of the rings are checked where they are read (rx.c, ack.c, target.c).
 */
#define LOG_ROOM "shm"
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/limits.h"
#include "hca/object/qp.h"
#include "hca/run/aside.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "util/log.h"

/* Links of one process, and of all processes without a pid in our PID namespace
 * together. A process has two for a moment when both call each other at once. */
#define LINKS_PER_PROCESS 8
#define LINKS_UNKNOWN 256
/* Links of all processes of another user together. */
#define LINKS_PER_USER 256
/* Callers that are not allowed a link, and may only inspect (hca/view/inspect.h). */
#define INSPECTORS 4
/* Processes that can be banned at once; a further ban replaces the oldest. */
#define BANNED 16

bool shm_inspectors_have_room(void)
{
	unsigned count = 0;

	shm_each_link(l)
		count += atomic_load(&l->state) != SHM_LINK_FREE && l->may_not_talk;
	return count < INSPECTORS;
}

/* Processes with which no link is made for a time; shm.lock. */
static struct {
	pid_t pid;
	uint64_t until_ns;
} banned[BANNED];

void shm_peer_ban(pid_t pid, uint64_t ns)
{
	static unsigned next;

	if (pid <= 0)
		return;
	banned[next].pid = pid;
	banned[next].until_ns = progress_now_ns() + ns;
	next = (next + 1) % BANNED;
}

bool shm_peer_is_banned(pid_t pid)
{
	for (unsigned i = 0; i < BANNED; i++)
		if (banned[i].pid == pid && pid > 0 && progress_now_ns() < banned[i].until_ns)
			return true;
	return false;
}

bool shm_peer_has_room(const struct ucred *peer)
{
	unsigned limit = peer->pid > 0 ? LINKS_PER_PROCESS : LINKS_UNKNOWN;
	unsigned count = 0, of_user = 0;

	shm_each_link(l) {
		if (atomic_load(&l->state) == SHM_LINK_FREE)
			continue;
		count += l->pid == peer->pid;
		of_user += !l->kin && l->uid == peer->uid;
	}
	if (count < limit && of_user < LINKS_PER_USER)
		return true;
	if (hca_complaint_due() && count >= limit)
		log_warn("peer pid %d has %u links already: refused", (int)peer->pid, count);
	else if (count < limit)
		log_warn("peer pid %d refused: uid %u has %u links already",
			 (int)peer->pid, peer->uid, of_user);
	return false;
}

/* The data path writes to it, so it must not block. */
bool shm_wakeup_is_eventfd(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK) && hca_fd_is_eventfd(fd);
}

/* A peer can write any block into the table in its segment; the credentials of the
 * process that holds the block's socket name come from the kernel. */
bool shm_block_is_of(uint32_t block, pid_t pid)
{
	struct ucred cred;
	int fd = hca_block_connect(block);
	bool same;

	if (fd < 0)
		return false;
	same = hca_peer_cred(fd, &cred) && cred.pid == pid;
	close(fd);
	if (!same && hca_complaint_due())
		log_warn("peer pid %d lays claim to the QP numbers 0x%x.. of pid %d: not believed",
			 (int)pid, block << HCA_QPN_BLOCK_BITS, (int)cred.pid);
	return same;
}

/*
 * The slow half of shm_from_peer(), for a QP that is not attached to a link yet: the
 * link known for the block of `src_qpn` decides. If none is known, the retry timer
 * looks for the peer, and the message is dropped and sent again.
 */
bool shm_from_owner(struct hca_qp *qp, struct shm_link *l, uint32_t src_qpn)
{
	struct shm_link *owner;

	if (qp->rx_peer || src_qpn > HCA_PSN_MASK)
		return false;
	owner = atomic_load_explicit(&shm.by_block[src_qpn >> HCA_QPN_BLOCK_BITS],
				     memory_order_acquire);
	if (!owner)
		progress_timer_arm(&qp->retry, progress_now_ns());
	return owner && owner->rx_peer == l->rx_peer;
}
