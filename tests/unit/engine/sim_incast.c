/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many senders into one port of a switch: sim_incast [SENDERS [MILLISECONDS [SEED]]].
 *
 * Every sender writes without pause to the same receiver, whose port has the rate of each
 * sender's link. Without the pace of engine/rc/pace.h the queue of the port overflows for
 * ever. With it, when senders join one after the other, the queue overflows at no time;
 * when all begin at the same instant it does only before the first CNPs have come (what
 * pause frames are for, which this network does not have). In both cases the port is used,
 * and the senders have equal shares (index of R. Jain). The last part is READs: the
 * responders of many peers send to one reader.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"
#include "transport/carrier/sim.h"

enum { ENTRIES = 8, LENGTH = 65536, MTU = 4096, ECT = 2, CE = 3, SENDERS_MAX = 256 };
#define RATE_BPS UINT64_C(10000000000)
#define MS UINT64_C(1000000)

/* One connection; end 0 of the network is the receiver of all. */
struct flow {
	unsigned end;
	struct rc_requester rq;  /* writes, or reads from, the other end */
	struct rc_responder rs;  /* of the other end */
	struct rc_wqe ring[ENTRIES];
	/* A CNP of a sender that is asked, to one that reads, and back. */
	struct rc_responder rq_marks;
	uint32_t completed, completed_before;
	uint64_t begin_ns, timer_ns;
};

struct frame {
	uint32_t flow;
	uint32_t to_requester;
	struct rc_packet packet;
};

static struct flow flows[SENDERS_MAX];
static unsigned senders;
static struct carrier_sim *sim;
static bool paced, reads, at_once;

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct clock_source c = carrier_sim_clock(sim);

	return clock_source_now_ns(&c);
}

/* Requesters of WRITEs are at the senders, those of READs at the receiver. */
static unsigned end_of(const struct flow *f, bool requester)
{
	return requester != reads ? f->end : 0;
}

/* False: no room. */
static bool emit(struct flow *f, struct rc_packet *p, bool to_requester)
{
	static const uint8_t payload[MTU];
	struct frame frame;
	struct iovec iov[2] = { { &frame, sizeof(frame) }, { (void *)(uintptr_t)payload, p->bytes } };
	const struct carrier_unit unit = {
		.iov = iov, .count = p->bytes ? 2 : 1,
		.to = carrier_addr_of(end_of(f, to_requester)),
		.known = CARRIER_TOS, .tos = ECT,
	};

	p->more = 0; /* one by one */
	memset(&frame, 0, sizeof(frame));
	frame.flow = (uint32_t)(f - flows);
	frame.to_requester = to_requester;
	frame.packet = *p;
	return carrier_emit(carrier_sim_end(sim, end_of(f, !to_requester)), &unit, 1) == 1;
}

static void answer(struct flow *f)
{
	struct rc_response r;

	while (rc_respond_next(&f->rs, true, now_ns(), &r) && emit(f, &r.packet, true))
		rc_responded(&f->rs, &r, RC_OK);
	/* Only CNPs of the requester's side. */
	while (rc_respond_next(&f->rq_marks, true, now_ns(), &r) &&
	       emit(f, &r.packet, false))
		rc_responded(&f->rq_marks, &r, RC_OK);
}

static void post(struct flow *f)
{
	while (f->rq.head - f->rq.tail < ENTRIES) {
		f->ring[f->rq.head % ENTRIES] = (struct rc_wqe){
			.op = reads ? RC_READ : RC_WRITE, .length = LENGTH, .rkey = 1,
		};
		rc_post(&f->rq);
	}
}

static void run_flow(struct flow *f)
{
	struct rc_tx tx;
	uint64_t due, other;

	if (now_ns() < f->begin_ns) {
		f->timer_ns = f->begin_ns;
		return;
	}
	post(f);
	while (rc_next(&f->rq, f->rq.head, now_ns(), &tx) && emit(f, &tx.packet, false))
		rc_sent(&f->rq, &tx, now_ns());
	answer(f);
	due = rc_deadline(&f->rq);
	other = rc_respond_deadline(&f->rs);
	if (other > now_ns() && (!due || other < due))
		due = other;
	f->timer_ns = due > now_ns() ? due : now_ns() + 2000;
}

