/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection of iWARP begins and ends. */
#include "iwarp_kit.h"

/* ---- the begin ---- */

static void the_responder_waits_for_the_first_fpdu(void)
{
	open_end(false);
	post(WORK_SEND, 0, 8);
	check(!can_send(), "not yet");
	arrive(write_segment(0, true));
	check(can_send(), "then");
	open_end(false);
	post(WORK_SEND, 0, 8);
	arrive(send_segment(7, 0, 8, true));
	check(last.fail, "also one that breaks a rule");
	expect_terminate(IWARP_DDP_MSN);
}

static void a_read_as_rtr_takes_its_place(void)
{
	struct iwarp_terms t = terms_of(true);
	struct iwarp_segment s;

	t.rtr = IWARP_RTR_READ;
	t.ord = 1;
	open_terms(&t);
	s = send_one();
	check(s.opcode == IWARP_READ_REQUEST && s.msn == 1 && !s.read.bytes &&
		      s.read.sink_stag == 1 && s.read.source_stag == 1 && !s.read.source_to,
	      "as Linux's siw sends it");
	post(WORK_READ, 0, 8);
	check(!can_send(), "it is under way");
	arrive(read_response(1, 0, 0, true));
	expect_done(0, IBV_WC_SUCCESS, "it completes nothing");
	check(send_one().msn == 2, "the next");
	arrive(read_response(2, 0, 8, true));
	expect_done(1, IBV_WC_SUCCESS, "which is answered");
	/* Entries behind it need not wait for its answer, nor is it theirs. */
	open_terms(&t);
	post(WORK_SEND, 0, 8);
	send_one();
	send_one();
	expect_done(1, IBV_WC_SUCCESS, "a SEND is complete");
	arrive(read_response(1, 0, 1, true));
	check(last.fail, "it has no bytes");
	open_terms(&t);
	frame();
	arrive(read_response(1, 0, 0, true));
	check(last.fail, "nor an answer before it was sent");
}

static void a_write_or_send_as_rtr(void)
{
	for (unsigned n = 0; n < 2; n++) {
		struct iwarp_terms t = terms_of(true);
		struct iwarp_segment s;

		t.rtr = n ? IWARP_RTR_SEND : IWARP_RTR_WRITE;
		open_terms(&t);
		post(WORK_SEND, 0, 8);
		s = send_one();
		check(s.opcode == (n ? IWARP_SEND : IWARP_WRITE) && !s.bytes && s.last &&
			      (n ? s.msn == 1 : s.stag == 1 && !s.to), "without content");
		check(send_one().msn == 1 + n, "a SEND counts");
		t.initiator = false;
		open_terms(&t);
		arrive(s);
		check(!last.fail && !last.receive.complete && c.begun, "it takes no receive");
		arrive(send_segment(1 + n, 0, 8, true));
		check(last.receive.complete, "the next one does");
	}
}

static void an_rtr_that_does_not_come(void)
{
	struct iwarp_terms t = terms_of(false);

	open_terms(&t);
	check(!c.deadline_ns, "none was agreed on: no limit");
	t.rtr = IWARP_RTR_WRITE;
	open_terms(&t);
	post(WORK_SEND, 0, 8);
	check(c.deadline_ns == 1 + BEGIN_NS, "a limit");
	last = iwarp_timer(&c, BEGIN_NS);
	check(!last.fail, "not before");
	last = iwarp_timer(&c, 1 + BEGIN_NS);
	check(last.fail && last.disconnected, "it ends");
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "flushed");
	check(iwarp_action(&c, 1) == IWARP_RESET, "at once");
	open_terms(&t);
	arrive(read_request(1, 8));
	check(!c.deadline_ns && !last.fail, "another message than agreed on will do");
}

/* ---- the end ---- */

