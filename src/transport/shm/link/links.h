/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of links, and the memory of a link. */
#ifndef TRANSPORT_SHM_LINK_LINKS_H
#define TRANSPORT_SHM_LINK_LINKS_H

#include <stdint.h>

#include "transport/shm/link/state.h"

/* A free structure without descriptors or memory; NULL: too many, or no memory. shm.lock is
 * held, here and as far as shm_link_release(). */
struct shm_link *shm_link_new(void);

/* Allocates the tables of slots and regions, empty; freed with the link. 0 or
 * -ENOMEM. */
int shm_link_map_tables(struct shm_link *l);

/* Allocates the tables, maps the area and resets the positions of both directions.
 * `role`: 0 connector, 1 acceptor. 0 or a negative errno. */
int shm_link_set_area(struct shm_link *l, int area_fd, int role);

/* Unmaps and closes all that the link has, but for the peer's regions (shm_map_release()). The
 * link's locks are held. */
void shm_link_release(struct shm_link *l);

/* Takes rx_lock, ack_lock and tx_lock in this order: no poller or sender is inside the
 * link then. */
void shm_link_lock(struct shm_link *l);
void shm_link_unlock(struct shm_link *l);

/*
 * The link to the owner of an SRQ, which is not taken down before shm_link_return().
 * NULL: there is none (yet).
 */
struct shm_link *shm_link_borrow(uint32_t srqn);

static inline void shm_link_return(struct shm_link *l)
{
	atomic_fetch_sub(&l->borrowed, 1);
}

/* The peer broke the protocol (`what`, logged): the progress thread will end the link.
 * For data paths: the link's locks and a sq_lock may be held. */
void shm_link_violation(struct shm_link *l, const char *what);

/* In a forked child, which uses none of the parent's links: closes their descriptors. */
void shm_links_forked(void);

#endif
