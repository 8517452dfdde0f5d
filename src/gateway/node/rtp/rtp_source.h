/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a receiver keeps of one source: the order of its sequence numbers, its losses and
 * its jitter (RFC 3550 appendices A.1, A.3 and A.8). No sockets and no clocks.
 */
#ifndef GATEWAY_NODE_RTP_SOURCE_H
#define GATEWAY_NODE_RTP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/rtp/rtcp_packet.h"

#define RTP_SEQUENTIAL_MIN 2   /* packets in sequence until a source is valid */
#define RTP_DROPOUT_MAX 3000   /* a larger step forward is another numbering */
#define RTP_MISORDER_MAX 100   /* a larger step back likewise */

enum rtp_order {
	RTP_IN_ORDER,
	RTP_PROBATION,  /* of a source that is not valid yet */
	RTP_LATE,       /* overtaken on its way */
	RTP_REPEATED,   /* it has come before */
	RTP_STRAY,      /* far from the others; the next one decides */
	RTP_RESTARTED,  /* the second one of another numbering */
};

struct rtp_source {
	uint16_t max_seq;
	uint32_t cycles;        /* of the sequence number, times 2^16 */
	uint32_t base_seq, bad_seq;
	unsigned probation;     /* packets until the source is valid */
	uint32_t received, expected_prior, received_prior;
	uint64_t seen[2];       /* bit i: max_seq - i has come */
	uint32_t transit, jitter; /* jitter: 16 times its value */
	bool timed;             /* transit is that of a packet */
};

/* `sequence` is that of the first packet, which rtp_source_take() is then given, too. */
void rtp_source_begin(struct rtp_source *s, uint16_t sequence);

static inline bool rtp_source_is_valid(const struct rtp_source *s)
{
	return !s->probation;
}

enum rtp_order rtp_source_take(struct rtp_source *s, uint16_t sequence);

/* Of each packet; `arrival` in units of the timestamp. */
void rtp_source_time(struct rtp_source *s, uint32_t timestamp, uint32_t arrival);

/* Packets that did not come; negative after repeated ones. */
int32_t rtp_source_lost(const struct rtp_source *s);

/* Fills fraction, lost, highest and jitter, and begins another interval. */
void rtp_source_report(struct rtp_source *s, struct rtcp_report *r);

/* What a sender remembers of a reporter. */
struct rtp_reporter {
	bool known;
	uint32_t highest;
	int32_t lost;
};

/* The fraction that was lost between the last report and this one, 0 to 1. Two reports are
 * compared, so that one that was lost or passed over loses no information. */
double rtp_reporter_loss(struct rtp_reporter *p, const struct rtcp_report *r);

#endif
