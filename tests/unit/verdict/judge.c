/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The judge of `busbar exec --verdict` (verdict/judge.h): from facts to each answer and verdict.
 * A row of a table is one scene: what happened, what is asked, and what has to be answered.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/container_of.h"
#include "verdict/say.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
/* The program starts, its first error comes, and it ends. */
#define START (100 * SECOND)
#define ERROR (101 * SECOND)
#define END (102 * SECOND)

static struct verdict_facts facts, peer;
static struct verdict_case scene;
static struct verdict verdict;

/* ---- what happens ---- */

static void begin(void)
{
	memset(&facts, 0, sizeof(facts));
	memset(&peer, 0, sizeof(peer));
	facts.pid = 7;
	facts.start_ns = START;
	facts.progress_ns = ERROR - 250 * MS;
	snprintf(facts.program, sizeof(facts.program), "client");
	facts.qps[0] = (struct verdict_qp){ .number = 0x11, .peer = 0x22, .life_ns = START };
	peer.pid = 8;
	peer.start_ns = START;
	snprintf(peer.program, sizeof(peer.program), "server");
	peer.qps[3] = (struct verdict_qp){ .number = 0x22, .peer = 0x11, .life_ns = START };
	scene = (struct verdict_case){ .facts = &facts,
				       .ended = { VERDICT_END_STATUS, 0, END } };
}

static void fails(enum verdict_channel channel, uint32_t code, uint64_t at_ns)
{
	struct verdict_error *e = &facts.errors[channel];

	*e = (struct verdict_error){ .at_ns = at_ns, .qp = 0x11, .code = code };
	if (!facts.since_ns)
		facts.since_ns = at_ns;
	facts.broken = 0x11;
}

static void retry_exceeded(void)
{
	struct verdict_error *e = &facts.errors[VERDICT_COMPLETION];

	fails(VERDICT_COMPLETION, IBV_WC_RETRY_EXC_ERR, ERROR);
	e->vendor = 0x81;
	e->good_ns = ERROR - 250 * MS;
	e->request_known = true;
	e->request = (struct verdict_request){ .wr_id = 0xabc, .bytes = 64, .opcode = IBV_WR_SEND };
}

static void nothing(void)
{
}

static void remote_access(void)
{
	retry_exceeded();
	facts.errors[VERDICT_COMPLETION].code = IBV_WC_REM_ACCESS_ERR;
}

static void receive_too_short(void)
{
	fails(VERDICT_COMPLETION, IBV_WC_LOC_LEN_ERR, ERROR);
	facts.errors[VERDICT_COMPLETION].receive = true;
}

static void unknown_request(void)
{
	retry_exceeded();
	facts.errors[VERDICT_COMPLETION].request_known = false;
}

static void flush_before_its_cause(void)
{
	fails(VERDICT_FLUSH, IBV_WC_WR_FLUSH_ERR, ERROR - MS);
	retry_exceeded();
}

static void flush_alone(void)
{
	fails(VERDICT_FLUSH, IBV_WC_WR_FLUSH_ERR, ERROR);
}

static void event_first(void)
{
	fails(VERDICT_EVENT, IBV_EVENT_QP_ACCESS_ERR, ERROR - 300 * MS);
	retry_exceeded();
	facts.events = 1;
}

static void event_later(void)
{
	retry_exceeded();
	fails(VERDICT_EVENT, IBV_EVENT_QP_FATAL, ERROR + 400 * MS);
	facts.events = 1;
}

static void port_down(void)
{
	fails(VERDICT_EVENT, IBV_EVENT_PORT_ERR, ERROR);
	facts.errors[VERDICT_EVENT].qp = 0;
	facts.broken = 0;
}

static void port_comes_back(void)
{
	port_down();
	facts.others_after_ns = ERROR + 70 * MS;
}

static void refused(void)
{
	fails(VERDICT_REFUSAL, EINVAL, ERROR);
}

