/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of iWARP on a bad network, which BUSBAR_FAULTS makes (busbar-adapter(7)): data is right or
 * an operation ends with a defined error, and nothing waits for ever. With BAD_NETWORK_ROUNDS, so
 * many connections on networks that do all of it at random (6).
 */
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hca/share/counters.h"
#include "look.h"
#include "stream.h"
#include "verbs/private.h"

enum {
	OPS = 24,      /* of each side in a batch: SEND, WRITE and READ in turn */
	SLOT = 4096,   /* source or destination of one of them */
	BYTES = 3000,
	SOURCE = 0,
	DEST = OPS * SLOT,
	ALL = 2 * OPS * SLOT,
	BATCHES = 30,
	SILENT_MS = 10000, /* of the transport */
};

static const struct side_options opt = { .send_wr = OPS, .recv_wr = OPS, .cqe = 4 * OPS,
					 .bytes = ALL, .sig_all = true };

static int ask(const struct side *s, const char *text, struct hca_faults_view *v)
{
	return busbar_faults_ask((uint32_t)side_pid(s), text, v);
}

static void set(const struct side *s, const char *text)
{
	struct hca_faults_view v;

	expect_eq(ask(s, text, &v), 0);
}

static uint64_t counted(const struct side *s, enum hca_process_counter counter)
{
	return look_process(s).counters[counter];
}

/* ---- work ---- */

static uint64_t seed_of(const struct side *s, uint64_t i)
{
	return s->addr + i;
}

static void begin_side(struct side *s)
{
	for (uint64_t i = 0; i < OPS; i++)
		side_fill(s, SOURCE + i * SLOT, BYTES, seed_of(s, i));
}

static void begin(struct pair *p)
{
	pair_open(p, &opt);
	begin_side(&p->a);
	begin_side(&p->b);
}

static struct send_req operation(const struct side *from, const struct side *to, uint64_t i)
{
	const uint64_t source = SOURCE + i * SLOT, dest = DEST + i * SLOT;

	switch (i % 3) {
	case 0:
		return send_req(from, IBV_WR_SEND, i, source, BYTES);
	case 1:
		return rdma_req(from, to, IBV_WR_RDMA_WRITE, i, source, dest, BYTES);
	default:
		return rdma_req(from, to, IBV_WR_RDMA_READ, i, dest, source, BYTES);
	}
}

static void post_receives(struct side *s)
{
	side_set(s, DEST, OPS * SLOT, 0);
	for (uint64_t i = 0; i < OPS; i += 3)
		side_recv(s, i, DEST + i * SLOT, SLOT);
}

static void post_all(struct side *from, const struct side *to)
{
	for (uint64_t i = 0; i < OPS; i++) {
		struct send_req r = operation(from, to, i);

		expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
	}
}

/* All have to complete, in order: successes, one error of the connection at most, and flushes. How many
 * successes. */
static uint64_t expect_in_order(struct side *s, enum side_cq cq, uint64_t step)
{
	const int count = OPS / (int)step;
	const struct polled done = side_poll(s, cq, count, WAIT_MS);
	enum ibv_wc_status last = IBV_WC_SUCCESS;
	uint64_t good = 0;

	expect_eq(done.count, count);
	for (int i = 0; i < count; i++) {
		const enum ibv_wc_status now = done.wc[i].status;

		expect_eq(done.wc[i].wr_id, (uint64_t)i * step);
		if (last != IBV_WC_SUCCESS)
			expect_eq(now, IBV_WC_WR_FLUSH_ERR);
		else if (now == IBV_WC_SUCCESS)
			good++;
		else if (now != IBV_WC_WR_FLUSH_ERR)
			expect_eq(now, IBV_WC_RETRY_EXC_ERR);
		last = now;
	}
	return good;
}

/* What `to` has received, what was written before that, and what `from` has read. */
static void expect_data(struct side *from, struct side *to, uint64_t sent, uint64_t received)
{
	for (uint64_t i = 0; i < 3 * received; i++)
		if (i % 3 == 0 || (i % 3 == 1 && i < 3 * (received - 1)))
			side_check(to, DEST + i * SLOT, BYTES, seed_of(from, i));
	for (uint64_t i = 2; i < sent; i += 3)
		side_check(from, DEST + i * SLOT, BYTES, seed_of(to, i));
}

