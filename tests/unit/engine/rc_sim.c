/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends of a connection over a link that loses, doubles and reorders packets, in
 * virtual time, all from one seed: rc_sim [RUNS [SEED]].
 *
 * Both ends send work of all kinds at once. Each byte that arrives is compared with
 * what was sent; each message arrives once and in order; each atomic is carried out
 * once; each work entry completes once, in order. UC: what arrives is whole and in
 * order. A run that cannot end is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"

enum {
	ENTRIES = 32,
	MESSAGES = 60,
	LONGEST = 6000,
	ON_LINK = 4096,
	MEMORY = 65536,
	STEPS_MAX = 4000000,
};

struct work {
	struct rc_wqe wqe;
	uint32_t number;
};

struct packet {
	struct rc_packet packet;
	uint64_t at_ns, order;
	int to;
	uint8_t bytes[4096];
};

struct end {
	struct rc_requester rq;
	struct rc_responder rs;
	struct work ring[ENTRIES];
	uint32_t posted, completed;
	uint8_t memory[MEMORY];    /* that the other end may reach */
	uint8_t expected[MEMORY];  /* what it has to look like in the end */
	uint64_t counter;          /* target of atomics */
	uint64_t atomics_done;
	uint8_t read_back[ENTRIES][LONGEST];
	uint64_t old[ENTRIES];
	uint64_t next_old;         /* FETCH_ADD results come in order */
	/* The receive that is being filled. */
	uint8_t receive[LONGEST];
	uint32_t received, receives;
	bool lost;                 /* it gave up */
};

static struct sim {
	uint64_t now_ns;
	uint64_t seed;
	unsigned lose, repeat, delay; /* of 1000 */
	bool reliable;
	uint32_t mtu;
	struct end ends[2];
	struct packet *link;
	unsigned on_link;
	uint64_t order;
	struct { uint32_t length; uint8_t first; uint8_t op; } sent[2][MESSAGES];
} sim;

static uint64_t dice(void)
{
	sim.seed ^= sim.seed << 13;
	sim.seed ^= sim.seed >> 7;
	sim.seed ^= sim.seed << 17;
	return sim.seed;
}

static void fail(const char *what)
{
	printf("failed: %s at %ju ns\n", what, (uintmax_t)sim.now_ns);
	exit(1);
}

static void check(bool good, const char *what)
{
	if (!good)
		fail(what);
}

static uint8_t byte_of(int from, uint32_t number, uint32_t at)
{
	return (uint8_t)(number * 31 + at * 7 + (at >> 8) + (uint32_t)from * 101 + 1);
}

/* ---- the link ---- */

static void put_once(int to, const struct rc_packet *p, const uint8_t *bytes)
{
	struct packet *q;

	if (sim.on_link == ON_LINK)
		return; /* no room is a loss */
	q = &sim.link[sim.on_link++];
	q->packet = *p;
	q->to = to;
	q->order = sim.order++;
	q->at_ns = sim.now_ns + 2000 + (sim.reliable ? dice() % 500 : 0);
	if (dice() % 1000 < sim.delay)
		q->at_ns += dice() % 200000;
	memcpy(q->bytes, bytes, p->bytes);
}

static void put(int to, const struct rc_packet *p, const uint8_t *bytes)
{
	if (dice() % 1000 >= sim.lose)
		put_once(to, p, bytes);
	if (dice() % 1000 < sim.repeat)
		put_once(to, p, bytes);
}

/* ---- sending ---- */

