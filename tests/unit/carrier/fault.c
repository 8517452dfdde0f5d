/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter of faults, one fault at a time; then with threads. */
#include <pthread.h>

#include "rig.h"
#include "transport/carrier/fault.h"
#include "transport/carrier/queue.h"

static struct carrier *open_fault(uint64_t seed)
{
	struct carrier_fault_params p = { .clock = rig_clock(), .seed = seed };
	struct carrier *c;

	rig_begin();
	check(carrier_fault_open(&rig.below, &p, &c) == 0);
	rig_own(c);
	return c;
}

static void set(struct carrier *c, unsigned directions, struct impair_params p)
{
	carrier_fault_set(c, directions, IMPAIR_ALL_CLASSES, &p);
}

static struct impair_counters counters(struct carrier *c, enum carrier_direction d)
{
	struct impair_counters n;

	carrier_fault_count(c, d, 0, &n);
	return n;
}

static void without_faults_units_pass_as_they_are(void)
{
	struct carrier *c = open_fault(1);
	uint8_t bytes[300];
	struct iovec iov = { bytes, 300 };
	struct carrier_unit train = { .iov = &iov, .count = 1, .segment = 100 };

	rig_make(5, bytes, 300);
	check(carrier_emit(c, &train, 1) == 1);
	check(rig.sent.count == 1 && rig.sent.last.iov == &iov);
	rig.room = 0;
	check(carrier_emit(c, &train, 1) == -EAGAIN);
	rig.arriving = 3;
	check(carrier_poll(c, 2) == 2 && carrier_poll(c, 2) == 1 && rig.got.count == 3);
	rig.below.upper.writable(rig.below.upper.arg);
	check(rig.got.writable == 1);
	check(carrier_next_ns(c) == UINT64_MAX);
	carrier_close(c);
	check(rig.closed);
}

static void some_are_lost_in_the_direction_that_was_said(void)
{
	struct carrier *c = open_fault(2);

	set(c, 1u << CARRIER_OUT, (struct impair_params){ .loss = 0.25 });
	for (uint32_t i = 0; i < 10000; i++)
		check(rig_send(c, i, 100) == 1);
	check(rig.sent.count > 7200 && rig.sent.count < 7800);
	check(counters(c, CARRIER_OUT).packets == 10000);
	check(counters(c, CARRIER_OUT).lost == 10000 - rig.sent.count);
	for (uint32_t i = 1; i < rig.sent.count; i++)
		check(rig.sent.number[i] > rig.sent.number[i - 1]);
	rig.arriving = 1000;
	while (carrier_poll(c, 16))
		;
	check(rig.got.count == 1000);
	/* And what arrives. */
	set(c, CARRIER_BOTH, (struct impair_params){ .loss = 1 });
	rig.arriving = 1100;
	while (carrier_poll(c, 16))
		;
	check(rig.got.count == 1000 && counters(c, CARRIER_IN).lost == 100);
	carrier_close(c);
}

static void once_told_to_stop_it_passes_units_again(void)
{
	struct carrier *c = open_fault(1);
	uint8_t bytes[300];
	struct iovec iov = { bytes, 300 };
	struct carrier_unit train = { .iov = &iov, .count = 1, .segment = 100 };

	check(carrier_fault_passes(c));
	set(c, 1u << CARRIER_OUT, (struct impair_params){ .delay_ns = 1000 });
	check(!carrier_fault_passes(c));
	rig_play(c, 10000);
	check(rig_send(c, 0, 100) == 1 && rig.sent.count == 0);
	set(c, 1u << CARRIER_OUT, (struct impair_params){ 0 });
	/* What is held back comes first. */
	check(!carrier_fault_passes(c));
	rig_play(c, 20000);
	check(rig.sent.count == 1 && carrier_fault_passes(c));
	rig_make(5, bytes, 300);
	check(carrier_emit(c, &train, 1) == 1 && rig.sent.last.iov == &iov);
	carrier_close(c);
}

static void a_seed_begins_anew(void)
{
	struct carrier *c = open_fault(1);
	uint32_t lost[2];

	set(c, 1u << CARRIER_OUT, (struct impair_params){ .loss = 0.5 });
	for (unsigned round = 0; round < 2; round++) {
		lost[round] = 0;
		carrier_fault_seed(c, 77);
		for (uint32_t i = 0; i < 32; i++) {
			uint64_t before = counters(c, CARRIER_OUT).lost;

			check(rig_send(c, i, 100) == 1);
			lost[round] |= (uint32_t)(counters(c, CARRIER_OUT).lost - before) << i;
		}
	}
	check(lost[0] && lost[0] == lost[1]);
	carrier_close(c);
}

