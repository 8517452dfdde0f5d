/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may have to do with this process: the one place that decides it, for
 * connection management, links, datagrams, multicast groups, XRC domains,
 * inspection and memory. Both ends of a conversation ask, each for itself; when
 * either refuses there is none.
 *
 * A peer is who the kernel says it is (SO_PEERCRED), by its effective user and
 * group when it made its socket, in the numbers of our user namespace. A number
 * that stands for all that have none here is nobody's.
 *
 * To exchange messages is one thing: they go through rings that both sides check.
 * To reach memory is another, and is for processes of one user only, whatever the
 * settings say: the kernel would let root copy from and to any process, and so a
 * root process would copy for whoever names it an address.
 */
#ifndef HCA_PEERS_H
#define HCA_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Who is at the other end of a Unix socket. False: not known. */
bool hca_peer_cred(int fd, struct ucred *cred);

/* A process of our own user? The process itself is one, too. */
bool hca_peer_is_kin(const struct ucred *cred);
/* May it exchange messages with us (BUSBAR_PEERS)? */
bool hca_peer_may_talk(const struct ucred *cred);
/* May it see our queue pairs and counters? Root sees them of all, no other user
 * sees root's unless the setting lets it in. */
bool hca_peer_may_look(const struct ucred *cred);
/* May it let our device fail? No setting opens this to others. */
bool hca_peer_may_control(const struct ucred *cred);

/* What a peer has of us besides the rings: our memory, beyond asking us to use it for
 * it (BUSBAR_MEMORY), and a thing that others could disturb with it. Peers are told;
 * the numbers travel. */
enum hca_peer_lends {
	HCA_PEER_REGIONS = 1 << 0, /* it may map memory files that keys lie in */
	HCA_PEER_PTRACE = 1 << 1,  /* use process_vm_readv and process_vm_writev */
	HCA_PEER_PROCMEM = 1 << 2, /* get a descriptor of /proc/self/mem */
	HCA_PEER_WAKEUP = 1 << 3,  /* it has the eventfd that wakes us */
};
#define HCA_PEER_MEMORY (HCA_PEER_PTRACE | HCA_PEER_PROCMEM)
uint32_t hca_peer_lends(const struct ucred *cred);

/* Says that it was refused as a `what` ("caller"), and what would let it in: once
 * for a process, and not more often than a log can bear. */
void hca_peer_refused(const char *what, const struct ucred *cred);
/* Likewise that it refuses us. */
void hca_peer_refuses(const struct ucred *cred);
/* All in one, for talking: 0 with *pid (0: of another PID namespace), -EACCES with
 * that line, or another negative errno. */
int hca_peer_check(int fd, const char *what, pid_t *pid);

/* Peers must not be able to fill a log: true when a line may be written. */
bool hca_complaint_due(void);

#endif
