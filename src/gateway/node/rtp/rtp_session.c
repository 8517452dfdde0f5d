/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an RTP session; see rtp_session.h. */
#include "gateway/node/rtp/rtp_session.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/random.h>

#define NS_PER_SECOND INT64_C(1000000000)

uint32_t rtp_random(void)
{
	uint32_t r = 0;

	/* Does not fail for so few bytes once the system has started. */
	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r ^= (uint32_t)(uintptr_t)&r;
	return r;
}

static void draw(struct rtp_own *own)
{
	*own = (struct rtp_own){
		.ssrc = rtp_random(),
		.timestamp_base = rtp_random(),
		.sequence = (uint16_t)rtp_random(),
	};
}

void rtp_session_begin(struct rtp_session *s, uint32_t clock_rate)
{
	memset(s, 0, sizeof(*s));
	s->clock_rate = clock_rate;
	draw(&s->own);
}

uint32_t rtp_session_ssrc(struct rtp_session *s)
{
	uint32_t ssrc;

	spin_lock(&s->lock);
	ssrc = s->own.ssrc;
	spin_unlock(&s->lock);
	return ssrc;
}

uint32_t rtp_session_ticks(const struct rtp_session *s, int64_t ns)
{
	return (uint32_t)((__int128)ns * s->clock_rate / NS_PER_SECOND);
}

void rtp_session_number(struct rtp_session *s, struct rtp_header *h, int64_t origin_ns)
{
	h->sequence = s->own.sequence++;
	h->ssrc = s->own.ssrc;
	h->timestamp = s->own.timestamp_base + rtp_session_ticks(s, origin_ns);
}

void rtp_session_sent(struct rtp_session *s, const struct rtp_header *last, unsigned count,
		      size_t octets, uint64_t wall_ns)
{
	spin_lock(&s->lock);
	/* Another SSRC was drawn meanwhile: its counters are those of other packets. */
	if (last->ssrc == s->own.ssrc) {
		s->own.packets += count;
		s->own.octets += (uint32_t)octets;
		s->own.timestamp = last->timestamp;
		s->own.wall_ns = wall_ns;
		s->own.quiet = 0;
	}
	spin_unlock(&s->lock);
}

static struct rtp_peer *find(struct rtp_session *s, uint32_t ssrc)
{
	for (unsigned i = 0; i < RTP_PEERS; i++)
		if (s->peers[i].used && s->peers[i].ssrc == ssrc)
			return &s->peers[i];
	return NULL;
}

/* Whether `a` is forgotten before `b`. */
static bool is_less_worth(const struct rtp_peer *a, const struct rtp_peer *b)
{
	bool a_valid = rtp_source_is_valid(&a->source), b_valid = rtp_source_is_valid(&b->source);

	if (a->used != b->used)
		return b->used;
	if (a->expected != b->expected)
		return b->expected;
	return a_valid != b_valid ? b_valid : a->heard_ns < b->heard_ns;
}

static struct rtp_peer *make(struct rtp_session *s, const struct rtp_header *h,
			     const struct rtp_arrival *a)
{
	struct rtp_peer *p = &s->peers[0];

	for (unsigned i = 1; i < RTP_PEERS; i++)
		if (is_less_worth(&s->peers[i], p))
			p = &s->peers[i];
	*p = (struct rtp_peer){
		.used = true,
		.ssrc = h->ssrc,
		.from = *a->from,
		.expected = s->remote.len &&
			    socket_address_equal(a->from, &s->remote, true),
	};
	rtp_source_begin(&p->source, h->sequence);
	return p;
}

/* Did the node send it itself, from the port of packets or from that of reports? */
static bool is_own(const struct rtp_session *s, const struct socket_address *from)
{
	struct socket_address reports = s->local;

	reports.in4.sin_port = htons((uint16_t)(ntohs(reports.in4.sin_port) + 1));
	return s->local.len && (socket_address_equal(from, &s->local, true) ||
				socket_address_equal(from, &reports, true));
}

/* Section 8.2; under the lock. */
static enum rtp_verdict collide(struct rtp_session *s, const struct socket_address *from,
				uint64_t now_ns)
{
	if (is_own(s, from))
		return RTP_DROP_LOOPED;
	for (unsigned i = 0; i < s->conflict_count; i++)
		if (socket_address_equal(from, &s->conflicts[i], true))
			return RTP_DROP_LOOPED;
	if (s->changed_ns && now_ns - s->changed_ns < RTP_CHANGE_NS)
		return RTP_DROP_LOOPED;
	if (s->conflict_count == RTP_CONFLICTS) {
		memmove(s->conflicts, s->conflicts + 1,
			sizeof(s->conflicts) - sizeof(s->conflicts[0]));
		s->conflict_count--;
	}
	s->conflicts[s->conflict_count++] = *from;
	s->changed_ns = now_ns;
	s->left_ssrc = s->own.ssrc;
	s->bye_due = true;
	draw(&s->own);
	return RTP_DROP_COLLIDED;
}

enum rtp_verdict rtp_session_collide(struct rtp_session *s, const struct socket_address *from,
				     uint64_t now_ns)
{
	enum rtp_verdict v;

	spin_lock(&s->lock);
	v = collide(s, from, now_ns);
	spin_unlock(&s->lock);
	return v;
}

