/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connections of iWARP do otherwise than those of InfiniBand (RFC 5040, 5041, 5044): who sends
 * first, how a connection ends, and what becomes of a peer that breaks the rules. Such a peer is a
 * TCP socket of the test.
 */
#include <dirent.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "look.h"
#include "stream.h"
#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/receiver.h"

enum {
	FROM = 8192, TO = 16384,  /* the memory that the peer may use */
	IRD = 4,                  /* of stream.c */
	ROUNDS = 1000,
	MUCH = 1 << 20,
	PEERS = 400,
	WAITING = 256,            /* of life.c */
};

/* ---- a peer of raw bytes ---- */

struct raw {
	int fd;
	struct iwarp_framer framer;
	struct iwarp_receiver receiver;
	uint8_t segment[IWARP_ULPDU_MAX];
	uint8_t out[4096];
	size_t bytes;
};

/* Connects it to QP 0 of `a`, as the initiator. `room`: of the sockets' buffers; 0: as usual. */
static void raw_open_with(struct raw *r, struct pair *p, bool crc, int room)
{
	int fd[2];

	memset(r, 0, sizeof(*r));
	stream_sockets(fd);
	r->fd = fd[0];
	if (room)
		expect(!setsockopt(fd[0], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) &&
		       !setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	r->framer.crc = crc;
	iwarp_receiver_init(&r->receiver, false, crc, r->segment);
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(stream_attach(p->a.end, 0, fd[1], false, crc), 0);
}

static void raw_open(struct raw *r, struct pair *p, bool crc)
{
	raw_open_with(r, p, crc, 0);
}

/* A ULPDU: `headers`, and zeros as payload. */
static void raw_frame(struct raw *r, uint8_t *headers, size_t bytes, uint32_t payload)
{
	static uint8_t zeros[1024];
	const struct iovec pieces[2] = { { headers, bytes }, { zeros, payload } };

	expect(r->bytes + iwarp_framer_bytes(&r->framer, bytes + payload) <= sizeof(r->out));
	r->bytes += iwarp_framer_write(&r->framer, pieces, 2, r->out + r->bytes);
}

static void raw_add(struct raw *r, const struct iwarp_segment *s)
{
	uint8_t headers[IWARP_HEADERS_MAX];

	raw_frame(r, headers, iwarp_segment_encode(s, headers), s->bytes);
}

static void raw_send(struct raw *r)
{
	expect_eq(send(r->fd, r->out, r->bytes, MSG_NOSIGNAL), r->bytes);
	r->bytes = 0;
}

/* The WRITE of no bytes with which an initiator begins. */
static void raw_begin(struct raw *r)
{
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true, .stag = 1 });
}

/* The next segment. */
static const struct iwarp_segment *raw_receive(struct raw *r)
{
	static uint8_t byte;
	struct pollfd poll_fd = { .fd = r->fd, .events = POLLIN };

	for (;;) {
		const uint8_t *at = &byte;
		size_t bytes = 1;

		if (poll(&poll_fd, 1, WAIT_MS) != 1 || recv(r->fd, &byte, 1, 0) != 1)
			fail("no segment");
		switch (iwarp_receiver_take(&r->receiver, &at, &bytes)) {
		case IWARP_NOTHING:
			break;
		case IWARP_FPDU:
			return &r->receiver.segment;
		default:
			fail("not a good FPDU");
		}
	}
}

static void raw_expect_end(struct raw *r)
{
	struct pollfd poll_fd = { .fd = r->fd, .events = POLLIN };
	uint8_t byte;

	if (poll(&poll_fd, 1, WAIT_MS) != 1 || recv(r->fd, &byte, 1, 0) != 0)
		fail("no end");
	close(r->fd);
}

/* ---- who begins ---- */

static void a_responder_sends_nothing_before_the_first_message(struct pair *p)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct raw r;

	side_open(&p->a, NULL);
	raw_open(&r, p, false);
	side_send(&p->a, 1, 0, 100);
	poll_fd.fd = r.fd;
	expect_eq(poll(&poll_fd, 1, QUIET_MS), 0);
	side_expect_none(&p->a, SEND_CQ);
	raw_begin(&r);
	raw_send(&r);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_eq(raw_receive(&r)->opcode, IWARP_SEND);
	close(r.fd);
}

/* ---- ends ---- */

static void expect_flushed(struct side *s, enum side_cq cq, uint64_t wr_id)
{
	struct ibv_wc wc = side_wait(s, cq);

	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, wr_id);
}

/* The queue pair has failed, for good: its receives and what is posted now are flushed. */
static void expect_failed(struct side *s, uint64_t receive)
{
	side_wait_state(s, 0, IBV_QPS_ERR);
	expect_flushed(s, RECV_CQ, receive);
	side_send(s, 80, 0, 8);
	expect_flushed(s, SEND_CQ, 80);
	side_recv(s, 81, 0, 8);
	expect_flushed(s, RECV_CQ, 81);
}

