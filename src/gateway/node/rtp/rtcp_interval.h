/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When reports are sent (RFC 3550 sections 6.2 and 6.3, appendix A.7): seldom enough that all
 * members of a session together stay below a bandwidth, and at random times. No sockets and
 * no clocks.
 */
#ifndef GATEWAY_NODE_RTP_RTCP_INTERVAL_H
#define GATEWAY_NODE_RTP_RTCP_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

struct rtcp_interval {
	double min_s;           /* the shortest mean interval */
	double bandwidth;       /* of all reports of the session, bytes a second */
	double average_size;    /* of reports, with their UDP and IP headers */
	unsigned members, senders;
	bool we_sent;           /* this node has sent data since its report before last */
	bool initial;           /* it has not sent a report yet */
};

/* The interval before its randomisation, seconds. */
double rtcp_interval_mean(const struct rtcp_interval *i);
/* The interval to wait; `random` from 0 to 1. */
double rtcp_interval_next(const struct rtcp_interval *i, double random);
/* A report of `size` bytes was sent or received. */
void rtcp_interval_size(struct rtcp_interval *i, double size);

#endif
