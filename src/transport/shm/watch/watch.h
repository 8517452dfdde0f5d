/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the rings as packets, for the capture of the process (packet/show.h).
 * Each slot is shown when it is about to be published, when it is received, when it is
 * answered, and when its acknowledgement has come. With a capture no process reaches the
 * other one's memory (hca/host/settings.c), so all operations are in slots, and both ends
 * can see them.
 *
 * Messages become packets as RoCE v2 would have sent them:
 *   segments   of the path MTU; a datagram is one packet.
 *   PSN        a message has one sequence number, its packets have one each. The first
 *              message has the PSN that the program set (sq_psn, rq_psn), and each message
 *              follows the packets of the one before; a READ takes one for each packet
 *              of its answer. So both ends show the same numbers, if their PSNs and path
 *              MTUs are equal. A message that is sent again has the numbers it had. What
 *              comes for an XRC SRQ whose target queue pair is in another process begins
 *              with the number of the first message. Datagrams are counted.
 *   answers    an ACK for each message (the ring acknowledges slots together), READ
 *              responses, ATOMIC ACKNOWLEDGE, RNR NAK, NAK for an error. A message that
 *              was dropped, because of its sequence number or of the queue pair's
 *              state, has no answer; the ring tells the sender so all the same.
 *   MSN        counts the messages that were carried out.
 * Not shown: the handshake of processes, and what no packet would be sent for.
 *
 * Without a capture none of this is called, but for one look at `shm_watches` on slower
 * ways: the usual functions are in shm_ops, those that show in another table (watched.c).
 */
#ifndef TRANSPORT_SHM_WATCH_WATCH_H
#define TRANSPORT_SHM_WATCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "transport/shm/link/shown.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"

/* There is a capture, or faults are wanted (faults.h). Constant after the choice of the
 * transports. */
extern bool shm_watches;
extern struct hca_transport_ops shm_watched_ops;

/* With the start and stop of the transport; process.lock is held. */
void shm_watch_start(void);
void shm_watch_stop(void);
void shm_watch_forked(void);
/* The QP enters RTR; it is reset or destroyed. No lock is held. */
void shm_watch_connected(struct hca_qp *qp);
void shm_watch_closed(struct hca_qp *qp);

/* The slot at `pos` is filled, and about to be published with this header, which faults
 * may change. tx_lock is held. */
void shm_watch_sent(struct shm_link *l, uint32_t pos, const struct shm_slot *slot,
		    struct shm_header *h);

/* A slot was read: before it is handled, and afterwards. rx_lock is held. */
void shm_watch_received(struct shm_link *l, const struct shm_slot *slot,
			const struct shm_header *h, struct shm_part_shown *part);
void shm_watch_answered(const struct shm_slot *slot, const struct shm_part_shown *part,
			bool marked);
/* The slot was acknowledged with this status. ack_lock is held, and the slot is not used again
 * yet. */
void shm_watch_acknowledged(struct shm_link *l, const struct shm_slot *slot,
			    enum shm_status status);

#endif
