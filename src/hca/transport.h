/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What moves messages between queue pairs, as the hca sees it: a table of functions
 * that each transport fills in. src/transport/list.c names all of them; the setting
 * BUSBAR_TRANSPORTS says which of them are used, and path.h which queue pair uses
 * which.
 *
 * Functions complete work through sq.h, rq.h and cq.h. None may wait unless it is
 * said; errors are negative errno values.
 */
#ifndef HCA_TRANSPORT_H
#define HCA_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

struct hca_cq;
struct hca_qp;
struct hca_srq;
struct hca_swqe;
struct ibv_ah_attr;
struct ibv_send_wr;

/* A destination that somebody wants to reach. */
struct hca_destination {
	/* NULL: of a UD queue pair, which has none; the transport that its path names may
	 * let datagrams wait. */
	const struct ibv_ah_attr *ah;
	bool local;       /* `ah` names an address of this host */
	bool multicast;   /* ... a group */
	uint32_t qpn;     /* HCA_QPN_UNKNOWN: that of an address handle */
};
#define HCA_QPN_UNKNOWN UINT32_MAX

/* What only a transport inside of a host can do or needs. A transport without any of
 * it has no table; each entry may be NULL. */
struct hca_local_ops {
	/* A block of QP numbers became this process's; `listen_fd` is the socket with
	 * its name, which accepts callers. process.lock is held. */
	int (*block_claimed)(uint32_t block, int listen_fd);
	/* A QP joined a multicast group, or (not `joined`) an address handle of one was
	 * made: finds the processes of the host that use multicast, and is found by
	 * them. May wait a little. No lock is held. */
	void (*group_enter)(bool joined);
	/* A memory region that peers may have mapped is gone: they need not keep it. */
	void (*region_gone)(uint32_t id);
};

/* Who is copying memory, for those who want to take it back. Each entry may be NULL:
 * the transport copies nothing outside of the locks that the caller's step takes. */
struct hca_fence_ops {
	/* The QP has left the states in which peers use its memory, or (NULL) an XRC SRQ
	 * is gone: waits until copies that had begun are done. No lock is held. */
	void (*qp)(const struct hca_qp *qp);
	/* A key was invalidated: waits until nobody copies with it. No lock is held. */
	void (*key)(uint32_t key);
	/* Without waiting: may anybody still copy with it? sq_lock may be held, no lock
	 * that comes behind it. */
	bool (*key_busy)(uint32_t key);
	/* An XRC SRQ is not found any more: afterwards the transport holds no reference
	 * to it. No lock is held. */
	void (*srq)(struct hca_srq *srq);
};

struct hca_transport_ops {
	const char *name; /* as BUSBAR_TRANSPORTS, logs and counters have it */

	/* With the first context of the process, and after its last QP is gone.
	 * process.lock is held. */
	int (*start)(void);
	void (*stop)(void);
	/* In a forked child: drops inherited memory and descriptors. Other threads are
	 * gone, and locks may be held by them. */
	void (*forked)(void);

	/* Looks up whether it leads there, without calling anybody: a cost (0 or more; the
	 * lowest one is chosen), or -EHOSTUNREACH. */
	int (*reach)(const struct hca_destination *to);
	/* The QP is about to enter RTR with this transport: its part of the QP (path_part) is
	 * zero. What an earlier connection of the QP left on its way is dropped. No lock is
	 * held. 0, or why the QP stays in INIT. */
	int (*open)(struct hca_qp *qp);
	/* It has entered RTR: the attributes are those of the connection. May look for the
	 * peer, up to a second, but not on the progress thread. No lock is held. */
	int (*connect)(struct hca_qp *qp);
	/* It has entered RTS from RTR. sq_lock is held. NULL: nothing to do. */
	void (*ready)(struct hca_qp *qp);
	/* The QP is being reset or destroyed: afterwards the transport holds no reference to
	 * it. sq_lock is not held. */
	void (*close)(struct hca_qp *qp);

	/* Transmits a request at once and enters it in the send queue, when it is one that
	 * this is quicker for. False: nothing was done. RTS, nothing waits, there is room in
	 * the queue, sq_lock is held. NULL: never. */
	bool (*post)(struct hca_qp *qp, const struct ibv_send_wr *wr);
	/* Behind one or more requests that `post` took: wakes the peer. sq_lock is held. */
	void (*kick)(struct hca_qp *qp);
	/* Transmits entries of the send queue from sq.next on while possible. sq_lock is
	 * held. Not for datagrams: */
	void (*transmit)(struct hca_qp *qp);
	/* Sends the entry of a UD queue pair, which is the one at sq.next and otherwise
	 * valid. 0: it is on its way, or lost; -EFAULT: a key does not allow its buffers;
	 * -EAGAIN: it waits, and hca_sq_run() is called when its turn may have come: only
	 * from the transport that the queue pair's path names. sq_lock is held. NULL: the
	 * transport has no datagrams. */
	int (*datagram)(struct hca_qp *qp, const struct hca_swqe *e);
	/* At the end of each posting call: acknowledgements of programs that post and do
	 * not poll. No lock is held. NULL: nothing to do. */
	void (*posted)(struct hca_qp *qp);
	/* hca_qp.retry ran out, or a datagram was posted that waits for its peer
	 * (hca_qp.calls). On the progress thread or one that polls. No lock is held. */
	void (*expired)(struct hca_qp *qp);

	/* Moves incoming messages and acknowledgements. True if any moved.
	 * `cq`: the queue that is polled; when it has got an entry the rest may wait for the
	 * next poll, and acknowledgements are looked for if send queues complete to it.
	 * NULL: everything.
	 * `wait`: a thread that finds another one moving messages waits for it instead of
	 * leaving the work to it. Callers that are about to sleep need that: otherwise they
	 * would miss what the other thread has just found. */
	bool (*poll)(struct hca_cq *cq, bool wait);
	/* Is there work that needs the progress thread's ticks? NULL: never. */
	bool (*pending)(void);

	struct hca_fence_ops fence;
	const struct hca_local_ops *local; /* NULL: it leads to other hosts */
};

#endif
