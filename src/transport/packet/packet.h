/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every transport of packets needs: queue pairs, keys and completions of hca on one
 * side, the engine of connections (engine/rc) on the other. It knows no medium: the
 * transport on top opens a port with a carrier and says how a header becomes bytes and
 * where an address is. Its table of hca_transport_ops calls the functions below.
 *
 * Locks, in the order in which they are taken: the port's receive_lock (everything that
 * arrives, the responders, the lists of the port), sq_lock (the requesters), the carrier's,
 * then those of receive and completion queues. All are taken as elide.h says.
 *
 * Carriers hold bytes and queue pair numbers, never queue pairs. A packet of one's own to
 * oneself arrives with the next poll.
 */
#ifndef TRANSPORT_PACKET_PACKET_H
#define TRANSPORT_PACKET_PACKET_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/qp/qp.h"
#include "hca/queue/sq.h"
#include "hca/queue/srq.h"
#include "transport/carrier/carrier.h"
#include "transport/packet/frame.h"
#include "util/list.h"
#include "util/spin.h"

/* What the transport on top knows. Pure functions. */
struct packet_medium {
	uint32_t mtu; /* the longest payload that the medium takes, up to PACKET_MTU */
	/* Writes the header; how many bytes. */
	size_t (*encode)(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES]);
	/* The header at `from`; how many bytes it has, 0: this is no packet. rc.bytes is
	 * checked by the caller. */
	size_t (*decode)(const uint8_t *from, size_t bytes, struct packet_frame *f);
	/* Where queue pair `qpn` behind the address vector is: 0 or -EHOSTUNREACH. */
	int (*address)(const struct ibv_ah_attr *to, uint32_t qpn,
		       struct carrier_addr *addr);
};

struct packet_port {
	const struct hca_transport_ops *ops; /* of the transport on top */
	const struct packet_medium *medium;
	struct carrier *carrier;             /* NULL: closed */
	/* The carrier below holds packets back, which nobody is woken for. */
	bool holds_back;
	unsigned generation;                 /* grows with each opening and fork */
	struct spin receive_lock;
	struct list answering; /* responders that owe; receive_lock */
	struct list targets;   /* of XRC; receive_lock */
	uint8_t *packet;       /* for one that came in pieces; receive_lock */
	struct spin wait_lock; /* a leaf */
	struct list waiting;   /* requesters that found the carrier full */
	atomic_uint backlog;   /* entries of both lists */
	/* Who looks at keys and copies by them (fence.c). */
	atomic_uint copying[2], phase;
};

/* ---- port.c ---- */
/* `ops`, `medium` and `holds_back` are set; `carrier` becomes the port's when this
 * succeeds. 0 or -ENOMEM. */
int packet_port_open(struct packet_port *port, struct carrier *carrier);
/* No queue pair has a path here any more. */
void packet_port_close(struct packet_port *port);
/* In a forked child: the carrier's memory is given back, no lock is taken. */
void packet_port_forked(struct packet_port *port);
/* For the carrier to call when packets have come and nobody may be polling; locks of
 * queue pairs may be held. `arg` is not looked at. */
void packet_port_wake(void *arg);

/* As the entries of hca_transport_ops of the same names. */
bool packet_poll(struct packet_port *port, bool wait);
bool packet_pending(struct packet_port *port);

/* ---- qp.c ---- */
int packet_open(struct packet_port *port, struct hca_qp *qp);
int packet_connect(struct hca_qp *qp);
void packet_ready(struct hca_qp *qp);
void packet_close(struct packet_port *port, struct hca_qp *qp);

/* ---- send.c, timer.c, ud.c ---- */
void packet_transmit(struct hca_qp *qp);
void packet_posted(struct hca_qp *qp);
void packet_expired(struct hca_qp *qp);
int packet_datagram(struct packet_port *port, struct hca_qp *qp,
		    const struct hca_swqe *e);

/* ---- fence.c ---- */
/* Waits until whoever copies now has finished; who begins later finds the key
 * withdrawn. */
void packet_fence(struct packet_port *port);
/* The same for a queue pair that was taken out of service, or out of the table of
 * numbers: afterwards nobody looks at it on behalf of a packet. */
void packet_qp_fence(struct packet_port *port);
bool packet_copies(struct packet_port *port);
void packet_srq_forget(struct packet_port *port, struct hca_srq *srq);

#endif
