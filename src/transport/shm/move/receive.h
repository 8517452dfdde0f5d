/* SPDX-License-Identifier: BSD-2-Clause */
/* Receiving messages: into receives, requests that the target carries out, XRC. */
#ifndef TRANSPORT_SHM_MOVE_RECEIVE_H
#define TRANSPORT_SHM_MOVE_RECEIVE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "hca/object/srq.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"

/* The QP structure with which an XRC message is received in place of the target QP; NULL:
 * the message is to be dropped. `first`: see xrc_rx.c. rx_lock is held. */
struct hca_qp *shm_xrc_responder(struct shm_link *l,
				 const struct shm_xrc_header *h, bool first,
				 uint8_t rnr_timer);

/* hca_transport_ops.fence: the SRQ is being destroyed, and no responder uses it
 * afterwards. Takes shm.lock and rx_lock. */
void shm_srq_forget(struct hca_srq *srq);

/* Frees all responders of a link that ends; rx_lock is held. */
void shm_responders_free(struct shm_link *l);

#define SHM_RECEIVE_BUDGET 32 /* slots per call of shm_receive(); then another link has its turn */

/* Receives a message of any kind; true if its slot was marked, so that the sender has to
 * act. rx_lock is held. */
bool shm_receive_other(struct shm_link *l, struct shm_slot *slot, struct shm_header h);

/* Receives up to SHM_RECEIVE_BUDGET messages; true if there were any. rx_lock is held. */
bool shm_receive(struct shm_link *l);

/* The same with a capture or faults. `at_once`: also what faults delay. */
bool shm_receive_watched(struct shm_link *l, bool at_once);

/* Receives all messages that are in the ring now. Takes rx_lock. */
void shm_receive_rest(struct shm_link *l);

/* At the responder: executes a WRITE or READ, or a part of it. `*part`: with SHM_IN_DATA
 * the extent that was checked already; set to the extent executed. IBV_WC_GENERAL_ERR:
 * the peer broke the protocol. rx_lock is held. */
enum ibv_wc_status shm_request_execute(struct shm_link *l, struct hca_qp *qp,
				       struct shm_slot *slot, uint8_t op,
				       uint8_t flags, uint32_t length,
				       struct shm_extent *part);

/* At the initiator, for a slot with SHM_DATA or SHM_SHOWN that is acknowledged: copies the
 * data of a READ into its buffers, and shows it in the capture, before the slot is used
 * again. Returns the status to be used for the slot. ack_lock is held;
 * takes sq_lock. */
enum shm_status shm_read_arrived(struct shm_link *l,
				 const struct shm_inflight *f,
				 const struct shm_slot *slot,
				 enum shm_status status);

#endif
