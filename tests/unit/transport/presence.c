/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread moves packets (presence.c), in virtual time: what the progress thread leaves to a
 * program that polls, when that is relied on, and when looks come at what it has left.
 */
#include <stdio.h>

#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/packet/base/state.h"
#include "virtual/clock.h"
#include "virtual/fail.h"

#define US UINT64_C(1000)

static struct packet_port port;
static unsigned looks;

static uint64_t due_ns = UINT64_MAX;

static uint64_t next_ns(struct carrier *c)
{
	(void)c;
	return due_ns;
}

static const struct carrier_ops ops = { .next_ns = next_ns };
static struct carrier carrier = { .ops = &ops };

static void on_work(struct progress_timer *t)
{
	(void)t;
	looks++;
}

static void begin(void)
{
	port = (struct packet_port){ .carrier = &carrier };
	list_init(&port.waiting);
	pthread_mutex_init(&port.presence.lock, NULL);
	packet_presence_open(&port, on_work);
	looks = 0;
}

static void end(void)
{
	packet_rely(&port, false);
	packet_presence_close(&port);
	packet_look_now(&port);
	expect(!wheel_is_armed(&port.presence.look.timer));
}

static void pass(uint64_t ns)
{
	virtual_set_ns(virtual_now_ns() + ns);
}

/* A call of the program that polls. */
static void poll_once(void)
{
	atomic_fetch_add(&hca_process.polls, 1);
	packet_polled(&port);
}

static void polls_without_a_gap_are_relied_on(void)
{
	begin();
	for (unsigned i = 0; i < 49; i++, pass(10 * US))
		poll_once();
	expect(!packet_arrives(&port));
	for (unsigned i = 0; i < 5; i++, pass(10 * US))
		poll_once();
	expect(packet_arrives(&port));
	expect(packet_leave(&port));
	expect(!packet_arrives(&port));
	end();
}

/* An event says that packets have come, `after_ns` behind a poll; then the progress thread rests. */
static bool is_left(uint64_t after_ns)
{
	bool left;

	pass(after_ns);
	left = packet_leave_to_polls(&port);
	pass(10 * US);
	return left;
}

static void polls_with_gaps_are_relied_on_when_they_take_in_what_was_left(void)
{
	begin();
	for (unsigned i = 0; i < 9; i++, pass(30 * US)) {
		poll_once();
		expect(!packet_arrives(&port));
		expect(is_left(i % 2 ? 10 * US : 100 * US));
	}
	poll_once();
	expect(packet_arrives(&port));
	end();
	/* Not if they do not take it in now and then. */
	begin();
	for (unsigned i = 0; i < 40; i++, pass(30 * US)) {
		poll_once();
		expect(is_left(100 * US));
		if (i % 7 == 6)
			expect(!is_left(0));
	}
	poll_once();
	expect(!packet_arrives(&port));
	end();
}

static void packets_are_left_to_a_program_that_polls_but_not_for_long(void)
{
	begin();
	pass(2000 * US);
	expect(!packet_leave_to_polls(&port));
	poll_once();
	pass(5 * US);
	/* Its polls take nothing in. */
	for (unsigned i = 0; i < 3; i++)
		expect(packet_leave_to_polls(&port));
	expect(!packet_leave_to_polls(&port));
	poll_once();
	expect(is_left(500 * US));
	expect(!packet_leave_to_polls(&port));
	/* It does not poll any more. */
	pass(2000 * US);
	expect(!packet_leave_to_polls(&port));
	/* One that has armed a queue may be about to sleep. */
	poll_once();
	atomic_store(&hca_process.armed, 1);
	expect(!packet_leave_to_polls(&port));
	atomic_store(&hca_process.armed, 0);
	end();
	/* One that is relied on has to be told (packet_arrives()). */
	begin();
	for (unsigned i = 0; i < 100; i++, pass(10 * US))
		poll_once();
	expect(!packet_leave_to_polls(&port));
	expect(packet_arrives(&port));
	end();
}

/* The time until the look that is armed. */
static uint64_t until_look(void)
{
	uint64_t from = virtual_now_ns();

	looks = 0;
	while (!looks) {
		pass(10 * US);
		virtual_progress();
	}
	return virtual_now_ns() - from;
}

static void looks_in_vain_come_less_often(void)
{
	uint64_t before = 0, first, last = 0;

	begin();
	atomic_store(&port.backlog, 1);
	atomic_store(&port.owes_ns, virtual_now_ns());
	packet_look_later(&port);
	first = until_look();
	for (unsigned i = 0; i < 8; i++, before = last) {
		atomic_store(&port.owes_ns, virtual_now_ns());
		expect(packet_look_in_vain(&port));
		last = until_look();
		expect(last >= before);
	}
	expect(last > 8 * first);
	expect(last <= 2000 * US);
	/* What has waited for long is not left. */
	expect(!packet_look_in_vain(&port));
	/* Then looks come as often as at first. */
	packet_look_later(&port);
	expect(until_look() <= first);
	/* A look that was asked for is none in vain. */
	atomic_store(&port.owes_ns, virtual_now_ns());
	packet_look_now(&port);
	until_look();
	expect(!packet_look_in_vain(&port));
	end();
}

/* A program that polls does by itself what it has left, but is not relied on for long. */
static void looks_are_put_off_while_the_program_polls(void)
{
	uint64_t from;

	begin();
	atomic_store(&port.backlog, 1);
	packet_look_later(&port);
	from = virtual_now_ns();
	for (looks = 0; !looks; virtual_progress()) {
		pass(30 * US);
		poll_once();
	}
	expect(virtual_now_ns() - from > 1000 * US);
	expect(virtual_now_ns() - from < 2500 * US);
	/* Work that was asked for is not put off. */
	packet_look_now(&port);
	poll_once();
	expect(until_look() <= 20 * US);
	packet_look_in_vain(&port);
	/* Nor is what the carrier holds back. */
	atomic_store(&port.backlog, 0);
	due_ns = virtual_now_ns() + 50 * US;
	packet_look_later(&port);
	poll_once();
	expect(until_look() < 150 * US);
	due_ns = UINT64_MAX;
	end();
}

static void a_program_that_does_not_poll_any_more_is_noticed(void)
{
	begin();
	for (unsigned i = 0; i < 100; i++, pass(10 * US))
		poll_once();
	expect(packet_arrives(&port));
	expect(until_look() <= 1000 * US);
	expect(!packet_arrives(&port));
	end();
}

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} tests[] = {
#define TEST(name) { #name, name }
		TEST(polls_without_a_gap_are_relied_on),
		TEST(polls_with_gaps_are_relied_on_when_they_take_in_what_was_left),
		TEST(packets_are_left_to_a_program_that_polls_but_not_for_long),
		TEST(looks_in_vain_come_less_often),
		TEST(looks_are_put_off_while_the_program_polls),
		TEST(a_program_that_does_not_poll_any_more_is_noticed),
	};

	expect_eq(progress_hold(), 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		tests[i].fn();
		printf("ok %s\n", tests[i].name);
	}
	return 0;
}
