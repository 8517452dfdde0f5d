/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes may use this one; see peers.h. */
#define LOG_ROOM "peers"
#include "hca/share/peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/host/settings.h"
#include "hca/run/progress.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/log_limit.h"
#include "util/user.h"

#define TOLD 32u

bool hca_peer_is_kin(const struct ucred *cred)
{
	return cred->pid == getpid() || user_is_ours(cred->uid);
}

static bool is_of_our_group(const struct ucred *cred)
{
	return hca_settings.peers == HCA_PEERS_GROUP &&
	       cred->gid == getegid() && user_group_is_known(cred->gid);
}

bool hca_peer_may_talk(const struct ucred *cred)
{
	if (hca_settings.peers == HCA_PEERS_ANY || hca_peer_is_kin(cred) ||
	    is_of_our_group(cred))
		return true;
	/* Root in both directions: a server of root must accept users, and a user the
	 * system's servers. */
	return (cred->uid == 0 || geteuid() == 0) && user_is_known(cred->uid);
}

bool hca_peer_may_look(const struct ucred *cred)
{
	return hca_settings.peers == HCA_PEERS_ANY || is_of_our_group(cred) ||
	       hca_peer_may_control(cred);
}

bool hca_peer_may_control(const struct ucred *cred)
{
	return cred->uid == 0 || hca_peer_is_kin(cred);
}

uint32_t hca_peer_lends(const struct ucred *cred)
{
	static const uint32_t lends[] = {
		[HCA_MEMORY_TARGET] = HCA_PEER_WAKEUP,
		[HCA_MEMORY_REGIONS] = HCA_PEER_WAKEUP | HCA_PEER_REGIONS,
		[HCA_MEMORY_PTRACE] = HCA_PEER_WAKEUP | HCA_PEER_REGIONS |
				      HCA_PEER_PTRACE,
		[HCA_MEMORY_ALL] = HCA_PEER_WAKEUP | HCA_PEER_REGIONS |
				   HCA_PEER_MEMORY,
	};

	if (cred->pid == getpid()) /* the process itself has everything anyway */
		return lends[HCA_MEMORY_ALL];
	return hca_peer_is_kin(cred) ? lends[hca_settings.memory] : 0;
}

/* ---- log lines about peers ---- */

bool hca_complaint_due(void)
{
	static struct log_limit limit;
	unsigned left_out;
	bool due = log_limit_take(&limit, progress_now_ns(), &left_out);

	if (left_out)
		log_warn("%u messages about peers were left out", left_out);
	return due;
}

/* Was a line written for this peer recently? Keeps the last ones. */
static bool told_before(const struct ucred *cred)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct { pid_t pid; uid_t uid; } told[TOLD];
	static unsigned count;
	bool before = false;

	/* Another thread holds it, perhaps in the parent at the fork: log once more. */
	if (pthread_mutex_trylock(&lock))
		return false;
	for (unsigned i = 0; i < MIN(count, TOLD) && !before; i++)
		before = told[i].pid == cred->pid && told[i].uid == cred->uid;
	if (!before) {
		told[count % TOLD].pid = cred->pid;
		told[count % TOLD].uid = cred->uid;
		count++;
	}
	pthread_mutex_unlock(&lock);
	return before;
}

void hca_peer_refused(const char *what, const struct ucred *cred)
{
	if (told_before(cred) || !hca_complaint_due())
		return;
	if (hca_settings.peers == HCA_PEERS_GROUP)
		log_warn("%s pid %d of uid %u, gid %u refused: this process runs as uid %u, gid %u, and BUSBAR_PEERS=group lets in this user, this group and root; any lets in all",
			 what, (int)cred->pid, cred->uid, cred->gid, geteuid(),
			 getegid());
	else
		log_warn("%s pid %d of uid %u refused: this process runs as uid %u, and BUSBAR_PEERS=user lets in this user and root; group or any lets in more",
			 what, (int)cred->pid, cred->uid, geteuid());
}

void hca_peer_refuses(const struct ucred *cred)
{
	if (!told_before(cred) && hca_complaint_due())
		log_warn("peer pid %d of uid %u does not talk to this process, which runs as uid %u: its BUSBAR_PEERS decides",
			 (int)cred->pid, cred->uid, geteuid());
}

int hca_peer_check(int fd, const char *what, pid_t *pid)
{
	struct ucred cred;

	hca_settings_init();
	if (!hca_peer_cred(fd, &cred))
		return -errno;
	*pid = cred.pid;
	if (hca_peer_may_talk(&cred))
		return 0;
	hca_peer_refused(what, &cred);
	return -EACCES;
}
