/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events at packet numbers (transport/packet/event) in virtual time: the real filter of faults
 * between the ports and the network. What passes it is seen by virtual_judge.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/carrier/fault.h"
#include "util/container_of.h"
#include "virtual.h"

static struct side *const a = &sides[0], *const b = &sides[1];

enum { SEEN_MAX = 256 };

/* Packets that have passed the filters. */
static struct {
	unsigned count;
	struct packet_seen packet[SEEN_MAX];
} seen;

static bool look(const struct packet_seen *p)
{
	if (seen.count < SEEN_MAX)
		seen.packet[seen.count++] = *p;
	return false;
}

/* How many packets of the host with this PSN, that are requests or answers, have passed. */
static unsigned passed(unsigned from, uint32_t psn)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen.count; i++)
		n += seen.packet[i].from == from && seen.packet[i].psn == psn;
	return n;
}

static void set_faults(unsigned host, const char *text)
{
	char note[256] = "";
	int ret = packet_faults_set(&virtual_hosts[host].port, text, note, sizeof(note));

	if (ret)
		fail("'%s': %d, %s", text, ret, note);
}

/* From now on the packets of the host meet these events. */
static void events(unsigned host, const char *text)
{
	char setting[64];
	int fd = memfd_create("events", MFD_CLOEXEC);

	expect(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(setting, sizeof(setting), "events=/proc/self/fd/%d", fd);
	set_faults(host, setting);
	close(fd);
}

static void start(const struct options *o)
{
	pair_start(o);
	memset(&seen, 0, sizeof(seen));
	virtual_judge = look;
}

static void end(void)
{
	for (unsigned i = 0; i < 2; i++)
		set_faults(i, "");
	pair_end();
}

/* The line about event `index` of the host has this text; NULL: there are not so many events. */
static void expect_event(unsigned host, unsigned index, const char *text)
{
	char line[512] = "";
	bool is = packet_faults_event(&virtual_hosts[host].port, index, line, sizeof(line)) > index;

	if (is != (text != NULL))
		fail("event %u of host %u: '%s'", index, host, line);
	if (text && !strstr(line, text))
		fail("event %u of host %u is '%s', expected '%s'", index, host, line, text);
}

static uint64_t value(unsigned host, unsigned index, const char *key)
{
	char line[512] = "", pattern[32];
	const char *at;

	packet_faults_event(&virtual_hosts[host].port, index, line, sizeof(line));
	snprintf(pattern, sizeof(pattern), " %s=", key);
	at = strstr(line, pattern);
	if (!at)
		fail("event %u of host %u is '%s', without %s", index, host, line, key);
	return strtoull(at + strlen(pattern), NULL, 0);
}

/* A message of five packets with the MTU of 1024, which has to arrive. */
enum { BYTES = 5000, PACKETS = 5 };

static void transfer(enum ibv_wr_opcode opcode, uint64_t id)
{
	const struct request r = { .opcode = opcode, .id = id, .bytes = BYTES, .to = 8192 };
	unsigned before = a->count[SENDS];
	struct side *from = opcode == IBV_WR_RDMA_READ ? b : a, *to = from->peer;

	side_fill(from, from == a ? 0 : 8192, BYTES, id);
	memset(to->memory + (to == a ? 0 : 8192), 0, BYTES);
	if (opcode == IBV_WR_SEND)
		side_receive(b, id, 8192, BYTES);
	side_post(a, &r);
	play(a, SENDS, before + 1, SEC);
	expect_done(a, SENDS, before, id, IBV_WC_SUCCESS);
	side_check(to, to == a ? 0 : 8192, BYTES, id);
}

static const struct options usual = { .timeout = 10, .retry_cnt = 7, .rnr_retry = 7,
				      .min_rnr_timer = 12 };

/* ---- each action, each operation ---- */

static void without_events_there_is_no_filter(void)
{
	start(&usual);
	transfer(IBV_WR_SEND, 1);
	for (unsigned i = 0; i < 2; i++) {
		expect(!virtual_hosts[i].port.fault && !virtual_hosts[i].port.events);
		expect(atomic_load(&virtual_hosts[i].port.carrier) == &virtual_hosts[i].link);
	}
	/* Nor does one stay in the way once there are none any more. */
	events(0, "drop packet 1000 of qp any out\n");
	transfer(IBV_WR_SEND, 2);
	set_faults(0, "");
	expect(carrier_fault_passes(virtual_hosts[0].port.fault));
	transfer(IBV_WR_SEND, 3);
	end();
}

static void a_packet_of_a_message_is_dropped(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *class, *name;
	} kinds[] = {
		{ IBV_WR_SEND, "send", "opcode=send-middle" },
		{ IBV_WR_RDMA_WRITE, "write", "opcode=write-middle" },
		{ IBV_WR_SEND, "", "opcode=send-middle" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		char text[64];

		start(&usual);
		snprintf(text, sizeof(text), "drop packet 8 of qp any out %s\n", kinds[i].class);
		events(0, text);
		transfer(kinds[i].opcode, 1);
		expect_eq(passed(0, 2), 1);
		transfer(kinds[i].opcode, 2);
		/* The second message has the PSNs 5 to 9, and its third packet passed once. */
		expect_eq(passed(0, 7), 1);
		expect_event(0, 0, kinds[i].name);
		expect_event(0, 0, "action=drop");
		expect_event(0, 0, " packet=8 psn=7 ");
		expect_event(0, 0, "reaction=sequence-nak");
		expect(value(0, 0, "sent_again") >= 3);
		expect(value(0, 0, "progress_us") >= value(0, 0, "reaction_us"));
		expect(value(0, 0, "progress_us") < 1000);
		expect_event(0, 1, NULL);
		end();
	}
}

/* The last packet of all: nothing shows the loss but the timeout. */
static void the_timeout_that_repairs_a_loss_is_told(void)
{
	start(&usual);
	events(0, "drop packet 5 of qp any out\n");
	transfer(IBV_WR_SEND, 1);
	expect_event(0, 0, "opcode=send-last");
	expect_event(0, 0, "reaction=timeout");
	expect(value(0, 0, "progress_us") * US >= rc_timeout_ns(10));
	/* Only the last packet asks for an acknowledgement, so all are unacknowledged. */
	expect_eq(value(0, 0, "sent_again"), PACKETS);
	end();
}

static void a_read_loses_its_request_or_a_response(void)
{
	start(&usual);
	events(0, "drop packet 1 of qp any out read-request\n"
		  "drop packet 3 of qp any in read-response\n");
	transfer(IBV_WR_RDMA_READ, 1);
	expect_event(0, 0, "opcode=read-request");
	expect_event(0, 0, "reaction=timeout");
	expect_event(0, 1, "packet=3 psn=2 opcode=read-response-middle");
	expect_event(0, 1, "reaction=implied-nak");
	expect(value(0, 1, "progress_us") < 1000);
	/* The rest of a READ is a retransmission, and no further request. */
	expect_eq(value(0, 1, "sent_again"), 1);
	end();
	start(&usual);
	events(0, "drop packet 2 of qp any out read-request\n");
	events(1, "drop packet 2 of qp any out read-response\n");
	transfer(IBV_WR_RDMA_READ, 1);
	expect_event(0, 0, NULL);
	expect_event(1, 0, "direction=out packet=2 psn=1");
	transfer(IBV_WR_RDMA_READ, 2);
	expect_event(0, 0, "packet=2 psn=5");
	end();
}

static void a_packet_is_late_and_others_overtake_it(void)
{
	uint64_t late = 0, next = 0;

	start(&usual);
	events(0, "delay packet 2 by 300us of qp any out\n");
	transfer(IBV_WR_SEND, 1);
	play_until(virtual_now_ns() + MS);
	for (unsigned i = 0; i < seen.count; i++) {
		if (seen.packet[i].from == 0 && seen.packet[i].psn == 1)
			late = seen.packet[i].at_ns;
		if (seen.packet[i].from == 0 && seen.packet[i].psn == 2 && !next)
			next = seen.packet[i].at_ns;
	}
	expect_within(late - next, 300 * US, 300 * US + LATE_NS);
	expect_event(0, 0, "action=delay");
	expect_event(0, 0, "reaction=sequence-nak");
	end();
}

static void a_packet_comes_twice_and_is_taken_once(void)
{
	start(&usual);
	events(0, "duplicate packet 5 of qp any out send\n");
	transfer(IBV_WR_SEND, 1);
	play_until(virtual_now_ns() + MS);
	expect_eq(passed(0, 4), 2);
	expect_eq(passed(0, 3), 1);
	expect_eq(b->count[RECEIVES], 1);
	expect_event(0, 0, "action=duplicate");
	expect_eq(value(0, 0, "sent_again"), 0);
	end();
}

static void a_corrupt_packet_is_not_taken(void)
{
	for (unsigned i = 0; i < 2; i++) {
		start(&usual);
		events(i, i ? "corrupt packet 2 of qp any in\n" : "corrupt packet 2 of qp any out\n");
		transfer(IBV_WR_RDMA_WRITE, 1);
		expect_eq(passed(0, 1), 2);
		expect_event(i, 0, "action=corrupt");
		expect_event(i, 0, "reaction=sequence-nak");
		end();
	}
}

static void a_mark_brings_a_notification(void)
{
	start(&usual);
	events(0, "mark packet 3 of qp any out\n");
	transfer(IBV_WR_SEND, 1);
	play_until(virtual_now_ns() + MS);
	expect_event(0, 0, "reaction=cnp");
	expect_eq(value(0, 0, "sent_again"), 0);
	events(0, "drop packet 1 of qp any in cnp\n");
	events(1, "mark packets 1-2 of qp any in\n");
	transfer(IBV_WR_SEND, 2);
	play_until(virtual_now_ns() + MS);
	expect_event(0, 0, "opcode=cnp");
	expect_event(1, 1, "packet=2");
	end();
}

/* What is lost while the sender already repeats is repaired along with it. */
static void a_loss_behind_a_nak_is_repaired_by_it(void)
{
	start(&usual);
	events(0, "drop packet 2 of qp any out\n"
		  "delay packet 1 by 1ms of qp any in nak\n"
		  "drop packet 6 of qp any out\n");
	side_receive(b, 1, 8192, BYTES);
	side_receive(b, 2, 8192, BYTES);
	side_send(a, 1, BYTES);
	play_until(virtual_now_ns() + 500 * US);
	side_send(a, 2, BYTES);
	play(a, SENDS, 2, SEC);
	expect_event(0, 2, "packet=6 ");
	expect_event(0, 2, "reaction=sequence-nak");
	end();
}

static void answers_are_dropped_by_their_class(void)
{
	start(&usual);
	events(0, "drop packet 2 of qp any out\n"
		  "drop packet 1 of qp any in nak  # the peer sends one NAK for a gap\n");
	transfer(IBV_WR_SEND, 1);
	expect_event(0, 0, "reaction=timeout");
	expect_event(0, 1, "opcode=acknowledge");
	expect(value(0, 0, "progress_us") * US >= rc_timeout_ns(10));
	events(1, "drop packet 1 of qp any out ack\n");
	transfer(IBV_WR_SEND, 2);
	expect_event(1, 0, "psn=9 opcode=acknowledge");
	expect_event(1, 0, "reaction=timeout");
	/* But for the time that the acknowledgement would have taken. */
	expect(value(1, 0, "progress_us") * US >= rc_timeout_ns(10) - LATE_NS);
	end();
}

static void a_receiver_that_is_not_ready_is_told(void)
{
	start(&usual);
	events(0, "duplicate packet 1 of qp any out\n");
	side_send(a, 1, 8);
	play_until(virtual_now_ns() + 100 * US);
	side_receive(b, 1, 8192, 8);
	play(a, SENDS, 1, SEC);
	expect_event(0, 0, "reaction=rnr-nak");
	end();
}

static void atomics_are_a_class(void)
{
	const struct request r = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .id = 1, .bytes = 8,
				   .compare_add = 3 };

	start(&usual);
	memset(b->memory, 0, 8);
	events(0, "drop packet 1 of qp any in atomic\n");
	side_post(a, &r);
	play(a, SENDS, 1, SEC);
	expect_eq(b->memory[0], 3);
	expect_event(0, 0, "opcode=atomic-acknowledge");
	end();
}