static void some_come_twice(void)
{
	struct carrier *c = open_fault(3);
	unsigned twice = 0;

	set(c, CARRIER_BOTH, (struct impair_params){ .duplicate = 0.1 });
	for (uint32_t i = 0; i < 5000; i++)
		check(rig_send(c, i, 100) == 1);
	for (uint32_t i = 1; i < rig.sent.count; i++) {
		check(rig.sent.number[i] - rig.sent.number[i - 1] <= 1);
		twice += rig.sent.number[i] == rig.sent.number[i - 1];
	}
	check(twice > 400 && twice < 600 && rig.sent.count == 5000 + twice);
	check(counters(c, CARRIER_OUT).duplicated == twice);
	rig.arriving = 1000;
	while (carrier_poll(c, 7))
		;
	check(rig.got.count == 1000 + counters(c, CARRIER_IN).duplicated);
	carrier_close(c);
}

/* However long it was to wait, and however long the link was to be busy. */
static void what_waits_leaves_when_faults_end(void)
{
	struct carrier *c = open_fault(6);

	set(c, 1u << CARRIER_OUT,
	    (struct impair_params){ .delay_ns = UINT64_C(3600000000000), .rate_bps = 1000,
				    .reorder = 0.5 });
	rig_play(c, 10000);
	for (uint32_t i = 0; i < 20; i++)
		check(rig_send(c, i, 100) == 1);
	check(rig.sent.count == 0);
	set(c, 1u << CARRIER_OUT, (struct impair_params){ 0 });
	rig_play(c, 10001);
	check(rig.sent.count == 20);
	for (uint32_t i = 0; i < 20; i++)
		check(rig.sent.number[i] == i);
	check(carrier_fault_passes(c));
	/* Nor does it delay what other faults are for. */
	set(c, 1u << CARRIER_OUT, (struct impair_params){ .delay_ns = 1000 });
	check(rig_send(c, 20, 100) == 1);
	rig_play(c, 20000);
	check(rig.sent.count == 21);
	carrier_close(c);
}

static void delay_and_jitter_keep_the_order(void)
{
	struct carrier *c = open_fault(4);
	bool late = false;

	set(c, 1u << CARRIER_OUT,
	    (struct impair_params){ .delay_ns = 100000, .jitter_ns = 20000 });
	for (uint32_t i = 0; i < 1000; i++) {
		rig_play(c, 10000 + i * 1000);
		check(rig_send(c, i, 100) == 1);
	}
	check(carrier_next_ns(c) != UINT64_MAX);
	rig_play(c, 10000000);
	check(rig.sent.count == 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		uint64_t took = rig.sent.at_ns[i] - (10000 + i * 1000);

		check(rig.sent.number[i] == i);
		check(took >= 100000 && took <= 120000);
		late |= took > 110000;
	}
	check(late);
	carrier_close(c);
}

static void some_are_overtaken(void)
{
	struct carrier *c = open_fault(5);
	unsigned overtaken = 0;

	set(c, 1u << CARRIER_OUT,
	    (struct impair_params){ .reorder = 0.05, .gap_ns = 10000 });
	for (uint32_t i = 0; i < 2000; i++) {
		rig_play(c, 10000 + i * 1000);
		check(rig_send(c, i, 100) == 1);
	}
	rig_play(c, 10000000);
	check(rig.sent.count == 2000);
	for (uint32_t i = 1; i < 2000; i++)
		overtaken += rig.sent.number[i] < rig.sent.number[i - 1];
	check(overtaken > 50 && overtaken <= counters(c, CARRIER_OUT).reordered);
	carrier_close(c);
}

static void one_byte_is_changed(void)
{
	struct carrier *c = open_fault(6);
	unsigned damaged = 0;

	set(c, CARRIER_BOTH, (struct impair_params){ .corrupt = 0.1 });
	for (uint32_t i = 0; i < 2000; i++)
		check(rig_send(c, i, 1000) == 1);
	check(rig.sent.count == 2000);
	for (uint32_t i = 0; i < 2000; i++)
		damaged += rig.sent.damaged[i] || rig.sent.number[i] != i;
	check(damaged == counters(c, CARRIER_OUT).corrupted);
	check(damaged > 150 && damaged < 250);
	carrier_close(c);
}

