/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams that no honest peer sends: each deviation ends the connection with the documented error,
 * and nothing is taken, placed or read for it.
 */
#include "iwarp_kit.h"

/* What has happened before. */
enum before {
	NOTHING,
	SEND_BEGUN,      /* a SEND of which 10 bytes have come */
	WRITE_BEGUN,
	TWO_READS,       /* of the peer, unanswered; IRD is 2 */
	READ_SENT,       /* an own READ of 100 bytes, its number is 1 */
	READ_HALF,       /* of its response 40 bytes have come */
	READ_NOT_SENT,   /* framed, but TCP has not taken all of it */
	ATOMIC_SENT,
	READ_ANSWERED,
};

static void prepare(enum before before)
{
	open_end(true);
	switch (before) {
	case NOTHING:
		break;
	case SEND_BEGUN:
		arrive(send_segment(1, 0, 10, false));
		break;
	case WRITE_BEGUN:
		arrive(write_segment(10, false));
		break;
	case TWO_READS:
		arrive(read_request(1, 10));
		arrive(read_request(2, 10));
		break;
	case READ_SENT:
	case READ_HALF:
	case READ_ANSWERED:
		post(WORK_READ, 0, 100);
		send_one();
		if (before == READ_HALF)
			arrive(read_response(1, 0, 40, false));
		if (before == READ_ANSWERED)
			arrive(read_response(1, 0, 100, true));
		break;
	case READ_NOT_SENT:
		post(WORK_READ, 0, 100);
		frame();
		last = iwarp_took(&c, c.framer.position - 1);
		break;
	case ATOMIC_SENT:
		post(WORK_FETCH_ADD, 0, 8);
		send_one();
		break;
	}
	check(!last.fail && !last.receive.error, "all is well before");
}

static void forge(const char *what, enum before before, struct iwarp_segment s,
		  enum iwarp_error error)
{
	struct iwarp_arrival a;
	uint32_t tail, head;
	bool reply = s.opcode == IWARP_READ_RESPONSE || s.opcode == IWARP_ATOMIC_RESPONSE;

	prepare(before);
	tail = c.rq.tail;
	head = c.rq.head;
	a = arrive(s);
	if (a.look.error != error || !last.fail)
		printf("%s: %s\n", what, iwarp_error_text(a.look.error));
	check(a.look.error == error && !a.look.needs && !a.place.bytes, "refused; nothing needed");
	check(last.fail && !last.receive.complete && !last.disconnected, "the queue pair fails");
	check(last.done.upto == tail, "no entry completes");
	check(last.done.status == (tail == head ? IBV_WC_SUCCESS :
				   reply ? IBV_WC_BAD_RESP_ERR : IBV_WC_WR_FLUSH_ERR),
	      "the oldest entry fails");
	/* Those before it are still answered. */
	for (unsigned n = before == TWO_READS ? 2 : 0; n--; )
		check(send_one().opcode == IWARP_READ_RESPONSE, "a response that was due");
	expect_terminate(error);
	check(!iwarp_arrived(&c, &s, &a), "what follows is dropped");
	last = iwarp_ended(&c, true);
	check(!last.fail && last.disconnected && !last.done.status, "disconnected behind it");
	check(iwarp_action(&c, 1) == IWARP_CLOSE, "both ends have ended");
}

static void sends(void)
{
	struct iwarp_segment other = send_segment(1, 10, 10, true);

	other.opcode = IWARP_SEND_SE;
	forge("a message that comes twice", NOTHING, send_segment(0, 0, 10, true), IWARP_DDP_MSN);
	forge("a message too early", NOTHING, send_segment(2, 0, 10, true), IWARP_DDP_MSN);
	forge("an MSN far away", NOTHING, send_segment(0x80000001, 0, 10, true), IWARP_DDP_MSN);
	forge("a begin in the middle", NOTHING, send_segment(1, 5, 10, true), IWARP_DDP_MO);
	forge("a second begin", SEND_BEGUN, send_segment(1, 0, 10, true), IWARP_DDP_MO);
	forge("a gap", SEND_BEGUN, send_segment(1, 11, 10, true), IWARP_DDP_MO);
	forge("an overlap", SEND_BEGUN, send_segment(1, 9, 10, true), IWARP_DDP_MO);
	forge("the next message before the end", SEND_BEGUN, send_segment(2, 0, 1, true),
	      IWARP_DDP_MSN);
	forge("another opcode", SEND_BEGUN, other, IWARP_RDMAP_OPCODE);
	forge("immediate data in between", SEND_BEGUN, immediate(1), IWARP_RDMAP_OPCODE);
	forge("immediate data too early", NOTHING, immediate(2), IWARP_DDP_MSN);
	forge("immediate data in a WRITE", WRITE_BEGUN, immediate(1), IWARP_RDMAP_STREAM);
}

