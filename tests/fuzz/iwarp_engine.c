/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer of an iWARP connection: any bytes in its set-up, then any segments in any order,
 * between work that is posted, bytes that TCP takes or not, time that passes, and ends of all
 * kinds. Whatever comes, the engine points at no byte outside of a message, completes each work
 * entry once and in order, stores no more READs than it has granted, and says each end once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/iwarp/connection.h"
#include "util/container_of.h"

#define MUTATE_BYTES "\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b\x10\x1f\x20\x40\x60\x7f\x80\xff"
#include "drive.h"
#include "tape.h"

#define check(cond)                                                               \
	do {                                                                      \
		if (!(cond)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                  \
		}                                                                 \
	} while (0)

enum { ENTRIES = 8, LENGTH_MAX = 1 << 14, TURNS_MAX = 1 << 16 };

struct fuzz {
	struct iwarp_connection c;
	struct iwarp_wqe ring[ENTRIES];
	uint16_t ird, ord;
	uint32_t completed;
	bool failed, disconnected, shut;
	uint64_t now_ns;
};

/* Most are near `base`, some are anywhere. */
static uint32_t next_near(struct tape *t, uint32_t base)
{
	uint8_t b = next_byte(t);

	return b == 0xff ? next_word(t) << 16 | next_word(t) :
	       b > 0xc0	 ? base + (b & 3) - 1 :
			   base;
}

static uint32_t next_length(struct tape *t)
{
	uint8_t b = next_byte(t);

	return b < 0x80 ? b : b < 0xf0 ? next_word(t) % LENGTH_MAX : UINT32_MAX - (b & 3);
}

static bool is_read(const struct iwarp_wqe *e)
{
	return e->op >= WORK_READ;
}

static void check_state(const struct fuzz *f)
{
	const struct iwarp_requester *rq = &f->c.rq;
	const struct iwarp_responder *rs = &f->c.rs;
	uint32_t reads = rq->rtr_waits;

	check(rq->next - rq->tail <= rq->head - rq->tail && rq->head - rq->tail <= ENTRIES);
	for (uint32_t i = rq->tail; i != rq->next; i++)
		reads += is_read(iwarp_entry(rq, i));
	check(rq->reads == reads && (reads <= f->ord || rq->rtr_waits));
	check(rq->taken <= f->c.framer.position);
	check(rs->taken - rs->answered <= f->ird);
	check(!rq->begun || rq->next != rq->head);
}

static void take_outcome(struct fuzz *f, const struct iwarp_outcome *o)
{
	check(o->done.upto == f->c.rq.tail && (int32_t)(o->done.upto - f->completed) >= 0);
	check(!f->failed || (o->done.upto == f->completed && o->done.status == IBV_WC_SUCCESS));
	check(o->done.status == IBV_WC_SUCCESS || (o->fail && o->done.upto != f->c.rq.head));
	check(!o->fail || !f->failed);
	check(!o->disconnected || !f->disconnected);
	check(!o->receive.complete || !f->failed);
	f->completed = o->done.upto;
	f->failed |= o->fail;
	f->disconnected |= o->disconnected;
	check(!f->disconnected || f->failed);
	check(f->c.rq.failed == f->failed);
	check_state(f);
}

static void post(struct fuzz *f, struct tape *t)
{
	struct iwarp_requester *rq = &f->c.rq;
	struct iwarp_wqe *e = &f->ring[rq->head % ENTRIES];
	uint8_t b = next_byte(t);

	if (f->failed || rq->head - rq->tail == ENTRIES)
		return;
	*e = (struct iwarp_wqe){ .op = b % WORK_OPS, .flags = next_byte(t) & 0x78,
				 .length = next_length(t) % LENGTH_MAX, .to = next_word(t) };
	if (e->op > WORK_READ)
		e->length = 8;
	if (iwarp_request_possible(rq, e))
		iwarp_post(rq);
	check_state(f);
}

