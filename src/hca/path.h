/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which transport carries the messages of a queue pair, and which are there at all.
 *
 * A connected queue pair gets its path when it learns its peer, on entering RTR; a UD
 * queue pair gets one then too, for what only one transport can do for it (waiting), and
 * each address handle names the transport of its datagrams.
 */
#ifndef HCA_PATH_H
#define HCA_PATH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/transport.h"

/* What a transport may keep in a queue pair (hca_qp.path_part): zero when it opens. */
#define HCA_PATH_PART_BYTES 112

struct hca_path {
	/* Never NULL; those of `ops`, or functions that do nothing. */
	bool (*post)(struct hca_qp *qp, const struct ibv_send_wr *wr);
	void (*posted)(struct hca_qp *qp);
	void (*transmit)(struct hca_qp *qp);
	/* Never NULL: before RTR a table whose functions do nothing. Changes under
	 * sq_lock. */
	const struct hca_transport_ops *_Atomic ops;
};

#define HCA_TRANSPORTS_MAX 4

/* Those that the process uses, in the order of BUSBAR_TRANSPORTS. */
struct hca_transports {
	const struct hca_transport_ops *at[HCA_TRANSPORTS_MAX];
	unsigned count;
	/* That of the only one, or one that asks all. */
	bool (*poll)(struct hca_cq *cq, bool wait);
};
extern struct hca_transports hca_transports;

/* All that were built, NULL at the end: before the process opens its first context. */
void hca_transports_register(const struct hca_transport_ops *const *list);
/* Starts those that the setting names. 0 or a negative errno: none is started.
 * process.lock is held for these two. */
int hca_transports_start(void);
void hca_transports_stop(void);
void hca_transports_forked(void);

/* The best transport to there, or NULL. */
const struct hca_transport_ops *hca_path_choose(const struct hca_destination *to);
/* The next one behind `not_this` that leads to there and has datagrams, or NULL. */
const struct hca_transport_ops *
hca_path_choose_behind(const struct hca_destination *to,
		       const struct hca_transport_ops *not_this);
/* Before RTR, and after close(): no transport. sq_lock is held, or nobody has the QP. */
void hca_path_none(struct hca_qp *qp);
/* Opens the path to there; where nothing leads there, that of the first transport, which
 * then says what is wrong. No lock is held. 0 or a negative errno, with no path. */
int hca_path_open(struct hca_qp *qp, const struct hca_destination *to);
/* Ends it. sq_lock is not held. */
void hca_path_close(struct hca_qp *qp);
static inline const struct hca_transport_ops *hca_path_ops(const struct hca_path *p)
{
	return atomic_load_explicit(&p->ops, memory_order_acquire);
}
/* Its number among those that the process uses, for inspection. */
unsigned hca_path_number(const struct hca_transport_ops *ops);

/* The fences of all transports. */
void hca_fence_key(uint32_t key);
bool hca_fence_key_busy(uint32_t key);
void hca_fence_qp(const struct hca_qp *qp);
void hca_fence_srq(struct hca_srq *srq);

/* The local tables of all transports that have one. */
int hca_local_block_claimed(uint32_t block, int listen_fd);
void hca_local_group_enter(bool joined);
void hca_local_region_gone(uint32_t id);

/* Is there work for the progress thread's ticks? */
bool hca_transports_pending(void);

#endif
