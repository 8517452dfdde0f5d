/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of transports, which move messages between queue pairs: a table of
 * functions that each transport fills in. src/transport/list.c names all transports, the
 * setting BUSBAR_TRANSPORTS those that are used, and path.h chooses one for a queue pair.
 *
 * Transports complete work through hca/queue (post.h, complete.h, receive.h, push.h). The functions below do not wait
 * unless stated; errors are negative errno values.
 */
#ifndef HCA_TRANSPORT_H
#define HCA_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_cq;
struct hca_gsi_ops;
struct hca_stream_ops;
struct hca_qp;
struct hca_srq;
struct hca_swqe;
struct ibv_ah_attr;
struct ibv_send_wr;
union ibv_gid;

/* A destination for which a transport is looked for. */
struct hca_destination {
	/* NULL: a UD queue pair itself, which has no destination; the transport of its path
	 * may let datagrams wait. */
	const struct ibv_ah_attr *ah;
	bool local;       /* `ah` names an address of this host */
	bool multicast;   /* `ah` names a group */
	uint32_t qpn;     /* HCA_QPN_UNKNOWN for an address handle */
};
#define HCA_QPN_UNKNOWN UINT32_MAX

/* Functions that only transports inside of a host can have or need. A transport without
 * any of them has no such table; each entry may be NULL. */
struct hca_local_ops {
	/* A block of QP numbers became this process's; `listen_fd` is the socket with
	 * its name, which accepts callers. process.lock is held. */
	int (*block_claimed)(uint32_t block, int listen_fd);
	/* A QP joined a multicast group, or (not `joined`) an address handle of a group
	 * was made: connects to the processes of the host that use multicast, and makes
	 * this process known to them. May wait a little. No lock is held. */
	void (*group_enter)(bool joined);
	/* A memory region is gone that peers may have mapped: tells them to unmap it. */
	void (*region_gone)(uint32_t id);
};

/* Waiting for copies, for functions that withdraw memory. Each entry may be NULL: the
 * transport copies nothing except under locks that the caller's operation takes. */
struct hca_fence_ops {
	/* The QP has left the states in which peers use its memory, or (NULL) an XRC SRQ
	 * is gone: waits until copies that had begun are done. No lock is held. */
	void (*qp)(const struct hca_qp *qp);
	/* A key was invalidated: waits until no copy uses it. No lock is held. */
	void (*key)(uint32_t key);
	/* May a copy still use the key? Does not wait. sq_lock may be held, but no lock
	 * that comes after it in the lock order. */
	bool (*key_busy)(uint32_t key);
	/* An XRC SRQ cannot be found any more: afterwards the transport holds no
	 * reference to it. No lock is held. */
	void (*srq)(struct hca_srq *srq);
};

struct hca_transport_ops {
	const char *name; /* in BUSBAR_TRANSPORTS, logs and counters */
	/* The table that is used in its place in this process, asked once, when the settings
	 * are known. Functions that do more than the usual ones, for a capture for example,
	 * are in a table of their own and cost the usual ones nothing. NULL: this table. */
	const struct hca_transport_ops *(*variant)(void);

	/* With the first context of the process, and after its last QP is gone.
	 * process.lock is held. */
	int (*start)(void);
	void (*stop)(void);
	/* In a forked child: drops inherited memory and descriptors. The other threads do
	 * not exist; locks that they held are still locked. */
	void (*forked)(void);

	/* May the process use this block of QP numbers (a number shifted right by
	 * HCA_QPN_BLOCK_BITS)? Asked before the block is claimed; process.lock is held.
	 * NULL: any. */
	bool (*offer_block)(uint32_t block);
	/* A UD queue pair, whose path is another transport's, is about to enter RTR:
	 * datagrams for it may come from here, too. May wait; no lock is held. NULL: nothing
	 * to do. */
	void (*expect)(struct hca_qp *qp);

	/* The first QP of the process is about to be attached to the multicast group, or
	 * (not `joined`) the last one was detached: datagrams to it may come from here, too,
	 * or not any more. `lid`: as the program gave it. May wait; only a lock of hca/qp/mcast.c is held; not on the
	 * progress thread. 0, or a negative errno, logged: nobody is attached. Leaving has no
	 * result. NULL: nothing to do. */
	int (*group)(const union ibv_gid *gid, uint16_t lid, bool joined);

