/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RTCP compound packets (RFC 3550 section 6) as bytes: sender and receiver reports, the
 * CNAME, and BYE. Other packets in a compound are passed over. No sockets and no clocks.
 */
#ifndef GATEWAY_NODE_RTP_RTCP_PACKET_H
#define GATEWAY_NODE_RTP_RTCP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rtcp_type { RTCP_SR = 200, RTCP_RR = 201, RTCP_SDES = 202, RTCP_BYE = 203, RTCP_APP = 204 };

#define RTCP_REPORTS_MAX 31      /* in one packet */
#define RTCP_CNAME_MAX 255
#define RTCP_REPORT_SIZE 24
/* A sender report with all reports, the CNAME and BYE. */
#define RTCP_COMPOUND_MAX (28 + RTCP_REPORTS_MAX * RTCP_REPORT_SIZE + 14 + RTCP_CNAME_MAX + 8)

/* What a receiver reports of one source. */
struct rtcp_report {
	uint32_t ssrc;
	uint8_t fraction;        /* lost since the last report, in 256ths */
	int32_t lost;            /* since the beginning; 24 bits */
	uint32_t highest;        /* sequence number, extended by its cycles */
	uint32_t jitter;         /* in units of the RTP timestamp */
	uint32_t lsr, dlsr;      /* the last sender report, and the delay since, 2^-16 s */
};

/* What a sender reports of itself. */
struct rtcp_sender {
	uint64_t ntp;            /* seconds since 1900 in the upper 32 bits */
	uint32_t timestamp;      /* the RTP timestamp of the same instant */
	uint32_t packets, octets;
};

struct rtcp_compound {
	uint32_t ssrc;
	const struct rtcp_sender *sender; /* NULL: a receiver report */
	const struct rtcp_report *reports;
	unsigned report_count;   /* at most RTCP_REPORTS_MAX */
	const char *cname;
	bool bye;
};

/* The number of bytes, at most RTCP_COMPOUND_MAX. */
size_t rtcp_encode(uint8_t out[RTCP_COMPOUND_MAX], const struct rtcp_compound *c);

/* Is it a compound packet, by the tests of appendix A.2? 0, or -EBADMSG with *why. */
int rtcp_check(const uint8_t *data, size_t len, const char **why);

/* One packet of a compound one. */
struct rtcp_part {
	uint8_t type, count;
	uint32_t ssrc;           /* of SR and RR: who reports */
	struct rtcp_sender sender; /* of SR */
	const uint8_t *body;     /* the reports, or the sources of BYE */
	size_t body_len;
};

/*
 * The packet at *at of a compound one that rtcp_check() has passed, *at then behind it.
 * False at the end, and from a packet on that is too short for what it says to hold.
 */
bool rtcp_next(const uint8_t *data, size_t len, size_t *at, struct rtcp_part *part);

/* The report or the source that leaves with number `i` below part->count. */
struct rtcp_report rtcp_part_report(const struct rtcp_part *part, unsigned i);
uint32_t rtcp_part_bye(const struct rtcp_part *part, unsigned i);

/* The middle 32 bits of an NTP timestamp, as LSR has them. */
static inline uint32_t rtcp_ntp_middle(uint64_t ntp)
{
	return (uint32_t)(ntp >> 16);
}

/* Nanoseconds since 1970 as an NTP timestamp. */
uint64_t rtcp_ntp_from_ns(uint64_t ns);

/*
 * The time to the reporter and back (section 6.4.1), in 2^-16 s; `now` is the middle of
 * the present NTP timestamp. -1 where the report does not tell it, or cannot be right.
 */
int64_t rtcp_round_trip(const struct rtcp_report *r, uint32_t now);

#endif
