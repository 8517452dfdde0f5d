/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves messages, as the hca sees it: a table that a transport registers
 * (hca_transport_register()).
 */
#ifndef HCA_TRANSPORT_H
#define HCA_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct hca_cq;
struct ibv_send_wr;
struct hca_qp;
struct hca_srq;

/*
 * What the hca wants of a transport. All are called with the locks named, may
 * not block, and complete work through the functions at the end of objects.h.
 */
struct hca_transport_ops {
	const char *name;
	/* Once per process, with the first context; and its counterpart, after
	 * the last QP is gone. process.lock is held. */
	int (*start)(void);
	void (*stop)(void);
	/* A QPN block became ours; its control socket accepts for us. */
	int (*block_claimed)(uint32_t block, int listen_fd);
	/* About to enter RTR, in which messages are accepted: what an earlier
	 * connection of the QP left on the way is dropped. No lock is held. */
	void (*qp_clear)(struct hca_qp *qp);
	/* Entering RTR: find the peer. May wait a little. No lock is held. */
	int (*qp_connect)(struct hca_qp *qp);
	/* Transmit a request at once and enter it in the send queue, when nothing waits
	 * there and it is one that this is quicker for. False: nothing was done. RTS,
	 * there is room in the queue, sq_lock is held. */
	bool (*qp_post)(struct hca_qp *qp, const struct ibv_send_wr *wr);
	/* Behind one or more that were: sq_lock is held. */
	void (*qp_kick)(struct hca_qp *qp);
	/* Transmit waiting work while possible. sq_lock is held. */
	void (*qp_transmit)(struct hca_qp *qp);
	/* Work was posted: see to acknowledgements for programs that post and
	 * do not poll. No lock is held. */
	void (*qp_posted)(struct hca_qp *qp);
	/* The QP's retry timer ran out, or a datagram was posted that waits
	 * (hca_qp.calls). No lock is held. */
	void (*qp_retry)(struct hca_qp *qp);
	/* The QP is being reset or freed: afterwards the transport holds no
	 * reference to it. sq_lock is not held. */
	void (*qp_forget)(struct hca_qp *qp);
	/* A QP left the states in which peers use its memory, or (NULL) an XRC SRQ is
	 * gone: wait until what they had begun is done. No lock is held. */
	void (*qp_fence)(const struct hca_qp *qp);
	/* A key was invalidated: wait until no peer copies with it. */
	void (*key_fence)(uint32_t key);
	/* The same for a window, without waiting: may anybody still copy with
	 * it? sq_lock may be held, no lock that comes behind it. */
	bool (*key_busy)(uint32_t key);
	/* An XRC SRQ is not found any more: afterwards the transport holds no
	 * reference to it. No lock is held. */
	void (*srq_forget)(struct hca_srq *srq);
	/* A QP joined a multicast group, or (not `joined`) an address handle of
	 * one was made: find the processes of the host that use multicast, and
	 * be found. May wait a little. No lock is held. */
	void (*mcast_enter)(bool joined);
	/* A region that was lent is gone: peers need not keep it mapped. */
	void (*region_gone)(uint32_t id);
	/* Move incoming messages and acknowledgements. True if any moved.
	 * `cq`: what is polled; when it has got something the rest may wait for
	 * the next poll, and acknowledgements are looked for if send queues
	 * complete to it. NULL: everything.
	 * `wait`: for threads that are moving messages at the moment, instead
	 * of leaving the work to them: who goes to sleep next must know. */
	bool (*poll)(struct hca_cq *cq, bool wait);
	/* Anything that poll would move, or that needs the thread's ticks. */
	bool (*pending)(void);
	/* Dropping of inherited resources in a forked child. */
	void (*forked)(void);
};

#endif