static void a_message_of_uc_is_lost_with_its_packet(void)
{
	start(&(struct options){ .type = IBV_QPT_UC });
	events(0, "drop packet 3 of qp any out\n");
	side_receive(b, 7, 8192, BYTES);
	side_send(a, 1, BYTES);
	side_send(a, 2, BYTES);
	play(b, RECEIVES, 1, SEC);
	play_until(virtual_now_ns() + MS);
	expect_eq(b->count[RECEIVES], 1);
	expect_eq(passed(0, 2), 0);
	expect_event(0, 0, "packet=3 psn=2 opcode=send-middle");
	expect_event(0, 0, "reaction=none");
	expect_event(0, 0, "progress_us=");
	end();
}

/* ---- which packet ---- */

static void a_retransmission_is_addressed(void)
{
	start(&usual);
	events(0, "drop packet 5 of qp any out send\n"
		  "drop packet 5 of qp any out send again 1\n"
		  "drop packet 5 of qp any out send again 2\n");
	transfer(IBV_WR_SEND, 1);
	expect_eq(passed(0, 4), 1);
	expect_event(0, 0, "again=0");
	expect_event(0, 1, "again=1");
	expect_event(0, 2, "again=2");
	expect_event(0, 3, NULL);
	/* All of them, and then the last one alone: the receiver has acknowledged the others. */
	expect_eq(value(0, 0, "sent_again"), PACKETS + 2);
	end();
}