static void on_deliver(void *arg, const struct carrier_unit *unit)
{
	const struct frame *frame = unit->iov[0].iov_base;
	const struct rc_packet *p = &frame->packet;
	struct flow *f = &flows[frame->flow];
	struct rc_place place;
	struct rc_look look;
	struct work_done done;

	(void)arg;
	if (paced && (unit->tos & CE) == CE)
		rc_marked(frame->to_requester ? &f->rq_marks : &f->rs, now_ns());
	if (p->op == RC_CNP && !frame->to_requester) {
		rc_slow(&f->rs, now_ns());
	} else if (frame->to_requester) {
		rc_reply_look(&f->rq, p, &place);
		done = rc_reply(&f->rq, p, IBV_WC_SUCCESS, now_ns());
		check(done.status == IBV_WC_SUCCESS, "no request fails");
		f->completed = done.upto;
	} else {
		rc_look(&f->rs, p, &look);
		check(look.verdict != RC_WRONG, "nothing breaks the rules");
		rc_take(&f->rs, p, &look, RC_OK, 0, now_ns());
	}
	run_flow(f);
}

static void on_writable(void *arg)
{
	for (unsigned i = 0; i < senders; i++)
		if (end_of(&flows[i], true) == *(const unsigned *)arg ||
		    end_of(&flows[i], false) == *(const unsigned *)arg)
			run_flow(&flows[i]);
}

static void open_flow(struct flow *f, unsigned end)
{
	const struct rc_requester_params q = {
		.reliable = true, .mtu = MTU, .psn = end * 7919, .window = 64,
		.max_rd_atomic = 4, .retry_cnt = 7, .rnr_retry = 7,
		.timeout_ns = 16 * MS, .line_bps = RATE_BPS,
		.ring.entries = f->ring, .ring.stride = sizeof(f->ring[0]), .ring.mask = ENTRIES - 1,
	};
	const struct rc_responder_params s = {
		.reliable = true, .mtu = MTU, .psn = end * 7919, .max_rd_atomic = 4,
		.ack_delay_ns = 20000, .line_bps = RATE_BPS,
	};

	memset(f, 0, sizeof(*f));
	f->end = end;
	rc_requester_open(&f->rq, &q);
	rc_responder_open(&f->rs, &s);
	rc_responder_open(&f->rq_marks, &s);
}

static void play_until(uint64_t end_ns)
{
	while (now_ns() < end_ns) {
		struct flow *first = &flows[0];
		int end;

		for (unsigned i = 1; i < senders; i++)
			if (flows[i].timer_ns < first->timer_ns)
				first = &flows[i];
		end = carrier_sim_next(sim, first->timer_ns < end_ns ? first->timer_ns :
								      end_ns);
		if (end >= 0) {
			carrier_poll(carrier_sim_end(sim, (unsigned)end), 64);
		} else if (now_ns() >= first->timer_ns) {
			struct work_done d = rc_timer(&first->rq, now_ns());

			check(d.status == IBV_WC_SUCCESS, "no request times out for good");
			carrier_poll(carrier_sim_end(sim, end_of(first, true)), 1);
			carrier_poll(carrier_sim_end(sim, end_of(first, false)), 1);
			run_flow(first);
		}
	}
}

struct result {
	double fair, used; /* of the second half; 1: all equal; all of the rate */
	uint64_t refused, refused_late, marked, queued_most, gone_back;
};