static void reads(void)
{
	struct iwarp_segment wraps = read_request(1, 100), masked = atomic_request(1);

	wraps.read.sink_to = UINT64_MAX - 98;
	masked.atomic.add_swap_mask = 1;
	forge("a READ that comes twice", NOTHING, read_request(0, 10), IWARP_DDP_MSN);
	forge("a READ too early", NOTHING, read_request(2, 10), IWARP_DDP_MSN);
	forge("one READ too many", TWO_READS, read_request(3, 10), IWARP_DDP_NO_BUFFER);
	forge("one of no bytes, too", TWO_READS, read_request(3, 0), IWARP_DDP_NO_BUFFER);
	forge("or an atomic", TWO_READS, atomic_request(3), IWARP_DDP_NO_BUFFER);
	forge("a sink that wraps", NOTHING, wraps, IWARP_RDMAP_TO_WRAP);
	forge("an atomic too early", NOTHING, atomic_request(2), IWARP_DDP_MSN);
	forge("an atomic with a mask", NOTHING, masked, IWARP_RDMAP_ATOMIC);
	masked.atomic.operation = IWARP_COMPARE_SWAP;
	masked.atomic.add_swap_mask = UINT64_MAX;
	forge("a mask of what is compared", NOTHING, masked, IWARP_RDMAP_ATOMIC);
	masked.atomic.compare_mask = UINT64_MAX;
	masked.atomic.add_swap_mask = 0;
	forge("a mask of what is swapped", NOTHING, masked, IWARP_RDMAP_ATOMIC);
}

static void responses(void)
{
	forge("nobody asked", NOTHING, read_response(1, 0, 10, true), IWARP_RDMAP_OPCODE);
	forge("nobody asked for none", NOTHING, read_response(1, 0, 0, true), IWARP_RDMAP_OPCODE);
	forge("it was answered", READ_ANSWERED, read_response(1, 0, 100, true), IWARP_RDMAP_OPCODE);
	forge("it was not sent", READ_NOT_SENT, read_response(1, 0, 100, true), IWARP_RDMAP_OPCODE);
	forge("another STag", READ_SENT, read_response(2, 0, 10, false), IWARP_DDP_STAG);
	forge("a begin in the middle", READ_SENT, read_response(1, 1, 10, false), IWARP_DDP_BOUNDS);
	forge("far away", READ_SENT, read_response(1, UINT64_MAX - 20, 10, false),
	      IWARP_DDP_BOUNDS);
	forge("4 GiB away", READ_SENT, read_response(1, UINT64_C(1) << 32, 10, false),
	      IWARP_DDP_BOUNDS);
	forge("too much", READ_SENT, read_response(1, 0, 101, true), IWARP_DDP_BOUNDS);
	forge("the end too early", READ_SENT, read_response(1, 0, 99, true), IWARP_RDMAP_STREAM);
	forge("no end", READ_SENT, read_response(1, 0, 100, false), IWARP_RDMAP_STREAM);
	forge("once more", READ_HALF, read_response(1, 0, 40, false), IWARP_DDP_BOUNDS);
	forge("a gap", READ_HALF, read_response(1, 41, 10, false), IWARP_DDP_BOUNDS);
	forge("too much at last", READ_HALF, read_response(1, 40, 61, true), IWARP_DDP_BOUNDS);
	forge("an atomic response", READ_SENT, atomic_response(1, 1), IWARP_RDMAP_OPCODE);
	forge("that nobody asked for", NOTHING, atomic_response(1, 1), IWARP_RDMAP_OPCODE);
	forge("a READ response to an atomic", ATOMIC_SENT, read_response(1, 0, 8, true),
	      IWARP_RDMAP_OPCODE);
	forge("a wrong MSN", ATOMIC_SENT, atomic_response(2, 1), IWARP_DDP_MSN);
	forge("a wrong request", ATOMIC_SENT, atomic_response(1, 2), IWARP_RDMAP_STREAM);
}

/* What RFC 7306 adds is an error to an end that does not know of it. */
static void extensions_that_are_off(void)
{
	const struct iwarp_segment segments[] = { atomic_request(1), atomic_response(1, 1),
						  immediate(1) };

	for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
		struct iwarp_arrival a;

		open_end(true);
		c.rq.p.extended = c.rs.p.extended = false;
		a = arrive(segments[i]);
		check(a.look.error == IWARP_RDMAP_OPCODE && last.fail, "an unexpected opcode");
		expect_terminate(IWARP_RDMAP_OPCODE);
	}
}

