/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rate at which a queue pair sends, for networks whose switches mark packets instead of
 * losing them: DCQCN (Y. Zhu and others, "Congestion Control for Large-Scale RDMA
 * Deployments", SIGCOMM 2015, section 3; the parameters are those of its section 5). The
 * receiver of marked packets sends congestion notification packets (CNP, annex A17,
 * RoCEv2); each cuts the rate of the sender, which returns by itself: first to what it was
 * before the cut, then beyond it.
 *
 * Two parts: `rc_marks` at the receiver says when a CNP is due; `rc_pace` at the sender
 * says when the next packet may leave. Both are pure. Until the first CNP, and again when
 * the rate has returned to that of the line, a sender only tests `active`.
 */
#ifndef ENGINE_RC_PACE_H
#define ENGINE_RC_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* At most one CNP a queue pair in this time. */
#define RC_PACE_CNP_NS UINT64_C(50000)
/* Without a CNP alpha decays, and the rate grows, in these steps; the rate also with each
 * so many bytes. */
#define RC_PACE_STEP_NS UINT64_C(55000)
#define RC_PACE_STEP_BYTES (UINT64_C(10) << 20)
#define RC_PACE_G_SHIFT 8     /* g = 1/256: the weight of one CNP in alpha */
#define RC_PACE_FAST_STEPS 5  /* F: steps that only halve the way back */
/* The paper has 40 Mbit/s on a line of 40 Gbit/s; other lines in proportion. */
#define RC_PACE_GROW_PART 1000 /* line / this: additive increase of a step */
#define RC_PACE_JUMP_PART 100  /* hyper increase */
/* Never slower than this part of the line: more senders than this into one port remain
 * bounded by their windows only. */
#define RC_PACE_LEAST_PART 2000
#define RC_PACE_LINE_BPS UINT64_C(100000000000) /* when the rate of the line is unknown */
/* A sender that was late (its timer, its turn) catches up by so much time at most. */
#define RC_PACE_LATE_NS UINT64_C(20000)
/* Bytes of a packet besides its payload: Ethernet, IP, UDP, BTH, RETH, ICRC. */
#define RC_PACE_HEADERS 74

struct rc_pace {
	bool active;           /* false: nothing else but line_bps means something */
	uint8_t time_steps, byte_steps; /* since the last cut */
	uint16_t alpha;        /* of 65536: the estimate of the congestion */
	uint64_t line_bps, rate_bps, target_bps;
	uint64_t next_ns;      /* when the next packet may leave */
	uint64_t cut_ns;       /* the last cut */
	uint64_t decay_ns, grow_ns; /* the next steps */
	uint64_t bytes;        /* until the next step by bytes */
};

struct rc_marks {
	bool owed;             /* a CNP is to be sent */
	uint64_t next_ns;      /* not before */
};

/* `line_bps`: bits a second of the port; 0: unknown. */
void rc_pace_open(struct rc_pace *p, uint64_t line_bps);

/* May no packet leave at this time? */
static inline bool rc_pace_waits(const struct rc_pace *p, uint64_t now_ns)
{
	return __builtin_expect(p->active, false) && now_ns < p->next_ns;
}

/* Do packets leave so seldom that a window of them takes longer than an answer may? */
static inline bool rc_pace_is_slow(const struct rc_pace *p)
{
	return __builtin_expect(p->active, false) && p->rate_bps < p->line_bps / 32;
}

/* A packet with this payload has left. */
void rc_pace_count(struct rc_pace *p, uint32_t bytes, uint64_t now_ns);
static inline void rc_pace_sent(struct rc_pace *p, uint32_t bytes, uint64_t now_ns)
{
	if (__builtin_expect(p->active, false))
		rc_pace_count(p, bytes, now_ns);
}

/* A CNP has come. Copies of one cut the rate once. */
void rc_pace_cut(struct rc_pace *p, uint64_t now_ns);

/* A marked packet has come. */
static inline void rc_marks_add(struct rc_marks *m, uint64_t now_ns)
{
	if (m->owed || now_ns < m->next_ns)
		return;
	m->owed = true;
	m->next_ns = now_ns + RC_PACE_CNP_NS;
}

#endif