static void a_message_without_a_receive_ends_the_connection(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->a, 5, 0, 100);
	side_recv(&p->b, 6, 0, 100);
	for (uint64_t i = 0; i < 2; i++) {
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->a, SEND_CQ, i); /* TCP has taken it */
	}
	side_wait_ok(&p->b, RECV_CQ, 6);
	expect_failed(&p->a, 5);
	side_wait_state(&p->b, 0, IBV_QPS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_eq(side_async(&p->a, 0), -1);
	expect_eq(side_async(&p->b, 0), -1);
}

static int close_it(struct end *e, void *arg)
{
	(void)arg;
	return stream_close(e, 0);
}

static int count_ends(struct end *e, void *arg)
{
	(void)e;
	(void)arg;
	return (int)stream_ends();
}

static void await_one_end(struct side *s)
{
	const uint64_t end = now_ms() + WAIT_MS;

	while (side_run(s, count_ends, NULL, 0) == 0 && now_ms() < end)
		usleep(1000);
	usleep(QUIET_MS * 1000);
	expect_eq(side_run(s, count_ends, NULL, 0), 1);
	expect_eq(side_async(s, 0), -1);
}

static void what_was_posted_before_an_orderly_end_arrives(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->a, 5, 0, 100);
	for (uint64_t i = 0; i < 21; i++)
		side_recv(&p->b, i, 0, 3000);
	for (uint64_t i = 0; i < 20; i++)
		side_send(&p->a, i, 0, 3000);
	expect_eq(side_run(&p->a, close_it, NULL, 0), 0);
	for (uint64_t i = 0; i < 20; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	for (uint64_t i = 0; i < 20; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	expect_failed(&p->b, 20);
	expect_failed(&p->a, 5);
	await_one_end(&p->a);
	await_one_end(&p->b);
}

/* While the program polls, nobody else looks at the socket: the reset is found by the send. */
static void what_arrived_before_a_reset_is_received(struct pair *p)
{
	const struct linger reset = { .l_onoff = 1 };
	struct raw r;

	side_open(&p->a, NULL);
	for (int i = 0; i < 30; i++) {
		raw_open(&r, p, false);
		raw_begin(&r);
		raw_send(&r);
		side_recv(&p->a, 1, 0, 100);
		side_recv(&p->a, 2, 0, 100);
		expect_eq(side_poll(&p->a, RECV_CQ, 1, 5).count, 0);
		raw_add(&r, &(struct iwarp_segment){ .opcode = IWARP_SEND, .last = true, .msn = 1,
						     .bytes = 100 });
		raw_send(&r);
		setsockopt(r.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(r.fd);
		side_send(&p->a, 3, 0, 100);
		side_wait_ok(&p->a, RECV_CQ, 1);
		expect_flushed(&p->a, RECV_CQ, 2);
		expect(side_wait(&p->a, SEND_CQ).status != IBV_WC_SUCCESS);
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	}
}

static void a_queue_pair_may_go_behind_its_last_completion(struct pair *p)
{
	struct recv_req in = { .wr_id = 1, .num_sge = 1 };
	struct send_req out;

	pair_open(p, NULL);
	in.sge[0] = side_sge(&p->b, 0, 4096);
	for (int i = 0; i < ROUNDS; i++) {
		int k = side_qp_create(&p->a, NULL);

		expect_eq(side_qp_create(&p->b, NULL), k);
		pair_connect_qp(p, k);
		expect_eq(side_post_recv(&p->b, k, &in, 1).ret, 0);
		out = send_req(&p->a, IBV_WR_SEND, 2, 0, i % 2 ? 4096 : 8);
		expect_eq(side_post_send(&p->a, k, &out, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		if (i % 4 / 2)
			expect_eq(side_to_state(&p->a, k, IBV_QPS_RESET), 0);
		expect_eq(side_qp_destroy(&p->a, k), 0);
		side_wait_ok(&p->b, RECV_CQ, 1);
		expect_eq(side_qp_destroy(&p->b, k), 0);
	}
}

static void a_peer_that_is_killed_ends_the_connection(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->a, 5, 0, 100);
	side_kill(&p->b);
	expect_failed(&p->a, 5);
	expect_eq(side_async(&p->a, 0), -1);
}

static void a_read_that_is_refused_fails_with_its_reason(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	side_recv(&p->b, 6, 0, 100);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 7, 0, 0, 100);
	r.rkey ^= 0x4000;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_failed(&p->b, 6);
}

/* ---- peers that break the rules ---- */

struct attack {
	const char *name;
	bool crc;
	void (*make)(struct raw *r, const struct region *mr);
	uint8_t layer, type, code;     /* of the TERMINATE */
	enum ibv_event_type event;
};

static struct iwarp_segment write_of(const struct region *mr, uint64_t at, uint32_t bytes)
{
	return (struct iwarp_segment){ .opcode = IWARP_WRITE, .last = true, .stag = mr->rkey,
				       .to = mr->addr + at, .bytes = bytes };
}

static void wrong_crc(struct raw *r, const struct region *mr)
{
	struct iwarp_segment s = write_of(mr, 0, 100);

	raw_add(r, &s);
	r->out[r->bytes - 1] ^= 1;
}

static void wrong_msn(struct raw *r, const struct region *mr)
{
	(void)mr;
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_SEND, .last = true, .msn = 2,
					    .bytes = 100 });
}

