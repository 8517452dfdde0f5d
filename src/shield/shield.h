/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbusbar-odp-shield.so works around what on-demand paging does to programs on adapters that
 * were measured (docs: busbar-exec(1), --odp-shield). It is preloaded and has functions of
 * libibverbs of the same names, which call those of the program's libibverbs, busbar's or the
 * system's. So it works on real adapters, too. Uses the public interface alone.
 *
 *   prefetch  a region on demand is brought when it is registered; what is larger than
 *             SHIELD_PREFETCH_BYTES, or implicit, piece by piece before it is posted
 *   touch     the same by WRITEs of the adapter itself (touch.h), where it cannot prefetch or prefetch
 *             is not wanted
 *   rnr       queue pairs ask for the shortest wait after an RNR NAK (code 1)
 *   probe     where a queue pair has unfinished work, and nothing was posted on it or polled of it for
 *             SHIELD_PATIENCE_NS, and then for twice as long, an RDMA WRITE or READ of no bytes
 *             follows: a responder that has missed a request sees the gap and says so, instead of a
 *             timeout. The program does not see its completion, if it has one (probe.h)
 *
 * What it leaves alone: queue pairs that use SEND alone, as a probe would take a receive; services
 * other than RC.
 */
#ifndef SHIELD_SHIELD_H
#define SHIELD_SHIELD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct preload_request;

#define SHIELD_EXPORT __attribute__((visibility("default")))
#define SHIELD_PREFETCH_BYTES (UINT64_C(1) << 30)
/* How long pages of one call may be touched, and how long a few of them may take. */
#define SHIELD_TOUCH_NS UINT64_C(2000000000)
#define SHIELD_PATIENCE_NS UINT64_C(5000000)
/* Probes of a queue pair that may be in its send queue, which has room for them beside what the
 * program asked for. */
#define SHIELD_PROBES 4u
/* Completions of probes that may be in a completion queue, beside what the program asked for. */
#define SHIELD_COMPLETIONS 64u

enum shield_parts {
	SHIELD_PREFETCH = 1 << 0,
	SHIELD_RNR = 1 << 1,
	SHIELD_PROBE = 1 << 2,
	SHIELD_TOUCH = 1 << 3,
};

/* ---- shield.c ---- */
/* Of BUSBAR_ODP_SHIELD; without it all parts. */
unsigned shield_parts(void);
uint64_t shield_now_ns(void);
/* Has the program registered a region on demand? It has now. */
bool shield_has_regions(void);
void shield_note_region(void);

/* What was done, for the line at the end. */
extern struct shield_counts {
	_Atomic uint64_t regions, bytes; /* prefetched */
	_Atomic uint64_t touched_regions, touched_bytes;
	_Atomic uint64_t queue_pairs;    /* that got the shortest wait */
	_Atomic uint64_t probes;
} shield_counts;

/* ---- memory.c ---- */
/* Before the request is posted: brings its buffers, if they may be missing. */
void shield_before_post(struct ibv_qp *qp, const struct preload_request *r);

#endif
