/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A publisher and a subscriber of GOOSE with a network between them that loses, repeats and delays
 * messages, in virtual time. One number decides a run; a run that fails says its number.
 *
 * usage: both [RUNS [SEED]]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/node/iec61850-8-1/publisher.h"
#include "gateway/node/iec61850-8-1/subscriber.h"
#include "util/prng.h"

#define MS UINT64_C(1000000)
#define FLYING_MAX 64
#define DELAY_MAX_MS 30
#define STEPS 400

struct message {
	uint64_t at_ns; /* when it arrives; 0: the place is free */
	struct goose goose;
};

struct run {
	uint64_t seed, now_ns;
	struct prng random;
	struct goose_repetition repetition;
	uint32_t live_ms;
	unsigned loss_percent;
	bool restarts;

	struct goose_publisher publisher;
	uint32_t change;      /* the state by a number that never falls; it travels as confRev */
	struct message flying[FLYING_MAX];
	struct goose_subscriber subscriber;
	uint32_t first, last; /* of the changes that were used */
	uint64_t used, lost, expired, old, duplicates;
	uint64_t end_ns;      /* of the time of the last message that was used, by the test's count */
};

static void must(const struct run *r, bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "run %" PRIu64 ": %s, at %" PRIu64 " ns; stNum %u, sqNum %u, heard %u and %u; change %u of %u\n",
		r->seed, what, r->now_ns, r->publisher.state, r->publisher.sequence,
		r->subscriber.state, r->subscriber.sequence, r->last, r->change);
	exit(1);
}

static uint64_t below(struct run *r, uint64_t limit)
{
	return prng_next(&r->random) % limit;
}

static void expire(struct run *r)
{
	bool ended = r->end_ns && r->now_ns >= r->end_ns;

	must(r, goose_subscriber_expire(&r->subscriber, r->now_ns) == ended,
	     "the time allowed to live ends when it has to, and once");
	must(r, !goose_subscriber_expire(&r->subscriber, r->now_ns), "it ends once");
	if (ended) {
		r->expired++;
		r->end_ns = 0;
	}
}

static void arrive(struct run *r, const struct goose *g)
{
	struct goose_arrival a;

	expire(r);
	a = goose_subscriber_take(&r->subscriber, g, false, r->now_ns);
	r->old += a.verdict == GOOSE_OLD;
	r->duplicates += a.verdict == GOOSE_DUPLICATE;
	if (a.verdict != GOOSE_CHANGE && a.verdict != GOOSE_REPETITION)
		return;
	r->end_ns = r->now_ns + g->allowed_live_ms * MS;
	if (a.verdict == GOOSE_REPETITION) {
		must(r, r->restarts || g->revision == r->last, "a repetition is of the change that is known");
		return;
	}
	must(r, !r->used || g->revision > r->last, "no change is used twice, or after a later one");
	if (!r->used)
		r->first = g->revision;
	r->used++;
	r->lost += a.lost_changes;
	r->last = g->revision;
}

static void arrive_due(struct run *r)
{
	for (;;) {
		struct message *next = NULL;

		for (unsigned i = 0; i < FLYING_MAX; i++)
			if (r->flying[i].at_ns && r->flying[i].at_ns <= r->now_ns &&
			    (!next || r->flying[i].at_ns < next->at_ns))
				next = &r->flying[i];
		if (!next)
			return;
		next->at_ns = 0;
		arrive(r, &next->goose);
	}
}

static void fly(struct run *r, const struct goose *g)
{
	if (below(r, 100) < r->loss_percent)
		return;
	for (unsigned i = 0; i < FLYING_MAX; i++)
		if (!r->flying[i].at_ns) {
			uint64_t delay = below(r, 4) ? 1 : 1 + below(r, DELAY_MAX_MS * MS);

			r->flying[i] = (struct message){ r->now_ns + delay, *g };
			return;
		}
}

static void send(struct run *r)
{
	struct goose_publication p;

	while (goose_publisher_take(&r->publisher, r->now_ns, &p)) {
		const struct goose g = {
			.state = p.state, .sequence = p.sequence, .revision = r->change,
			.allowed_live_ms = r->live_ms,
		};

		fly(r, &g);
		if (!below(r, 20))
			fly(r, &g);
	}
}

