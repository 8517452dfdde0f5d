/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a peer that breaks a rule of iWARP (RFC 5040, 5041, 5044), with every code of a
 * TERMINATE that the RFCs have: nothing is written where it may not, the TERMINATE is sent, the queue
 * pair fails with an event, counters tell; and what becomes of a queue pair whose peer says so. A line
 * "TERMINATE layer type code" for each one that was on the wire is for terminates_tshark.sh.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "look.h"
#include "terminates.h"
#include "wire/iwarp/error.h"

enum { MUCH = 1 << 20, RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ };

static void note(uint8_t layer, uint8_t type, uint8_t code)
{
	printf("TERMINATE 0x%02x 0x%02x 0x%02x\n", layer, type, code);
	fflush(stdout);
}

static void say(const char *name)
{
	printf("    %s\n", name);
	fflush(stdout);
}

/* The next one of the peer's stream, behind answers. */
static void expect_terminate(struct raw *r, uint16_t says)
{
	const struct iwarp_segment *s;

	do
		s = raw_receive(r);
	while (s->opcode == IWARP_READ_RESPONSE || s->opcode == IWARP_READ_REQUEST ||
	       s->opcode == IWARP_ATOMIC_RESPONSE || s->opcode == IWARP_ATOMIC_REQUEST);
	expect_eq(s->opcode, IWARP_TERMINATE);
	expect_eq(s->terminate.layer << 12 | s->terminate.type << 8 | s->terminate.code, says);
	note(s->terminate.layer, s->terminate.type, s->terminate.code);
	raw_expect_end(r);
}

static void expect_failed(struct side *s, enum ibv_event_type event)
{
	side_wait_state(s, 0, IBV_QPS_ERR);
	expect_eq(side_async(s, WAIT_MS), event);
	expect_eq(side_async(s, 0), -1);
}

/* ---- requests ---- */

static void post_receive(struct side *s, bool bad)
{
	struct recv_req req = { .wr_id = 6, .num_sge = 1,
				.sge = { side_sge(s, 0, RECEIVE_BYTES) } };

	if (bad)
		req.sge[0].lkey ^= 0x4000;
	expect_eq(side_post_recv(s, 0, &req, 1).ret, 0);
}

/* What must not be written: nearly all of the memory. */
static void fill_memory(struct side *s, const struct attack *a)
{
	side_fill(s, a->may_receive, FROM - a->may_receive, 3);
	side_fill(s, FROM + a->may_open, s->bytes - FROM - a->may_open, 4);
}

static void check_memory(struct side *s, const struct attack *a)
{
	side_check(s, a->may_receive, FROM - a->may_receive, 3);
	side_check(s, FROM + a->may_open, s->bytes - FROM - a->may_open, 4);
}

/* `naks`: how many TERMINATEs have been sent before. */
static void try_attack(struct pair *p, const struct attack *a, const struct prey *prey,
		       unsigned naks)
{
	struct raw r;

	say(a->name);
	fill_memory(&p->a, a);
	raw_open(&r, p, &a->how);
	post_receive(&p->a, a->bad_receive);
	raw_begin(&r);
	a->make(&r, prey);
	raw_send(&r);
	expect_terminate(&r, a->says);
	expect_failed(&p->a, a->event);
	expect_status(side_wait(&p->a, RECV_CQ), a->received ? IBV_WC_SUCCESS :
						 a->receive ? a->receive : IBV_WC_WR_FLUSH_ERR);
	check_memory(&p->a, a);
	expect_eq(look_qp(&p->a, 0).counters[HCA_RX_NAKS_SENT], naks + 1);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_NAKS_RECEIVED], 0);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

static void try_attacks(struct pair *p, const struct attack *list, unsigned count)
{
	struct prey prey;

	side_open(&p->a, NULL);
	prey.open = side_reg(&p->a, FROM, TO - FROM, RIGHTS, 0);
	prey.closed = side_reg(&p->a, FROM, TO - FROM, IBV_ACCESS_LOCAL_WRITE, 0);
	prey.atomic = side_reg(&p->a, FROM, TO - FROM,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0);
	prey.foreign = side_reg(&p->a, FROM, TO - FROM, RIGHTS | IBV_ACCESS_REMOTE_ATOMIC, 1);
	expect(prey.open.index >= 0 && prey.closed.index >= 0 && prey.atomic.index >= 0 &&
	       prey.foreign.index >= 0);
	for (unsigned i = 0; i < count; i++)
		try_attack(p, &list[i], &prey, i);
}

static void who_breaks_a_rule_gets_a_terminate_and_writes_nothing(struct pair *p)
{
	try_attacks(p, attacks, attack_count);
}

