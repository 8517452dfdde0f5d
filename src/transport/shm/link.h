/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What link.c, handshake.c and resolve.c share: making and ending a link. shm.lock
 * is held in all of it.
 */
#ifndef TRANSPORT_SHM_LINK_H
#define TRANSPORT_SHM_LINK_H

#include <stdint.h>

#include "hca/public.h"
#include "hca/qp.h"
#include "transport/shm/state.h"

/* For a peer that called, or that is another user's and was called, and says
 * nothing. */
#define SHM_HANDSHAKE_NS UINT64_C(5000000000)

/* A free structure without descriptors or memory; NULL: too many, or no memory. */
struct shm_link *shm_link_new(void);

/* Prepares both directions; `role` 0 connector, 1 acceptor. 0 or -errno. */
/* Its tables of slots and regions, empty; freed with the link. 0 or -ENOMEM. */
int shm_link_map_tables(struct shm_link *l);
int shm_link_set_area(struct shm_link *l, int area_fd, int role);

/* Ends a link in whatever state. Its descriptor is not watched any more. */
void shm_link_down(struct shm_link *l);

/* The same of a link that is watched, with what came before its end. */
void shm_link_end(struct shm_link *l, const char *why);

/* The pollers' locks in their order: afterwards nobody is inside the link. */
void shm_link_lock(struct shm_link *l);
void shm_link_unlock(struct shm_link *l);

/* Looks at that time for links that do not come up, and for callers again. */
void shm_sweep_at(uint64_t when_ns);

/* The QP's sq_lock is held, too. */
void shm_qp_set_link(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_qp_public *remote);

/* What came for a link that is being made, without waiting. It may be up afterwards,
 * or at its end. */
void shm_link_hear(struct shm_link *l);

/* A link of the process with itself is made by whoever wants it: nobody else is
 * needed. */
void shm_link_to_self(uint32_t block, struct shm_link *l);

/* Calls the owner of a block. 0, -ECONNREFUSED (nobody), or another error. */
int shm_link_connect(uint32_t block, struct shm_link **out);

#endif
