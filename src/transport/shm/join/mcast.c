/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast inside a host: a datagram to a group is copied to every process whose
 * segment says that it may have members (a filter, see hca/qp/mcast.c); that process
 * delivers it to its members.
 *
 * A process that uses multicast, as a member or as a sender, binds a socket to a name
 * in the abstract namespace,
 *
 *   \0busbar.mcast.<version of the link>.<a block of its QP numbers>[.<n>]
 *
 * and then makes links with all processes that have such a name: whenever it joins a
 * group, and once when it makes an address handle of a group, at the latest before its
 * first datagram to one. Of two processes the later one finds the name of the other, so
 * a sender needs to go through the existing links only.
 *
 * A process that does not receive its messages loses datagrams; the others do
 * not wait for it.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/object/qp.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/send.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define REACH_ROUNDS 4
#define NAME_TRIES 1000

static int name_fd = -1; /* under shm.lock */

static void prefix_print(char *to, size_t size)
{
	snprintf(to, size, "busbar.mcast.%d.", SHM_CONTROL_VERSION);
}

static int name_hold(void)
{
	char name[48];
	size_t len;
	unsigned n = 0;

	if (name_fd >= 0)
		return 0;
	/* The name has the number of one of our QP blocks; there may be none yet. */
	if (!hca_process.own_block_count)
		return -EAGAIN;
	prefix_print(name, sizeof(name));
	len = strlen(name);
	snprintf(name + len, sizeof(name) - len, "%u", hca_process.own_blocks[0]);
	name_fd = hca_name_bind(name);
	/* Another process, which does not own our block, holds the name. */
	len = strlen(name);
	while (name_fd == -EADDRINUSE && n++ < NAME_TRIES) {
		snprintf(name + len, sizeof(name) - len, ".%u", n);
		name_fd = hca_name_bind(name);
	}
	return MIN(name_fd, 0);
}

void shm_mcast_stop(void)
{
	if (name_fd >= 0)
		close(name_fd);
	name_fd = -1;
	atomic_store(&shm.mcast_ready, false);
}

struct reached {
	bool pending; /* some links are still being made, or processes have to be called again */
	bool busy;    /* a process has many callers at the moment, and has to be called again */
};

static void reach(const struct hca_name_seen *seen, void *arg)
{
	struct reached *r = arg;
	char *end;
	unsigned long block = strtoul(seen->rest, &end, 10);
	int ret;

	if (end == seen->rest || (*end != '\0' && *end != '.') || block >= HCA_QPN_BLOCKS)
		return;
	ret = shm_link_reach((uint32_t)block);
	r->pending |= ret != 0;
	r->busy |= ret == -EAGAIN;
}

/* True: some links are still being made. *busy: some processes had many callers; the call
 * is to be repeated soon, and does not count as a round. shm.lock is held. */
static bool reach_all(bool *busy)
{
	struct reached reached = { 0 };
	char prefix[48];
	int ret = name_hold();

	*busy = false;

	if (ret == -EAGAIN)
		return false;
	if (ret) {
		log_error("multicast: other processes will not find this one: %s",
			  strerror(-ret));
		return false;
	}
	prefix_print(prefix, sizeof(prefix));
	hca_names_each(prefix, reach, &reached);
	*busy = reached.busy;
	return reached.pending;
}

/* True if a handshake is under way. Callers repeat reach_all() for at most REACH_ROUNDS:
 * when both sides connect at once one of the connections is redirected, and a process
 * that refuses is not to be called again for ever. */
static bool links_pending(void)
{
	shm_each_link(l)
		if (shm_link_is_made(l))
			return true;
	return false;
}

void shm_multicast_resolve(struct hca_qp *qp)
{
	bool pending, busy, late;

	hca_lock(&qp->sq_lock);
	late = shm_lost_for_ns(qp, progress_now_ns()) > SHM_MULTICAST_LIMIT_NS;
	hca_unlock(&qp->sq_lock);
	pthread_mutex_lock(&shm.lock);
	pending = links_pending();
	if (!pending && shm_qp(qp)->lost_tries < REACH_ROUNDS) {
		pending = reach_all(&busy);
		shm_qp(qp)->lost_tries += !busy;
	}
	pthread_mutex_unlock(&shm.lock);
	if (pending && !late)
		return;
	/* Processes that have not answered within the time get no datagrams. */
	atomic_store(&shm.mcast_ready, true);
}

void shm_mcast_enter(bool joined)
{
	uint64_t until_ns = clock_monotonic_ns_slow() + SHM_MULTICAST_LIMIT_NS;
	bool busy = false, on = true;

	if (!joined && atomic_load(&shm.mcast_ready))
		return;
	pthread_mutex_lock(&shm.lock);
	for (int i = 0; i < REACH_ROUNDS && on && reach_all(&busy); i += !busy) {
		if (progress_is_self())
			break;
		if (busy)
			on = shm_wait_for_change(until_ns, true);
		while (on && links_pending())
			on = shm_wait_for_change(until_ns, false);
	}
	if (name_fd >= 0 && !progress_is_self())
		atomic_store(&shm.mcast_ready, true);
	pthread_mutex_unlock(&shm.lock);
}