static void post_one(int me)
{
	struct end *e = &sim.ends[me];
	struct work *w = &e->ring[e->rq.head % ENTRIES];
	struct rc_wqe *q = &w->wqe;
	static const uint8_t ops[] = { RC_SEND, RC_SEND, RC_WRITE, RC_WRITE, RC_READ,
				       RC_FETCH_ADD };

	memset(w, 0, sizeof(*w));
	w->number = e->posted;
	q->op = ops[dice() % (sim.reliable ? 6 : 4)];
	q->length = dice() % 3 ? (uint32_t)(dice() % 300) : (uint32_t)(dice() % LONGEST);
	if (q->op == RC_WRITE)
		/* Places of their own, so that order does not matter. */
		q->remote_addr = w->number * 1000 % (MEMORY - LONGEST);
	if (q->op == RC_WRITE && q->length > 1000)
		q->length = 1000;
	if (q->op == RC_WRITE && dice() % 3 == 0) {
		q->flags = RC_IMM;
		q->imm = w->number;
	}
	if (q->op == RC_READ)
		q->remote_addr = dice() % (MEMORY - LONGEST);
	if (q->op == RC_FETCH_ADD) {
		q->length = 8;
		q->compare_add = 1;
	}
	if (dice() % 8 == 0)
		q->flags |= RC_FENCE;
	q->rkey = 77;
	sim.sent[me][w->number].length = q->length;
	sim.sent[me][w->number].op = q->op;
	sim.sent[me][w->number].first = q->flags & RC_IMM ? 1 : 0;
	rc_post(&e->rq);
	e->posted++;
}

static void completed(int me, struct rc_done d, uint32_t from)
{
	struct end *e = &sim.ends[me];

	for (uint32_t i = from; i != d.upto; i++) {
		struct work *w = &e->ring[i % ENTRIES];

		check(w->number == e->completed, "completions are in order");
		if (w->wqe.op == RC_READ)
			for (uint32_t b = 0; b < w->wqe.length; b++)
				check(e->read_back[i % ENTRIES][b] ==
					      (uint8_t)(w->wqe.remote_addr + b),
				      "a READ brings what is there");
		if (w->wqe.op == RC_FETCH_ADD)
			check(e->old[i % ENTRIES] == e->next_old++,
			      "an atomic is carried out once");
		e->completed++;
	}
	if (d.status == IBV_WC_SUCCESS)
		return;
	check(d.status == IBV_WC_RETRY_EXC_ERR, "only losses end a connection");
	e->lost = true;
}

static void send_what_goes(int me)
{
	struct end *e = &sim.ends[me];
	uint8_t bytes[4096];
	struct rc_tx tx;

	for (unsigned n = 0; n < 4 && rc_next(&e->rq, e->rq.head, sim.now_ns, &tx); n++) {
		const struct work *w = &e->ring[tx.index % ENTRIES];
		uint32_t from = e->rq.tail;

		for (uint32_t i = from; (w->wqe.flags & RC_FENCE) && i != tx.index; i++)
			check(e->ring[i % ENTRIES].wqe.op < RC_READ,
			      "a fence waits for READ and atomics");
		for (uint32_t b = 0; b < tx.packet.bytes; b++)
			bytes[b] = byte_of(me, w->number, tx.at + b);
		put(!me, &tx.packet, bytes);
		completed(me, rc_sent(&e->rq, &tx, sim.now_ns), from);
	}
}

static void answer_what_goes(int me)
{
	struct end *e = &sim.ends[me];
	uint8_t bytes[4096];
	struct rc_response r;
	unsigned room = dice() % 5 * (dice() % 5);

	for (unsigned n = 0; n < room && rc_respond_next(&e->rs, dice() % 8 == 0,
						      sim.now_ns, &r); n++) {
		if (dice() % 50 == 0) {
			rc_responded(&e->rs, &r, RC_NOT_NOW);
			continue;
		}
		/* Readable memory: its bytes are their addresses. */
		for (uint32_t b = 0; b < r.packet.bytes; b++)
			bytes[b] = (uint8_t)(r.remote_addr + b);
		put(!me, &r.packet, bytes);
		check(!rc_responded(&e->rs, &r, RC_OK).fail, "answers do not fail");
	}
	if (!rc_respond_next(&e->rs, false, sim.now_ns, &r) &&
	    rc_respond_next(&e->rs, true, sim.now_ns, &r))
		check(rc_respond_deadline(&e->rs) > sim.now_ns,
		      "what waits has a time when it is due");
}

/* ---- receiving ---- */

/* The next message of the other end that needs a receive. */
static uint32_t next_received(int from, uint32_t number)
{
	while (number < MESSAGES && sim.sent[from][number].op != RC_SEND &&
	       !sim.sent[from][number].first)
		number++;
	return number;
}

