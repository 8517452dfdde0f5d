/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One machine with its deadlines: which messages it repeats and when, and how it handles
 * messages that are repeated, late or not expected. sim_cm.c plays whole connections
 * over a bad network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "engine/cm/machine.h"
#include "wire/cm_answer.h"

#define CODE(n) (UINT64_C(4096) << (n))
#define RESPONSE 12 /* response time of the callee, as a code */
#define OURS 10     /* of the caller */
#define ACK 8
#define RETRIES 3
#define ACK_DELAY 5
#define LIMIT (UINT64_C(68) * 1000000000)

static struct cm_machine caller, callee;
static struct cm_output out;
static uint64_t now;

static struct cm_mad request(uint32_t qpn)
{
	return (struct cm_mad){
		.type = CM_REQ,
		.tid = 77,
		.req = { .service_id = 0x01061234, .local_ca_guid = 5,
			 .local_qpn = qpn, .path_mtu = 3,
			 .remote_response_timeout = RESPONSE,
			 .local_response_timeout = OURS,
			 .max_cm_retries = RETRIES,
			 .primary.local_ack_timeout = ACK },
	};
}

static const struct cm_mad reply = {
	.type = CM_REP,
	.rep = { .local_qpn = 9, .target_ack_delay = ACK_DELAY },
};

static int ask(struct cm_machine *m, enum cm_input what, const struct cm_mad *mad)
{
	return cm_machine_ask(m, what, mad, now, &out);
}

/* Delivers the message that was just sent to `m`. */
static int pass(struct cm_machine *m)
{
	struct cm_mad mad = out.mad;

	assert_true(out.send);
	return cm_machine_receive(m, &mad, now, &out);
}

static int tick(struct cm_machine *m)
{
	now = m->deadline_ns;
	return cm_machine_tick(m, now, &out);
}

static void expect_sent(enum cm_type type)
{
	assert_true(out.send);
	assert_string_equal(wire_cm_name(out.mad.type), wire_cm_name(type));
	assert_false(out.report);
}

static void requested(void)
{
	struct cm_mad req = request(8);

	now = 1000;
	cm_machine_init(&caller, 0x11);
	cm_machine_init(&callee, 0x22);
	assert_int_equal(ask(&caller, CM_DO_CONNECT, &req), 0);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void connected(void)
{
	requested();
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(ask(&caller, CM_DO_ESTABLISH, NULL), 0);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_ESTABLISHED);
}

