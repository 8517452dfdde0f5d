/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells what went wrong on RDMA connections from their packets: packet damming, READ flood
 * and WRITE amplification of on-demand paging, other timeouts, losses, receivers that are not
 * ready, congestion. It keeps a bounded number of flows and requests and says when a bound
 * was reached.
 *
 * Pure: packets with their times in, results out; no clock, no file. One thread. The rules
 * are those of busbar-trace(1).
 */
#ifndef ANALYZER_ANALYZER_H
#define ANALYZER_ANALYZER_H

#include "analyzer/ladder.h"
#include "analyzer/result.h"

struct analyzer;

/* Instead of a flow's number: all flows have a ladder, up to the bound (5 KiB each). */
#define ANALYZER_LADDER_ALL (~0u)
#define ANALYZER_LADDERS_MAX 1024

/* `ladder_flow`: number of the flow whose packets are kept for a ladder; 0: none. NULL: no
 * memory. */
struct analyzer *analyzer_new(unsigned ladder_flow);
void analyzer_free(struct analyzer *a);
void analyzer_packet(struct analyzer *a, const struct analyzer_packet *p);
/* The next packets have no time. */
void analyzer_untimed(struct analyzer *a, bool untimed);
/* No more packets. Before it there are no verdicts, but there is news. */
void analyzer_finish(struct analyzer *a);

/*
 * While packets come. Packets wait until both directions of their connection are known; a caller
 * for whom time passes analyses those that can be, and those that have waited for a second: `now_ns`
 * is the present time of the clock of the packets.
 */
void analyzer_catch_up(struct analyzer *a, int64_t now_ns);
/* Tells each pitfall that was found since the last call: of a flow each stall that is kept, and each
 * other kind once. */
struct analyzer_news {
	const struct analyzer_result *flow;
	enum analyzer_kind kind;
	const struct analyzer_finding *finding; /* the stall; NULL: it is another kind */
	int64_t when_ns;
};
void analyzer_news(struct analyzer *a, void (*tell)(void *arg, const struct analyzer_news *news),
		   void *arg);

const struct analyzer_totals *analyzer_totals(const struct analyzer *a);
unsigned analyzer_flows(const struct analyzer *a);
/* From 0 on, in the order of their numbers. */
const struct analyzer_result *analyzer_flow(const struct analyzer *a, unsigned i);
/* Of the flow with this number; NULL: none was kept. */
const struct analyzer_ladder *analyzer_ladder(const struct analyzer *a, unsigned flow);

#endif