static enum rtp_verdict verdict(enum rtp_order order)
{
	switch (order) {
	case RTP_LATE:
		return RTP_DELIVER_LATE;
	case RTP_REPEATED:
		return RTP_DROP_REPEATED;
	case RTP_STRAY:
		return RTP_DROP_STRAY;
	default:
		/* Also while a source is on probation: it is not reported of, but what it
		 * sends is not lost. */
		return RTP_DELIVER;
	}
}

/* Under the lock. */
static enum rtp_verdict take(struct rtp_session *s, const struct rtp_header *h,
			     const struct rtp_arrival *a, unsigned *peer, bool *fresh)
{
	struct rtp_peer *p;
	enum rtp_order order;
	int32_t before;
	bool valid;

	*fresh = false;
	if (h->ssrc == s->own.ssrc && !s->to_itself)
		return collide(s, a->from, a->now_ns);
	p = find(s, h->ssrc);
	if (p && !socket_address_equal(&p->from, a->from, true)) {
		if (a->now_ns - p->heard_ns < RTP_MOVE_NS)
			return RTP_DROP_FOREIGN;
		p->from = *a->from;
	}
	if (!p) {
		p = make(s, h, a);
		*fresh = true;
	}
	valid = rtp_source_is_valid(&p->source);
	before = valid ? rtp_source_lost(&p->source) : 0;
	order = rtp_source_take(&p->source, h->sequence);
	if (order == RTP_RESTARTED)
		*fresh = true;
	else if (valid)
		s->lost += (int64_t)rtp_source_lost(&p->source) - before;
	p->heard_ns = a->now_ns;
	p->heard = true;
	if (order != RTP_STRAY && order != RTP_REPEATED)
		rtp_source_time(&p->source, h->timestamp,
				rtp_session_ticks(s, a->wall_ns));
	*peer = (unsigned)(p - s->peers);
	return verdict(order);
}

enum rtp_verdict rtp_session_take(struct rtp_session *s, const struct rtp_header *h,
				  const struct rtp_arrival *a, unsigned *peer, bool *fresh)
{
	enum rtp_verdict v;

	spin_lock(&s->lock);
	v = take(s, h, a, peer, fresh);
	spin_unlock(&s->lock);
	return v;
}

void rtp_session_sender_report(struct rtp_session *s, uint32_t ssrc,
			       const struct rtcp_sender *r, const struct rtp_arrival *a)
{
	struct rtp_peer *p;

	spin_lock(&s->lock);
	p = find(s, ssrc);
	if (p && socket_address_equal(&p->from, a->from, false)) {
		p->lsr = rtcp_ntp_middle(r->ntp);
		p->lsr_ns = a->now_ns;
	}
	spin_unlock(&s->lock);
}

bool rtp_session_bye(struct rtp_session *s, uint32_t ssrc, const struct socket_address *from)
{
	struct rtp_peer *p;

	spin_lock(&s->lock);
	p = find(s, ssrc);
	if (p && !socket_address_equal(&p->from, from, false))
		p = NULL;
	if (p)
		p->used = false;
	spin_unlock(&s->lock);
	return p;
}

unsigned rtp_session_senders(struct rtp_session *s, uint64_t since_ns)
{
	unsigned count = 0;

	spin_lock(&s->lock);
	for (unsigned i = 0; i < RTP_PEERS; i++) {
		const struct rtp_peer *p = &s->peers[i];

		count += p->used && p->heard_ns >= since_ns &&
			 rtp_source_is_valid(&p->source);
	}
	spin_unlock(&s->lock);
	return count;
}

unsigned rtp_session_reports(struct rtp_session *s, struct rtcp_report out[RTP_PEERS],
			     uint64_t now_ns)
{
	unsigned count = 0;

	spin_lock(&s->lock);
	for (unsigned i = 0; i < RTP_PEERS; i++) {
		struct rtp_peer *p = &s->peers[i];
		struct rtcp_report *r = &out[count];

		if (!p->used || !p->heard || !rtp_source_is_valid(&p->source))
			continue;
		p->heard = false;
		*r = (struct rtcp_report){ .ssrc = p->ssrc, .lsr = p->lsr };
		rtp_source_report(&p->source, r);
		if (p->lsr)
			r->dlsr = (uint32_t)(((unsigned __int128)(now_ns - p->lsr_ns) << 16) /
					     (uint64_t)NS_PER_SECOND);
		count++;
	}
	spin_unlock(&s->lock);
	return count;
}

bool rtp_session_sender(struct rtp_session *s, struct rtcp_sender *out, uint64_t wall_ns)
{
	bool sends;

	spin_lock(&s->lock);
	sends = s->own.packets && s->own.quiet < 2;
	s->own.quiet++;
	/* Origins need not be the wall clock's times (a recording): the timestamp goes on
	 * from that of the last packet. */
	*out = (struct rtcp_sender){
		.ntp = rtcp_ntp_from_ns(wall_ns),
		.timestamp = s->own.timestamp +
			     rtp_session_ticks(s, (int64_t)(wall_ns - s->own.wall_ns)),
		.packets = s->own.packets,
		.octets = s->own.octets,
	};
	spin_unlock(&s->lock);
	return sends;
}

bool rtp_session_has_sent(struct rtp_session *s, uint32_t highest)
{
	uint16_t back;
	bool sent;

	spin_lock(&s->lock);
	back = (uint16_t)(s->own.sequence - 1 - highest);
	sent = back < s->own.packets;
	spin_unlock(&s->lock);
	return sent;
}