static void an_orderly_end_waits_for_all(void)
{
	open_end(true);
	post(WORK_READ, 0, 8);
	post(WORK_SEND, 0, 8);
	iwarp_close(&c);
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION, "entries");
	send_one();
	frame();
	arrive(read_response(1, 0, 8, true));
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION, "bytes that TCP has not taken");
	took_all();
	expect_done(2, IBV_WC_SUCCESS, "with success");
	arrive(read_request(1, 8));
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION, "responses");
	send_one();
	check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "then it ends");
	iwarp_shut(&c);
	arrive(send_segment(1, 0, 8, true));
	check(last.receive.complete, "what arrives is carried out");
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION && !last.disconnected, "until the peer's end");
	last = iwarp_ended(&c, true);
	check(last.fail && last.disconnected, "the disconnect");
	check(iwarp_action(&c, 1) == IWARP_CLOSE, "closed");
}

static void a_peer_that_does_not_end_is_reset(void)
{
	open_end(true);
	post(WORK_SEND, 0, 8);
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION && !c.deadline_ns, "open: no limit");
	last = iwarp_timer(&c, UINT64_MAX);
	check(!last.fail, "a timer that was not asked for");
	iwarp_close(&c);
	iwarp_action(&c, 1);
	check(c.deadline_ns == 1 + CLOSE_NS, "a limit");
	send_one();
	check(iwarp_action(&c, 100) == IWARP_SHUTDOWN && c.deadline_ns == 100 + CLOSE_NS,
	      "from when something moved");
	iwarp_shut(&c);
	last = iwarp_timer(&c, 99 + CLOSE_NS);
	check(!last.disconnected, "not before");
	last = iwarp_timer(&c, 100 + CLOSE_NS);
	check(last.fail && last.disconnected && iwarp_action(&c, 1) == IWARP_RESET, "reset");
	/* Behind a TERMINATE nothing prolongs it. */
	open_end(true);
	arrive(send_segment(5, 0, 8, true));
	iwarp_action(&c, 1);
	send_one();
	iwarp_action(&c, 100);
	check(c.deadline_ns == 1 + CLOSE_NS, "from the error on");
}

/* It takes the response that it wants a little at a time. */
static void a_slow_peer_does_not_keep_a_flushed_queue_pair(void)
{
	open_end(false);
	arrive(read_request(1, 4 * MULPDU));
	iwarp_close(&c);
	last = iwarp_flushed(&c);
	check(iwarp_action(&c, 1) == IWARP_NO_ACTION && c.deadline_ns == 1 + CLOSE_NS, "a limit");
	check(send_one().opcode == IWARP_READ_RESPONSE, "what was due leaves");
	check(iwarp_action(&c, 100) == IWARP_NO_ACTION && c.deadline_ns == 1 + CLOSE_NS,
	      "the limit stays");
	last = iwarp_timer(&c, 1 + CLOSE_NS);
	check(last.disconnected && iwarp_action(&c, 1) == IWARP_RESET, "reset");
}

static void an_error_behind_the_own_end_is_not_told(void)
{
	struct iwarp_segment s = send_segment(1, 0, 8, true);
	struct iwarp_arrival a;

	open_end(true);
	iwarp_close(&c);
	check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "nothing to wait for");
	iwarp_shut(&c);
	arrive_with(write_segment(8, true), IWARP_NO_STAG);
	check(last.fail && c.error == IWARP_DDP_STAG && !can_send(), "no TERMINATE");
	check(!iwarp_arrived(&c, &s, &a), "nothing more is taken");
	last = iwarp_ended(&c, true);
	check(last.disconnected && iwarp_action(&c, 1) == IWARP_CLOSE, "the end");
}

static void the_peers_end_flushes(void)
{
	static const struct {
		bool idle, send, write, response;
		enum ibv_wc_status status;
	} rows[] = {
		{ true, false, false, false, IBV_WC_WR_FLUSH_ERR },
		{ false, false, false, false, IBV_WC_RETRY_EXC_ERR },
		{ true, true, false, false, IBV_WC_RETRY_EXC_ERR },
		{ true, false, true, false, IBV_WC_RETRY_EXC_ERR },
		{ true, false, false, true, IBV_WC_RETRY_EXC_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		open_end(true);
		post(WORK_READ, 0, 8);
		post(WORK_SEND, 0, 8);
		send_one();
		if (rows[i].send)
			arrive(send_segment(1, 0, 8, false));
		if (rows[i].write)
			arrive(write_segment(8, false));
		if (rows[i].response)
			arrive(read_response(1, 0, 4, false));
		last = iwarp_ended(&c, rows[i].idle);
		check(last.fail && last.disconnected && !can_send(), "it ends");
		expect_done(0, rows[i].status, "between two messages, or within one");
		check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "the own end, too");
		iwarp_shut(&c);
		check(iwarp_action(&c, 1) == IWARP_CLOSE, "closed");
	}
}

