/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events at packet numbers in running processes (busbar-adapter(7), BUSBAR_FAULTS, events=FILE):
 * each message arrives whole, and the process tells what took place. Which packets are met, and
 * when, tests/unit/transport/virtual_events.c shows exactly.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "hca/view/inspect.h"
#include "pair.h"
#include "verbs/private.h"

enum { BYTES = 20000, TO = 32768, IN_TIME = 16 }; /* 20 packets; 268 ms */

static const struct side_options big = { .bytes = 1 << 17 };

static uint32_t self(void)
{
	return (uint32_t)getpid();
}

static int ask(const char *text, char note[512])
{
	char name[] = "/tmp/packet-events-XXXXXX", setting[64];
	struct hca_faults_view v;
	int fd = mkstemp(name), ret;

	expect(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	snprintf(setting, sizeof(setting), "events=%s", name);
	ret = busbar_faults_ask(self(), setting, &v);
	unlink(name);
	close(fd);
	if (note)
		snprintf(note, 512, "%s", v.notes);
	return ret;
}

/* The line of an event in which the text is. */
static void expect_event(const char *text)
{
	char line[512];

	for (uint32_t i = 0; !busbar_fault_event_ask(self(), i, line, sizeof(line)); i++)
		if (strstr(line, text))
			return;
	fail("no event has '%s'", text);
}

static void end_events(void)
{
	struct hca_faults_view v;
	char line[512];

	expect_eq(busbar_faults_ask(self(), "", &v), 0);
	expect_eq(busbar_fault_event_ask(self(), 0, line, sizeof(line)), -ENOENT);
}

static void transfer(struct pair *p, enum ibv_wr_opcode opcode, uint64_t id)
{
	struct side *from = opcode == IBV_WR_RDMA_READ ? &p->b : &p->a;
	struct side *to = from == &p->a ? &p->b : &p->a;
	struct send_req r = opcode == IBV_WR_SEND ?
				    send_req(&p->a, opcode, id, 0, BYTES) :
				    rdma_req(&p->a, &p->b, opcode, id, from == &p->a ? 0 : TO,
					     from == &p->a ? TO : 0, BYTES);

	side_fill(from, 0, BYTES, id);
	side_set(to, TO, BYTES, 0);
	if (opcode == IBV_WR_SEND)
		side_recv(&p->b, id, TO, BYTES);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, id);
	if (opcode == IBV_WR_SEND)
		side_wait_ok(&p->b, RECV_CQ, id);
	side_check(to, TO, BYTES, id);
}

static bool has_checksums(void)
{
	return strncmp(transport_under_test()->name, "loop", 4) != 0;
}

static void messages_arrive_whole_whatever_their_packets_meet(struct pair *p)
{
	static const char *const texts[] = {
		"drop packet 3 of qp any out send\n"
		"drop packet 4 of qp any out write\n"
		"drop packet 5 of qp any in read-response\n"
		"drop packet 1 of qp any out read-request\n"
		"drop packet 20 of qp any out send again 1\n",
		"duplicate packet 3 of qp any out send\n"
		"duplicate packets 2-9 of qp any out write\n"
		"duplicate packet 5 of qp any in read-response\n",
		"delay packet 3 by 2ms of qp any out send\n"
		"delay packet 20 by 20ms of qp any out write\n"
		"delay packet 5 by 2ms of qp any in read-response\n",
		"mark packet 3 of qp any out send\n"
		"mark packet 4 of qp any out write\n"
		"mark packet 5 of qp any in read-response\n",
		"corrupt packet 3 of qp any out send\n"
		"corrupt packet 4 of qp any out write\n"
		"corrupt packet 5 of qp any in read-response\n",
	};
	static const char *const actions[] = { "drop", "duplicate", "delay", "mark", "corrupt" };

	p->conn.timeout = IN_TIME;
	pair_start(p, &big);
	for (unsigned i = 0; i < (has_checksums() ? 5u : 4u); i++) {
		char text[64];

		expect_eq(ask(texts[i], NULL), 0);
		transfer(p, IBV_WR_SEND, 10 * i + 1);
		transfer(p, IBV_WR_RDMA_WRITE, 10 * i + 2);
		transfer(p, IBV_WR_RDMA_READ, 10 * i + 3);
		snprintf(text, sizeof(text), "line=1 action=%s ", actions[i]);
		expect_event(text);
		expect_event("packet=3 ");
		expect_event("opcode=send-middle");
		expect_event("opcode=write-");
		expect_event("opcode=read-response-middle");
		end_events();
	}
}

static void a_process_tells_how_a_loss_was_repaired(struct pair *p)
{
	char text[64];

	p->conn.timeout = IN_TIME;
	p->conn.psn_a = 0xfffffd;
	pair_start(p, &big);
	snprintf(text, sizeof(text), "drop packet 5 of qp 0x%x out\n", p->a.qpn[0]);
	expect_eq(ask(text, NULL), 0);
	transfer(p, IBV_WR_SEND, 1);
	snprintf(text, sizeof(text), "qp=0x%x direction=out packet=5 psn=1 ", p->a.qpn[0]);
	expect_event(text);
	expect_event("reaction=sequence-nak");
	expect_event("progress_us=");
	end_events();
}

static void a_message_of_uc_goes_with_its_packet(struct pair *p)
{
	static const struct side_options uc = { .type = IBV_QPT_UC, .bytes = 1 << 17 };

	pair_start(p, &uc);
	expect_eq(ask("drop packet 3 of qp any out\n", NULL), 0);
	side_recv(&p->b, 7, TO, BYTES);
	side_send(&p->a, 1, 0, BYTES);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_send(&p->a, 2, 0, BYTES);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_wait_ok(&p->b, RECV_CQ, 7);
	side_expect_none(&p->b, RECV_CQ);
	expect_event("opcode=send-middle");
	end_events();
}

static void a_line_that_cannot_be_read_changes_nothing(struct pair *p)
{
	char note[512];

	p->conn.timeout = IN_TIME;
	pair_start(p, &big);
	expect_eq(ask("drop packet 2 of qp any out\n", NULL), 0);
	expect_eq(ask("# first\nlose packet 3 of qp any out\n", note), -EINVAL);
	expect(strstr(note, ":2: 'lose' is not usable, expected drop, delay, mark"));
	transfer(p, IBV_WR_SEND, 1);
	expect_event("packet=2 ");
	end_events();
	if (!has_checksums()) {
		expect_eq(ask("corrupt packet 2 of qp any out\n", note), -EOPNOTSUPP);
		expect(strstr(note, "corrupt is not offered"));
	}
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(messages_arrive_whole_whatever_their_packets_meet),
		CASE(a_process_tells_how_a_loss_was_repaired),
		CASE(a_message_of_uc_goes_with_its_packet),
		CASE(a_line_that_cannot_be_read_changes_nothing),
	};

	return RUN_CASES(argc, argv, cases);
}