static void rejected(void)
{
	fails(VERDICT_CONNECTION, RDMA_CM_EVENT_REJECTED, ERROR);
	facts.errors[VERDICT_CONNECTION].detail = 28;
}

static void not_connected(void)
{
	fails(VERDICT_CONNECTION, VERDICT_NO_CM_EVENT, ERROR);
	facts.errors[VERDICT_CONNECTION].detail = ECONNREFUSED;
}

static void never_polled(void)
{
	facts.unfetched_ns = END;
	facts.unfetched_qp = 0x11;
	facts.unfetched_requests = 5;
}

static void with_flushes(void)
{
	retry_exceeded();
	facts.behind = 4;
	facts.flushes_behind = 3;
}

static void destroyed(void)
{
	retry_exceeded();
	facts.reaction = VERDICT_DESTROYED;
	facts.reacted_ns = ERROR + 20 * MS;
}

static void destroyed_and_failed(void)
{
	destroyed();
	scene.ended.code = 3;
}

static void told_after(uint64_t ns)
{
	retry_exceeded();
	scene.ended = (struct verdict_ended){ VERDICT_END_STATUS, 1, ERROR + ns };
}

static void told_in_time(void)
{
	told_after(VERDICT_LATE_S * SECOND);
}

static void told_too_late(void)
{
	told_after(VERDICT_LATE_S * SECOND + MS);
}

static void posts_on(void)
{
	retry_exceeded();
	facts.posts_broken = 12;
	facts.flushes_broken = 9;
}

static void killed_soon(void)
{
	retry_exceeded();
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 15, ERROR + SECOND };
}

static void killed_after_long(void)
{
	retry_exceeded();
	scene.ended =
		(struct verdict_ended){ VERDICT_END_SIGNAL, 15, ERROR + VERDICT_HUNG_S * SECOND };
}

static void killed_while_idle(void)
{
	destroyed();
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 2, ERROR + 8 * SECOND };
}

static void killed_with_requests(void)
{
	facts.qps[0].posted = facts.qps[0].signaled = 4;
	facts.qps[0].done = 1;
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 15, ERROR + 8 * SECOND };
}

static void killed_with_receives(void)
{
	facts.qps[0].receives = 4;
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 15, ERROR + 8 * SECOND };
}

static void killed_unsignaled(void)
{
	facts.qps[0].posted = 4;
	facts.qps[0].signaled = facts.qps[0].done = 1;
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 15, ERROR + 8 * SECOND };
}

static void runs_on(void)
{
	retry_exceeded();
	scene.ended = (struct verdict_ended){ VERDICT_END_RUNS, 0, END };
}

static void unknown_end(void)
{
	retry_exceeded();
	scene.ended = (struct verdict_ended){ VERDICT_END_UNKNOWN, 0, END };
}

static void with_peer(void)
{
	retry_exceeded();
	scene.peer = &peer;
	scene.peer_ended = (struct verdict_ended){ VERDICT_END_STATUS, 0, END };
	peer.qps[3].receives = 9;
	peer.qps[3].received = 2;
}

static void with_peer_that_heard(void)
{
	with_peer();
	peer.peer_left_ns = ERROR + 100 * MS;
}

static void with_peer_that_was_gone(void)
{
	with_peer();
	scene.peer_ended.at_ns = ERROR - 500 * MS;
}

static void with_itself(void)
{
	retry_exceeded();
	scene.peer = &facts;
}

static void left_behind(void)
{
	with_peer();
	peer.since_ns = ERROR;
	facts.since_ns = 0;
	facts.broken = 0;
	memset(facts.errors, 0, sizeof(facts.errors));
	facts.qps[0].receives = 3;
}

static void left_behind_by_a_killed_peer(void)
{
	left_behind();
	peer.since_ns = 0;
	scene.peer_ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 9, ERROR };
}

static void left_before_the_peer_ended(void)
{
	left_behind_by_a_killed_peer();
	scene.peer_ended.at_ns = END + 1;
}