static void each_counts_retransmissions_too(void)
{
	start(&usual);
	events(0, "drop packets 5-6 of qp any out each\n");
	transfer(IBV_WR_SEND, 1);
	expect_event(0, 0, "packet=5 psn=4");
	expect_event(0, 1, "packet=6 psn=0 opcode=send-first again=1");
	expect_event(0, 2, NULL);
	end();
}

static void packets_are_numbered_across_the_wrap_of_their_psn(void)
{
	struct options o = usual;

	o.psn = 0xfffffd;
	start(&o);
	events(0, "drop packet 4 of qp any out\n"
		  "drop packet 9 of qp any out\n");
	transfer(IBV_WR_SEND, 1);
	transfer(IBV_WR_RDMA_WRITE, 2);
	expect_event(0, 0, "packet=4 psn=0 ");
	expect_event(0, 0, "reaction=sequence-nak");
	expect_event(0, 1, "packet=9 psn=5 ");
	expect_event(0, 2, NULL);
	end();
}

static void queue_pairs_are_counted_apart(void)
{
	struct side *const c = &sides[2], *const d = &sides[3];
	char text[128];

	start(&usual);
	sides_open(2, 0, 1, &usual);
	snprintf(text, sizeof(text),
		 "drop packet 2 of qp any out\n"
		 "drop packet 4 of qp 0x%x out\n"
		 "drop packet 3 of qp nth 2 out\n", a->qp->qp_num);
	events(0, text);
	for (unsigned i = 1; i <= 5; i++) {
		side_receive(b, i, 0, 8);
		side_receive(d, i, 0, 8);
		side_send(a, i, 8);
		side_send(c, i, 8);
	}
	play(a, SENDS, 5, SEC);
	play(c, SENDS, 5, SEC);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "line=1 action=drop qp=0x%x direction=out packet=2 ",
			 i ? c->qp->qp_num : a->qp->qp_num);
		expect_event(0, i, text);
	}
	snprintf(text, sizeof(text), "line=3 action=drop qp=0x%x", c->qp->qp_num);
	expect_event(0, 2, text);
	snprintf(text, sizeof(text), "line=2 action=drop qp=0x%x", a->qp->qp_num);
	expect_event(0, 3, text);
	expect_event(0, 4, NULL);
	end();
}