static void check_receive(int me, const struct rc_packet *p, struct rc_taken t)
{
	struct end *e = &sim.ends[me];
	uint32_t number = next_received(!me, e->received);

	if (!sim.reliable) { /* any later one, as a whole */
		while (number < MESSAGES &&
		       (sim.sent[!me][number].length != t.bytes ||
		       (p->op == RC_SEND && t.bytes &&
			e->receive[0] != byte_of(!me, number, 0)) ||
		       (p->op == RC_WRITE && p->imm != number)))
			number = next_received(!me, number + 1);
	}
	check(number < MESSAGES, "what arrives was sent");
	check(t.bytes == sim.sent[!me][number].length, "lengths are right");
	if (p->op == RC_WRITE)
		check(p->imm == number, "messages arrive in order");
	else
		for (uint32_t b = 0; b < t.bytes; b++)
			check(e->receive[b] == byte_of(!me, number, b), "bytes are right");
	e->received = number + 1;
}

static enum rc_answer carry_out(int me, const struct packet *q,
				const struct rc_look *look, uint64_t *old)
{
	struct end *e = &sim.ends[me];

	if (dice() % 100 == 0)
		return RC_NOT_NOW;
	if ((look->needs & RC_NEED_RECEIVE) && dice() % 10 == 0)
		return RC_NO_RECEIVE;
	if (look->needs & RC_NEED_PLACE) {
		check(look->at + q->packet.bytes <= LONGEST, "placed inside");
		if (look->op == RC_SEND) {
			memcpy(e->receive + look->at, q->bytes, q->packet.bytes);
		} else {
			check(look->remote_addr <= MEMORY - q->packet.bytes, "inside");
			memcpy(e->memory + look->remote_addr, q->bytes,
			       q->packet.bytes);
		}
	}
	if (look->needs & RC_NEED_ATOMIC) {
		*old = e->counter;
		e->counter += q->packet.compare_add;
	}
	return RC_OK;
}

static void arrive(const struct packet *q)
{
	struct end *e = &sim.ends[q->to];
	uint32_t from = e->rq.tail;
	struct rc_taken taken;
	struct rc_place place;
	struct rc_look look;
	uint64_t old = 0;
	enum rc_answer answer = RC_OK;

	if (q->packet.op >= RC_ACK) {
		rc_reply_look(&e->rq, &q->packet, &place);
		if (place.wanted && q->packet.op == RC_READ_RESPONSE)
			memcpy(e->read_back[place.index % ENTRIES] + place.at,
			       q->bytes, place.bytes);
		else if (place.wanted)
			e->old[place.index % ENTRIES] = q->packet.compare_add;
		completed(q->to, rc_reply(&e->rq, &q->packet, IBV_WC_SUCCESS,
					  sim.now_ns), from);
		return;
	}
	rc_look(&e->rs, &q->packet, &look);
	if (look.verdict == RC_EXPECTED)
		answer = carry_out(q->to, q, &look, &old);
	taken = rc_take(&e->rs, &q->packet, &look, answer, old, sim.now_ns);
	check(!taken.fail, "nothing breaks the rules");
	if (look.verdict == RC_EXPECTED && answer == RC_OK &&
	    (look.needs & RC_NEED_RECEIVE))
		e->receives++;
	check(e->receives <= 1, "one receive at a time");
	check(!taken.complete || e->receives-- == 1, "a message has a receive");
	if (taken.complete)
		check_receive(q->to, &q->packet, taken);
}

static bool arrive_next(uint64_t until_ns)
{
	unsigned first = 0;
	struct packet q;

	for (unsigned i = 1; i < sim.on_link; i++)
		if (sim.link[i].at_ns < sim.link[first].at_ns ||
		    (sim.link[i].at_ns == sim.link[first].at_ns &&
		     sim.link[i].order < sim.link[first].order))
			first = i;
	if (!sim.on_link || sim.link[first].at_ns > until_ns)
		return false;
	q = sim.link[first];
	sim.link[first] = sim.link[--sim.on_link];
	sim.now_ns = q.at_ns > sim.now_ns ? q.at_ns : sim.now_ns;
	arrive(&q);
	return true;
}

/* ---- a run ---- */