/* What the program's memory and receives refuse, by what the segment is. */
static void refusals(void)
{
	static const struct {
		enum iwarp_answer answer;
		enum iwarp_error write, request;
	} rows[] = {
		{ IWARP_NO_STAG, IWARP_DDP_STAG, IWARP_RDMAP_STAG },
		{ IWARP_NO_BOUNDS, IWARP_DDP_BOUNDS, IWARP_RDMAP_BOUNDS },
		{ IWARP_NO_STREAM, IWARP_DDP_STAG_STREAM, IWARP_RDMAP_STAG_STREAM },
		{ IWARP_NO_ACCESS, IWARP_RDMAP_ACCESS, IWARP_RDMAP_ACCESS },
		{ IWARP_NO_RECEIVE, IWARP_OK, IWARP_DDP_NO_BUFFER },
		{ IWARP_NO_ROOM, IWARP_OK, IWARP_DDP_TOO_LONG },
		{ IWARP_NOT_INVALIDATED, IWARP_OK, IWARP_RDMAP_INVALIDATE },
		{ IWARP_NOT_ALIGNED, IWARP_OK, IWARP_RDMAP_PROTECTION },
		{ IWARP_LOCAL, IWARP_OK, IWARP_RDMAP_CATASTROPHIC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		open_end(true);
		arrive_with(send_segment(1, 0, 10, true), rows[i].answer);
		check(last.fail && !last.receive.complete &&
			      last.receive.error == rows[i].request, "a SEND");
		expect_terminate(rows[i].request);
		open_end(true);
		arrive_with(read_request(1, 10), rows[i].answer);
		check(last.receive.error == rows[i].request, "a READ");
		expect_terminate(rows[i].request);
		if (!rows[i].write)
			continue;
		open_end(true);
		arrive_with(write_segment(10, true), rows[i].answer);
		check(last.receive.error == rows[i].write, "a WRITE");
		expect_terminate(rows[i].write);
	}
}

/* The TERMINATE shows the segment that caused it. */
static void headers_are_shown(void)
{
	struct iwarp_segment s;

	open_end(true);
	arrive_with(read_request(1, 10), IWARP_NO_ACCESS);
	s = send_one();
	check(s.terminate.has_ddp && s.terminate.ddp_bytes == IWARP_UNTAGGED_BYTES &&
		      s.terminate.has_rdmap &&
		      s.terminate.rdmap_bytes == IWARP_READ_REQUEST_BYTES &&
		      s.terminate.segment_bytes == IWARP_UNTAGGED_BYTES + IWARP_READ_REQUEST_BYTES,
	      "all of a READ request");
	open_end(true);
	arrive_with(write_segment(10, true), IWARP_NO_STAG);
	s = send_one();
	check(s.terminate.has_ddp && s.terminate.ddp_bytes == IWARP_TAGGED_BYTES &&
		      !s.terminate.has_rdmap &&
		      s.terminate.segment_bytes == IWARP_TAGGED_BYTES + 10,
	      "the DDP header of a WRITE");
}

/* Nothing is checked of an STag where there are no bytes. */
static void messages_without_bytes_need_no_key(void)
{
	struct iwarp_arrival a;

	open_end(false);
	a = arrive(write_segment(0, true));
	check(!a.look.error && !a.look.needs && !last.fail, "a WRITE");
	a = arrive(read_request(1, 0));
	check(!a.look.error && !a.look.needs && !last.fail, "a READ");
	check(send_one().opcode == IWARP_READ_RESPONSE, "which is answered");
	a = arrive(send_segment(1, 0, 0, true));
	check(a.look.needs == (WORK_NEED_RECEIVE | WORK_NEED_COMPLETE) && last.receive.complete,
	      "a SEND takes a receive all the same");
}

/* The receiver finds these; the connection says them. */
static void broken_streams(void)
{
	static const struct {
		const char *bytes;
		enum iwarp_error error;
	} rows[] = {
		{ "\0\22" "\0\103\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0" "\0\0\0\0",
		  IWARP_DDP_UNTAGGED_VERSION },
		{ "\0\22" "\101\117\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0" "\0\0\0\0",
		  IWARP_RDMAP_OPCODE },
		{ "\0\22" "\101\103\0\0\0\0\0\0\0\4\0\0\0\1\0\0\0\0" "\0\0\0\0", IWARP_DDP_QN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static uint8_t buffer[IWARP_ULPDU_MAX];
		const uint8_t *data = (const uint8_t *)rows[i].bytes;
		struct iwarp_receiver r;
		size_t bytes = 24;

		open_end(false);
		iwarp_receiver_init(&r, false, false, buffer);
		check(iwarp_receiver_take(&r, &data, &bytes) == IWARP_BROKEN, "broken");
		post(WORK_SEND, 0, 10);
		last = iwarp_broken(&c, &r);
		check(last.fail && last.done.status == IBV_WC_WR_FLUSH_ERR, "the queue pair fails");
		expect_terminate(rows[i].error);
		last = iwarp_broken(&c, &r);
		check(!last.fail, "once");
	}
}

int main(void)
{
	sends();
	reads();
	responses();
	extensions_that_are_off();
	refusals();
	headers_are_shown();
	messages_without_bytes_need_no_key();
	broken_streams();
	return 0;
}