static void a_stream_that_is_lost(void)
{
	open_end(true);
	post(WORK_SEND, 0, 8);
	last = iwarp_lost(&c);
	check(last.fail && last.disconnected, "it ends");
	expect_done(0, IBV_WC_RETRY_EXC_ERR, "the oldest fails");
	check(iwarp_action(&c, 1) == IWARP_RESET && !can_send(), "at once");
	open_end(true);
	last = iwarp_lost(&c);
	expect_done(0, IBV_WC_SUCCESS, "there is none");
	open_end(true);
	post(WORK_SEND, 0, 8);
	last = iwarp_abort(&c);
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "an abort flushes");
	check(iwarp_action(&c, 1) == IWARP_RESET, "at once");
}

static void a_terminate_fails_the_oldest_entry(void)
{
	static const struct {
		uint8_t layer, type, code;
		enum ibv_wc_status status;
	} rows[] = {
		{ 0, 0, 0, IBV_WC_REM_OP_ERR },
		{ 0, 0, 0xff, IBV_WC_WR_FLUSH_ERR }, /* siw's disconnect */
		{ 0, 1, 0, IBV_WC_REM_ACCESS_ERR },
		{ 0, 1, 2, IBV_WC_REM_ACCESS_ERR },
		{ 0, 1, 9, IBV_WC_REM_ACCESS_ERR },
		{ 0, 2, 5, IBV_WC_REM_INV_REQ_ERR },
		{ 0, 2, 6, IBV_WC_REM_INV_REQ_ERR },
		{ 0, 2, 7, IBV_WC_REM_OP_ERR },
		{ 0, 2, 9, IBV_WC_REM_ACCESS_ERR },
		{ 1, 0, 0, IBV_WC_REM_OP_ERR },
		{ 1, 1, 0, IBV_WC_REM_ACCESS_ERR },
		{ 1, 1, 4, IBV_WC_REM_INV_REQ_ERR },
		{ 1, 2, 1, IBV_WC_REM_INV_REQ_ERR },
		{ 1, 2, 2, IBV_WC_RNR_RETRY_EXC_ERR },
		{ 1, 2, 5, IBV_WC_REM_INV_REQ_ERR },
		{ 2, 0, 2, IBV_WC_RETRY_EXC_ERR },
		{ 9, 9, 9, IBV_WC_REM_OP_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct iwarp_arrival a;
		struct iwarp_segment s = send_segment(1, 0, 8, true);

		open_end(true);
		post(WORK_WRITE, 0, 8);
		post(WORK_READ, 0, 8);
		post(WORK_SEND, 0, 8);
		send_one();
		send_one();
		arrive(terminate_of(rows[i].layer, rows[i].type, rows[i].code));
		check(last.fail && last.disconnected && c.terminated && !c.error, "it ends");
		expect_done(1, rows[i].status, "what is complete stays so");
		check(!can_send(), "no answer");
		check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "the own end");
		check(!iwarp_arrived(&c, &s, &a), "nothing comes behind it");
		last = iwarp_ended(&c, true);
		check(!last.fail && !last.disconnected, "said once");
	}
}

static void a_message_comes_before_the_disconnect(void)
{
	open_end(true);
	arrive(send_segment(1, 0, 8, true));
	check(last.receive.complete && !last.disconnected && !last.fail, "the message");
	last = iwarp_ended(&c, true);
	check(last.fail && last.disconnected, "the disconnect");
}

