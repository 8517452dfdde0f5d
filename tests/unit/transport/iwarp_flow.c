/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a middlebox (transport/iwarp/flow.h) between two pairs of sockets, in virtual time:
 * what comes out, when, and what is counted.
 */
#include "transport/iwarp/flow.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../carrier/check.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/prng.h"

enum {
	MS = 1000000,
	FRAMES = 10,
	FRAME = 600,        /* about as long as one of them is */
	ROOM = 20 << 20,
	HELD = 4 << 20,     /* of flow.c */
	AROUND = 2 << 20,   /* in sockets, and one reading more than that */
};

static struct bench {
	int near, far;      /* where the test writes, and reads */
	struct iwarp_flow flow;
	struct iwarp_framer framer;
	size_t sent_bytes, got_bytes;
	size_t frame_at[FRAMES + 1];
	bool ended;
} b;

static uint8_t sent[ROOM], got[ROOM];

static uint64_t counted(unsigned counter)
{
	return hca_process.segment->counters.at[counter];
}

static void set(const char *text)
{
	struct impair_settings s;
	char error[256];

	check(!impair_parse(text, &s, error, sizeof(error)));
	iwarp_flow_set(&b.flow, &s.out, s.seed);
}

static void begin_at(const struct iwarp_receiver *at, const char *text)
{
	const int kind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
	int from[2], to[2];

	b = (struct bench){ .near = -1 };
	memset(hca_process.segment->counters.at, 0, sizeof(hca_process.segment->counters.at));
	check(!socketpair(AF_UNIX, kind, 0, from) && !socketpair(AF_UNIX, kind, 0, to));
	b.near = from[0];
	b.far = to[1];
	b.flow = (struct iwarp_flow){ .from = from[1], .to = to[0], .text = "leaves" };
	b.framer = (struct iwarp_framer){ .position = at->position, .crc = true,
					  .markers = at->markers };
	check(iwarp_flow_open(&b.flow, at));
	set(text);
}

static void begin(const char *text)
{
	struct iwarp_receiver at;

	iwarp_receiver_init(&at, false, true, NULL);
	begin_at(&at, text);
}

static void finish(void)
{
	iwarp_flow_close(&b.flow);
	close(b.near);
	close(b.far);
	close(b.flow.from);
	close(b.flow.to);
}

/* A WRITE with `bytes` of payload, behind what was made before. */
static void frame(size_t bytes)
{
	static uint8_t payload[2048];
	const struct iwarp_segment s = { .opcode = IWARP_WRITE, .last = true, .stag = 7,
					 .bytes = (uint32_t)bytes };
	uint8_t headers[IWARP_HEADERS_MAX];
	const struct iovec pieces[2] = { { headers, iwarp_segment_encode(&s, headers) },
					 { payload, bytes } };

	memset(payload, (int)b.sent_bytes, sizeof(payload));
	b.sent_bytes += iwarp_framer_write(&b.framer, pieces, 2, sent + b.sent_bytes);
}

static void frames(void)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		b.frame_at[i] = b.sent_bytes;
		frame(FRAME - 20 + i);
	}
	b.frame_at[FRAMES] = b.sent_bytes;
}

static void feed(size_t from, size_t to)
{
	check(send(b.near, sent + from, to - from, 0) == (ssize_t)(to - from));
}

/* Lets the flow do all that it can do now. */
static enum iwarp_step turn(uint64_t now_ns)
{
	enum iwarp_step came, went;

	do {
		came = iwarp_flow_read(&b.flow, false, now_ns);
		went = iwarp_flow_send(&b.flow, now_ns);
		if (came == IWARP_STEP_LOST || went == IWARP_STEP_LOST)
			return IWARP_STEP_LOST;
	} while (came == IWARP_STEP_DONE || went == IWARP_STEP_DONE);
	return IWARP_STEP_NONE;
}

/* What has come out so far. */
static size_t out(void)
{
	ssize_t n;

	while ((n = recv(b.far, got + b.got_bytes, ROOM - b.got_bytes, 0)) > 0)
		b.got_bytes += (size_t)n;
	b.ended |= !n;
	return b.got_bytes;
}

static bool is_same(void)
{
	return out() == b.sent_bytes && !memcmp(sent, got, b.sent_bytes);
}

/* ---- time ---- */