static void the_rate_spaces_packets(void)
{
	struct carrier *c = open_fault(7);

	/* 1000 bytes at 8 Gbit/s: a microsecond each. */
	set(c, 1u << CARRIER_OUT, (struct impair_params){ .rate_bps = 8000000000 });
	for (uint32_t i = 0; i < 100; i++)
		check(rig_send(c, i, 1000) == 1);
	check(rig.sent.count == 0);
	rig_play(c, 1000000);
	check(rig.sent.count == 100);
	for (uint32_t i = 0; i < 100; i++)
		check(rig.sent.at_ns[i] == 1000 + (i + 1) * 1000);
	carrier_close(c);
}

static void a_partition_ends(void)
{
	struct carrier *c = open_fault(8);

	set(c, CARRIER_BOTH, (struct impair_params){ .partition = true });
	check(rig_send(c, 1, 100) == 1 && rig.sent.count == 0);
	rig.arriving = 1;
	check(carrier_poll(c, 4) == 1 && rig.got.count == 0);
	check(counters(c, CARRIER_OUT).cut == 1 && counters(c, CARRIER_IN).cut == 1);
	set(c, CARRIER_BOTH, (struct impair_params){ 0 });
	check(rig_send(c, 2, 100) == 1 && rig.sent.count == 1);
	rig.arriving = 2;
	check(carrier_poll(c, 4) == 1 && rig.got.count == 1);
	carrier_close(c);
}

static void a_train_is_split(void)
{
	struct carrier *c = open_fault(9);
	uint8_t bytes[250];
	struct iovec iov[2] = { { bytes, 70 }, { bytes + 70, 180 } };
	struct carrier_unit train = {
		.iov = iov, .count = 2, .segment = 100, .ip_id = 65535,
		.known = CARRIER_IP_ID, .to = carrier_addr_of(3),
	};

	for (uint32_t i = 0; i < 250; i++)
		bytes[i] = (uint8_t)i;
	set(c, CARRIER_BOTH, (struct impair_params){ .delay_ns = 10 });
	check(carrier_emit(c, &train, 1) == 1);
	rig_play(c, 5000);
	check(rig.sent.count == 3);
	check(rig.sent.bytes[0] == 100 && rig.sent.bytes[2] == 50);
	check(rig.sent.number[1] == 0x67666564 && rig.sent.number[2] == 0xcbcac9c8);
	check(rig.sent.last.ip_id == 1 && rig.sent.last.segment == 0 &&
	      carrier_addr_number(&rig.sent.last.to) == 3);
	carrier_close(c);
}

static void what_the_carrier_below_refuses_waits(void)
{
	struct carrier *c = open_fault(10);

	set(c, CARRIER_BOTH, (struct impair_params){ .delay_ns = 1000 });
	rig.room = 3;
	for (uint32_t i = 0; i < 10; i++)
		check(rig_send(c, i, 100) == 1);
	rig_play(c, 100000);
	check(rig.sent.count == 3 && carrier_next_ns(c) == UINT64_MAX);
	rig.room = 100;
	rig.below.upper.writable(rig.below.upper.arg);
	check(rig.sent.count == 10 && rig.got.writable == 1);
	for (uint32_t i = 0; i < 10; i++)
		check(rig.sent.number[i] == i);
	carrier_close(c);
}

static void more_than_there_is_room_for_is_lost(void)
{
	struct carrier_fault_params p = {
		.clock = rig_clock(), .held_bytes = 10 * (100 + 128),
	};
	struct carrier *c;

	rig_begin();
	check(carrier_fault_open(&rig.below, &p, &c) == 0);
	rig_own(c);
	set(c, CARRIER_BOTH, (struct impair_params){ .delay_ns = 1000 });
	for (uint32_t i = 0; i < 15; i++)
		check(rig_send(c, i, 100) == 1);
	rig_play(c, 100000);
	check(rig.sent.count == 10 && counters(c, CARRIER_OUT).overflowed == 5);
	carrier_close(c);
}

static unsigned odd_ones(void *arg, const struct carrier_unit *packet)
{
	uint32_t number;

	carrier_unit_gather(packet, 0, 4, &number);
	return number & 1;
}