/* True: everything has arrived, and the connection goes on. */
static bool run_batch(struct pair *p)
{
	uint64_t sent_a, sent_b, received_a, received_b;

	post_receives(&p->a);
	post_receives(&p->b);
	post_all(&p->a, &p->b);
	post_all(&p->b, &p->a);
	sent_a = expect_in_order(&p->a, SEND_CQ, 1);
	sent_b = expect_in_order(&p->b, SEND_CQ, 1);
	received_a = expect_in_order(&p->a, RECV_CQ, 3);
	received_b = expect_in_order(&p->b, RECV_CQ, 3);
	expect_data(&p->a, &p->b, sent_a, received_b);
	expect_data(&p->b, &p->a, sent_b, received_a);
	return sent_a == OPS && sent_b == OPS && 3 * received_a == OPS && 3 * received_b == OPS;
}

static void expect_over(struct pair *p)
{
	side_wait_state(&p->a, 0, IBV_QPS_ERR);
	side_wait_state(&p->b, 0, IBV_QPS_ERR);
	pair_reset_qp(p, 0);
}

/* ---- ends ---- */

/* At once, within a message, between messages, and when a lot has gone well: of what `a` sends or what
 * it gets, on a connection that meets faults from its beginning or later. */
static void all_work_ends(struct pair *p, const char *end, enum hca_process_counter counter)
{
	static const unsigned after[] = { 1, 2000, 20000, 100000 };
	char text[64];

	begin(p);
	for (uint64_t i = 0; i < 16; i++) {
		const char *in = i & 1 ? "in." : "";
		const uint64_t before = counted(&p->a, counter);
		int batches = 0;

		snprintf(text, sizeof(text), "%s%s=1,%safter=%u", in, end, in, after[i >> 2]);
		if (i & 2)
			set(&p->a, text);
		pair_connect_qp(p, 0);
		if (!(i & 2))
			set(&p->a, text);
		while (run_batch(p))
			expect(++batches < 4);
		expect_over(p);
		set(&p->a, "");
		/* In one process `b` meets it, too. */
		expect(counted(&p->a, counter) > before);
	}
}

static void all_work_ends_behind_a_cut(struct pair *p)
{
	all_work_ends(p, "cut", HCA_STREAMS_CUT);
}

static void all_work_ends_behind_a_reset(struct pair *p)
{
	all_work_ends(p, "reset", HCA_STREAMS_RESET);
}

static void all_work_ends_whatever_the_network_does(struct pair *p)
{
	const char *rounds = getenv("BAD_NETWORK_ROUNDS");
	char text[300];

	setenv("ADAPTER_STREAM", "crc,markers", 1);
	begin(p);
	for (int i = 0; i < (rounds ? atoi(rounds) : 6); i++) {
		int batches = 0;

		snprintf(text, sizeof(text),
			 "cut=0.5%%,reset=0.5%%,corrupt=0.3%%,stall=2%%,pause=3ms,delay=100us,jitter=1ms,"
			 "in.cut=0.5%%,in.reset=0.5%%,in.corrupt=0.3%%,in.jitter=300us,rate=1Gbit,seed=%d",
			 i);
		set(&p->a, text);
		pair_connect_qp(p, 0);
		while (batches++ < BATCHES && run_batch(p))
			;
		if (batches > BATCHES) {
			set(&p->a, "cut=1");
			expect(!run_batch(p));
		}
		expect_over(p);
		set(&p->a, "");
	}
}

/* ---- corruption ---- */

static void expect_failure(struct side *s, enum ibv_wc_status first)
{
	struct ibv_wc wc = side_wait(s, SEND_CQ);

	expect_eq(wc.wr_id, 1);
	expect_status(wc, first);
	wc = side_wait(s, RECV_CQ);
	expect_eq(wc.wr_id, 2);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
}

static void read_one(struct side *s, const struct side *from)
{
	struct send_req r = rdma_req(s, from, IBV_WR_RDMA_READ, 1, DEST, SOURCE, BYTES);

	expect_eq(side_post_send(s, 0, &r, 1).ret, 0);
}

/* What belongs to the beginning of the connection has arrived at both. */
static void begin_is_over(struct pair *p)
{
	read_one(&p->a, &p->b);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_SUCCESS);
	read_one(&p->b, &p->a);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_SUCCESS);
}

