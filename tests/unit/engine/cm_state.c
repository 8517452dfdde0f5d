/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection state machine: how connections are made, refused and ended, two machines
 * that exchange messages, and every input in every state.
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

#include "engine/cm/state.h"
#include "util/container_of.h"

struct side {
	enum cm_state state;
	int events[8];
	int statuses[8];
	int event_count;
	bool qp_error;
	struct side *peer;
};

/* Takes a step and delivers the message that is sent to the peer at once. */
static int play(struct side *s, enum cm_input input)
{
	struct cm_step step;
	int ret = cm_state_step(s->state, input, &step);

	if (ret)
		return ret;
	s->state = step.next;
	s->qp_error |= step.qp_error;
	if (step.report) {
		assert_true(s->event_count < 8);
		s->statuses[s->event_count] = step.status;
		s->events[s->event_count++] = step.event;
	}
	if (step.send && s->peer) {
		struct cm_mad mad = { .type = step.send };

		if (step.send == CM_SIDR_REP && step.reason)
			mad.sidr_rep.status = CM_SIDR_REJECTED;
		play(s->peer, cm_state_input_of(&mad));
	}
	return 0;
}

static void expect_events(const struct side *s, int count, const int *events)
{
	assert_int_equal(s->event_count, count);
	for (int i = 0; i < count; i++)
		assert_int_equal(s->events[i], events[i]);
}
#define EXPECT_EVENTS(side, ...)                                       \
	expect_events((side), ARRAY_SIZE(((int[]){ __VA_ARGS__ })),    \
		      (int[]){ __VA_ARGS__ })

static void pair(struct side *caller, struct side *callee)
{
	*caller = (struct side){ .peer = callee };
	*callee = (struct side){ .peer = caller };
}

static void established(struct side *caller, struct side *callee)
{
	pair(caller, callee);
	assert_int_equal(play(caller, CM_DO_CONNECT), 0);
	assert_int_equal(play(callee, CM_DO_ACCEPT), 0);
	assert_int_equal(play(caller, CM_DO_ESTABLISH), 0);
	assert_int_equal(caller->state, CM_ESTABLISHED);
	assert_int_equal(callee->state, CM_ESTABLISHED);
	EXPECT_EVENTS(caller, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT_EVENTS(callee, RDMA_CM_EVENT_CONNECT_REQUEST,
		      RDMA_CM_EVENT_ESTABLISHED);
	caller->event_count = callee->event_count = 0;
}

static void request_reply_and_ready_establish_both_sides(void **state)
{
	struct side a, b;

	(void)state;
	established(&a, &b);
}

static void disconnect_reports_once_on_both_sides(void **state)
{
	struct side a, b;

	(void)state;
	established(&a, &b);
	assert_int_equal(play(&a, CM_DO_DISCONNECT), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_DISCONNECTED);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_DISCONNECTED);
	/* A second disconnect and a late CM_PEER_GONE have no effect. */
	assert_int_equal(play(&b, CM_DO_DISCONNECT), -EALREADY);
	assert_int_equal(play(&b, CM_PEER_GONE), -EPROTO);
	assert_int_equal(play(&b, CM_TIMEOUT), 0);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(b.state, CM_DONE);
}

static void crossing_disconnects_report_once_each(void **state)
{
	struct side a, b;

	(void)state;
	established(&a, &b);
	a.peer = b.peer = NULL; /* neither message has arrived yet */
	assert_int_equal(play(&a, CM_DO_DISCONNECT), 0);
	assert_int_equal(play(&b, CM_DO_DISCONNECT), 0);
	assert_int_equal(play(&a, CM_GOT_DREQ), 0);
	assert_int_equal(play(&b, CM_GOT_DREQ), 0);
	assert_int_equal(play(&a, CM_GOT_DREP), -EPROTO);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_DISCONNECTED);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_DISCONNECTED);
}

static void death_of_the_peer_disconnects_and_fails_the_qp(void **state)
{
	struct side a, b;

	(void)state;
	established(&a, &b);
	assert_int_equal(play(&b, CM_PEER_GONE), 0);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_DISCONNECTED);
	assert_true(b.qp_error);
}

static void destroying_a_side_disconnects_the_other(void **state)
{
	struct side a, b;

	(void)state;
	established(&a, &b);
	assert_int_equal(play(&a, CM_DO_DESTROY), 0);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_DISCONNECTED);
	assert_false(b.qp_error);
}

