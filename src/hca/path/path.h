/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transports that the process uses, and the choice of one for each queue pair.
 *
 * A connected queue pair gets its path on entering RTR, when its peer is known. A UD queue
 * pair gets one then, too: only this transport may let its datagrams wait. Otherwise the
 * address handle of a datagram names the transport.
 */
#ifndef HCA_PATH_H
#define HCA_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/path/transport.h"

/* Size of a transport's private data in a queue pair (hca_qp.path_part); zero before open(). */
#define HCA_PATH_PART_BYTES 128

struct hca_path {
	/* Copies of the entries of `ops`; functions that do nothing where these are NULL. */
	bool (*post)(struct hca_qp *qp, const struct ibv_send_wr *wr);
	void (*posted)(struct hca_qp *qp);
	void (*transmit)(struct hca_qp *qp);
	/* Without a path a table whose functions do nothing. Changes under
	 * sq_lock. */
	const struct hca_transport_ops *_Atomic ops;
};

#define HCA_TRANSPORTS_MAX 4

/* The transports that the process runs: the first `paths`, which queue pairs may use, in the
 * order of BUSBAR_TRANSPORTS; then those that only serve the host
 * (hca_transport_ops.serves_host). */
struct hca_transports {
	const struct hca_transport_ops *at[HCA_TRANSPORTS_MAX];
	unsigned paths, count;
	/* poll() of the only transport that is polled, or a function that calls that of
	 * each. */
	bool (*_Atomic poll)(struct hca_cq *cq, bool wait);
};
extern struct hca_transports hca_transports;

/* See hca_transport_ops.poll. */
static inline bool hca_transports_poll(struct hca_cq *cq, bool wait)
{
	return atomic_load_explicit(&hca_transports.poll, memory_order_acquire)(cq, wait);
}

/* For a caller that has armed a queue and is about to sleep: moves everything, as poll() with `wait`
 * does, where no thread is woken for it. False: there are no such messages. */
bool hca_transports_poll_unannounced(void);
/* Calls hca_transport_ops.settle of all. */
void hca_transports_settle(void);
/* Of the transports whose messages peers of this host announce by waking the process. Everything is
 * moved, after waiting for other threads that are moving messages. False: there are no messages. */
bool hca_transports_poll_local(void);

/* The transport, which has `polled_later`, is polled from now on. Any thread. */
void hca_transport_polled(const struct hca_transport_ops *ops);
/* May the process use this block of QP numbers? process.lock is held. */
bool hca_transports_offer_block(uint32_t block);

/* Sets the list of all transports that were built, terminated by NULL. To be called before the
 * first hca_process_open(). */
void hca_transports_register(const struct hca_transport_ops *const *list);
/* Takes the transports that BUSBAR_TRANSPORTS names, once in the life of the process and
 * before the segment is there: the progress thread looks at the list then. 0, or -ENODEV:
 * none was built. process.lock is held, also for the next two. */
int hca_transports_select(void);
/* Starts them. 0, or a negative errno: none is started. */
int hca_transports_start(void);
void hca_transports_stop(void);
void hca_transports_forked(void);

/* The transport that carries the queue pairs of an RNIC, or NULL. */
const struct hca_transport_ops *hca_path_of_streams(void);
/* The transport with the lowest cost to the destination, or NULL. */
const struct hca_transport_ops *hca_path_choose(const struct hca_destination *to);
/* The first transport after `not_this`, in the order of BUSBAR_TRANSPORTS, that has datagrams and
 * reaches the destination, or NULL. */
const struct hca_transport_ops *
hca_path_choose_behind(const struct hca_destination *to,
		       const struct hca_transport_ops *not_this);
static inline const struct hca_transport_ops *hca_path_ops(const struct hca_path *p)
{
	return atomic_load_explicit(&p->ops, memory_order_acquire);
}
/* Its index in hca_transports.at, 0 if it is not there; for inspection. */
unsigned hca_path_number(const struct hca_transport_ops *ops);

/* Call the fence functions (transport.h) of all transports; hca_fence_key_busy(): of any. */
void hca_fence_key(uint32_t key);
bool hca_fence_key_busy(uint32_t key);
void hca_fence_qp(const struct hca_qp *qp);
void hca_fence_srq(struct hca_srq *srq);

/* Call the functions of hca_local_ops of all transports that have them. The first returns 0 or
 * the first error. */
int hca_local_block_claimed(uint32_t block, int listen_fd);
void hca_local_group_enter(bool joined);
/* Does one that queue pairs may use bring datagrams for groups to all processes of the host? */
bool hca_local_has_groups(void);
void hca_local_region_gone(uint32_t id);

/* Calls hca_transport_ops.group of all that queue pairs may use. 0, or the error of the one
 * that did not join; then none has. */
int hca_transports_group(const union ibv_gid *gid, uint16_t lid, bool joined);

/* Calls hca_transport_ops.faults of all that queue pairs may use. 0: `notes` has a line, with
 * newline, for each that cannot do it; -EINVAL: nothing has changed, and `notes` says what is
 * wrong; -EOPNOTSUPP: none of them can, as `notes` says. Progress thread, without a lock. */
int hca_transports_faults(const char *text, char *notes, size_t notes_bytes);

/* Calls hca_transport_ops.fault_event of all that queue pairs may use: `line` tells the event with
 * this index among those of all of them. 0; -ENOENT: there are not so many. Progress thread,
 * without a lock. */
int hca_transports_fault_event(unsigned index, char *line, size_t line_bytes);

/* Calls hca_transport_ops.peer_ran_on of all: is it so for any? */
bool hca_transports_peer_ran_on(unsigned cpu);

/* Does any transport have work for the progress thread's ticks? */
bool hca_transports_pending(void);

#endif