static struct result measure(uint64_t ms, uint64_t seed)
{
	struct carrier_sim_params p = {
		.ends = senders + 1, .seed = seed, .start_ns = 1,
		.link = { .rate_bps = RATE_BPS, .delay_ns = 2000, .jitter_ns = 500 },
		.send_bytes = 16384, /* an adapter keeps little behind its pace */
		.port = {
			.rate_bps = RATE_BPS,
			/* What windows alone allow is twice as much. */
			.queue_bytes = senders * 128u * 1024,
			/* As in the paper on DCQCN, section 5.3. */
			.mark_from = 5 << 10, .mark_all = 200 << 10, .mark_most = 0.01,
		},
	};
	static unsigned numbers[SENDERS_MAX + 1];
	double sum = 0, squares = 0;
	struct carrier_sim_counters n;
	struct result r = { 0 };

	check(carrier_sim_open(&p, &sim) == 0, "memory");
	for (unsigned i = 0; i <= senders; i++) {
		struct carrier_upper upper = { on_deliver, on_writable, &numbers[i] };

		numbers[i] = i;
		carrier_set_upper(carrier_sim_end(sim, i), &upper);
	}
	for (unsigned i = 0; i < senders; i++)
		open_flow(&flows[i], i + 1);
	for (unsigned i = 0; i < senders; i++) {
		flows[i].begin_ns = at_once ? 0 : ms * MS / 4 * i / senders;
		run_flow(&flows[i]);
	}
	play_until(ms * MS / 2);
	carrier_sim_count(sim, 0, &n);
	r.refused_late = n.refused;
	for (unsigned i = 0; i < senders; i++)
		flows[i].completed_before = flows[i].completed;
	play_until(ms * MS);
	for (unsigned i = 0; i < senders; i++) {
		double done = flows[i].completed - flows[i].completed_before;

		sum += done;
		squares += done * done;
		r.gone_back += flows[i].rq.gone_back;
	}
	r.fair = sum > 0 ? sum * sum / squares / senders : 0;
	r.used = sum * LENGTH * 8 * 1e9 / ((double)(ms * MS) / 2) / (double)RATE_BPS;
	carrier_sim_count(sim, 0, &n);
	r.refused = n.refused;
	r.refused_late = n.refused - r.refused_late;
	r.marked = n.marked;
	r.queued_most = n.queued_most;
	carrier_sim_close(sim);
	return r;
}

static struct result show(const char *what, uint64_t ms, uint64_t seed)
{
	struct result r = measure(ms, seed);

	printf("%u %s: %ju refused by the port, %ju of them in the second half, "
	       "%ju KiB queued at most, %ju times gone back, fairness %.3f, "
	       "%.0f %% of the port used\n",
	       senders, what, (uintmax_t)r.refused, (uintmax_t)r.refused_late,
	       (uintmax_t)r.queued_most / 1024, (uintmax_t)r.gone_back, r.fair,
	       r.used * 100);
	return r;
}

static void show_paced(const char *what, uint64_t ms, uint64_t seed)
{
	struct result r = show(what, ms, seed);

	check(at_once || !r.refused, "with a pace the queue does not overflow");
	check(at_once || !r.gone_back, "nothing is sent twice");
	check(!r.refused_late, "nor does it for long");
	check(r.marked, "packets are marked");
	check(r.fair > 0.9, "shares are equal");
	check(r.used > 0.8, "the port is used");
}

int main(int argc, char **argv)
{
	uint64_t ms = argc > 2 ? strtoull(argv[2], NULL, 0) : 200;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	struct result r;

	senders = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 32;
	if (!senders || senders > SENDERS_MAX) {
		printf("usage: sim_incast [SENDERS [MILLISECONDS [SEED]]], up to 256\n");
		return 2;
	}
	r = show("writers without a pace", ms, seed);
	check(r.refused_late && r.gone_back, "without a pace the queue overflows");
	paced = true;
	show_paced("writers with a pace", ms, seed);
	at_once = true;
	show_paced("writers with a pace, all at once", ms, seed);
	at_once = false;
	reads = true;
	show_paced("peers that are read from, with a pace", ms, seed);
	return 0;
}