static void open_end(int me, uint32_t psn[2])
{
	struct end *e = &sim.ends[me];
	struct rc_requester_params p = {
		.reliable = sim.reliable, .mtu = sim.mtu, .psn = psn[me],
		.window = 1 + (uint32_t)(dice() % 40),
		.max_rd_atomic = 1 + (uint8_t)(dice() % 8),
		.retry_cnt = 7, .rnr_retry = RC_RNR_FOR_EVER, .timeout_ns = 500000,
		.entries = e->ring, .stride = sizeof(e->ring[0]), .mask = ENTRIES - 1,
	};
	struct rc_responder_params r = {
		.reliable = sim.reliable, .mtu = sim.mtu, .psn = psn[!me],
		.max_rd_atomic = 8, .min_rnr_timer = 1, .ack_delay_ns = 20000,
	};

	memset(e, 0, sizeof(*e));
	rc_requester_open(&e->rq, &p);
	rc_responder_open(&e->rs, &r);
}

static bool is_done(void)
{
	for (int i = 0; i < 2; i++)
		if (!sim.ends[i].lost && sim.ends[i].completed < MESSAGES)
			return false;
	return true;
}

static void step(void)
{
	for (int i = 0; i < 2; i++) {
		struct end *e = &sim.ends[i];
		uint64_t due = rc_deadline(&e->rq);
		uint32_t from = e->rq.tail;

		if (due && due <= sim.now_ns)
			completed(i, rc_timer(&e->rq, sim.now_ns), from);
		while (e->posted < MESSAGES && e->posted - e->completed < ENTRIES &&
		       dice() % 4)
			post_one(i);
		send_what_goes(i);
		answer_what_goes(i);
	}
	if (!arrive_next(sim.now_ns + 3000))
		sim.now_ns += 3000;
}

static void run(uint64_t seed)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 4096 };
	uint32_t psn[2];
	unsigned steps = 0;

	sim.seed = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	sim.now_ns = 1000;
	sim.on_link = 0;
	sim.reliable = dice() % 4 != 0;
	sim.lose = dice() % 3 ? (unsigned)(dice() % 80) : 0;
	/* UC cannot tell a copy or a late packet from a new message. */
	if (sim.reliable) {
		sim.repeat = dice() % 2 ? (unsigned)(dice() % 80) : 0;
		sim.delay = dice() % 2 ? (unsigned)(dice() % 100) : 0;
	} else {
		sim.repeat = sim.delay = 0;
	}
	sim.mtu = mtus[dice() % 4];
	for (int i = 0; i < 2; i++)
		psn[i] = dice() % 2 ? (uint32_t)dice() & RC_PSN_MASK :
				      RC_PSN_MASK - (uint32_t)(dice() % 40);
	for (int i = 0; i < 2; i++)
		open_end(i, psn);
	memset(sim.sent, 0, sizeof(sim.sent));
	while (!is_done()) {
		step();
		check(++steps < STEPS_MAX, "a run ends");
	}
	while (arrive_next(UINT64_MAX))
		;
	for (int i = 0; i < 2; i++) {
		struct end *e = &sim.ends[i];

		if (e->lost || !sim.reliable)
			continue;
		for (uint32_t m = 0; m < MESSAGES; m++)
			for (uint32_t b = 0; sim.sent[i][m].op == RC_WRITE &&
					     b < sim.sent[i][m].length; b++)
				check(sim.ends[!i].memory[m * 1000 %
							  (MEMORY - LONGEST) + b] ==
					      byte_of(i, m, b), "written bytes are right");
	}
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	unsigned lost = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sim.link = calloc(ON_LINK, sizeof(*sim.link));
	for (unsigned i = 0; i < runs && sim.link; i++) {
		uint64_t was = seed + i;

		if (getenv("RC_SIM_VERBOSE"))
			printf("seed %ju\n", (uintmax_t)was);
		run(was);
		lost += sim.ends[0].lost || sim.ends[1].lost;
	}
	printf("%u runs from seed %ju: every byte right; %u connections gave up\n", runs,
	       (uintmax_t)seed, lost);
	free(sim.link);
	/* Of eight tries in a row one is expected to arrive. */
	return lost <= runs / 1000 ? 0 : 1;
}