static void need_extensions(void)
{
	if (!offers(IBV_WR_ATOMIC_FETCH_AND_ADD))
		need_no_rnic("it is about atomics and immediate data");
}

static void who_breaks_a_rule_of_the_extensions_likewise(struct pair *p)
{
	need_extensions();
	p->conn.access_a |= IBV_ACCESS_REMOTE_ATOMIC;
	try_attacks(p, extended_attacks, extended_attack_count);
}

/* ---- answers ---- */

/* To a READ of 100 bytes. */
struct answer {
	const char *name;
	uint16_t says;
	enum ibv_event_type event;
	uint32_t bytes;
	bool goes_on, crc;        /* `crc`: which is wrong */
	/* The difference to what was asked for. */
	uint32_t stag;
	uint64_t to;
};

static const struct answer answers[] = {
	{ "with another key", 0x1100, IBV_EVENT_QP_ACCESS_ERR, .bytes = 100, .stag = 1 },
	{ "at another place", 0x1101, IBV_EVENT_QP_ACCESS_ERR, .bytes = 100, .to = 8 },
	{ "before its place", 0x1101, IBV_EVENT_QP_ACCESS_ERR, .bytes = 7, .to = (uint64_t)-8 },
	{ "that is too long", 0x1101, IBV_EVENT_QP_ACCESS_ERR, .bytes = 101 },
	{ "that ends too early", 0x0207, IBV_EVENT_QP_REQ_ERR, .bytes = 99 },
	{ "that does not end", 0x0207, IBV_EVENT_QP_REQ_ERR, .bytes = 100, .goes_on = true },
	{ "with a wrong CRC", 0x2002, IBV_EVENT_QP_REQ_ERR, .bytes = 100, .crc = true },
};

static void post_read(struct side *s, uint32_t lkey)
{
	struct send_req r = rdma_req(s, s, IBV_WR_RDMA_READ, 7, 0, 0, 100);

	r.sge[0].lkey = lkey;
	expect_eq(side_post_send(s, 0, &r, 1).ret, 0);
}

/* Connects the raw peer, which has the request of a READ of 100 bytes then. */
static struct iwarp_segment await_read(struct raw *r, struct pair *p, const struct raw_how *how,
				       uint32_t lkey)
{
	struct iwarp_segment request;

	raw_open(r, p, how);
	side_recv(&p->a, 6, 0, RECEIVE_BYTES);
	raw_begin(r);
	raw_send(r);
	post_read(&p->a, lkey);
	request = *raw_receive(r);
	expect_eq(request.opcode, IWARP_READ_REQUEST);
	expect_eq(request.read.bytes, 100);
	return request;
}

