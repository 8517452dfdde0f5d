/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: making one, finding the link to the owner of a QP number, ending one. */
#ifndef TRANSPORT_SHM_JOIN_JOIN_H
#define TRANSPORT_SHM_JOIN_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "transport/shm/link/state.h"

void shm_links_start(void);
void shm_links_stop(void);
int shm_block_claimed(uint32_t block, int listen_fd);

/* Processes READY messages that have come already, so that links which are up for
 * their peers are up for this process, too. Takes shm.lock. */
void shm_links_settle(void);

/*
 * The link to the owner of QPN block `block`, UP or CONNECTING; starts one when
 * there is none. NULL with *refused set when nobody owns the block (or its
 * owner may not be talked to). shm.lock is held.
 */
struct shm_link *shm_link_get(uint32_t block, bool *refused);

/* Makes a link with the owner of a block if there is none and the owner is allowed. 0: there
 * is one, or the owner is not called; 1: the link is still being made; -EAGAIN: the owner has
 * many callers at the moment. shm.lock is held. */
int shm_link_reach(uint32_t block);

enum shm_peer_known {
	SHM_PEER_LINKED,
	SHM_PEER_CALLED, /* the link is still being made */
	SHM_PEER_ABSENT, /* no such peer, or it refused the link */
};

/* Attaches the QP to the link with its peer's process. `wait`: waits for the link, at
 * most a second; never on the progress thread. Takes shm.lock and sq_lock. */
enum shm_peer_known shm_qp_resolve(struct hca_qp *qp, bool wait);

/* Takes every reference to the QP out of all links. */
void shm_qp_forget(struct hca_qp *qp);

/* ---- making and ending a link; shm.lock is held in all of it ---- */

/* Time limit of the handshake with a peer that called, or that was called and belongs
 * to another user. */
#define SHM_HANDSHAKE_NS UINT64_C(5000000000)

/* Ends a link in any state. The caller has stopped watching its descriptor. */
void shm_link_down(struct shm_link *l);

/* The same for a link whose descriptor is watched. Receives first what an orderly
 * peer had sent. `why` is logged. */
void shm_link_end(struct shm_link *l, const char *why);

/* Arms the timer that ends links whose handshake is overdue and watches paused
 * listening sockets again. */
void shm_sweep_at(uint64_t when_ns);

/* How long a listening socket is not watched when accept() lacks descriptors. */
#define SHM_LISTEN_PAUSE_NS (50 * 1000 * 1000)

/* Sets the QP's link and its peer's public part; NULL: none. The QP's sq_lock is held,
 * too. */
void shm_qp_set_link(struct hca_qp *qp, struct shm_link *l, const struct hca_qp_public *remote);

/* Processes what has come for a link in its handshake; does not wait. The link may be
 * up or ended afterwards. */
void shm_link_hear(struct shm_link *l);

/* Completes the handshake of a link of the process with itself, in the calling
 * thread. */
void shm_link_to_self(uint32_t block, struct shm_link *l);

/* Starts a link with the owner of a block. 0, -ECONNREFUSED (nobody owns it), -EPERM
 * (the owner is not allowed or banned), or another negative errno. */
int shm_link_connect(uint32_t block, struct shm_link **out);

/* For the retry timer: makes the links for multicast. Takes sq_lock and shm.lock. */
void shm_multicast_resolve(struct hca_qp *qp);

/* hca_local_ops.group_enter. */
void shm_mcast_enter(bool joined);

/* Gives up the name; when the adapter stops, and in a forked child. */
void shm_mcast_stop(void);

/* The function of the retry timer; progress thread. */
void shm_retry_expired(struct hca_qp *qp);

/* Waits until a link has changed. `soon`: a moment at most, because no event says that a process
 * has fewer callers and can be called again. False: the time is over. shm.lock is held. */
bool shm_wait_for_change(uint64_t until_ns, bool soon);

#endif