static void a_terminate_follows_the_responses_that_were_due(void)
{
	open_end(true);
	arrive(read_request(1, 200));
	arrive_with(read_request(2, 8), IWARP_NO_ACCESS);
	check(last.fail, "it fails");
	check(send_one().opcode == IWARP_READ_RESPONSE && send_one().last, "the READ before it");
	expect_terminate(IWARP_RDMAP_ACCESS);
}

static void the_first_error_counts(void)
{
	struct iwarp_tx tx;

	open_end(true);
	arrive(read_request(1, 200));
	arrive_with(write_segment(8, true), IWARP_NO_STAG);
	check(iwarp_next(&c, 0, &tx) && tx.source == IWARP_FROM_MEMORY, "a response that was due");
	last = iwarp_unreadable(&c, &tx, IBV_WC_SUCCESS, IWARP_NO_BOUNDS);
	check(!last.fail, "it failed before");
	expect_terminate(IWARP_DDP_STAG);
}

static void a_terminate_interrupts_half_a_message(void)
{
	open_end(true);
	post(WORK_SEND, 0, 200);
	send_one();
	arrive(read_request(1, 8));
	arrive_with(write_segment(8, true), IWARP_NO_STAG);
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "which is flushed");
	expect_terminate(IWARP_DDP_STAG);
}

static void a_terminate_leaves_behind_the_peers_end(void)
{
	open_end(true);
	arrive_with(write_segment(8, true), IWARP_NO_STAG);
	last = iwarp_ended(&c, true);
	check(last.disconnected, "the peer has ended its direction");
	check(send_one().opcode == IWARP_TERMINATE, "and is told all the same");
	check(iwarp_action(&c, 1) == IWARP_SHUTDOWN, "then the end");
}

static void a_set_up_that_ends_with_a_terminate(void)
{
	open_end(true);
	last = iwarp_refuse(&c, IWARP_MPA_IRD);
	check(last.fail, "it fails");
	expect_terminate(IWARP_MPA_IRD);
}

static void nothing_completes_behind_a_failure(void)
{
	open_end(true);
	post(WORK_SEND, 0, 8);
	post(WORK_SEND, 0, 8);
	frame();
	arrive_with(write_segment(8, true), IWARP_NO_STAG);
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "the oldest is flushed");
	took_all();
	expect_done(0, IBV_WC_SUCCESS, "and not complete as well");
	check(!iwarp_requester_fail(&c.rq, IBV_WC_REM_OP_ERR).status, "nor failed once more");
	last = iwarp_abort(&c);
	check(!last.fail && last.disconnected && !last.done.status, "nor flushed twice");
}

static void a_failure_between_headers_and_payload(void)
{
	struct iwarp_segment s = send_segment(1, 0, 8, true);
	struct iwarp_arrival a;

	open_end(true);
	check(iwarp_arrived(&c, &s, &a), "the headers");
	last = iwarp_refuse(&c, IWARP_RDMAP_CATASTROPHIC);
	check(last.fail, "it fails");
	last = iwarp_carried_out(&c, &s, &a, IWARP_DONE, 0, IBV_WC_SUCCESS);
	check(!last.receive.complete && !last.fail, "the receive is not complete");
}

int main(void)
{
	the_responder_waits_for_the_first_fpdu();
	a_read_as_rtr_takes_its_place();
	a_write_or_send_as_rtr();
	an_rtr_that_does_not_come();
	an_orderly_end_waits_for_all();
	a_peer_that_does_not_end_is_reset();
	a_slow_peer_does_not_keep_a_flushed_queue_pair();
	an_error_behind_the_own_end_is_not_told();
	the_peers_end_flushes();
	a_stream_that_is_lost();
	a_terminate_fails_the_oldest_entry();
	a_message_comes_before_the_disconnect();
	a_terminate_follows_the_responses_that_were_due();
	the_first_error_counts();
	a_terminate_interrupts_half_a_message();
	a_terminate_leaves_behind_the_peers_end();
	a_set_up_that_ends_with_a_terminate();
	nothing_completes_behind_a_failure();
	a_failure_between_headers_and_payload();
	return 0;
}