static void wrong_stag(struct raw *r, const struct region *mr)
{
	struct iwarp_segment s = write_of(mr, 0, 100);

	s.stag ^= 0x4000;
	raw_add(r, &s);
}

static void beyond_the_memory(struct raw *r, const struct region *mr)
{
	struct iwarp_segment s = write_of(mr, TO - FROM - 99, 100);

	raw_add(r, &s);
}

static void before_the_memory(struct raw *r, const struct region *mr)
{
	struct iwarp_segment s = write_of(mr, (uint64_t)-1, 100);

	raw_add(r, &s);
}

static void longer_than_the_receive(struct raw *r, const struct region *mr)
{
	(void)mr;
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_SEND, .last = true, .msn = 1,
					    .bytes = 101 });
}

static void unknown_opcode(struct raw *r, const struct region *mr)
{
	uint8_t headers[IWARP_UNTAGGED_BYTES] = { 0x41, 0x4c };

	(void)mr;
	headers[13] = 1; /* MSN */
	raw_frame(r, headers, sizeof(headers), 0);
}

/* What was registered by a verb is no message's to take back. */
static void invalidates_a_region(struct raw *r, const struct region *mr)
{
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_SEND_INVALIDATE, .last = true, .msn = 1,
					    .stag = mr->rkey });
}

static void invalidates_nothing(struct raw *r, const struct region *mr)
{
	raw_add(r, &(struct iwarp_segment){ .opcode = IWARP_SEND_INVALIDATE, .last = true, .msn = 1,
					    .stag = mr->rkey ^ 0x4000 });
}

static void reads_beyond_ird(struct raw *r, const struct region *mr)
{
	for (uint32_t i = 1; i <= IRD + 1; i++)
		raw_add(r, &(struct iwarp_segment){
			.opcode = IWARP_READ_REQUEST, .last = true, .msn = i,
			.read = { .sink_stag = 9, .source_stag = mr->rkey,
				  .source_to = mr->addr, .bytes = 8 } });
}

#define ATTACK(make_, ...) { .name = #make_, .make = make_, __VA_ARGS__ }
static const struct attack attacks[] = {
	ATTACK(wrong_crc, .crc = true, .layer = 2, .type = 0, .code = 2,
	       .event = IBV_EVENT_QP_REQ_ERR),
	ATTACK(wrong_msn, .layer = 1, .type = 2, .code = 3, .event = IBV_EVENT_QP_REQ_ERR),
	ATTACK(wrong_stag, .layer = 1, .type = 1, .code = 0, .event = IBV_EVENT_QP_ACCESS_ERR),
	ATTACK(beyond_the_memory, .layer = 1, .type = 1, .code = 1,
	       .event = IBV_EVENT_QP_ACCESS_ERR),
	ATTACK(before_the_memory, .layer = 1, .type = 1, .code = 1,
	       .event = IBV_EVENT_QP_ACCESS_ERR),
	ATTACK(longer_than_the_receive, .layer = 1, .type = 2, .code = 5,
	       .event = IBV_EVENT_QP_REQ_ERR),
	ATTACK(unknown_opcode, .layer = 0, .type = 2, .code = 6, .event = IBV_EVENT_QP_REQ_ERR),
	ATTACK(invalidates_a_region, .layer = 0, .type = 1, .code = 9,
	       .event = IBV_EVENT_QP_ACCESS_ERR),
	ATTACK(invalidates_nothing, .layer = 0, .type = 1, .code = 9,
	       .event = IBV_EVENT_QP_ACCESS_ERR),
	ATTACK(reads_beyond_ird, .layer = 1, .type = 2, .code = 2,
	       .event = IBV_EVENT_QP_REQ_ERR),
};

static const struct iwarp_segment *receive_terminate(struct raw *r)
{
	const struct iwarp_segment *s;

	do
		s = raw_receive(r);
	while (s->opcode == IWARP_READ_RESPONSE);
	expect_eq(s->opcode, IWARP_TERMINATE);
	return s;
}

