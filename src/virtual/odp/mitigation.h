/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program can do by itself against the pitfalls of memory on demand (point.h, odp_mitigation):
 *
 *   dummy    a queue pair with unfinished requests and without progress for `patience_ns`, and then
 *            for twice as long each time, gets an RDMA WRITE of no bytes, which shows the peer a gap
 *   window   at most `window` requests of a queue pair are on their way as long as one of them
 *            uses a page that no completed request has used
 *   gate     a page that no completed request has used is used by one request alone; all others wait
 *   reissue  a READ without completion for `patience_ns` is posted again on a spare queue pair,
 *            into pinned memory; which of both completes first counts
 *
 * Requests that wait keep the order of their queue pair.
 */
#ifndef VIRTUAL_ODP_MITIGATION_H
#define VIRTUAL_ODP_MITIGATION_H

#include "virtual/odp/ends.h"

/* Of a point whose ends are open. One at a time. */
void odp_mitigation_begin(struct odp_ends *ends, uint64_t now_ns);
/* The program wants operation `i`, the next one: posts it now, or later. */
void odp_mitigation_post(uint64_t i, uint64_t now_ns);
/* A completion. True: that of operation *i, for the first time. */
bool odp_mitigation_done(const struct ibv_wc *wc, uint64_t now_ns, uint64_t *i);
/* When odp_mitigation_look() has work; UINT64_MAX: never. */
uint64_t odp_mitigation_next_ns(void);
void odp_mitigation_look(uint64_t now_ns);

#endif
