/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence, losses and jitter of a source; see rtp_source.h. */
#include "gateway/node/rtp/rtp_source.h"

#include <string.h>

#define SEQUENCES (UINT32_C(1) << 16)
#define WINDOW 128 /* bits of `seen`; more than RTP_MISORDER_MAX */

static void seen_move(struct rtp_source *s, unsigned by)
{
	if (by >= WINDOW) {
		s->seen[0] = s->seen[1] = 0;
	} else if (by >= 64) {
		s->seen[1] = s->seen[0] << (by - 64);
		s->seen[0] = 0;
	} else if (by) {
		s->seen[1] = s->seen[1] << by | s->seen[0] >> (64 - by);
		s->seen[0] <<= by;
	}
	s->seen[0] |= 1;
}

/* Whether the one that many before the highest has come; from now on it has. */
static bool seen_mark(struct rtp_source *s, unsigned back)
{
	uint64_t bit = UINT64_C(1) << back % 64;
	bool was = s->seen[back / 64] & bit;

	s->seen[back / 64] |= bit;
	return was;
}

static void begin_numbering(struct rtp_source *s, uint16_t sequence)
{
	s->base_seq = sequence;
	s->max_seq = sequence;
	s->bad_seq = SEQUENCES + 1; /* no sequence number */
	s->cycles = 0;
	s->received = s->received_prior = s->expected_prior = 0;
	s->seen[0] = 3;             /* this one and the one before it */
	s->seen[1] = 0;
}

void rtp_source_begin(struct rtp_source *s, uint16_t sequence)
{
	memset(s, 0, sizeof(*s));
	begin_numbering(s, sequence);
	s->max_seq = (uint16_t)(sequence - 1);
	s->probation = RTP_SEQUENTIAL_MIN;
}

static enum rtp_order take_probation(struct rtp_source *s, uint16_t sequence)
{
	if (sequence != (uint16_t)(s->max_seq + 1)) {
		s->probation = RTP_SEQUENTIAL_MIN - 1;
		s->max_seq = sequence;
		return RTP_PROBATION;
	}
	s->max_seq = sequence;
	if (--s->probation)
		return RTP_PROBATION;
	begin_numbering(s, sequence);
	s->received++;
	return RTP_IN_ORDER;
}

enum rtp_order rtp_source_take(struct rtp_source *s, uint16_t sequence)
{
	uint16_t step = (uint16_t)(sequence - s->max_seq);
	enum rtp_order order = RTP_IN_ORDER;

	if (s->probation)
		return take_probation(s, sequence);
	if (!step) {
		order = RTP_REPEATED;
	} else if (step < RTP_DROPOUT_MAX) {
		if (sequence < s->max_seq)
			s->cycles += SEQUENCES;
		s->max_seq = sequence;
		seen_move(s, step);
	} else if (step <= SEQUENCES - RTP_MISORDER_MAX) {
		if (sequence != s->bad_seq) {
			s->bad_seq = (sequence + 1) & (SEQUENCES - 1);
			return RTP_STRAY;
		}
		begin_numbering(s, sequence);
		order = RTP_RESTARTED;
	} else {
		order = seen_mark(s, SEQUENCES - step) ? RTP_REPEATED : RTP_LATE;
	}
	s->received++;
	return order;
}

void rtp_source_time(struct rtp_source *s, uint32_t timestamp, uint32_t arrival)
{
	uint32_t transit = arrival - timestamp;
	uint32_t d = transit - s->transit;

	s->transit = transit;
	if (!s->timed) {
		s->timed = true;
		return;
	}
	if (d > INT32_MAX)
		d = -d;
	/* A step of a clock would stay in the sum for long, and overflow it. */
	if (d < SEQUENCES * 64)
		s->jitter += d - ((s->jitter + 8) >> 4);
}

static uint32_t highest(const struct rtp_source *s)
{
	return s->cycles + s->max_seq;
}

static uint32_t expected(const struct rtp_source *s)
{
	return highest(s) - s->base_seq + 1;
}

int32_t rtp_source_lost(const struct rtp_source *s)
{
	return (int32_t)(expected(s) - s->received);
}

void rtp_source_report(struct rtp_source *s, struct rtcp_report *r)
{
	uint32_t due = expected(s) - s->expected_prior;
	int64_t missing = (int64_t)due - (s->received - s->received_prior);

	s->expected_prior += due;
	s->received_prior = s->received;
	r->fraction = due && missing > 0 ? (uint8_t)((missing << 8) / due < 255 ?
						     (missing << 8) / due : 255) : 0;
	r->lost = rtp_source_lost(s);
	r->highest = highest(s);
	r->jitter = s->jitter >> 4;
}

double rtp_reporter_loss(struct rtp_reporter *p, const struct rtcp_report *r)
{
	uint32_t due = r->highest - p->highest;
	int64_t missing = (int64_t)r->lost - p->lost;
	bool known = p->known && due <= INT32_MAX && missing <= (int64_t)due;

	*p = (struct rtp_reporter){ .known = true, .highest = r->highest, .lost = r->lost };
	if (!known)
		return r->fraction / 256.0;
	return due && missing > 0 ? (double)missing / due : 0;
}
