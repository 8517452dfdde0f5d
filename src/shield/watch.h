/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that get probes when they make no progress, and the thread that looks for these. */
#ifndef SHIELD_WATCH_H
#define SHIELD_WATCH_H

#include "shield/probe.h"

struct watched {
	struct watched *next;      /* of its bucket, for ever */
	struct ibv_qp *_Atomic qp; /* NULL: free */
	uint32_t qpn;
	const struct ibv_context *context; /* numbers of two devices may be the same */
	bool completes_all;
	/* Requests that will have a completion, and completions of these. */
	_Atomic uint64_t posted, completed;
	/* Requests of before the program had a region on demand were not heard. Completions come in
	 * order, so those before the one of the first request that was heard are not counted. Where the
	 * program uses one number for several requests they may be, and then too few requests are
	 * unfinished, until all are. */
	atomic_bool is_late, has_first;
	_Atomic uint64_t first_id;
	/* Of a probe: one that the program uses, as the peer permits it. RDMA WRITE before READ, which
	 * may have to wait for others; IBV_WR_SEND: neither. */
	_Atomic int opcode;
	/* Of the watcher: what it found last, since when it is so, and probes since the last completion. */
	uint64_t seen_posted, seen_completed, since_ns;
	uint32_t probes;
	struct probes in_queue;
};

/* NULL: it is not watched. */
struct watched *watch_find(const struct ibv_context *context, uint32_t qpn);
void watch_add(struct ibv_qp *qp, bool completes_all);
/* No probe is posted on it from now on. */
void watch_remove(struct watched *w);
/* It begins anew, with nothing unfinished. */
void watch_reset(struct watched *w);
/* One more request that will have a completion is about to be posted; it was refused. */
void watch_posting(struct watched *w, uint64_t wr_id);
void watch_refused(struct watched *w);
/* A request has completed; all have. */
void watch_completion(struct watched *w, uint64_t wr_id);
void watch_finished(struct watched *w);
/* The program has a region on demand: from now on there may be work for the watcher. */
void watch_start(void);

#endif