static void frames_are_late_however_they_are_cut(void)
{
	struct prng random = prng_from(1);

	for (unsigned run = 0; run < 20; run++) {
		begin("delay=3ms");
		frames();
		for (size_t at = 0, n; at < b.sent_bytes; at += n) {
			n = 1 + prng_below(&random, b.sent_bytes - at);
			feed(at, at + n);
			turn(5 * MS);
		}
		turn(8 * MS - 1);
		check(!out() && counted(HCA_FPDUS_DELAYED) == FRAMES);
		check(iwarp_flow_next_ns(&b.flow) == 8 * MS);
		turn(8 * MS);
		check(is_same() && !b.ended && iwarp_flow_next_ns(&b.flow) == UINT64_MAX);
		finish();
	}
}

static void the_end_comes_behind_what_is_late(void)
{
	begin("delay=3ms");
	frames();
	feed(0, b.sent_bytes - 1); /* within an FPDU */
	shutdown(b.near, SHUT_WR);
	turn(0);
	check(!out() && !b.ended && !b.flow.done);
	turn(3 * MS);
	b.sent_bytes--;
	check(is_same() && b.ended && b.flow.done && !counted(HCA_STREAMS_CUT));
	finish();
}

static void without_faults_what_is_held_leaves_at_once(void)
{
	begin("delay=1s,jitter=1s");
	frames();
	feed(0, b.sent_bytes);
	turn(0);
	check(!out());
	set("");
	turn(1);
	check(is_same());
	frames();
	feed(b.frame_at[0], b.frame_at[FRAMES]);
	turn(2);
	check(is_same());
	finish();
}

static void nothing_moves_in_a_stall_or_a_partition(void)
{
	begin("stall=1,pause=7ms");
	frames();
	feed(0, b.sent_bytes);
	turn(MS);
	check(!out() && !iwarp_flow_reads(&b.flow));
	check(counted(HCA_STREAMS_STALLED) == FRAMES);
	turn(8 * MS - 1);
	check(!out());
	set("partition=1"); /* ends the stall */
	turn(100 * MS);
	check(!out() && !iwarp_flow_reads(&b.flow));
	check(iwarp_flow_next_ns(&b.flow) == UINT64_MAX);
	set("delay=1ms");
	turn(100 * MS);
	check(is_same() && iwarp_flow_reads(&b.flow));
	finish();
}

/* ---- ends ---- */

/* So many bytes of the first frame that may end have come: not none, and not all. */
static void expect_within(size_t bytes, size_t after)
{
	unsigned i = 0;

	while (b.frame_at[i + 1] <= after)
		i++;
	check(bytes > b.frame_at[i] && bytes < b.frame_at[i + 1] && bytes >= after);
	check(!memcmp(sent, got, bytes));
}

static void a_cut_is_an_end_within_a_frame(void)
{
	static const size_t after[] = { 0, 1, FRAME * 5 / 2, FRAME * 4 };
	char text[64];

	for (unsigned i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "cut=1,after=%zu,delay=1ms", after[i]);
		begin(text);
		frames();
		feed(0, b.sent_bytes);
		check(turn(0) == IWARP_STEP_NONE && !out() && !counted(HCA_STREAMS_CUT));
		check(turn(MS) == IWARP_STEP_NONE && b.flow.done);
		expect_within(out(), after[i]);
		check(b.ended && counted(HCA_STREAMS_CUT) == 1);
		/* What comes behind it is taken, so that the sender does not wait. */
		for (unsigned n = 0; n < 1000; n++) {
			feed(0, b.sent_bytes);
			check(turn(MS) == IWARP_STEP_NONE);
		}
		check(b.flow.held_bytes == 0);
		finish();
	}
}

static void a_reset_comes_behind_a_part_of_a_frame(void)
{
	begin("reset=1,after=2k");
	frames();
	feed(0, b.sent_bytes);
	check(turn(0) == IWARP_STEP_LOST && counted(HCA_STREAMS_RESET) == 1);
	expect_within(out(), 2048);
	finish();
}

static void what_came_before_a_reset_comes_out_first(void)
{
	begin("delay=1ms");
	frames();
	feed(0, b.sent_bytes);
	check(send(b.flow.from, "", 1, 0) == 1); /* which nobody reads: so it is a reset */
	close(b.near);
	check(turn(0) == IWARP_STEP_NONE && !out());
	check(turn(MS) == IWARP_STEP_LOST && is_same() && !counted(HCA_STREAMS_RESET));
	b.near = dup(b.far);
	finish();
}

static void a_peer_that_takes_nothing_more_is_no_signal(void)
{
	begin("delay=1ms");
	frames();
	feed(0, b.sent_bytes);
	turn(0);
	close(b.far);
	check(turn(MS) == IWARP_STEP_NONE && b.flow.gone && b.flow.done && !b.flow.held_bytes);
	feed(0, b.sent_bytes);
	check(turn(MS) == IWARP_STEP_NONE && iwarp_flow_reads(&b.flow));
	b.far = dup(b.near);
	finish();
}