/* `a` sees by the TERMINATE that its bytes were damaged: an end without it would flush its READ. */
static void the_crc_finds_corruption(struct pair *p)
{
	setenv("ADAPTER_STREAM", "crc", 1);
	begin(p);
	for (uint64_t i = 0; i < 10; i++) {
		pair_connect_qp(p, 0);
		begin_is_over(p);
		side_set(&p->b, DEST, SLOT, 0);
		side_set(&p->a, DEST, SLOT, 0);
		side_recv(&p->a, 2, DEST + SLOT, SLOT);
		side_recv(&p->b, 2, DEST + SLOT, SLOT);
		set(&p->a, i % 2 ? "in.corrupt=1" : "corrupt=1");
		if (i % 2)
			read_one(&p->b, &p->a);
		else
			read_one(&p->a, &p->b);
		expect_failure(i % 2 ? &p->b : &p->a, IBV_WC_RETRY_EXC_ERR);
		expect_status(side_wait(i % 2 ? &p->a : &p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
		expect_over(p);
		expect(counted(&p->a, HCA_FPDUS_CORRUPTED) > i);
		set(&p->a, "");
	}
}

static void without_a_crc_corruption_is_said_to_pass(struct pair *p)
{
	struct hca_faults_view v;

	unsetenv("ADAPTER_STREAM");
	begin(p);
	pair_connect_qp(p, 0);
	expect_eq(ask(&p->a, "corrupt=1%", &v), 0);
	expect(strstr(v.notes, "have no CRC"));
	expect_eq(ask(&p->a, "loss=1%,delay=1ms", &v), 0);
	expect(strstr(v.notes, "no faults on streams"));
	expect(run_batch(p));
	expect(!counted(&p->a, HCA_FPDUS_DELAYED));
}

/* ---- time ---- */

static void a_stall_holds_up_and_loses_nothing(struct pair *p)
{
	enum { PAUSE_MS = 50 };
	uint64_t began;

	begin(p);
	pair_connect_qp(p, 0);
	expect(run_batch(p));
	set(&p->a, "stall=1,pause=50ms");
	began = now_ms();
	expect(run_batch(p));
	if (now_ms() - began < PAUSE_MS - 1)
		fail("only %llu ms", (unsigned long long)(now_ms() - began));
	expect(counted(&p->a, HCA_STREAMS_STALLED) > 0);
	set(&p->a, "");
	expect(run_batch(p));
}

static void a_partition_that_lasts_fails_like_a_dead_peer(struct pair *p)
{
	uint64_t began = now_ms(), took;

	begin(p);
	pair_connect_qp(p, 0);
	side_recv(&p->a, 2, DEST + SLOT, SLOT);
	side_recv(&p->b, 2, DEST + SLOT, SLOT);
	set(&p->a, "partition=1");
	read_one(&p->a, &p->b);
	read_one(&p->b, &p->a);
	for (int i = 0; i < 8; i++) {
		expect_eq(side_poll(&p->a, SEND_CQ, 1, SILENT_MS / 10).count, 0);
		expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	}
	expect_failure(&p->a, IBV_WC_RETRY_EXC_ERR);
	took = now_ms() - began;
	expect_failure(&p->b, IBV_WC_RETRY_EXC_ERR);
	if (took < SILENT_MS - 1)
		fail("after %llu ms", (unsigned long long)took);
	expect_over(p);
}

/* ---- the process ---- */

static void what_is_held_leaves_when_the_device_is_closed(struct pair *p)
{
	uint64_t began;

	begin(p);
	pair_connect_qp(p, 0);
	expect(run_batch(p));
	set(&p->a, "delay=20s");
	for (uint64_t i = 0; i < OPS; i += 3)
		side_recv(&p->b, i, DEST + i * SLOT, SLOT);
	for (uint64_t i = 0; i < OPS; i += 3)
		side_send(&p->a, i, SOURCE + i * SLOT, BYTES);
	expect_eq(side_poll(&p->a, SEND_CQ, OPS / 3, WAIT_MS).count, OPS / 3);
	side_expect_none(&p->b, RECV_CQ);
	began = now_ms();
	side_close(&p->a);
	for (uint64_t i = 0; i < OPS; i += 3)
		side_wait_ok(&p->b, RECV_CQ, i);
	expect(now_ms() - began < WAIT_MS);
}

/* A child has neither the socket to the peer nor the middlebox. */
static void a_child_does_not_keep_the_stream(struct pair *p)
{
	int go[2], status;
	pid_t child;
	char byte;

	begin(p);
	set(&p->a, "delay=1ms");
	pair_connect_qp(p, 0);
	expect(run_batch(p));
	expect(!pipe(go));
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	expect(run_batch(p));
	side_recv(&p->b, 2, DEST, SLOT);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
	close(go[1]);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	close(go[0]);
}

/* A child that has both, as vfork() makes one. */
static void a_child_that_keeps_it_hides_no_end(struct pair *p)
{
	int go[2], status;
	pid_t child;
	char byte;

	begin(p);
	set(&p->a, "delay=1ms");
	pair_connect_qp(p, 0);
	expect(run_batch(p));
	side_recv(&p->a, 2, DEST + SLOT, SLOT);
	expect(!pipe(go));
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	set(&p->a, "reset=1");
	read_one(&p->a, &p->b);
	expect_failure(&p->a, IBV_WC_RETRY_EXC_ERR);
	close(go[1]);
	expect_eq(waitpid(child, &status, 0), child);
	expect_eq(status, 0);
	close(go[0]);
}

/* ---- threads ---- */

enum { READ_MS = 700 };

struct reads {
	uint64_t addr, seed;
	uint32_t rkey;
};

/* Reads the peer's sources again and again, and polls without a pause. */
static int read_and_poll(struct end *e, void *arg)
{
	const struct reads *r = arg;
	const uint64_t end = now_ms() + READ_MS;
	struct ibv_wc wc;

	for (uint64_t i = 0; now_ms() < end; i = (i + 1) % OPS) {
		uint8_t *to = e->buffer + DEST + i * SLOT;
		struct ibv_sge sge = { (uint64_t)(uintptr_t)to, BYTES, e->mr[0]->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
					  .opcode = IBV_WR_RDMA_READ }, *bad;
		const uint64_t limit = now_ms() + WAIT_MS;
		int n;

		wr.wr.rdma.remote_addr = r->addr + SOURCE + i * SLOT;
		wr.wr.rdma.rkey = r->rkey;
		memset(to, 0, BYTES);
		if (ibv_post_send(e->qp[0], &wr, &bad))
			return 1;
		while (!(n = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc)) && now_ms() < limit)
			;
		if (n != 1 || wc.status != IBV_WC_SUCCESS)
			return n == 1 ? 100 + (int)wc.status : 2;
		for (uint64_t at = 0; at < BYTES; at++)
			if (to[at] != pattern(r->seed + i, at))
				return 3;
	}
	return 0;
}

static void they_begin_and_end_while_threads_poll(struct pair *p)
{
	static const char *const texts[] = {
		"delay=50us", "", "in.jitter=30us,stall=10%,pause=1ms", "rate=100Mbit", "partition=0",
		"in.partition=1", "jitter=20us,in.rate=1Gbit,seed=3",
	};
	const unsigned count = sizeof(texts) / sizeof(*texts);
	struct reads of_a, of_b;
	uint64_t end;
	unsigned n = 0;

	begin(p);
	of_a = (struct reads){ p->a.addr, seed_of(&p->a, 0), p->a.rkey };
	of_b = (struct reads){ p->b.addr, seed_of(&p->b, 0), p->b.rkey };
	pair_connect_qp(p, 0);
	side_start(&p->a, read_and_poll, &of_b, sizeof(of_b));
	side_start(&p->b, read_and_poll, &of_a, sizeof(of_a));
	for (end = now_ms() + READ_MS; now_ms() < end || n < 2 * count; n++)
		set(n / count % 2 ? &p->b : &p->a, texts[n % count]);
	set(&p->a, "");
	set(&p->b, "");
	expect_eq(side_join(&p->a, &of_b, sizeof(of_b)), 0);
	expect_eq(side_join(&p->b, &of_a, sizeof(of_a)), 0);
}

static const struct test_case cases[] = {
	CASE(all_work_ends_behind_a_cut),
	CASE(all_work_ends_behind_a_reset),
	CASE(all_work_ends_whatever_the_network_does),
	CASE(the_crc_finds_corruption),
	CASE(without_a_crc_corruption_is_said_to_pass),
	CASE(a_stall_holds_up_and_loses_nothing),
	CASE(a_partition_that_lasts_fails_like_a_dead_peer),
	/* In one process `b` keeps the device open. */
	CASE_IN(ONLY_TWO_PROCESSES, what_is_held_leaves_when_the_device_is_closed),
	CASE(a_child_does_not_keep_the_stream),
	CASE_IN(ONLY_TWO_PROCESSES, a_child_that_keeps_it_hides_no_end),
	CASE(they_begin_and_end_while_threads_poll),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
