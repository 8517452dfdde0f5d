/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first events of a run on each queue pair, for a diagram of one of them: packets when they leave,
 * requests that are posted and cannot leave yet, and faults. Of many alike in a row the fourth and all
 * that follow are one event.
 */
#ifndef VIRTUAL_ODP_RECORD_H
#define VIRTUAL_ODP_RECORD_H

#include <stdio.h>

#include "virtual/net.h"
#include "virtual/odp/ends.h"

#define ODP_RECORD_EVENTS 200u /* of a queue pair */

/* Records from now on; times are since `now_ns`. The hosts have memory on demand. */
void odp_record_begin(const struct odp_ends *ends, uint64_t now_ns);
/* A packet on queue pair `qp` (of either end). `again`: its sequence number was sent before. */
void odp_record_packet(const struct packet_seen *p, unsigned qp, bool again);
/* Operation `i` is posted. */
void odp_record_post(uint64_t i);

/* Has a queue pair lost a packet or sent one again? */
bool odp_record_is_eventful(void);
/* The events of the queue pair that lost the most packets, or sent the most again, as a JSON object:
 * docs/odp.md describes it. */
void odp_record_print(FILE *out);

#endif