static void reject_ends_the_request(void **state)
{
	struct side a, b;

	(void)state;
	pair(&a, &b);
	assert_int_equal(play(&a, CM_DO_CONNECT), 0);
	assert_int_equal(play(&b, CM_DO_REJECT), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(a.statuses[0], CM_STATUS_OF_MESSAGE);
	assert_int_equal(play(&b, CM_DO_ACCEPT), -ECONNRESET);
	assert_int_equal(play(&a, CM_DO_CONNECT), -EINVAL);
}

static void a_port_without_listener_is_reason_8(void **state)
{
	struct side a = { .state = CM_IDLE };

	(void)state;
	assert_int_equal(play(&a, CM_DO_CONNECT), 0);
	assert_int_equal(play(&a, CM_NO_LISTENER), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(a.statuses[0], CM_REASON_INVALID_SERVICE_ID);
}

static void silence_ends_in_unreachable(void **state)
{
	struct side a, b;

	(void)state;
	pair(&a, &b);
	assert_int_equal(play(&a, CM_DO_CONNECT), 0);
	assert_int_equal(play(&a, CM_TIMEOUT), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(a.statuses[0], -ETIMEDOUT);
	/* The callee is told that the caller does not wait any more. */
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_REJECTED);

	pair(&a, &b);
	assert_int_equal(play(&a, CM_DO_CONNECT), 0);
	assert_int_equal(play(&b, CM_DO_ACCEPT), 0);
	assert_int_equal(play(&b, CM_TIMEOUT), 0);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_REJECTED);
}

static void data_before_the_ready_may_establish(void **state)
{
	struct side b = { .state = CM_REP_SENT };

	(void)state;
	assert_int_equal(play(&b, CM_DO_NOTIFY), 0);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(play(&b, CM_DO_NOTIFY), -EISCONN);
	assert_int_equal(play(&b, CM_GOT_RTU), -EPROTO);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_ESTABLISHED);
}

static void datagram_lookup_answers_the_caller_only(void **state)
{
	struct side a, b;

	(void)state;
	pair(&a, &b);
	assert_int_equal(play(&a, CM_DO_LOOKUP), 0);
	assert_int_equal(play(&b, CM_DO_ACCEPT), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EVENTS(&b, RDMA_CM_EVENT_CONNECT_REQUEST);

	pair(&a, &b);
	assert_int_equal(play(&a, CM_DO_LOOKUP), 0);
	assert_int_equal(play(&b, CM_DO_REJECT), 0);
	EXPECT_EVENTS(&a, RDMA_CM_EVENT_UNREACHABLE);
	assert_int_equal(a.statuses[0], CM_STATUS_OF_MESSAGE);
}

/* Every input leads to a state of the table, and CM_DONE is never left. */
static void any_input_in_any_state_is_defined(void **state)
{
	(void)state;
	for (int s = 0; s < CM_STATES; s++) {
		for (int i = 0; i < CM_INPUTS; i++) {
			struct cm_step step;
			int ret = cm_state_step(s, i, &step);

			assert_true(ret == 0 || ret == -EINVAL || ret == -EPROTO ||
				    ret == -EISCONN || ret == -ECONNRESET ||
				    ret == -EALREADY);
			if (ret)
				continue;
			assert_true(step.next < CM_STATES);
			if (s == CM_DONE)
				assert_int_equal(step.next, CM_DONE);
			/* Rejections say why. */
			assert_true(step.send != CM_REJ || step.reason);
			/* Failures are never reported as success. */
			if (step.report &&
			    (step.event == RDMA_CM_EVENT_REJECTED ||
			     step.event == RDMA_CM_EVENT_UNREACHABLE ||
			     step.event == RDMA_CM_EVENT_CONNECT_ERROR))
				assert_int_not_equal(step.status, 0);
			assert_string_not_equal(cm_state_name(s), "unknown");
			assert_string_not_equal(cm_input_name(i), "unknown");
		}
	}
}

/* Two sides with random requests and deaths: each reports at most one end. */
static void random_plays_report_one_end_at_most(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int run = 0; run < 5000; run++) {
		struct side a, b, *sides[] = { &a, &b };

		pair(&a, &b);
		play(&a, CM_DO_CONNECT);
		for (int step = 0; step < 12; step++) {
			struct side *s = sides[rand_r(&seed) % 2];
			int pick = rand_r(&seed) % (CM_DO_DESTROY + 4);

			if (s->event_count > 6)
				break;
			play(s, pick <= CM_DO_DESTROY ? pick :
				pick == CM_DO_DESTROY + 1 ? CM_PEER_GONE :
							    CM_TIMEOUT);
		}
		for (int k = 0; k < 2; k++) {
			int ends = 0;

			for (int e = 0; e < sides[k]->event_count; e++)
				ends += sides[k]->events[e] ==
						RDMA_CM_EVENT_REJECTED ||
					sides[k]->events[e] ==
						RDMA_CM_EVENT_UNREACHABLE ||
					sides[k]->events[e] ==
						RDMA_CM_EVENT_DISCONNECTED;
			assert_true(ends <= 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_reply_and_ready_establish_both_sides),
		cmocka_unit_test(disconnect_reports_once_on_both_sides),
		cmocka_unit_test(crossing_disconnects_report_once_each),
		cmocka_unit_test(death_of_the_peer_disconnects_and_fails_the_qp),
		cmocka_unit_test(destroying_a_side_disconnects_the_other),
		cmocka_unit_test(reject_ends_the_request),
		cmocka_unit_test(a_port_without_listener_is_reason_8),
		cmocka_unit_test(silence_ends_in_unreachable),
		cmocka_unit_test(data_before_the_ready_may_establish),
		cmocka_unit_test(datagram_lookup_answers_the_caller_only),
		cmocka_unit_test(any_input_in_any_state_is_defined),
		cmocka_unit_test(random_plays_report_one_end_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
