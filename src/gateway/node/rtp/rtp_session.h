/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of an RTP session: the numbers of the packets that this node sends, the sources
 * that it receives, and collisions of their SSRCs (RFC 3550 section 8). The threads that
 * read, that write and that sends reports share it. No sockets and no clocks.
 */
#ifndef GATEWAY_NODE_RTP_SESSION_H
#define GATEWAY_NODE_RTP_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/rtp/rtp_packet.h"
#include "gateway/node/rtp/rtp_source.h"
#include "gateway/part/socket_address.h"
#include "util/spin.h"

/* As many as one report tells of. */
#define RTP_PEERS RTCP_REPORTS_MAX
#define RTP_CONFLICTS 8
/* A source may have another address after this time of silence. */
#define RTP_MOVE_NS UINT64_C(2000000000)
/* Between two changes of the own SSRC: a forger must not make it change all the time. */
#define RTP_CHANGE_NS UINT64_C(10000000000)

/* A source that this node receives. */
struct rtp_peer {
	bool used;
	bool heard;              /* since the last report */
	bool expected;           /* it has the configured address */
	uint32_t ssrc;
	struct socket_address from;
	struct rtp_source source;
	uint64_t heard_ns;
	uint32_t lsr;            /* of its last sender report; 0: there was none */
	uint64_t lsr_ns;         /* when that came */
};

/* What this node sends. */
struct rtp_own {
	uint32_t ssrc, timestamp_base;
	uint16_t sequence;       /* of the next packet */
	uint32_t packets, octets;
	uint32_t timestamp;      /* of the last packet ... */
	uint64_t wall_ns;        /* ... and the wall clock's time when it went */
	unsigned quiet;          /* reports since then */
};

struct rtp_session {
	struct spin lock;        /* of all below */
	uint32_t clock_rate;
	struct rtp_own own;
	struct socket_address local; /* from which packets go; len 0: unknown */
	struct socket_address remote; /* the configured peer; len 0: none */
	bool to_itself;          /* the peer is this node: its own SSRC is a source */
	struct rtp_peer peers[RTP_PEERS];
	struct socket_address conflicts[RTP_CONFLICTS];
	unsigned conflict_count;
	uint64_t changed_ns;     /* when the own SSRC last changed; 0: never */
	uint32_t left_ssrc;      /* an SSRC that this node gave up ... */
	bool bye_due;            /* ... and has to say BYE for */
	int64_t lost;            /* packets of all sources, also of former ones */
};

/* Draws SSRC, first sequence number and first timestamp. */
void rtp_session_begin(struct rtp_session *s, uint32_t clock_rate);

uint32_t rtp_random(void);

/* The SSRC of this node now. Takes the lock. */
uint32_t rtp_session_ssrc(struct rtp_session *s);

/* A wall clock's time in units of the timestamp. */
uint32_t rtp_session_ticks(const struct rtp_session *s, int64_t ns);

/* Fills the header of the next packet; its origin in ns since 1970. Under the lock. */
void rtp_session_number(struct rtp_session *s, struct rtp_header *h, int64_t origin_ns);
/* `count` packets have gone, the last one with that header. Takes the lock. */
void rtp_session_sent(struct rtp_session *s, const struct rtp_header *last, unsigned count,
		      size_t octets, uint64_t wall_ns);

enum rtp_verdict {
	RTP_DELIVER,
	RTP_DELIVER_LATE,
	RTP_DROP_REPEATED,
	RTP_DROP_STRAY,
	RTP_DROP_LOOPED,    /* this node's own, or of another one with its SSRC */
	RTP_DROP_COLLIDED,  /* likewise, and this node has taken another SSRC */
	RTP_DROP_FOREIGN,   /* the SSRC belongs to another address */
};

struct rtp_arrival {
	const struct socket_address *from;
	uint64_t now_ns;    /* of clock_now_ns() */
	int64_t wall_ns;
};

/*
 * A packet has come. *peer: the index of its source, where it is to be delivered; *fresh:
 * that one is new, or has begun another numbering. Takes the lock.
 */
enum rtp_verdict rtp_session_take(struct rtp_session *s, const struct rtp_header *h,
				  const struct rtp_arrival *a, unsigned *peer, bool *fresh);

/* A report has come that names the own SSRC as that of its sender; the same verdicts.
 * Takes the lock. */
enum rtp_verdict rtp_session_collide(struct rtp_session *s, const struct socket_address *from,
				     uint64_t now_ns);

/* A sender report of `ssrc` has come. Takes the lock. */
void rtp_session_sender_report(struct rtp_session *s, uint32_t ssrc,
			       const struct rtcp_sender *r, const struct rtp_arrival *a);
/* `ssrc` says that it leaves; only the host that it sends from may. Takes the lock. True:
 * it was a source. */
bool rtp_session_bye(struct rtp_session *s, uint32_t ssrc, const struct socket_address *from);

/* The number of valid sources that were heard since `since_ns`. Takes the lock. */
unsigned rtp_session_senders(struct rtp_session *s, uint64_t since_ns);

/* The reports for the sources heard since the last call, and whether the node has something
 * to say as a sender. Takes the lock. */
unsigned rtp_session_reports(struct rtp_session *s, struct rtcp_report out[RTP_PEERS],
			     uint64_t now_ns);
bool rtp_session_sender(struct rtp_session *s, struct rtcp_sender *out, uint64_t wall_ns);

/* Can a report about the own packets be true: has its highest number been sent? Takes the
 * lock. */
bool rtp_session_has_sent(struct rtp_session *s, uint32_t highest);

#endif