static void left_behind_for_long(void)
{
	left_behind_by_a_killed_peer();
	scene.ended = (struct verdict_ended){ VERDICT_END_SIGNAL, 15,
					      ERROR + VERDICT_HUNG_S * SECOND };
}

static void receives_left(void)
{
	facts.qps[0].receives = 3;
}

static void peer_left_before(void)
{
	retry_exceeded();
	facts.peer_left_ns = ERROR - 2 * MS;
}

static void repeats(enum ibv_wr_opcode opcode)
{
	retry_exceeded();
	facts.errors[VERDICT_COMPLETION].request.opcode = opcode;
	facts.errors[VERDICT_COMPLETION].request.remote_addr = 0x7000;
	facts.repeats = 2;
	facts.repeat_qp = 0x33;
	facts.repeat_ns = ERROR + 5 * MS;
}

static void repeats_an_atomic(void)
{
	repeats(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void repeats_a_read(void)
{
	repeats(IBV_WR_RDMA_READ);
}

static void recovers(void)
{
	destroyed();
	facts.flowed = 100;
	facts.flowed_ns = ERROR + 50 * MS;
	facts.others_after_ns = ERROR + 60 * MS;
}

static void others_go_on(void)
{
	destroyed();
	facts.errors[VERDICT_COMPLETION].others = 2;
	facts.others_good = 40;
	facts.others_gap_ns = 30 * MS;
	facts.others_after_ns = ERROR + 60 * MS;
}

static void others_stop(void)
{
	retry_exceeded();
	facts.errors[VERDICT_COMPLETION].others = 2;
	facts.others_open = 6;
	facts.others_last_ns = ERROR;
}

static void others_idle(void)
{
	retry_exceeded();
	facts.errors[VERDICT_COMPLETION].others = 2;
}

/* ---- what has to be answered ---- */

static const struct row {
	const char *what;
	void (*happens)(void);
	enum verdict_question asked;
	enum verdict_says says;
	const char *part; /* of the evidence */
} rows[] = {
	{ "no error", nothing, VERDICT_FIRST, VERDICT_NO, "nothing that the program was told of" },
	{ "no error, no questions", nothing, VERDICT_REACTED, VERDICT_MOOT, "no error is known" },
	{ "retry exceeded", retry_exceeded, VERDICT_FIRST, VERDICT_YES,
	  "completion with 'retry exceeded' (12, vendor 0x81) of SEND, 64 bytes, wr_id 0xabc, queue pair 0x11, 1.000 s after the program's start, about 0.250 s after its last good completion; a dead peer" },
	{ "remote access", remote_access, VERDICT_FIRST, VERDICT_YES,
	  "'remote access error' (10, vendor 0x81)" },
	{ "remote access, hint", remote_access, VERDICT_FIRST, VERDICT_YES, "hint only" },
	{ "of a receive", receive_too_short, VERDICT_FIRST, VERDICT_YES,
	  "'local length error' (1, vendor 0x0) of a receive, wr_id 0x0, queue pair 0x11" },
	{ "no good one before", receive_too_short, VERDICT_FIRST, VERDICT_YES,
	  "which had no good completion before" },
	{ "unknown request", unknown_request, VERDICT_FIRST, VERDICT_YES,
	  "vendor 0x81), wr_id 0xabc" },
	{ "the cause behind its flush", flush_before_its_cause, VERDICT_FIRST, VERDICT_YES,
	  "'retry exceeded'" },
	{ "a flush alone", flush_alone, VERDICT_FIRST, VERDICT_YES, "'flushed' (5" },
	{ "an event first", event_first, VERDICT_FIRST, VERDICT_YES,
	  "asynchronous event IBV_EVENT_QP_ACCESS_ERR (3), queue pair 0x11, 0.700 s after" },
	{ "a refused post", refused, VERDICT_FIRST, VERDICT_YES,
	  "ibv_post_send() refused with 'Invalid argument' (22)" },
	{ "rejected", rejected, VERDICT_FIRST, VERDICT_YES,
	  "no connection: RDMA_CM_EVENT_REJECTED (status 28)" },
	{ "no connection", not_connected, VERDICT_FIRST, VERDICT_YES,
	  "rdma_connect() failed (errno 111)" },
	{ "never polled", never_polled, VERDICT_FIRST, VERDICT_UNSEEN,
	  "queue pair 0x11 was in the error state when it was looked at, with 5 requests" },

	{ "fetched", retry_exceeded, VERDICT_FETCHED, VERDICT_YES, "without a flush behind it" },
	{ "fetched after an event", event_first, VERDICT_FETCHED, VERDICT_YES,
	  "fetched 0.300 s after the first error" },
	{ "fetched with flushes", with_flushes, VERDICT_FETCHED, VERDICT_UNSEEN,
	  "with 3 flushes behind it; which of them the program looked at cannot be seen" },
	{ "flushes only", flush_alone, VERDICT_FETCHED, VERDICT_NO, "only flushes" },
	{ "event only", port_down, VERDICT_FETCHED, VERDICT_MOOT, "no queue pair" },
	{ "connection only", rejected, VERDICT_FETCHED, VERDICT_MOOT, "not made" },
	{ "connection only", rejected, VERDICT_PEER, VERDICT_MOOT, "no connection" },
	{ "refusal only", refused, VERDICT_FETCHED, VERDICT_NO, "no completion with an error" },
	{ "never polled", never_polled, VERDICT_FETCHED, VERDICT_NO, "no completion with an error" },

	{ "destroyed", destroyed, VERDICT_REACTED, VERDICT_YES,
	  "queue pair 0x11 was destroyed 0.020 s after the first error; nothing was posted" },
	{ "no reaction", retry_exceeded, VERDICT_REACTED, VERDICT_NO, "was not destroyed" },
	{ "posts on", posts_on, VERDICT_REACTED, VERDICT_NO,
	  "posted 12 more requests to it, none of which can succeed; 9 flushes were fetched" },
	{ "port down", port_down, VERDICT_REACTED, VERDICT_MOOT, "no queue pair" },

	{ "status 0", retry_exceeded, VERDICT_TOLD, VERDICT_NO, "exit status 0, 1.000 s after" },
	{ "status 3", destroyed_and_failed, VERDICT_TOLD, VERDICT_YES, "exit status 3" },
	{ "a signal", killed_soon, VERDICT_TOLD, VERDICT_YES, "signal 15 (SIGTERM)" },
	{ "runs on", runs_on, VERDICT_TOLD, VERDICT_UNSEEN, "still runs" },
	{ "unknown end", unknown_end, VERDICT_TOLD, VERDICT_UNSEEN, "without exit()" },

	{ "no peer", retry_exceeded, VERDICT_PEER, VERDICT_UNSEEN, "not under this verdict" },
	{ "a peer that heard nothing", with_peer, VERDICT_PEER, VERDICT_NO,
	  "process 8 (server) at the other side was told of no error and read no event of it; 7 of its receives" },
	{ "a peer that heard", with_peer_that_heard, VERDICT_PEER, VERDICT_YES,
	  "process 8 (server) read the end of the connection, 0.100 s after" },
	{ "a peer that was gone", with_peer_that_was_gone, VERDICT_PEER, VERDICT_MOOT,
	  "had ended 0.500 s before" },
	{ "both ends", with_itself, VERDICT_PEER, VERDICT_MOOT, "both ends" },
	{ "left behind", left_behind, VERDICT_PEER, VERDICT_NO,
	  "3 receives were left when process 8 (server) at the other side had its error" },
	{ "left behind by a killed peer", left_behind_by_a_killed_peer, VERDICT_PEER, VERDICT_NO,
	  "when a signal ended process 8 (server)" },
	{ "left before the peer", left_before_the_peer_ended, VERDICT_PEER, VERDICT_MOOT,
	  "had no error before" },
	{ "receives left", receives_left, VERDICT_PEER, VERDICT_UNSEEN, "3 receives were left" },

	{ "no second channel", retry_exceeded, VERDICT_SECOND, VERDICT_NO,
	  "0 asynchronous events and 0 events of rdma_cm were read" },
	{ "event later", event_later, VERDICT_SECOND, VERDICT_YES,
	  "an asynchronous event was read 0.400 s after" },
	{ "event first", event_first, VERDICT_SECOND, VERDICT_YES, "is the first error" },
	{ "the peer left before", peer_left_before, VERDICT_SECOND, VERDICT_YES,
	  "RDMA_CM_EVENT_DISCONNECTED was read 0.002 s before" },

	{ "not repeated", retry_exceeded, VERDICT_REPEATED, VERDICT_NO, "no SEND of 64 bytes" },
	{ "an atomic twice", repeats_an_atomic, VERDICT_REPEATED, VERDICT_YES,
	  "fetch and add of 64 bytes to 0x7000 was posted again on queue pair 0x33, first 0.005 s after the first error, 2 in all; it may have been carried out twice: nothing asked whether the first was" },
	{ "a READ twice", repeats_a_read, VERDICT_REPEATED, VERDICT_YES, "for a READ that is harmless" },
	{ "unknown request", unknown_request, VERDICT_REPEATED, VERDICT_UNSEEN, "last 64" },
	{ "of a receive", receive_too_short, VERDICT_REPEATED, VERDICT_MOOT, "no request" },

	{ "others go on", others_go_on, VERDICT_OTHERS, VERDICT_NO,
	  "40 good completions of other queue pairs followed; the longest time without any while requests waited is 0.030 s" },
	{ "others stop", others_stop, VERDICT_OTHERS, VERDICT_YES,
	  "6 requests of other queue pairs waited, none completed in 1.000 s" },
	{ "others idle", others_idle, VERDICT_OTHERS, VERDICT_UNSEEN, "2 other queue pairs" },
	{ "no others", retry_exceeded, VERDICT_OTHERS, VERDICT_MOOT, "no other queue pairs" },

	{ "flows on", recovers, VERDICT_FLOWED, VERDICT_YES,
	  "100 good completions on queue pairs that were made or reset after it, the first 0.050 s" },
	{ "a port comes back", port_comes_back, VERDICT_FLOWED, VERDICT_YES, "the last 0.070 s" },
	{ "does not flow", retry_exceeded, VERDICT_FLOWED, VERDICT_NO, "no good completion" },
};

static void each_question_has_its_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct verdict_answer *a = &verdict.answers[rows[i].asked];

		begin();
		rows[i].happens();
		verdict_judge(&scene, &verdict);
		if (a->says != rows[i].says || !strstr(a->evidence, rows[i].part))
			fail_msg("%s, question %d: answer %d: %s", rows[i].what, rows[i].asked,
				 a->says, a->evidence);
	}
}

