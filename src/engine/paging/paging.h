/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of memory on demand as an adapter sees them: which it has in its table, the faults
 * that bring the others, and what each queue pair knows of them. A model of adapters that were
 * measured (profile.h): its rules are observed, their causes are assumptions.
 *
 * Faults are served one behind the other. Each is of a queue pair, on one side: that of the
 * responder, or that of the requester. On the side of the requester, with profile.refresh_us, a
 * queue pair that found a page missing goes on to find it missing until its own fault was served,
 * also where that of another queue pair has brought the page meanwhile.
 *
 * Pure, except that it allocates memory: no clock, thread or lock. The caller says what time it is.
 */
#ifndef ENGINE_PAGING_PAGING_H
#define ENGINE_PAGING_PAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/paging/profile.h"

/* So many pages are brought by one fault. */
#define PAGING_FAULT_PAGES 1024
/* So many faults of a queue pair as responder are queued; it begins others when they were served. */
#define PAGING_QP_FAULTS 64

struct paging;

/* `pages` of a region from page number `first` on; a page number is an address without the bits
 * within the page. */
struct paging_range {
	uint32_t region;
	uint32_t pages; /* 0: nothing is missing */
	uint64_t first;
};

enum paging_side { PAGING_RESPONDER, PAGING_REQUESTER };

struct paging_event {
	enum paging_side side;
	uint32_t qpn;
	bool reminder; /* of paging_remind(); else a fault of the queue pair was served */
	/* The pages that the fault has brought, perhaps none: the caller sees to it that the host
	 * has them. */
	struct paging_range range;
};

struct paging_counters {
	uint64_t faults;      /* pages that were missing and were brought */
	uint64_t refreshed;   /* faults for pages that were there already */
	uint64_t prefetched, invalidated; /* pages */
};

/* NULL: no memory. The profile is copied. */
struct paging *paging_open(const struct paging_profile *profile);
void paging_close(struct paging *p);
const struct paging_profile *paging_profile_of(const struct paging *p);

/* May the queue pair use the range now? False: it begins a fault for what is missing, unless one or too
 * many are queued; and the event follows. */
bool paging_use(struct paging *p, uint32_t qpn, enum paging_side side,
		const struct paging_range *range, uint64_t now_ns);
/* The same without beginning a fault. */
bool paging_there(const struct paging *p, uint32_t qpn, enum paging_side side,
		  const struct paging_range *range);
/* Is the range in the table, and was a part of it never used? It counts as used from now on. */
bool paging_first_use(struct paging *p, const struct paging_range *range);
/* An event (`reminder`) at this time. */
void paging_remind(struct paging *p, uint32_t qpn, enum paging_side side, uint64_t at_ns);

/* The time of the next event; UINT64_MAX: there is none. */
uint64_t paging_next_ns(const struct paging *p);
/* The next event whose time has come. False: there is none. */
bool paging_take(struct paging *p, uint64_t now_ns, struct paging_event *event);

/* The program has asked for the pages (ibv_advise_mr()). */
void paging_prefetch(struct paging *p, const struct paging_range *range);
/* The host has taken the pages back. */
void paging_invalidate(struct paging *p, const struct paging_range *range);
/* The region is gone. Queue pairs that wait for its pages get their events without any. */
void paging_forget_region(struct paging *p, uint32_t region);
/* The queue pair is gone; its events do not come any more. */
void paging_forget_qp(struct paging *p, uint32_t qpn);

void paging_count(const struct paging *p, struct paging_counters *out);

/* Is called for each fault when it is queued, and when it is served. `range` of the fault: the pages
 * that are wanted. */
typedef void paging_saw(void *arg, uint64_t at_ns, bool served, const struct paging_event *fault);
/* `saw` NULL: none is called. */
void paging_watch(struct paging *p, paging_saw *saw, void *arg);

#endif