/* `naks`: how many TERMINATEs have been sent before. */
static void try_attack(struct pair *p, const struct attack *a, const struct region *mr,
		       unsigned naks)
{
	const struct iwarp_segment *s;
	struct raw r;

	printf("    %s\n", a->name);
	fflush(stdout);
	side_fill(&p->a, 0, p->a.bytes, 3);
	raw_open(&r, p, a->crc);
	side_recv(&p->a, 6, 0, 100);
	raw_begin(&r);
	a->make(&r, mr);
	raw_send(&r);
	s = receive_terminate(&r);
	expect_eq(s->terminate.layer, a->layer);
	expect_eq(s->terminate.type, a->type);
	expect_eq(s->terminate.code, a->code);
	raw_expect_end(&r);
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
	expect_status(side_wait(&p->a, RECV_CQ), a->make == longer_than_the_receive ?
			      IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
	expect_eq(side_async(&p->a, WAIT_MS), a->event);
	side_check(&p->a, 0, p->a.bytes, 3);
	expect_eq(look_qp(&p->a, 0).counters[HCA_RX_NAKS_SENT], naks + 1);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

static void who_breaks_a_rule_gets_a_terminate_and_writes_nothing(struct pair *p)
{
	struct region mr;

	side_open(&p->a, NULL);
	mr = side_reg(&p->a, FROM, TO - FROM, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		      IBV_ACCESS_REMOTE_READ, 0);
	expect(mr.index >= 0);
	for (unsigned i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		try_attack(p, &attacks[i], &mr, i);
}

/* ---- peers that take little ---- */

/* A peer that wants much at once, and has ended its own direction before it takes it. */
static void what_tcp_had_no_room_for_follows_the_peers_end(struct pair *p)
{
	static uint8_t bytes[65536];
	const struct side_options opt = { .bytes = MUCH };
	struct region mr;
	struct raw r;
	ssize_t n;

	side_open(&p->a, &opt);
	mr = side_reg(&p->a, 0, MUCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0);
	raw_open_with(&r, p, false, 16384);
	raw_begin(&r);
	raw_add(&r, &(struct iwarp_segment){
		.opcode = IWARP_READ_REQUEST, .last = true, .msn = 1,
		.read = { .sink_stag = 9, .source_stag = mr.rkey, .source_to = mr.addr,
			  .bytes = MUCH } });
	raw_send(&r);
	expect_eq(raw_receive(&r)->opcode, IWARP_READ_RESPONSE);
	expect_eq(shutdown(r.fd, SHUT_WR), 0);
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
	do
		n = recv(r.fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	/* An end, no reset. */
	expect_eq(n, 0);
	close(r.fd);
}

static unsigned descriptors(void)
{
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	expect(d != NULL);
	while ((e = readdir(d)))
		n++;
	closedir(d);
	return n;
}

/* Peers that do not end their direction when the queue pair has gone. */
static void few_sockets_wait_for_their_peers(struct pair *p)
{
	struct raw r;
	unsigned before;
	int fd[PEERS];

	side_open(&p->a, NULL);
	before = descriptors();
	for (int i = 0; i < PEERS; i++) {
		raw_open(&r, p, false);
		raw_begin(&r);
		raw_send(&r);
		fd[i] = r.fd;
		expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	}
	/* The first descriptors are those of the transport. */
	expect(descriptors() - before <= PEERS + WAITING + 8);
	for (int i = 0; i < PEERS; i++) {
		r.fd = fd[i];
		raw_expect_end(&r);
	}
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "RFC 5044, 7.1.2",
		a_responder_sends_nothing_before_the_first_message),
	RULE("RFC 5041, 7.1", a_message_without_a_receive_ends_the_connection),
	RULE_IN(ONLY_TWO_PROCESSES, "RFC 5040, 5.5.1",
		what_was_posted_before_an_orderly_end_arrives),
	CASE_IN(ONLY_ONE_PROCESS, what_arrived_before_a_reset_is_received),
	CASE(a_queue_pair_may_go_behind_its_last_completion),
	CASE_IN(ONLY_TWO_PROCESSES, a_peer_that_is_killed_ends_the_connection),
	RULE("RFC 5040, 7.2", a_read_that_is_refused_fails_with_its_reason),
	RULE_IN(ONLY_ONE_PROCESS, "RFC 5040, 5.4",
		who_breaks_a_rule_gets_a_terminate_and_writes_nothing),
	CASE_IN(ONLY_ONE_PROCESS, few_sockets_wait_for_their_peers),
	CASE_IN(ONLY_ONE_PROCESS, what_tcp_had_no_room_for_follows_the_peers_end),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
