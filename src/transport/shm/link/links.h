/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What link.c, handshake.c and resolve.c share: making and ending a link. shm.lock
 * is held in all of it.
 */
#ifndef TRANSPORT_SHM_LINK_LINKS_H
#define TRANSPORT_SHM_LINK_LINKS_H

#include <stdint.h>

#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "transport/shm/link/state.h"

/* Time limit of the handshake with a peer that called, or that was called and belongs
 * to another user. */
#define SHM_HANDSHAKE_NS UINT64_C(5000000000)

/* A free structure without descriptors or memory; NULL: too many, or no memory. */
struct shm_link *shm_link_new(void);

/* Allocates the tables of slots and regions, empty; freed with the link. 0 or
 * -ENOMEM. */
int shm_link_map_tables(struct shm_link *l);

/* Allocates the tables, maps the area and resets the positions of both directions.
 * `role`: 0 connector, 1 acceptor. 0 or a negative errno. */
int shm_link_set_area(struct shm_link *l, int area_fd, int role);

/* Ends a link in any state. The caller has stopped watching its descriptor. */
void shm_link_down(struct shm_link *l);

/* The same for a link whose descriptor is watched. Receives first what an orderly
 * peer had sent. `why` is logged. */
void shm_link_end(struct shm_link *l, const char *why);

/* Takes rx_lock, ack_lock and tx_lock in this order: no poller or sender is inside the
 * link then. */
void shm_link_lock(struct shm_link *l);
void shm_link_unlock(struct shm_link *l);

/* Arms the timer that ends links whose handshake is overdue and watches paused
 * listening sockets again. */
void shm_sweep_at(uint64_t when_ns);

/* How long a listening socket is not watched when accept() lacks descriptors. */
#define SHM_LISTEN_PAUSE_NS (50 * 1000 * 1000)

/* Sets the QP's link and its peer's public part; NULL: none. The QP's sq_lock is held,
 * too. */
void shm_qp_set_link(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_qp_public *remote);

/* Processes what has come for a link in its handshake; does not wait. The link may be
 * up or ended afterwards. */
void shm_link_hear(struct shm_link *l);

/* Completes the handshake of a link of the process with itself, in the calling
 * thread. */
void shm_link_to_self(uint32_t block, struct shm_link *l);

/* Starts a link with the owner of a block. 0, -ECONNREFUSED (nobody owns it), -EPERM
 * (the owner is not allowed or banned), or another negative errno. */
int shm_link_connect(uint32_t block, struct shm_link **out);

#endif