static void frame(struct fuzz *f, struct tape *t, unsigned most)
{
	struct iwarp_tx tx;

	while (most-- && iwarp_next(&f->c, f->c.rq.head, &tx)) {
		const struct iwarp_segment *s = &tx.segment;
		uint8_t headers[IWARP_HEADERS_MAX];
		size_t bytes = iwarp_segment_encode(s, headers);

		check(bytes && (!s->bytes || bytes + s->bytes <= f->c.rq.p.mulpdu));
		check(!s->bytes == (tx.source == IWARP_FROM_NOWHERE));
		if (tx.source == IWARP_FROM_ENTRY) {
			check(tx.index - f->c.rq.tail < f->c.rq.head - f->c.rq.tail);
			check((uint64_t)tx.at + s->bytes <= f->ring[tx.index % ENTRIES].length);
		}
		if (s->bytes && next_byte(t) == 0xfe) {
			struct iwarp_outcome o = iwarp_unreadable(
				&f->c, &tx, IBV_WC_LOC_PROT_ERR, next_byte(t) % (IWARP_LOCAL + 1));

			take_outcome(f, &o);
			continue;
		}
		f->c.framer.position += iwarp_framer_bytes(&f->c.framer, bytes + s->bytes);
		iwarp_framed(&f->c, &tx);
		check_state(f);
	}
}

static void took(struct fuzz *f, uint8_t part)
{
	uint64_t all = f->c.framer.position - f->c.taken;
	struct iwarp_outcome o = iwarp_took(&f->c, part == 0xff ? all : all * part / 256);

	take_outcome(f, &o);
}

/* ---- what arrives ---- */

static void make_message(const struct fuzz *f, struct tape *t, struct iwarp_segment *s)
{
	switch (s->opcode) {
	case IWARP_READ_REQUEST:
		s->read.bytes = next_length(t);
		s->read.sink_to = next_near(t, 0) * (UINT64_C(1) << 32);
		break;
	case IWARP_ATOMIC_REQUEST:
		s->atomic.operation = next_byte(t) & 1 ? IWARP_COMPARE_SWAP : IWARP_FETCH_ADD;
		s->atomic.compare_mask = UINT64_MAX + (next_byte(t) == 1);
		s->atomic.add_swap_mask = s->atomic.operation == IWARP_FETCH_ADD ? 0 : UINT64_MAX;
		break;
	case IWARP_ATOMIC_RESPONSE:
		s->atomic_response.request = next_near(t, f->ring[f->c.rq.tail % ENTRIES].msn);
		break;
	case IWARP_TERMINATE:
		s->terminate.layer = next_byte(t) & 15;
		s->terminate.type = next_byte(t) & 15;
		s->terminate.code = next_byte(t);
		break;
	default:
		break;
	}
}

/* Near what is expected. */
static void make_segment(const struct fuzz *f, struct tape *t, struct iwarp_segment *s)
{
	const struct iwarp_connection *c = &f->c;
	const struct iwarp_wqe *e = &f->ring[c->rq.tail % ENTRIES];
	const struct iwarp_opcode_info *op;

	*s = (struct iwarp_segment){ .opcode = next_byte(t) & 15 };
	op = &iwarp_opcodes[s->opcode];
	s->last = !op->payload || next_byte(t) & 1;
	if (op->payload)
		s->bytes = next_length(t) & 0xffff;
	if (op->qn == IWARP_QN_READ_REQUEST)
		s->msn = next_near(t, c->rs.read_msn);
	else if (op->qn == IWARP_QN_ATOMIC_RESPONSE)
		s->msn = next_near(t, c->rq.response_msn);
	else
		s->msn = next_near(t, c->rs.send_msn);
	if (op->payload)
		s->mo = next_near(t, c->rs.sending ? c->rs.at : 0);
	if (s->opcode == IWARP_READ_RESPONSE) {
		s->stag = next_near(t, c->rq.rtr_waits ? 1 : e->msn);
		s->to = next_near(t, c->rq.got);
		if (c->rq.tail != c->rq.next && next_byte(t) & 1) {
			s->bytes = MIN(e->length - c->rq.got, 1000);
			s->last = s->bytes == e->length - c->rq.got;
		}
	}
	make_message(f, t, s);
}