static void classes_are_treated_apart(void)
{
	struct carrier_fault_params p = { .clock = rig_clock(), .classify = odd_ones };
	struct impair_params lose = { .loss = 1 };
	struct impair_counters n;
	struct carrier *c;

	rig_begin();
	check(carrier_fault_open(&rig.below, &p, &c) == 0);
	rig_own(c);
	carrier_fault_set(c, CARRIER_BOTH, 1u << 1, &lose);
	for (uint32_t i = 0; i < 100; i++)
		check(rig_send(c, i, 100) == 1);
	check(rig.sent.count == 50);
	for (uint32_t i = 0; i < 50; i++)
		check(rig.sent.number[i] == 2 * i);
	carrier_fault_count(c, CARRIER_OUT, 1, &n);
	check(n.packets == 50 && n.lost == 50);
	check(counters(c, CARRIER_OUT).packets == 50);
	carrier_close(c);
}

/* What the judge has seen, and what it says about packets by their number. */
static struct judged {
	unsigned packets[2];
	uint32_t flow;
	struct carrier_fault_verdict verdict[8];
} judged;

static void judge(void *arg, enum carrier_direction direction, const struct carrier_unit *packet,
		  uint64_t now_ns, struct carrier_fault_verdict *verdict)
{
	uint32_t number;

	check(arg == &judged && now_ns == rig.now_ns && packet->count == 1 && !packet->segment);
	memcpy(&number, packet->iov->iov_base, sizeof(number));
	check(!verdict->drop && !verdict->delay_ns);
	if (number < 8)
		*verdict = judged.verdict[number];
	judged.flow = packet->flow;
	judged.packets[direction]++;
}

static struct carrier *open_judged(void)
{
	struct carrier_fault_params p = { .clock = rig_clock(), .judge = judge,
					  .judge_arg = &judged };
	struct carrier *c;

	rig_begin();
	memset(&judged, 0, sizeof(judged));
	check(carrier_fault_open(&rig.below, &p, &c) == 0);
	rig_own(c);
	return c;
}

static void a_judge_decides_about_single_packets(void)
{
	struct carrier *c = open_judged();

	check(rig_send(c, 0, 100) == 1 && !judged.packets[CARRIER_OUT]);
	carrier_fault_judge(c, true);
	check(!carrier_fault_passes(c));
	judged.verdict[1] = (struct carrier_fault_verdict){ .drop = true, .duplicate = true };
	judged.verdict[2] = (struct carrier_fault_verdict){ .duplicate = true };
	judged.verdict[3] = (struct carrier_fault_verdict){ .delay_ns = 1000 };
	judged.verdict[4] = (struct carrier_fault_verdict){ .corrupt = true };
	judged.verdict[5] = (struct carrier_fault_verdict){ .mark = true };
	rig_play(c, 5000);
	for (uint32_t i = 1; i < 6; i++)
		check(rig_send(c, i, 100) == 1);
	check((rig.sent.last.known & CARRIER_TOS) && (rig.sent.last.tos & 3) == 3);
	check(rig.sent.count == 5 && rig.sent.number[1] == 2 && rig.sent.number[2] == 2);
	check(rig.sent.number[3] == 4 && rig.sent.damaged[3] && rig.sent.number[4] == 5);
	rig_play(c, 6000);
	check(rig.sent.count == 6 && rig.sent.number[5] == 3 && !rig.sent.damaged[5]);
	rig.arriving = 3;
	while (carrier_poll(c, 4))
		;
	check(judged.packets[CARRIER_IN] == 3 && rig.got.count == 3);
	carrier_fault_judge(c, false);
	check(carrier_fault_passes(c));
	check(rig_send(c, 1, 100) == 1 && rig.sent.count == 7 && judged.packets[CARRIER_OUT] == 5);
	carrier_close(c);
}

static void a_judge_sees_the_packets_of_a_train_and_whose_they_are(void)
{
	struct carrier *c = open_judged();
	uint8_t bytes[250];
	struct iovec iov[2] = { { bytes, 70 }, { bytes + 70, 180 } };
	struct carrier_unit train = { .iov = iov, .count = 2, .segment = 100, .flow = 77 };

	memset(bytes, 9, sizeof(bytes));
	memcpy(bytes + 100, &(uint32_t){ 1 }, sizeof(uint32_t));
	judged.verdict[1] = (struct carrier_fault_verdict){ .drop = true };
	carrier_fault_judge(c, true);
	check(carrier_emit(c, &train, 1) == 1);
	check(judged.packets[CARRIER_OUT] == 3 && judged.flow == 77);
	check(rig.sent.count == 2 && rig.sent.bytes[0] == 100 && rig.sent.bytes[1] == 50);
	carrier_close(c);
}

