/* SPDX-License-Identifier: BSD-2-Clause */
/* Links: making one, finding the link to the owner of a QP number, ending one. */
#ifndef TRANSPORT_SHM_JOIN_JOIN_H
#define TRANSPORT_SHM_JOIN_JOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "transport/shm/link/state.h"

bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16]);

/* The peer broke the protocol (`what`, logged): the progress thread will end the link.
 * For data paths: the link's locks and a sq_lock may be held. */
void shm_link_violation(struct shm_link *l, const char *what);
int shm_links_start(void);
void shm_links_stop(void);
void shm_links_forked(void);
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

#endif
