/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion events that are held back until there are enough of them or some
 * time is over (ibv_modify_cq(3)), and what arming means for queues that tell
 * nobody.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static const struct side_options ev = { .events = true, .recv_wr = 256,
					.cqe = 1024 };
enum { LONG_US = 60000, SHORT_US = 200 };

struct moderate {
	uint16_t count, period_us;
};

static int set_moderation(struct end *e, void *arg)
{
	const struct moderate *m = arg;
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = m->count, .cq_period = m->period_us },
	};

	return ibv_modify_cq(e->cq[RECV_CQ], &attr);
}

static void moderate(struct side *s, uint16_t count, uint16_t period_us)
{
	struct moderate m = { count, period_us };

	expect_eq(side_run(s, set_moderation, &m, sizeof(m)), 0);
}

/* Messages that have arrived for certain. */
static void deliver(struct pair *p, int count, unsigned flags)
{
	for (int i = 0; i < count; i++) {
		struct send_req r = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);

		r.flags |= flags;
		side_recv(&p->b, 1, 0, 100);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 1);
	}
}

static void an_event_waits_for_the_count(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 4, 0);
	for (int round = 0; round < 3; round++) {
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		deliver(p, 3, 0);
		expect_eq(side_event(&p->b, QUIET_MS), -1);
		deliver(p, 1, 0);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
		/* One event, and not before the next arming. */
		deliver(p, 5, 0);
		expect_eq(side_event(&p->b, QUIET_MS), -1);
	}
}

static void an_event_waits_for_the_period(struct pair *p)
{
	uint64_t start;

	pair_start(p, &ev);
	moderate(&p->b, 0, LONG_US);
	for (int round = 0; round < 2; round++) {
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		start = now_ms();
		deliver(p, 3, 0);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
		expect(now_ms() - start >= LONG_US / 1000 - 1);
		expect_eq(side_event(&p->b, 0), -1);
	}
}

static void whichever_comes_first_raises_the_event(struct pair *p)
{
	uint64_t start;

	pair_start(p, &ev);
	moderate(&p->b, 2, LONG_US);
	/* The count, long before the period unless the machine is busy each time ... */
	for (int tries = 1;; tries++) {
		expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
		deliver(p, 2, 0);
		if (side_event(&p->b, LONG_US / 1000 / 2) == RECV_CQ)
			break;
		expect(tries < 10);
		expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	}
	/* ... whose period does not cut the next one short ... */
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	start = now_ms();
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect(now_ms() - start >= LONG_US / 1000 - 1);
	/* ... and the period. */
	moderate(&p->b, 1000, SHORT_US);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void zero_ends_moderation(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 100, 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	/* What was held back comes. */
	moderate(&p->b, 0, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	moderate(&p->b, 1, 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void only_what_would_raise_an_event_counts(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 2, 0);
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	deliver(p, 3, 0);
	deliver(p, 1, IBV_SEND_SOLICITED);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
	deliver(p, 1, IBV_SEND_SOLICITED);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void an_error_is_not_held_back(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 100, 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	side_recv(&p->b, 1, 0, 10);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
}

static void polling_does_not_wait(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 100, 0);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

static void a_queue_can_be_destroyed_with_an_event_held_back(struct pair *p)
{
	pair_start(p, &ev);
	moderate(&p->b, 100, UINT16_MAX);
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	deliver(p, 1, 0);
	/* The runner closes both sides. */
}

static void what_is_not_moderation_is_refused(struct pair *p)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 0 };
	struct end *e = p->a.end;

	side_open(&p->a, &ev);
	expect_eq(ibv_modify_cq(e->cq[0], &attr), EINVAL);
	attr.attr_mask = 1 << 5;
	expect_eq(ibv_modify_cq(e->cq[0], &attr), EOPNOTSUPP);
}

static void the_device_tells_its_limits(struct pair *p)
{
	struct ibv_device_attr_ex dev;
	struct moderate m;

	side_open(&p->a, &ev);
	expect_eq(ibv_query_device_ex(p->a.end->ctx, NULL, &dev), 0);
	expect(dev.cq_mod_caps.max_cq_count > 0);
	expect(dev.cq_mod_caps.max_cq_period > 0);
	m = (struct moderate){ dev.cq_mod_caps.max_cq_count,
			       dev.cq_mod_caps.max_cq_period };
	expect_eq(side_run(&p->a, set_moderation, &m, sizeof(m)), 0);
}

static void a_queue_without_a_channel_may_be_armed(struct pair *p)
{
	pair_start(p, NULL);
	for (int solicited = 0; solicited < 2; solicited++) {
		expect_eq(side_arm(&p->b, RECV_CQ, solicited), 0);
		expect_eq(side_arm(&p->a, SEND_CQ, solicited), 0);
		deliver(p, 1, IBV_SEND_SOLICITED);
		side_wait_ok(&p->b, RECV_CQ, 1);
	}
}

#define PAGE "ibv_modify_cq(3)"
static const struct test_case cases[] = {
	RULE(PAGE, an_event_waits_for_the_count),
	RULE(PAGE, an_event_waits_for_the_period),
	RULE(PAGE, whichever_comes_first_raises_the_event),
	RULE(PAGE, zero_ends_moderation),
	RULE(PAGE, only_what_would_raise_an_event_counts),
	CASE(an_error_is_not_held_back),
	RULE(PAGE, polling_does_not_wait),
	CASE(a_queue_can_be_destroyed_with_an_event_held_back),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, what_is_not_moderation_is_refused),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device_ex(3)",
		the_device_tells_its_limits),
	RULE("ibv_req_notify_cq(3)", a_queue_without_a_channel_may_be_armed),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
