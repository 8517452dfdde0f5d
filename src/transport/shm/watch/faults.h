/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BUSBAR_FAULTS on shared memory (carrier/impair.h), message by message:
 *   loss, in.loss, partition, in.partition
 *              of a message that leaves or comes. Reliable ones are sent again as if a
 *              timeout had been over, sooner at first (retry.c); others are lost.
 *   in.delay, in.jitter
 *              a message is handled that much later; all behind it on the link wait.
 * The rest is not offered: copies and wrong order a ring does not have, what leaves
 * is in it at once, and nothing would notice corruption. A message that was lost is not
 * in the capture of the process that it did not reach.
 *
 * Belongs to the table with a capture (watched.c): with faults each operation is a message,
 * and no receive is promised. This table is chosen at the start of the process, with any
 * BUSBAR_FAULTS that can be used; the faults themselves may change later.
 */
#ifndef TRANSPORT_SHM_WATCH_FAULTS_H
#define TRANSPORT_SHM_WATCH_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"

/* True if BUSBAR_FAULTS is set and usable, also without a fault in it: messages may have
 * faults. Reads the setting at the first call and logs an error in it. */
bool shm_faults_wanted(void);
/* hca_transport_ops.faults. Only if shm_faults_wanted() was true at the start: otherwise peers
 * copy by themselves and receives may have been promised. Takes shm.lock. */
int shm_faults_set(const char *text, char *note, size_t note_bytes);
/* Sets the faults of a new link. shm.lock is held. */
void shm_faults_open(struct shm_link *l);
/* A slot is about to be published: gives a lost one a QP number that does not exist. tx_lock is
 * held. */
void shm_faults_send(struct shm_link *l, const struct shm_slot *slot, struct shm_header *h);

enum shm_fate { SHM_TAKE, SHM_LOSE, SHM_WAIT };
/* What becomes of the slot at `pos`, the next one. rx_lock is held. */
enum shm_fate shm_faults_receive(struct shm_link *l, uint32_t pos);
/* Does a slot of the link wait for its time? Takes rx_lock. */
bool shm_faults_hold(struct shm_link *l);

#endif