static void a_new_connection_is_counted_anew(void)
{
	start(&usual);
	events(0, "drop packet 2 of qp any out\n");
	transfer(IBV_WR_SEND, 1);
	side_reset(a);
	side_reset(b);
	side_connect(a, &usual);
	side_connect(b, &usual);
	transfer(IBV_WR_SEND, 2);
	expect_event(0, 0, "packet=2 psn=1 ");
	expect_event(0, 1, "packet=2 psn=1 ");
	expect_event(0, 2, NULL);
	end();
}

static void one_packet_of_a_train_is_met(void)
{
	for (unsigned in = 0; in < 2; in++) {
		start(&usual);
		virtual_train = 8;
		events(in, in ? "drop packet 3 of qp any in\n" : "drop packet 3 of qp any out\n");
		for (unsigned i = 1; i <= 10; i++)
			transfer(IBV_WR_RDMA_WRITE, i);
		expect_event(in, 0, "packet=3 psn=2 opcode=write-middle");
		expect_event(in, 0, "reaction=sequence-nak");
		expect_event(in, 1, NULL);
		for (uint32_t psn = 10; psn < 50; psn++)
			expect_eq(passed(0, psn), 1);
		end();
	}
}

static void a_file_that_cannot_be_used_is_named(void)
{
	char note[256];

	start(&usual);
	events(0, "drop packet 1 of qp any out\n");
	expect_eq(packet_faults_set(&virtual_hosts[0].port, "events=/nowhere/at/all", note, sizeof(note)),
		  -EINVAL);
	expect(strstr(note, "/nowhere/at/all: No such file"));
	expect_eq(packet_faults_set(&virtual_hosts[0].port, "events=/proc/self", note, sizeof(note)), -EINVAL);
	expect(strstr(note, "/proc/self: no regular file"));
	/* And nothing has changed. */
	transfer(IBV_WR_SEND, 1);
	expect_event(0, 0, "packet=1 psn=0");
	end();
}

#define CASE(fn) { #fn, fn }

const struct virtual_test virtual_events[] = {
	CASE(without_events_there_is_no_filter),
	CASE(a_packet_of_a_message_is_dropped),
	CASE(the_timeout_that_repairs_a_loss_is_told),
	CASE(a_read_loses_its_request_or_a_response),
	CASE(a_packet_is_late_and_others_overtake_it),
	CASE(a_packet_comes_twice_and_is_taken_once),
	CASE(a_corrupt_packet_is_not_taken),
	CASE(a_mark_brings_a_notification),
	CASE(a_loss_behind_a_nak_is_repaired_by_it),
	CASE(answers_are_dropped_by_their_class),
	CASE(a_receiver_that_is_not_ready_is_told),
	CASE(atomics_are_a_class),
	CASE(a_message_of_uc_is_lost_with_its_packet),
	CASE(a_retransmission_is_addressed),
	CASE(each_counts_retransmissions_too),
	CASE(packets_are_numbered_across_the_wrap_of_their_psn),
	CASE(queue_pairs_are_counted_apart),
	CASE(a_new_connection_is_counted_anew),
	CASE(one_packet_of_a_train_is_met),
	CASE(a_file_that_cannot_be_used_is_named),
	{ NULL, NULL },
};