static const struct {
	void (*happens)(void);
	enum verdict_word word;
} words[] = {
	{ nothing, VERDICT_NO_ERROR },
	{ left_behind, VERDICT_NO_ERROR },
	{ left_behind_by_a_killed_peer, VERDICT_NO_ERROR },
	{ left_behind_for_long, VERDICT_HUNG },
	{ never_polled, VERDICT_NOT_SEEN },
	{ retry_exceeded, VERDICT_HIDDEN },
	{ destroyed, VERDICT_HIDDEN },
	{ posts_on, VERDICT_HIDDEN },
	{ destroyed_and_failed, VERDICT_HANDLED },
	{ others_go_on, VERDICT_HANDLED },
	{ told_in_time, VERDICT_HANDLED },
	{ told_too_late, VERDICT_TOLD_LATE },
	{ killed_soon, VERDICT_HANDLED },
	{ killed_while_idle, VERDICT_HANDLED },
	{ unknown_end, VERDICT_HANDLED },
	{ killed_after_long, VERDICT_HUNG },
	{ killed_with_requests, VERDICT_HUNG },
	{ killed_with_receives, VERDICT_NO_ERROR },
	{ killed_unsignaled, VERDICT_NO_ERROR },
	{ recovers, VERDICT_RECOVERED },
	{ runs_on, VERDICT_UNDECIDED },
	{ rejected, VERDICT_HIDDEN },
	{ port_down, VERDICT_HIDDEN },
	{ port_comes_back, VERDICT_RECOVERED },
};