static void try_answer(struct pair *p, const struct answer *a)
{
	struct iwarp_segment s = { .opcode = IWARP_READ_RESPONSE, .last = !a->goes_on,
				   .bytes = a->bytes }, request;
	struct raw r;

	say(a->name);
	side_fill(&p->a, 0, p->a.bytes, 3);
	request = await_read(&r, p, &(struct raw_how){ .crc = a->crc }, p->a.lkey);
	s.stag = request.read.sink_stag + a->stag;
	s.to = request.read.sink_to + a->to;
	raw_add(&r, &s);
	r.out[r.bytes - 1] ^= a->crc;
	raw_send(&r);
	expect_terminate(&r, a->says);
	expect_status(side_wait(&p->a, SEND_CQ), a->crc ? IBV_WC_RETRY_EXC_ERR :
							  IBV_WC_BAD_RESP_ERR);
	expect_status(side_wait(&p->a, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_failed(&p->a, a->event);
	side_check(&p->a, 0, p->a.bytes, 3);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

static void an_answer_that_breaks_a_rule_writes_nothing(struct pair *p)
{
	side_open(&p->a, NULL);
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		try_answer(p, &answers[i]);
}

static struct iwarp_segment answer_of(const struct iwarp_segment *request)
{
	return (struct iwarp_segment){
		.opcode = IWARP_ATOMIC_RESPONSE, .last = true, .msn = 1,
		.atomic_response = { .request = request->atomic.request, .original = 5 } };
}

static void answer_with_another_request(struct iwarp_segment *s)
{
	s->atomic_response.request++;
}

static void answer_of_a_later_number(struct iwarp_segment *s)
{
	s->msn++;
}

static void answer_as_to_a_read(struct iwarp_segment *s)
{
	*s = (struct iwarp_segment){ .opcode = IWARP_READ_RESPONSE, .last = true,
				     .stag = s->atomic_response.request, .bytes = 8 };
}

static void answer_that_is_right(struct iwarp_segment *s)
{
	(void)s;
}

/* To an atomic; the right one comes once more. */
static const struct atomic_answer {
	void (*change)(struct iwarp_segment *s);
	uint16_t says;
	bool right;
} atomic_answers[] = {
	{ answer_with_another_request, 0x0207, false },
	{ answer_of_a_later_number, 0x1203, false },
	{ answer_as_to_a_read, 0x0206, false },
	{ answer_that_is_right, 0x0206, true },
};

static void post_atomic(struct side *s)
{
	struct send_req r = rdma_req(s, s, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0, 8);

	r.compare_add = 1;
	expect_eq(side_post_send(s, 0, &r, 1).ret, 0);
}

static void try_atomic_answer(struct pair *p, const struct atomic_answer *a)
{
	struct iwarp_segment s;
	struct raw r;

	side_fill(&p->a, 8, p->a.bytes - 8, 3);
	raw_open(&r, p, &(struct raw_how){ 0 });
	raw_begin(&r);
	raw_send(&r);
	post_atomic(&p->a);
	s = answer_of(raw_receive(&r));
	a->change(&s);
	raw_add(&r, &s);
	if (a->right)
		raw_add(&r, &s);
	raw_send(&r);
	expect_terminate(&r, a->says);
	expect_status(side_wait(&p->a, SEND_CQ), a->right ? IBV_WC_SUCCESS : IBV_WC_BAD_RESP_ERR);
	expect_failed(&p->a, IBV_EVENT_QP_REQ_ERR);
	side_check(&p->a, 8, p->a.bytes - 8, 3);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

static void an_answer_to_an_atomic_that_breaks_a_rule_likewise(struct pair *p)
{
	need_extensions();
	side_open(&p->a, NULL);
	for (unsigned i = 0; i < sizeof(atomic_answers) / sizeof(atomic_answers[0]); i++)
		try_atomic_answer(p, &atomic_answers[i]);
}

/* ---- what fails at this end ---- */

static void an_answer_that_finds_no_memory_ends_the_connection(struct pair *p)
{
	struct iwarp_segment request, s;
	struct region mr;
	struct raw r;

	side_open(&p->a, NULL);
	mr = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 0);
	request = await_read(&r, p, &(struct raw_how){ 0 }, mr.lkey);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	side_fill(&p->a, 0, p->a.bytes, 3);
	s = (struct iwarp_segment){ .opcode = IWARP_READ_RESPONSE, .last = true, .bytes = 100,
				    .stag = request.read.sink_stag, .to = request.read.sink_to };
	raw_add(&r, &s);
	raw_send(&r);
	expect_terminate(&r, 0x0000);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
	side_check(&p->a, 0, p->a.bytes, 3);
}

/* A peer that takes little, while it reads much. */
static void memory_that_goes_while_it_is_read_ends_the_connection(struct pair *p)
{
	const struct side_options opt = { .bytes = MUCH };
	struct region mr;
	struct raw r;

	side_open(&p->a, &opt);
	mr = side_reg(&p->a, 0, MUCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0);
	raw_open(&r, p, &(struct raw_how){ .room = 16384 });
	raw_begin(&r);
	raw_add(&r, &(struct iwarp_segment){
		.opcode = IWARP_READ_REQUEST, .last = true, .msn = 1,
		.read = { .sink_stag = 9, .source_stag = mr.rkey, .source_to = mr.addr,
			  .bytes = MUCH } });
	raw_send(&r);
	expect_eq(raw_receive(&r)->opcode, IWARP_READ_RESPONSE);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	expect_terminate(&r, 0x0100);
	expect_failed(&p->a, IBV_EVENT_QP_ACCESS_ERR);
}

static void a_send_that_cannot_be_read_ends_the_connection(struct pair *p)
{
	struct send_req send;
	struct raw r;

	side_open(&p->a, NULL);
	raw_open(&r, p, &(struct raw_how){ 0 });
	raw_begin(&r);
	raw_send(&r);
	send = send_req(&p->a, IBV_WR_SEND, 8, 0, 1000);
	send.sge[0].lkey ^= 0x4000;
	expect_eq(side_post_send(&p->a, 0, &send, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_terminate(&r, 0x0000);
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
}

/* ---- what the peer says ---- */

/* Every code of RFC 5040, 4.8, RFC 5041, 8.2, and RFC 5044 with RFC 6581, and what the oldest entry of
 * the send queue fails with. */
static const struct said {
	uint16_t says;
	enum ibv_wc_status status;
} said[] = {
	{ 0x0000, IBV_WC_REM_OP_ERR }, { 0x0100, IBV_WC_REM_ACCESS_ERR },
	{ 0x0101, IBV_WC_REM_ACCESS_ERR }, { 0x0102, IBV_WC_REM_ACCESS_ERR },
	{ 0x0103, IBV_WC_REM_ACCESS_ERR }, { 0x0104, IBV_WC_REM_ACCESS_ERR },
	{ 0x0109, IBV_WC_REM_ACCESS_ERR }, { 0x01ff, IBV_WC_REM_ACCESS_ERR },
	{ 0x0205, IBV_WC_REM_INV_REQ_ERR }, { 0x0206, IBV_WC_REM_INV_REQ_ERR },
	{ 0x0207, IBV_WC_REM_OP_ERR }, { 0x0208, IBV_WC_REM_OP_ERR },
	{ 0x0209, IBV_WC_REM_ACCESS_ERR }, { 0x02ff, IBV_WC_REM_OP_ERR },
	{ 0x1000, IBV_WC_REM_OP_ERR }, { 0x1100, IBV_WC_REM_ACCESS_ERR },
	{ 0x1101, IBV_WC_REM_ACCESS_ERR }, { 0x1102, IBV_WC_REM_ACCESS_ERR },
	{ 0x1103, IBV_WC_REM_ACCESS_ERR }, { 0x1104, IBV_WC_REM_INV_REQ_ERR },
	{ 0x1201, IBV_WC_REM_INV_REQ_ERR }, { 0x1202, IBV_WC_RNR_RETRY_EXC_ERR },
	{ 0x1203, IBV_WC_REM_INV_REQ_ERR }, { 0x1204, IBV_WC_REM_INV_REQ_ERR },
	{ 0x1205, IBV_WC_REM_INV_REQ_ERR }, { 0x1206, IBV_WC_REM_INV_REQ_ERR },
	{ 0x2001, IBV_WC_RETRY_EXC_ERR }, { 0x2002, IBV_WC_RETRY_EXC_ERR },
	{ 0x2003, IBV_WC_RETRY_EXC_ERR }, { 0x2004, IBV_WC_RETRY_EXC_ERR },
	{ 0x2005, IBV_WC_RETRY_EXC_ERR }, { 0x2006, IBV_WC_RETRY_EXC_ERR },
	{ 0x2007, IBV_WC_RETRY_EXC_ERR },
};

/* `naks`: how many TERMINATEs have come before. */
static void try_said(struct pair *p, const struct said *a, unsigned naks)
{
	struct iwarp_segment s = { .opcode = IWARP_TERMINATE, .last = true, .msn = 1 };
	struct raw r;

	await_read(&r, p, &(struct raw_how){ 0 }, p->a.lkey);
	s.terminate.layer = (uint8_t)(a->says >> 12);
	s.terminate.type = a->says >> 8 & 15;
	s.terminate.code = (uint8_t)a->says;
	note(s.terminate.layer, s.terminate.type, s.terminate.code);
	raw_add(&r, &s);
	raw_send(&r);
	raw_expect_end(&r);
	expect_status(side_wait(&p->a, SEND_CQ), a->status);
	expect_status(side_wait(&p->a, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_failed(&p->a, IBV_EVENT_QP_FATAL);
	expect_eq(look_qp(&p->a, 0).counters[HCA_TX_NAKS_RECEIVED], naks + 1);
	expect_eq(look_qp(&p->a, 0).counters[HCA_RX_NAKS_SENT], 0);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

static void every_terminate_is_understood_and_none_is_answered(struct pair *p)
{
	side_open(&p->a, NULL);
	for (unsigned i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		try_said(p, &said[i], i);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "RFC 5040, 5.4",
		who_breaks_a_rule_gets_a_terminate_and_writes_nothing),
	RULE_IN(ONLY_ONE_PROCESS, "RFC 7306, 8",
		who_breaks_a_rule_of_the_extensions_likewise),
	RULE_IN(ONLY_ONE_PROCESS, "RFC 5040, 7.2", an_answer_that_breaks_a_rule_writes_nothing),
	CASE_IN(ONLY_ONE_PROCESS, an_answer_to_an_atomic_that_breaks_a_rule_likewise),
	CASE_IN(ONLY_ONE_PROCESS, an_answer_that_finds_no_memory_ends_the_connection),
	CASE_IN(ONLY_ONE_PROCESS, memory_that_goes_while_it_is_read_ends_the_connection),
	CASE_IN(ONLY_ONE_PROCESS, a_send_that_cannot_be_read_ends_the_connection),
	RULE_IN(ONLY_ONE_PROCESS, "RFC 5040, 4.8",
		every_terminate_is_understood_and_none_is_answered),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