static void change(struct run *r)
{
	r->change++;
	goose_publisher_change(&r->publisher, r->now_ns);
}

/* The publisher is another one, and what the former one has sent has arrived or is lost. */
static void restart(struct run *r)
{
	for (unsigned i = 0; i < FLYING_MAX; i++)
		r->flying[i].at_ns = 0;
	goose_publisher_begin(&r->publisher, &r->repetition, 0);
	change(r);
}

static uint64_t next_event_ns(const struct run *r)
{
	uint64_t next = r->publisher.next_ns;

	for (unsigned i = 0; i < FLYING_MAX; i++)
		if (r->flying[i].at_ns && r->flying[i].at_ns < next)
			next = r->flying[i].at_ns;
	if (goose_subscriber_end_ns(&r->subscriber) < next)
		next = goose_subscriber_end_ns(&r->subscriber);
	return next;
}

/* To the next thing that happens, at `until_ns` at last. */
static void advance(struct run *r, uint64_t until_ns)
{
	uint64_t next = next_event_ns(r);

	r->now_ns = next < until_ns ? next : until_ns;
	arrive_due(r);
	expire(r);
	send(r);
}

static void begin(struct run *r, uint64_t seed)
{
	*r = (struct run){ .seed = seed, .random = { .state = seed }, .now_ns = MS };
	r->repetition = (struct goose_repetition){
		MS + below(r, 10 * MS), (50 + below(r, 200)) * MS, 1 + (double)below(r, 30) / 10,
		1 + (unsigned)below(r, 3) };
	r->live_ms = (uint32_t)(r->repetition.max_ns / MS) * (1 + (uint32_t)below(r, 3)) +
		     2 * DELAY_MAX_MS;
	r->loss_percent = below(r, 3) ? (unsigned)below(r, 60) : 0;
	r->restarts = !below(r, 3);
	goose_publisher_begin(&r->publisher, &r->repetition, 0);
	/* Some runs pass the largest numbers. */
	if (!r->restarts && !below(r, 2))
		r->publisher.state = UINT32_MAX - (uint32_t)below(r, 30);
	change(r);
}

/* Without loss from now on: what is true at the end. */
static void end(struct run *r)
{
	uint64_t until_ns = r->now_ns + 3 * r->live_ms * MS + r->repetition.max_ns;

	r->loss_percent = 0;
	while (r->now_ns < until_ns)
		advance(r, until_ns);
	must(r, r->used, "something is used");
	must(r, r->subscriber.alive, "what is sent without loss is valid");
	must(r, r->subscriber.state == r->publisher.state, "the last state is known");
	if (r->restarts)
		return;
	must(r, r->last == r->change, "the last change is known");
	must(r, r->used + r->lost == r->change - r->first + 1u,
	     "each change was used or counted as lost");
}

int main(int argc, char **argv)
{
	uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 0) : 3000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	uint64_t used = 0, lost = 0, expired = 0, old = 0, duplicates = 0;
	static struct run r;

	for (uint64_t i = 0; i < runs; i++) {
		begin(&r, seed + i);
		for (unsigned step = 0; step < STEPS; step++) {
			uint64_t what = below(&r, 100);

			if (what < 10)
				change(&r);
			else if (what == 10 && r.restarts)
				restart(&r);
			advance(&r, r.now_ns + 1 + below(&r, 60 * MS));
		}
		end(&r);
		used += r.used;
		lost += r.lost;
		expired += r.expired;
		old += r.old;
		duplicates += r.duplicates;
	}
	printf("%" PRIu64 " runs from seed %" PRIu64 ": %" PRIu64 " changes used, %" PRIu64 " lost, %" PRIu64 " ends of time, %" PRIu64 " old messages, %" PRIu64 " duplicates\n",
	       runs, seed, used, lost, expired, old, duplicates);
	return runs < 1000 || (used && lost && expired && old && duplicates) ? 0 : 1;
}