static void each_scene_has_its_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		begin();
		words[i].happens();
		verdict_judge(&scene, &verdict);
		if (verdict.word != words[i].word)
			fail_msg("scene %zu: '%s', not '%s'", i, verdict_word(verdict.word),
				 verdict_word(words[i].word));
	}
}

/* The names of both ends point at each other. */
static void the_process_at_the_other_side_is_found(void **state)
{
	static struct verdict_facts stranger;
	const struct verdict_facts *all[] = { &stranger, &facts, &peer };

	(void)state;
	begin();
	retry_exceeded();
	stranger.qps[0] = (struct verdict_qp){ .number = 0x22, .peer = 0x99 };
	assert_int_equal(verdict_peer_of(all, 3, 1), 2);
	/* Without an error it is the one that owes messages. */
	begin();
	assert_int_equal(verdict_peer_of(all, 3, 1), -1);
	facts.qps[0].receives = 1;
	assert_int_equal(verdict_peer_of(all, 3, 1), 2);
	peer.qps[3].peer = 0x12;
	assert_int_equal(verdict_peer_of(all, 3, 1), -1);
}

static char *written(void (*say)(FILE *, const struct verdict_case *, const struct verdict *))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	verdict_judge(&scene, &verdict);
	say(out, &scene, &verdict);
	fclose(out);
	return text;
}

