/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several processes of one user and one network namespace share the UDP port of RoCE v2
 * (4791; Annex A17 of the InfiniBand Architecture), without a process that serves them.
 *
 * 64 sockets are bound to the port as one SO_REUSEPORT group, and a classic BPF program
 * gives each packet to one of them by its destination queue pair: slot = (QPN >> 10) & 63;
 * the QPNs 0, 1 and 0xffffff and what is no packet of RoCE go to slot 0. A socket that is
 * closed would change the order of the group, so every process holds all of them. The first
 * one makes them and listens under an abstract name; another one connects and gets the
 * descriptors, the listening one among them, so that any process of them can answer the
 * next. A group ends with its last process.
 *
 * Only processes that have these sockets, or another one of the same user in the group, can
 * send from the port. So a filter at each socket drops packets that programs of this host send
 * from another port; packets from other hosts may come from any port.
 *
 * A slot belongs to the process that has claimed it, that is, holds the name for it. Slot 0
 * is for QP 1 and whoever claims it. Packets to a slot of nobody stay in its socket and are
 * dropped when it is claimed.
 *
 * Multicast packets do not pass the BPF program: the kernel copies them to every socket
 * that joined (carrier_udp_member()), so a process joins by the socket of its own slot.
 * Memberships end with the socket, not with the process.
 *
 * Packets that a network card merges into a train (GRO) go where the first one goes. Check
 * the QPN of each.
 */
#ifndef TRANSPORT_ROCE_SLOTS_H
#define TRANSPORT_ROCE_SLOTS_H

#include <pthread.h>
#include <stdint.h>

#define ROCE_UDP_PORT 4791
#define ROCE_SLOTS 64
#define ROCE_SLOT_SHIFT 10

static inline unsigned roce_slot_of(uint32_t qpn)
{
	qpn &= 0xffffff;
	return qpn <= 1 || qpn == 0xffffff ? 0 : (qpn >> ROCE_SLOT_SHIFT) % ROCE_SLOTS;
}

/* All zeros: not open; closing that does nothing. */
struct roce_sockets {
	uint16_t port;         /* 0: not open */
	int fds[ROCE_SLOTS];   /* UDP sockets; -1 */
	int names[ROCE_SLOTS]; /* sockets bound to the names of claimed slots; -1 */
	int listener;          /* -1 */
	pthread_mutex_t lock;  /* over `names` */
};

/*
 * Makes the sockets or gets them from another process, and answers others from the progress
 * thread, which runs already (progress_hold()). May wait for about a second; not on the
 * progress thread. 0, or a negative errno, logged with its remedy:
 *   -EACCES      the port is used by processes of another user
 *   -EADDRINUSE  by another program, or by the kernel's rdma_rxe
 *   -EMFILE, -ENFILE  too few descriptors: it takes 66
 *   -ETIMEDOUT   other processes hold the sockets and none of them answers
 *   -EPROTO      what they answer is not understood (another version)
 *   -EINVAL      port 0
 */
int roce_sockets_open(struct roce_sockets *s, uint16_t port);

/* Releases the slots too. The caller has ended every watch of their descriptors (an epoll
 * set would report them on, as other processes hold them) and every carrier. Not on the
 * progress thread. */
void roce_sockets_close(struct roce_sockets *s);

/* In a forked child: closes its copies, which changes nothing for the parent. Takes no
 * lock. Afterwards *s is as if never opened. */
void roce_sockets_forked(struct roce_sockets *s);

/* Claims a slot, below ROCE_SLOTS, and drops what is in its socket: 0; -EADDRINUSE: it is
 * another process' or ours; or another negative errno. Announce QPNs of the slot only
 * afterwards. Any thread. */
int roce_slot_claim(struct roce_sockets *s, unsigned slot);
/* The same in two steps, for who needs a slot before the sockets: the descriptor of the
 * slot's name, which releases it when it is closed, or a negative errno. roce_slot_take()
 * makes it part of `s`. */
int roce_slot_reserve(uint16_t port, unsigned slot);
void roce_slot_take(struct roce_sockets *s, unsigned slot, int name);
void roce_slot_release(struct roce_sockets *s, unsigned slot);

/* The socket of a slot, of any process': a carrier may be opened over it by the process
 * that claimed it. Stays ours. */
static inline int roce_slot_fd(const struct roce_sockets *s, unsigned slot)
{
	return s->fds[slot];
}

#endif