/* ---- bytes ---- */

static void corruption_is_found_by_the_crc_and_by_nothing_else(void)
{
	for (unsigned markers = 0; markers < 2; markers++)
		for (unsigned run = 0; run < 100; run++) {
			struct iwarp_receiver at;
			const uint8_t *data;
			size_t bytes, differ = 0;
			char text[32];

			snprintf(text, sizeof(text), "corrupt=1,seed=%u", run);
			iwarp_receiver_init(&at, markers, true, NULL);
			begin_at(&at, text);
			frame(run);
			feed(0, b.sent_bytes);
			turn(0);
			check(out() == b.sent_bytes && counted(HCA_FPDUS_CORRUPTED) == 1);
			for (size_t i = 0; i < b.sent_bytes; i++)
				differ += sent[i] != got[i];
			check(differ == 1);
			data = got;
			bytes = b.got_bytes;
			at.buffer = got + b.got_bytes;
			check(iwarp_receiver_take(&at, &data, &bytes) == IWARP_BROKEN);
			check(at.error == IWARP_FPDU_CRC && !bytes);
			finish();
		}
}

/* The faults begin when a part of an FPDU has come, or wait in front of the next one. */
static void a_stream_may_be_within_a_frame_when_faults_begin(void)
{
	struct iwarp_receiver at;
	static uint8_t buffer[IWARP_ULPDU_MAX];
	const uint8_t *data;
	size_t bytes = 100, first;

	begin("");
	frames();
	iwarp_receiver_init(&at, false, true, buffer);
	data = sent;
	check(iwarp_receiver_take(&at, &data, &bytes) == IWARP_NOTHING);
	finish();
	begin_at(&at, "cut=1");
	b.framer.position = 0;
	frames();
	feed(100, b.sent_bytes);
	turn(0);
	first = b.frame_at[1] - 100;
	check(out() > first && out() < b.frame_at[2] - 100 && b.ended);
	check(!memcmp(got, sent + 100, out()));
	finish();
	begin("cut=1");
	b.flow.partial = 50;
	b.framer.position = 50;
	memset(sent, 0xff, 50);
	b.sent_bytes = 50;
	frames();
	feed(0, b.sent_bytes);
	turn(0);
	check(out() > 50 && out() < b.frame_at[1] && b.ended);
	finish();
}

static void bytes_that_are_no_frames_pass(void)
{
	begin("cut=1");
	b.sent_bytes = 5000; /* an FPDU of length 0 */
	memset(sent, 0, b.sent_bytes);
	feed(0, b.sent_bytes);
	turn(0);
	check(is_same() && !b.ended);
	finish();
}

static void what_is_held_has_a_limit(void)
{
	size_t fed = 0;

	begin("delay=1s");
	while (b.sent_bytes < (size_t)4 * HELD)
		frame(40);
	while (fed < b.sent_bytes) {
		ssize_t n = send(b.near, sent + fed, b.sent_bytes - fed, 0);

		if (n < 0 && turn(0) == IWARP_STEP_NONE && !iwarp_flow_reads(&b.flow))
			break;
		fed += n < 0 ? 0 : (size_t)n;
	}
	check(b.flow.held_bytes >= HELD && b.flow.held_bytes < HELD + AROUND / 2);
	check(fed < HELD + AROUND);
	set("");
	while (out() < b.sent_bytes) {
		ssize_t n = send(b.near, sent + fed, b.sent_bytes - fed, MSG_NOSIGNAL);

		fed += n < 0 ? 0 : (size_t)n;
		turn(0);
	}
	check(is_same());
	finish();
}

int main(void)
{
	hca_process.segment = calloc(1, sizeof(*hca_process.segment));
	check(hca_process.segment);
	run_test(frames_are_late_however_they_are_cut);
	run_test(the_end_comes_behind_what_is_late);
	run_test(without_faults_what_is_held_leaves_at_once);
	run_test(nothing_moves_in_a_stall_or_a_partition);
	run_test(a_cut_is_an_end_within_a_frame);
	run_test(a_reset_comes_behind_a_part_of_a_frame);
	run_test(what_came_before_a_reset_comes_out_first);
	run_test(a_peer_that_takes_nothing_more_is_no_signal);
	run_test(corruption_is_found_by_the_crc_and_by_nothing_else);
	run_test(a_stream_may_be_within_a_frame_when_faults_begin);
	run_test(bytes_that_are_no_frames_pass);
	run_test(what_is_held_has_a_limit);
	free(hca_process.segment);
	return 0;
}
