/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What connections of iWARP do otherwise than those of InfiniBand (RFC 5040, 5041, 5044): who sends
 * first, how a connection ends, and peers that take little or do not end. What becomes of a peer that
 * breaks the rules is in terminates.c.
 */
#include <dirent.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"
#include "stream.h"

enum {
	ROUNDS = 1000,
	MUCH = 1 << 20,
	PEERS = 400,
	WAITING = 256,            /* of life.c */
	VERY_MUCH = 64 << 20,
};

/* ---- who begins ---- */

static void a_responder_sends_nothing_before_the_first_message(struct pair *p)
{
	struct pollfd poll_fd = { .events = POLLIN };
	struct raw r;

	side_open(&p->a, NULL);
	raw_open(&r, p, &(struct raw_how){ 0 });
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
		raw_open(&r, p, &(struct raw_how){ 0 });
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
	raw_open(&r, p, &(struct raw_how){ .room = 16384 });
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
		raw_open(&r, p, &(struct raw_how){ 0 });
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

/* ---- peers that take much ---- */

/* A peer that asks for much, and whose TCP takes all of it at once. */
struct taker {
	struct raw raw;
	int probe; /* the socket of `a` */
};

/* False: only root may have a socket that takes so much. */
static bool taker_open(struct taker *t, struct pair *p)
{
	const int room = VERY_MUCH;
	int fd[2];

	*t = (struct taker){ .probe = -1 };
	stream_sockets(fd);
	t->raw.fd = fd[0];
	if (setsockopt(fd[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room))) {
		close(fd[0]);
		close(fd[1]);
		return false;
	}
	t->probe = dup(fd[1]);
	expect(t->probe >= 0);
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(stream_attach(p->a.end, 0, fd[1], &(struct stream_how){ 0 }), 0);
	raw_begin(&t->raw);
	raw_send(&t->raw);
	return true;
}

/* Too much rather than too little while it changes. */
static int taken(const struct taker *t)
{
	int sent, arrived;

	expect(!ioctl(t->probe, TIOCOUTQ, &sent) && !ioctl(t->raw.fd, FIONREAD, &arrived));
	return sent + arrived;
}

static void taker_close(struct taker *t, struct pair *p)
{
	close(t->raw.fd);
	close(t->probe);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
}

/* From `b` to `a`. */
static void message_on(struct pair *p, int i)
{
	const struct recv_req in = { .wr_id = 1, .num_sge = 1, .sge = { side_sge(&p->a, 0, 8) } };
	const struct send_req out = send_req(&p->b, IBV_WR_SEND, 2, 0, 8);

	expect_eq(side_post_recv(&p->a, i, &in, 1).ret, 0);
	expect_eq(side_post_send(&p->b, i, &out, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, 2);
	side_wait_ok(&p->a, RECV_CQ, 1);
}

/* How many messages of the other connection arrive while the peer gets what it wants. */
static unsigned messages_meanwhile(struct pair *p, const struct region *mr, struct taker *t)
{
	const int all = VERY_MUCH;
	unsigned messages = 0;
	int before = 0, now;

	raw_add(&t->raw, &(struct iwarp_segment){
		.opcode = IWARP_READ_REQUEST, .last = true, .msn = 1,
		.read = { .sink_stag = 9, .source_stag = mr->rkey, .source_to = mr->addr,
			  .bytes = VERY_MUCH } });
	raw_send(&t->raw);
	while (before < all) {
		message_on(p, 1);
		now = taken(t);
		messages += before && now < all;
		before = now;
	}
	return messages;
}

static void a_peer_that_reads_much_holds_up_no_other_connection(struct pair *p)
{
	const struct side_options opt = { .bytes = VERY_MUCH };
	struct region mr;
	struct taker t;
	unsigned messages = 0;

	pair_open(p, &opt);
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
	mr = side_reg(&p->a, 0, VERY_MUCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 0);
	/* A thread without a processor sends none. */
	for (int i = 0; i < 20 && !messages; i++) {
		if (!taker_open(&t, p))
			return;
		messages = messages_meanwhile(p, &mr, &t);
		taker_close(&t, p);
	}
	expect(messages > 0);
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
	CASE_IN(ONLY_ONE_PROCESS, few_sockets_wait_for_their_peers),
	CASE(a_peer_that_reads_much_holds_up_no_other_connection),
	CASE_IN(ONLY_ONE_PROCESS, what_tcp_had_no_room_for_follows_the_peers_end),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
