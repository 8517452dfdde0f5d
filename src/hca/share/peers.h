/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes may use this one. The only place that decides it, for connection
 * management, links, datagrams, multicast groups, XRC domains, inspection and memory. Both
 * ends of a connection check it, each by its own settings; both must agree.
 *
 * A peer is identified by the kernel (SO_PEERCRED): by its effective user and group when
 * it made its socket, in the numbers of our user namespace. The overflow id, which stands
 * for all ids that are not mapped there, matches no user.
 *
 * Messages and memory are decided separately. Messages go through rings that both sides
 * check. Memory is reached only between processes of one user, whatever the settings say:
 * the kernel lets root copy from and to any process, so a process of root would copy to
 * any address that another user's process names.
 */
#ifndef HCA_PEERS_H
#define HCA_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Is it a process of our own user (this process included)? */
bool hca_peer_is_kin(const struct ucred *cred);
/* May it exchange messages with us (BUSBAR_PEERS)? */
bool hca_peer_may_talk(const struct ucred *cred);
/* May it see our queue pairs and counters? Root sees those of all processes; other users
 * see root's only if the setting permits it. */
bool hca_peer_may_look(const struct ucred *cred);
/* May it let our device fail? No setting permits that to other users. */
bool hca_peer_may_control(const struct ucred *cred);

/* What a peer gets besides the rings: ways to reach our memory by itself (BUSBAR_MEMORY),
 * and a descriptor that it could misuse. Peers are told these bits, so the numbers must
 * not change. */
enum hca_peer_lends {
	HCA_PEER_REGIONS = 1 << 0, /* may map memory files of registered memory */
	HCA_PEER_PTRACE = 1 << 1,  /* may use process_vm_readv and process_vm_writev */
	HCA_PEER_PROCMEM = 1 << 2, /* gets a descriptor of /proc/self/mem */
	HCA_PEER_WAKEUP = 1 << 3,  /* gets the eventfd that wakes this process */
};
#define HCA_PEER_MEMORY (HCA_PEER_PTRACE | HCA_PEER_PROCMEM)
uint32_t hca_peer_lends(const struct ucred *cred);

/* Logs that the peer was refused as a `what` ("caller"), and which setting would accept
 * it: once per process, and with a limit for all of them. */
void hca_peer_refused(const char *what, const struct ucred *cred);
/* Logs, in the same way, that the peer refuses this process. */
void hca_peer_refuses(const struct ucred *cred);
/* Checks the peer of a socket for messages: 0 with *pid (0: of another PID namespace),
 * -EACCES, logged by hca_peer_refused(), or another negative errno. */
int hca_peer_check(int fd, const char *what, pid_t *pid);

/* May a line about a peer be written now? Peers must not be able to fill the log. */
bool hca_complaint_due(void);

#endif