static void check_arrival(const struct fuzz *f, const struct iwarp_segment *s,
			  const struct iwarp_arrival *a)
{
	check(!f->disconnected && !f->failed);
	if (a->look.error) {
		check(!a->look.needs && !a->place.bytes);
		return;
	}
	if (a->reply) {
		check(!a->look.needs && a->place.bytes <= MAX(s->bytes, 8));
		if (a->place.bytes) {
			const struct iwarp_wqe *e = &f->ring[a->place.index % ENTRIES];

			check(a->place.index - f->c.rq.tail < f->c.rq.next - f->c.rq.tail);
			check(is_read(e) &&
			      (uint64_t)a->place.at + a->place.bytes <= e->length);
		}
		return;
	}
	if ((a->look.needs & WORK_NEED_PLACE) && !iwarp_opcodes[s->opcode].tagged)
		check((uint64_t)a->look.at + a->look.bytes <= UINT32_MAX && a->look.at == s->mo);
	check(!(a->look.needs & (WORK_NEED_READ | WORK_NEED_ATOMIC)) ||
	      f->c.rs.taken - f->c.rs.answered < f->ird);
}

static void segment(struct fuzz *f, struct tape *t)
{
	uint8_t b = next_byte(t);
	struct iwarp_segment s;
	struct iwarp_arrival a;
	struct iwarp_outcome o;
	uint8_t headers[IWARP_HEADERS_MAX];

	make_segment(f, t, &s);
	/* Others the decoder refuses. */
	if (!iwarp_segment_encode(&s, headers) || s.mo > UINT32_MAX - s.bytes)
		return;
	if (!iwarp_arrived(&f->c, &s, &a))
		return;
	check_arrival(f, &s, &a);
	o = iwarp_carried_out(&f->c, &s, &a, b < 0xf0 ? IWARP_DONE : b % (IWARP_LOCAL + 1), b,
			      b == 0xef ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
	check(!o.receive.complete || (a.look.needs & WORK_NEED_COMPLETE));
	take_outcome(f, &o);
}

/* ---- ends ---- */

static void end(struct fuzz *f, struct tape *t)
{
	struct iwarp_receiver r = { .error = 1 + next_byte(t) % (IWARP_ERRORS - 1) };
	struct iwarp_outcome o;

	switch (next_byte(t) & 7) {
	case 0: o = iwarp_ended(&f->c, next_byte(t) & 1); break;
	case 1: o = iwarp_lost(&f->c); break;
	case 2: o = iwarp_abort(&f->c); break;
	case 3: o = iwarp_refuse(&f->c, r.error); break;
	case 4: o = iwarp_broken(&f->c, &r); break;
	default: iwarp_close(&f->c); return;
	}
	take_outcome(f, &o);
}

static void pass_time(struct fuzz *f, uint8_t b)
{
	struct iwarp_outcome o;

	if (iwarp_action(&f->c, f->now_ns) == IWARP_SHUTDOWN) {
		check(!f->shut && f->c.taken == f->c.framer.position);
		f->shut = true;
		iwarp_shut(&f->c);
	}
	f->now_ns += b & 1 && f->c.deadline_ns > f->now_ns ? f->c.deadline_ns - f->now_ns : b;
	o = iwarp_timer(&f->c, f->now_ns);
	take_outcome(f, &o);
}

/* ---- all of it ---- */

static void open_connection(struct fuzz *f, struct tape *t)
{
	uint8_t b = next_byte(t), rtr = next_byte(t) & 3;
	struct iwarp_terms terms = { .initiator = b & 1, .markers_out = b & 2, .crc = b & 4,
				     .ird = next_byte(t), .ord = 1 + next_byte(t) % ENTRIES,
				     .rtr = (uint8_t)(rtr ? 1 << (rtr - 1) : 0) };
	const struct iwarp_connection_params p = {
		.terms = &terms, .mulpdu = 64 + next_word(t) % 2000, .extended = b & 8,
		.begin_ns = next_byte(t), .close_ns = next_byte(t),
		.ring = { f->ring, sizeof(f->ring[0]), ENTRIES - 1 },
	};

	memset(f, 0, sizeof(*f));
	f->now_ns = 1;
	f->ord = terms.ord;
	f->ird = MIN(terms.ird, IWARP_READS_MAX);
	iwarp_connection_open(&f->c, &p, f->now_ns);
	check_state(f);
}

/* A frame of a peer that connects, or is connected to, and sometimes anything. */
static size_t any_frame(struct tape *t, bool reply, uint8_t frame[IWARP_MPA_FRAME_MAX + 8])
{
	uint8_t b = next_byte(t), a = next_byte(t), at = next_byte(t);
	struct iwarp_mpa mpa = {
		.reply = reply, .markers = b & 1, .crc = b & 2, .reject = reply && (b & 28) == 28,
		.revision = b >> 5 & 1 ? 2 : b >> 6, .peer_to_peer = a & 1, .rtr_send = a & 2,
		.rtr_write = a & 4, .rtr_read = a & 8, .ird = a >> 4, .ord = at & 15,
	};
	size_t bytes;

	if (mpa.revision > IWARP_MPA_REVISION_MAX)
		mpa.revision = 0;
	mpa.enhanced = mpa.revision == 2 && (b & 4);
	memset(frame, 0, IWARP_MPA_FRAME_MAX + 8);
	bytes = iwarp_mpa_encode(&mpa, frame);
	check(bytes);
	if (at > 0xe0)
		frame[at & 31] ^= next_byte(t);
	return bytes + (b == 0x81) - (b == 0x82);
}

static void set_up(struct tape *t)
{
	static struct iwarp_setup s;
	uint8_t frame[IWARP_MPA_FRAME_MAX + 8];
	const uint8_t *data = frame;
	uint8_t b = next_byte(t);
	const struct iwarp_setup_params p = {
		.initiator = b & 1, .revision = 1 + (b >> 1 & 1), .markers = b & 4,
		.sends_markers = b & 8, .crc = b & 16, .peer_to_peer = b & 32, .rtr = b >> 5 | 1,
		.ird = 2, .ord = 2, .ird_max = 8, .ord_max = 8, .wait_ns = 100,
	};
	size_t bytes = any_frame(t, p.initiator, frame), left;

	check(!iwarp_setup_open(&s, &p, 1));
	if (p.initiator) {
		iwarp_setup_output(&s, &left);
		iwarp_setup_sent(&s, left);
	}
	while (bytes) {
		size_t most = 1 + next_byte(t), n = MIN(bytes, most), rest = n;

		bytes -= n;
		left = n;
		iwarp_setup_take(&s, &data, &rest);
		check(rest <= left);
		data += rest;
		if (s.state == IWARP_SETUP_DECIDING && (b & 64))
			check(!iwarp_setup_accept(&s, 2, 2, NULL, 0));
		else if (s.state == IWARP_SETUP_DECIDING)
			check(!iwarp_setup_reject(&s, NULL, 0));
	}
	iwarp_setup_output(&s, &left);
	check(left <= IWARP_MPA_FRAME_MAX);
	iwarp_setup_sent(&s, left);
	if (s.state == IWARP_SETUP_DONE)
		check(s.terms.ird <= 8 && s.terms.ord <= 8 && !(s.terms.rtr & (s.terms.rtr - 1)));
	iwarp_setup_timer(&s, 1000);
	check(s.state >= IWARP_SETUP_DECIDING);
	check((s.state == IWARP_SETUP_FAILED) == (s.result != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz f;
	struct tape t = { data, data + size };

	if (next_byte(&t) % 8 == 0)
		set_up(&t);
	open_connection(&f, &t);
	while (t.at < t.end) {
		uint8_t b = next_byte(&t);

		switch (b & 7) {
		case 0: post(&f, &t); break;
		case 1: frame(&f, &t, 1 + (b >> 3)); break;
		case 2: took(&f, next_byte(&t)); break;
		case 3: iwarp_set_mulpdu(&f.c, 64 + next_byte(&t)); break;
		case 7:
			if (b >> 3 == 31)
				end(&f, &t);
			else
				pass_time(&f, next_byte(&t) >> (b >> 5));
			break;
		default: segment(&f, &t); break;
		}
	}
	frame(&f, &t, TURNS_MAX);
	took(&f, 0xff);
	pass_time(&f, 1);
	check(f.c.begun == (f.c.begun || f.c.framer.position != 0));
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = random_below(capacity);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_below(random_below(3) ? 256 : 16);
	return mutate_times(bytes, size, capacity, random_below(8));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, 600, make);
}
#endif