static void a_request_is_sent_as_often_as_it_says(void **state)
{
	struct cm_mad first;

	(void)state;
	requested();
	first = caller.sent;
	for (int i = 0; i < RETRIES; i++) {
		assert_true(caller.deadline_ns ==
			    now + CODE(RESPONSE) + CODE(ACK));
		assert_int_equal(cm_machine_tick(&caller, caller.deadline_ns - 1,
						 &out), -EAGAIN);
		assert_int_equal(tick(&caller), 0);
		expect_sent(CM_REQ);
		assert_memory_equal(&out.mad, &first, sizeof(first));
	}
	assert_int_equal(tick(&caller), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(out.status, -ETIMEDOUT);
	assert_int_equal(out.mad.type, CM_REJ);
	assert_int_equal(out.mad.rej.reason, CM_REASON_TIMEOUT);
}

static void the_caller_is_told_when_the_program_takes_long(void **state)
{
	(void)state;
	requested();
	assert_true(callee.deadline_ns == now + CODE(RESPONSE) / 2);
	assert_int_equal(tick(&callee), 0);
	expect_sent(CM_MRA);
	assert_int_equal(out.mad.mra.answered, CM_ANSWERED_REQ);
	assert_int_equal(out.mad.mra.service_timeout, RESPONSE + 4);
	assert_int_equal(pass(&caller), 0);
	assert_true(caller.deadline_ns == now + CODE(RESPONSE + 4) + CODE(ACK));
	/* The caller repeats the REQ, gets an MRA again, and reports no second event. */
	assert_int_equal(tick(&caller), 0);
	expect_sent(CM_REQ);
	assert_int_equal(pass(&callee), 0);
	expect_sent(CM_MRA);
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	/* The same in the other direction. */
	assert_true(caller.deadline_ns == now + CODE(OURS) / 2);
	assert_int_equal(tick(&caller), 0);
	expect_sent(CM_MRA);
	assert_int_equal(out.mad.mra.answered, CM_ANSWERED_REP);
	assert_int_equal(pass(&callee), 0);
	assert_true(callee.deadline_ns == now + CODE(OURS + 4) + CODE(ACK));
}

static void a_program_that_never_answers_is_given_up_by_both(void **state)
{
	(void)state;
	requested();
	assert_int_equal(tick(&callee), 0);
	/* No further message of the caller comes. */
	assert_int_equal(tick(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(out.status, CM_REASON_TIMEOUT);
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), -ECONNRESET);
}

static void what_comes_twice_is_answered_twice_and_reported_once(void **state)
{
	struct cm_mad req, rep, dreq;

	(void)state;
	requested();
	req = caller.sent;
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	rep = out.mad;
	assert_int_equal(cm_machine_receive(&callee, &req, now, &out), 0);
	expect_sent(CM_REP);
	assert_memory_equal(&out.mad, &rep, sizeof(rep));
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(ask(&caller, CM_DO_ESTABLISH, NULL), 0);
	assert_int_equal(cm_machine_receive(&caller, &rep, now, &out), 0);
	expect_sent(CM_RTU);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_ESTABLISHED);

	assert_int_equal(ask(&caller, CM_DO_DISCONNECT, NULL), 0);
	dreq = out.mad;
	assert_int_equal(dreq.dreq.remote_qpn, 9);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(out.mad.type, CM_DREP);
	assert_true(out.mad.tid == dreq.tid);
	assert_int_equal(cm_machine_receive(&callee, &dreq, now, &out), 0);
	expect_sent(CM_DREP);
	/* A machine that has ended does not answer; wire_cm_stray_answer() does. */
	assert_int_equal(tick(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(cm_machine_receive(&callee, &dreq, now, &out), -ENOENT);
	assert_int_equal(wire_cm_stray_answer(&dreq, &out.mad), 0);
	assert_int_equal(out.mad.type, CM_DREP);
	assert_int_equal(cm_machine_receive(&caller, &out.mad, now, &out), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_DISCONNECTED);
}

static void time_wait_lasts_a_trip_and_the_delay_of_an_ack(void **state)
{
	(void)state;
	connected();
	assert_int_equal(ask(&caller, CM_DO_DISCONNECT, NULL), 0);
	assert_int_equal(pass(&callee), 0);
	assert_true(callee.deadline_ns == now + CODE(ACK));
	assert_int_equal(pass(&caller), 0);
	assert_true(caller.deadline_ns == now + CODE(ACK) + CODE(ACK_DELAY));
}

static void a_rejection_names_what_it_answers_and_is_kept(void **state)
{
	struct cm_mad why = { .type = CM_REJ,
			      .rej = { .reason = CM_REASON_VENDOR_OPTION,
				       .private_data = { 1, 2 } } };
	struct cm_mad req;

	(void)state;
	requested();
	req = caller.sent;
	assert_int_equal(ask(&callee, CM_DO_REJECT, &why), 0);
	assert_int_equal(out.mad.rej.answered, CM_ANSWERED_REQ);
	assert_int_equal(out.mad.rej.private_data[1], 2);
	/* The REJ is lost, and the program has destroyed its identifier. */
	assert_int_equal(ask(&callee, CM_DO_DESTROY, NULL), 0);
	assert_int_equal(cm_machine_receive(&callee, &req, now, &out), 0);
	expect_sent(CM_REJ);
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(out.status, CM_REASON_VENDOR_OPTION);
	assert_int_equal(tick(&callee), 0);
	assert_int_equal(callee.state, CM_DONE);
	assert_false(out.report);

	requested();
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(ask(&caller, CM_DO_REJECT, NULL), 0);
	assert_int_equal(out.mad.rej.answered, CM_ANSWERED_REP);
	assert_int_equal(out.mad.rej.reason, CM_REASON_CONSUMER);
}

static void the_lower_of_two_callers_becomes_the_called(void **state)
{
	struct cm_mad low = request(3), high = request(4);

	(void)state;
	cm_machine_init(&caller, 1);
	cm_machine_init(&callee, 2);
	caller.peer_to_peer = callee.peer_to_peer = true;
	assert_int_equal(ask(&callee, CM_DO_CONNECT, &low), 0);
	assert_int_equal(ask(&caller, CM_DO_CONNECT, &high), 0);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_CONNECT_REQUEST);
	low.req.local_comm_id = 2;
	assert_int_equal(cm_machine_receive(&caller, &low, now, &out), -EPROTO);
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	assert_int_equal(pass(&caller), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_CONNECT_RESPONSE);

	/* GUIDs are compared before QP numbers. */
	high.req.local_ca_guid = 4;
	cm_machine_init(&caller, 1);
	caller.peer_to_peer = true;
	assert_int_equal(ask(&caller, CM_DO_CONNECT, &high), 0);
	assert_int_equal(cm_machine_receive(&caller, &low, now, &out), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void a_connection_whose_qp_asks_anew_is_ended(void **state)
{
	(void)state;
	connected();
	assert_true(cm_machine_holds_qp(&callee));
	assert_int_equal(ask(&callee, CM_GOT_STALE, NULL), 0);
	expect_sent(CM_DREQ);
	assert_true(out.qp_error);
	/* The machine at the other end does not exist any more. */
	assert_int_equal(wire_cm_stray_answer(&callee.sent, &out.mad), 0);
	assert_int_equal(pass(&callee), 0);
	assert_int_equal(out.event, RDMA_CM_EVENT_DISCONNECTED);
	assert_false(cm_machine_holds_qp(&callee));
}

static void an_alternate_path_is_not_supported_and_said_so(void **state)
{
	struct cm_mad lap = { .type = CM_LAP,
			      .lap.remote_response_timeout = RESPONSE };

	(void)state;
	connected();
	assert_int_equal(ask(&caller, CM_DO_LOAD_PATH, &lap), 0);
	expect_sent(CM_LAP);
	assert_int_equal(out.mad.lap.remote_qpn, 9);
	assert_int_equal(ask(&caller, CM_DO_LOAD_PATH, &lap), -EBUSY);
	assert_int_equal(tick(&caller), 0);
	expect_sent(CM_LAP);
	assert_int_equal(pass(&callee), 0);
	expect_sent(CM_APR);
	assert_int_equal(pass(&caller), 0);
	assert_true(out.path_answered);
	assert_int_equal(out.path_status, CM_PATH_UNSUPPORTED);
	assert_true(caller.deadline_ns == 0);
	assert_int_equal(caller.state, CM_ESTABLISHED);
}

static void messages_of_others_are_left_alone(void **state)
{
	struct cm_mad rep;

	(void)state;
	requested();
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	rep = out.mad;
	rep.rep.remote_comm_id++;
	assert_int_equal(cm_machine_receive(&caller, &rep, now, &out), -ENOENT);
	assert_int_equal(wire_cm_stray_answer(&rep, &out.mad), 0);
	assert_int_equal(out.mad.rej.reason, CM_REASON_INVALID_COMM_ID);
	assert_int_equal(out.mad.rej.answered, CM_ANSWERED_REP);
	assert_int_equal(pass(&callee), -ENOENT);
	rep.rep.remote_comm_id--;
	assert_int_equal(cm_machine_receive(&caller, &rep, now, &out), 0);
}

static void an_unsaid_or_absurd_time_is_bounded(void **state)
{
	struct cm_mad req = request(8);

	(void)state;
	req.req.remote_response_timeout = req.req.local_response_timeout = 31;
	req.req.primary.local_ack_timeout = 31;
	cm_machine_init(&callee, 2);
	req.req.local_comm_id = 1;
	now = 0;
	assert_int_equal(cm_machine_receive(&callee, &req, now, &out), 0);
	assert_true(callee.deadline_ns < UINT64_C(100) * 1000000000);
	req.req.primary.local_ack_timeout = 0;
	cm_machine_init(&callee, 2);
	assert_int_equal(cm_machine_receive(&callee, &req, now, &out), 0);
	assert_true(callee.rest_ns > 0);
}

/* A callee that has sent its REP, and hears nothing but MRAs: how long it waits. */
static uint64_t waits_ns(unsigned code, unsigned retries, bool with_mras)
{
	struct cm_mad req = request(8), mra = { .type = CM_MRA };

	req.req.remote_response_timeout = req.req.local_response_timeout = (uint8_t)code;
	req.req.max_cm_retries = (uint8_t)retries;
	req.req.primary.local_ack_timeout = 31;
	req.req.local_comm_id = mra.mra.local_comm_id = 1;
	mra.mra.remote_comm_id = 2;
	mra.mra.service_timeout = (uint8_t)code;
	mra.mra.answered = CM_ANSWERED_REP;
	cm_machine_init(&callee, 2);
	callee.limit_ns = LIMIT;
	now = 1;
	assert_int_equal(cm_machine_receive(&callee, &req, now, &out), 0);
	assert_int_equal(ask(&callee, CM_DO_ACCEPT, &reply), 0);
	while (callee.state == CM_REP_SENT) {
		if (with_mras)
			assert_int_equal(cm_machine_receive(&callee, &mra, now, &out), 0);
		assert_int_equal(tick(&callee), 0);
	}
	assert_int_equal(callee.state, CM_ANSWERED);
	return now - 1;
}

static void no_caller_decides_how_long_it_is_waited_for(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 32; code++)
		for (unsigned retries = 0; retries < 16; retries++) {
			assert_true(waits_ns(code, retries, false) <= LIMIT);
			assert_true(waits_ns(code, retries, true) <= 2 * LIMIT);
			/* Nor is it one that may be gone, in the state that follows. */
			assert_true(callee.deadline_ns - now <= LIMIT);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_sent_as_often_as_it_says),
		cmocka_unit_test(the_caller_is_told_when_the_program_takes_long),
		cmocka_unit_test(a_program_that_never_answers_is_given_up_by_both),
		cmocka_unit_test(what_comes_twice_is_answered_twice_and_reported_once),
		cmocka_unit_test(time_wait_lasts_a_trip_and_the_delay_of_an_ack),
		cmocka_unit_test(a_rejection_names_what_it_answers_and_is_kept),
		cmocka_unit_test(the_lower_of_two_callers_becomes_the_called),
		cmocka_unit_test(a_connection_whose_qp_asks_anew_is_ended),
		cmocka_unit_test(an_alternate_path_is_not_supported_and_said_so),
		cmocka_unit_test(messages_of_others_are_left_alone),
		cmocka_unit_test(an_unsaid_or_absurd_time_is_bounded),
		cmocka_unit_test(no_caller_decides_how_long_it_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