static const struct impair_params all_kinds = {
	.loss = 0.1, .duplicate = 0.1, .reorder = 0.1, .corrupt = 0.1,
	.delay_ns = 10000, .jitter_ns = 5000, .rate_bps = 1000000000,
};

static void the_same_seed_does_the_same(void)
{
	static struct rig_log before;

	for (int round = 0; round < 3; round++) {
		struct carrier *c = open_fault(round < 2 ? 77 : 78);

		set(c, CARRIER_BOTH, all_kinds);
		for (uint32_t i = 0; i < 1000; i++) {
			rig_play(c, 10000 + i * 1500);
			rig_send(c, i, 100);
		}
		rig_play(c, 100000000);
		if (round)
			check(!memcmp(&before.number, &rig.sent.number,
				      sizeof(before.number)) == (round == 1));
		before = rig.sent;
		carrier_close(c);
	}
}

/* ---- threads: over the queue, by the host's clock ---- */

enum { EMITTERS = 3, EACH = 20000 };

static struct carrier *shared;
static atomic_uint delivered, emitters_left;

static void count_delivered(void *arg, const struct carrier_unit *u)
{
	atomic_fetch_add(&delivered, 1);
}

static void *emitter(void *arg)
{
	for (uint32_t i = 0; i < EACH; i++)
		while (rig_send(shared, i, 4 + i % 100) != 1)
			sched_yield();
	atomic_fetch_sub(&emitters_left, 1);
	return NULL;
}

static void *poller(void *arg)
{
	while (atomic_load(&emitters_left) || carrier_next_ns(shared) != UINT64_MAX ||
	       carrier_poll(shared, 16))
		carrier_poll(shared, 16);
	return NULL;
}

static void threads_lose_only_what_is_counted(void)
{
	struct carrier_queue_params q = { 0 };
	struct carrier_fault_params p = { .clock = clock_source_host(), .seed = 5 };
	struct carrier_upper upper = { count_delivered, NULL, NULL };
	struct impair_counters out, in;
	pthread_t threads[EMITTERS + 2];
	struct carrier *queue;

	clock_init();
	check(!carrier_queue_open(&q, &queue) && !carrier_fault_open(queue, &p, &shared));
	carrier_set_upper(shared, &upper);
	atomic_store(&emitters_left, EMITTERS);
	for (unsigned i = 0; i < EMITTERS + 2; i++)
		check(!pthread_create(&threads[i], NULL, i < EMITTERS ? emitter : poller,
				      NULL));
	/* They change while all run. */
	for (unsigned i = 0; atomic_load(&emitters_left); i++) {
		struct impair_params some = all_kinds, none = { 0 };

		some.rate_bps = 0;
		carrier_fault_set(shared, CARRIER_BOTH, IMPAIR_ALL_CLASSES,
				  i % 2 ? &some : &none);
		sched_yield();
	}
	for (unsigned i = 0; i < EMITTERS + 2; i++)
		pthread_join(threads[i], NULL);
	out = counters(shared, CARRIER_OUT);
	in = counters(shared, CARRIER_IN);
	check(!out.refused && !in.refused);
	check(atomic_load(&delivered) + out.lost + in.lost + out.overflowed +
		      in.overflowed ==
	      EMITTERS * EACH + out.duplicated + in.duplicated);
	carrier_close(shared);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_test(without_faults_units_pass_as_they_are);
	run_test(some_are_lost_in_the_direction_that_was_said);
	run_test(once_told_to_stop_it_passes_units_again);
	run_test(a_seed_begins_anew);
	run_test(some_come_twice);
	run_test(what_waits_leaves_when_faults_end);
	run_test(delay_and_jitter_keep_the_order);
	run_test(some_are_overtaken);
	run_test(one_byte_is_changed);
	run_test(the_rate_spaces_packets);
	run_test(a_partition_ends);
	run_test(a_train_is_split);
	run_test(what_the_carrier_below_refuses_waits);
	run_test(more_than_there_is_room_for_is_lost);
	run_test(classes_are_treated_apart);
	run_test(a_judge_decides_about_single_packets);
	run_test(a_judge_sees_the_packets_of_a_train_and_whose_they_are);
	run_test(the_same_seed_does_the_same);
	run_test(threads_lose_only_what_is_counted);
	return 0;
}