static void a_report_is_for_people_or_for_scripts(void **state)
{
	char *text;

	(void)state;
	begin();
	told_too_late();
	snprintf(facts.program, sizeof(facts.program), "a \"b\"");
	text = written(verdict_say_text);
	assert_non_null(strstr(text, "busbar verdict: told late: process 7 (a \"b\"), exit status 1\n"
				     "  first error       yes: completion"));
	free(text);
	text = written(verdict_say_json);
	assert_non_null(strstr(text, "{\"verdict\":\"told_late\",\"pid\":7,\"program\":\"a \\\"b\\\"\","
				     "\"exit_status\":1,\"error\":{\"channel\":\"completion\",\"code\":12,"
				     "\"vendor\":129,\"queue_pair\":17,\"wr_id\":2748,\"time\":1.000000,"
				     "\"opcode\":\"SEND\",\"bytes\":64},\"first_error\":{\"answer\":\"yes\""));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	free(text);
}

/* A process may write anything into its facts before it dies. */
static void damaged_facts_do_no_harm(void **state)
{
	uint8_t *bytes = (uint8_t *)&facts;
	uint32_t random = 1;

	(void)state;
	for (unsigned run = 0; run < 40; run++) {
		begin();
		for (size_t i = run % 8; i < sizeof(facts); i += run % 2 ? 1 : 997) {
			random = random * 1103515245 + 12345;
			bytes[i] = (uint8_t)(random >> 16);
		}
		verdict_facts_clean(&facts);
		scene.peer = run % 3 ? &facts : NULL;
		verdict_peer_of(&scene.facts, 1, 0);
		free(written(verdict_say_text));
		free(written(verdict_say_json));
		assert_in_range(verdict.word, 0, VERDICT_WORDS - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_question_has_its_answer),
		cmocka_unit_test(each_scene_has_its_verdict),
		cmocka_unit_test(the_process_at_the_other_side_is_found),
		cmocka_unit_test(a_report_is_for_people_or_for_scripts),
		cmocka_unit_test(damaged_facts_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