	/* Does the transport lead to the destination? Without connecting. A cost (0 or
	 * more; the lowest one is chosen), or -EHOSTUNREACH. Datagrams to multicast groups
	 * are sent by each transport that leads there (hca/queue/datagram.c). */
	int (*reach)(const struct hca_destination *to);
	/* The QP is about to enter RTR with this transport; its part of the QP (path_part)
	 * is zero. Drops messages that an earlier connection of the QP left. No lock is
	 * held. 0, or a negative errno: the QP stays in INIT. */
	int (*open)(struct hca_qp *qp);
	/* It has entered RTR: the attributes are those of the connection. May look for the
	 * peer, up to a second, but not on the progress thread. No lock is held. */
	int (*connect)(struct hca_qp *qp);
	/* It has entered RTS from RTR. sq_lock is held. NULL: nothing to do. */
	void (*ready)(struct hca_qp *qp);
	/* It has moved to ERR, for whatever reason; its entries are flushed behind this. sq_lock is
	 * held. NULL: nothing to do. */
	void (*failed)(struct hca_qp *qp);
	/* The QP is being reset or destroyed: afterwards the transport holds no reference to
	 * it. sq_lock is not held. */
	void (*close)(struct hca_qp *qp);

	/* Transmits a request at once and enters it in the send queue, if this is the
	 * faster way for it. False: nothing was done. The QP is in RTS, no entry waits,
	 * there is room in the queue, sq_lock is held. NULL: never. */
	bool (*post)(struct hca_qp *qp, const struct ibv_send_wr *wr);
	/* After one or more requests that `post` took: wakes the peer. sq_lock is held. */
	void (*kick)(struct hca_qp *qp);
	/* Transmits entries of the send queue from sq.next on, as many as possible.
	 * sq_lock is held. Not for UD queue pairs. */
	void (*transmit)(struct hca_qp *qp);
	/* Sends the entry of a UD queue pair at sq.next, whose other properties are valid.
	 * 0: it was sent, or is lost; -EFAULT: a key does not permit access to its
	 * buffers; -EAGAIN: it has to wait, and hca_sq_run() will be called when it may
	 * be sent (only the transport of the queue pair's path may return this). sq_lock
	 * is held. NULL: the transport has no datagrams. */
	int (*datagram)(struct hca_qp *qp, const struct hca_swqe *e);
	/* At the end of each posting call: handles acknowledgements for programs that post
	 * and do not poll. No lock is held. NULL: nothing to do. */
	void (*posted)(struct hca_qp *qp);
	/* The timer hca_qp.retry expired, or a datagram was posted that waits for its peer
	 * (hca_qp.calls). On the progress thread or a polling one. No lock is held. */
	void (*expired)(struct hca_qp *qp);

	/* Moves incoming messages and acknowledgements. True: some moved.
	 * `cq`: the queue that is polled. When it has got an entry, the rest may wait for the
	 * next poll; acknowledgements are read only if send queues complete to it. NULL:
	 * everything is moved.
	 * `wait`: if another thread is moving messages, waits for it. Callers that are about
	 * to sleep need that, because otherwise they would miss what the other thread has
	 * just moved. */
	bool (*poll)(struct hca_cq *cq, bool wait);
	/* The program is about to sleep, as it has armed a queue. True: a thread is woken for what
	 * has come and was not moved, and for what comes from now on (hca/share/arrival.h); so
	 * nothing need be looked for. NULL: poll() with `wait` has to be called. */
	bool (*announces)(void);
	/* A thread of the program is about to sleep in a call: does what it left for the program's
	 * next call. NULL: it leaves nothing. */
	void (*settle)(void);
	/* Did a peer last run on processor `cpu`, so that it may be waiting for it? NULL: no. */
	bool (*peer_ran_on)(unsigned cpu);
	/* It answers other programs of the host about this process (hca/view), and so runs
	 * even if no queue pair may use it. */
	bool serves_host;
	/* poll() is called from hca_transport_polled() on, instead of from the start on. Needs
	 * `announces`, which is called from the start on. */
	bool polled_later;
	/* Is there work that needs the progress thread's ticks? NULL: never. */
	bool (*pending)(void);
	/* From now on messages and packets meet the faults that `text` describes, as
	 * BUSBAR_FAULTS does; "": none. Whether there are queue pairs or not. 0; -EINVAL:
	 * nothing has changed, as `text` cannot be read, and `note` says why; -EOPNOTSUPP:
	 * this transport has no faults now, and `note` says why; or another error.
	 * With 0 `note` may say what a user has to know. It is one line. Progress thread, without
	 * a lock. NULL: the transport has none. */
	int (*faults)(const char *text, char *note, size_t note_bytes);
	/* How many events at packet numbers (BUSBAR_FAULTS, events=FILE) took place here since these
	 * faults were set. `line` tells the one with this index, from 0, if there is one. Progress
	 * thread, without a lock. NULL: the transport has none. */
	unsigned (*fault_event)(unsigned index, char *line, size_t line_bytes);

	struct hca_fence_ops fence;
	const struct hca_local_ops *local; /* NULL: the transport leads to other hosts */
	const struct hca_gsi_ops *gsi;     /* of queue pair 1 (gsi.h); NULL: it has none */
	/* It carries the queue pairs of an RNIC (stream.h), and no others; NULL: it carries none. It is
	 * used where programs see such a device, whether BUSBAR_TRANSPORTS names it or not. */
	const struct hca_stream_ops *stream;
};

#endif
