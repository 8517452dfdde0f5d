/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes that are in send queues, and which completions are theirs.
 *
 * A probe has a completion where its queue pair completes all requests, and where the queue pair
 * fails. The program must not see it. Its wr_id is a number that is drawn when the library is
 * loaded, plus a counter. A completion is a probe's if its queue pair has a probe of that number in its
 * send queue; that is exact unless the program uses the number, too, which it does not learn and would
 * have to guess among 2^64. If it does, while the probe is on its way, the order decides: completions
 * of a send queue come in the order of its requests, and the probe was there before.
 */
#ifndef SHIELD_PROBE_H
#define SHIELD_PROBE_H

#include "shield/shield.h"

#define PROBE_LATER UINT64_MAX

struct probes {
	atomic_flag lock; /* held for some instructions */
	uint32_t count;   /* the oldest first */
	struct probe {
		uint64_t id;
		/* So many requests of the program have to complete until its place is free: a completion
		 * frees what was posted before. PROBE_LATER: only its own completion says so. */
		uint64_t free_at;
		const struct ibv_cq *cq;
	} of[SHIELD_PROBES];
};

/* A place in the send queue and in the completion queue for a new probe, and its number. False: there
 * is none. `completed` requests of the program have completed. */
bool probe_begin(struct probes *p, const struct ibv_cq *cq, uint64_t completed, uint64_t *id);
/* The probe was posted, and is free when so many have completed; or it was refused. */
void probe_posted(struct probes *p, uint64_t id, uint64_t free_at);
void probe_refused(struct probes *p, uint64_t id);
/* The completion is of a probe. `p` is of its queue pair; NULL: that is gone. */
bool probe_completes(struct probes *p, const struct ibv_cq *cq, uint64_t wr_id);
/* The queue pair goes: completions of its probes may be in the queue still. Or it begins anew. */
void probe_forget(struct probes *p);

#endif
