/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: how two processes get one, which one leads to whom, and its end. */
#ifndef TRANSPORT_SHM_JOIN_H
#define TRANSPORT_SHM_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/qp.h"
#include "transport/shm/state.h"

bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16]);

/* From a data path: end the link soon, on the progress thread. */
void shm_link_violation(struct shm_link *l, const char *what);
int shm_links_start(void);
void shm_links_stop(void);
void shm_links_forked(void);
int shm_block_claimed(uint32_t block, int listen_fd);

/* Brings up links of which only we do not know yet that they are. */
void shm_links_settle(void);

/*
 * The link to the owner of QPN block `block`, UP or CONNECTING; starts one when
 * there is none. NULL with *refused set when nobody owns the block (or its
 * owner may not be talked to). shm.lock is held.
 */
struct shm_link *shm_link_get(uint32_t block, bool *refused);

/* Links with the owner of a block, if it is one that we may talk to. True: the
 * link is still being made. shm.lock is held. */
bool shm_link_reach(uint32_t block);

enum shm_peer_known {
	SHM_PEER_LINKED,
	SHM_PEER_CALLED, /* it has not answered yet */
	SHM_PEER_ABSENT, /* or has refused */
};

/* Attaches the QP to the link with its peer's process; waits for that (at most a
 * second, not on the progress thread) if it is to. */
enum shm_peer_known shm_qp_resolve(struct hca_qp *qp, bool wait);

/* Takes every reference to the QP out of all links. */
void shm_qp_forget(struct hca_qp *qp);

#endif
