/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of flows; see table.h. Packets name only the destination's QP, so the two
 * directions of a connection are paired by their PSNs: an answer belongs to a flow between
 * the same hosts with an open request of this PSN. If several have one, the request that
 * waits longest is taken, and the pair is a guess until more answers have fitted.
 */
#include "analyzer/table.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/answer.h"

#define SCAN_MAX 1024       /* flows that one answer is compared with */
#define ATTEMPTS_EACH 16    /* answers that are tried before some are passed over */
#define SURE_MATCHES 8

/* Who sends packets does not know the seed, and cannot choose flows that meet in one list. */
static uint64_t mix(uint64_t h, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(h ^ word) * UINT64_C(0xbf58476d1ce4e5b9);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t hash(const struct analyzer_table *t, const struct analyzer_address *a,
		     const struct analyzer_address *b, uint32_t qpn)
{
	uint64_t h = mix(t->seed, qpn), word;

	for (int i = 0; i < 4; i++) {
		memcpy(&word, (i < 2 ? a : b)->bytes + 8 * (i & 1), 8);
		h = mix(h + t->seed, word);
	}
	return (uint32_t)(h >> 32) & (ANALYZER_BUCKETS - 1);
}

static bool same(const struct analyzer_address *a, const struct analyzer_address *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static void list(struct analyzer_table *t, struct analyzer_flow *f)
{
	uint32_t h = hash(t, &f->result.src, &f->result.dst, 0);

	if (f->listed)
		return;
	f->listed = true;
	f->next_host = t->by_hosts[h];
	t->by_hosts[h] = f;
}

static struct analyzer_flow *add_flow(struct analyzer_table *t, const struct analyzer_packet *p, uint32_t h)
{
	struct analyzer_flow *f;

	if (t->count == ANALYZER_FLOWS_MAX)
		return NULL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->result.src = p->src;
	f->result.dst = p->dst;
	f->result.qpn = p->ib.dest_qpn;
	f->result.first_ns = p->when_ns;
	f->burst.finding = -1;
	f->next_hash = t->by_key[h];
	t->by_key[h] = f;
	list(t, f);
	t->flow[t->count++] = f;
	return f;
}

struct analyzer_flow *analyzer_table_get(struct analyzer_table *t, const struct analyzer_packet *p,
					 bool add)
{
	uint32_t h = hash(t, &p->src, &p->dst, p->ib.dest_qpn);

	for (struct analyzer_flow *f = t->by_key[h]; f; f = f->next_hash)
		if (f->result.qpn == p->ib.dest_qpn && same(&f->result.src, &p->src) &&
		    same(&f->result.dst, &p->dst))
			return f;
	return add ? add_flow(t, p, h) : NULL;
}

void analyzer_table_join(struct analyzer_flow *x, struct analyzer_flow *y, bool sure)
{
	x->partner = y;
	y->partner = x;
	x->tentative = y->tentative = !sure;
	x->matches = x->mismatches = y->matches = y->mismatches = 0;
	x->result.paired = y->result.paired = true;
	x->result.peer_qpn = y->result.qpn;
	y->result.peer_qpn = x->result.qpn;
}

static void divide(struct analyzer_table *t, struct analyzer_flow *y)
{
	struct analyzer_flow *x = y->partner;

	x->partner = y->partner = NULL;
	x->result.paired = y->result.paired = false;
	list(t, x);
	list(t, y);
}

struct analyzer_flow **analyzer_table_opposites(struct analyzer_table *t, const struct analyzer_flow *y)
{
	return &t->by_hosts[hash(t, &y->result.dst, &y->result.src, 0)];
}

struct analyzer_flow *analyzer_table_alone(struct analyzer_flow **at)
{
	while (*at && (*at)->partner) {
		(*at)->listed = false;
		*at = (*at)->next_host;
	}
	return *at;
}

bool analyzer_table_opposite(const struct analyzer_flow *x, const struct analyzer_flow *y)
{
	return same(&x->result.src, &y->result.dst) && same(&x->result.dst, &y->result.src);
}

/* Does flow x have an open request that the packet of flow y may answer? */
static const struct analyzer_request *candidate(const struct analyzer_flow *x,
						const struct analyzer_flow *y,
						const struct analyzer_packet *p)
{
	if (x->partner || x == y || !x->requests.count || !analyzer_table_opposite(x, y))
		return NULL;
	return analyzer_answer_fits(x, p);
}

/* Not every answer of a flow without a partner is tried: ever fewer of them. */
static bool passes_over(struct analyzer_flow *y)
{
	if (y->pair_skip) {
		y->pair_skip--;
		return true;
	}
	y->pair_attempts++;
	y->pair_skip = y->pair_attempts / ATTEMPTS_EACH;
	return false;
}

struct analyzer_flow *analyzer_table_pair(struct analyzer_table *t, struct analyzer_flow *y,
					  const struct analyzer_packet *p)
{
	struct analyzer_flow **at = analyzer_table_opposites(t, y), *best = NULL, *x;
	const struct analyzer_request *q, *oldest = NULL;
	unsigned found = 0;

	if (y->partner || passes_over(y))
		return y->partner;
	for (unsigned i = 0; i < SCAN_MAX && (x = analyzer_table_alone(at)); i++) {
		q = candidate(x, y, p);
		if (q && (!found++ || q->last_ns < oldest->last_ns)) {
			best = x;
			oldest = q;
		}
		at = &x->next_host;
	}
	if (best)
		analyzer_table_join(best, y, found == 1);
	return best;
}

void analyzer_table_rate(struct analyzer_table *t, struct analyzer_flow *y, bool fitted)
{
	if (fitted) {
		if (++y->matches >= SURE_MATCHES && !y->mismatches)
			y->tentative = y->partner->tentative = false;
		return;
	}
	if (++y->mismatches > (y->tentative ? 0 : y->matches / 4 + SURE_MATCHES))
		divide(t, y);
}
