/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that break the protocol of the link on purpose. `a` is attacked, `b` is a
 * correct peer, the third process is hostile (evil.h). Whatever it does, `a` still
 * exchanges messages with `b`; only the link to the hostile process ends.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "evil.h"
#include "pair.h"
#include "victims.h"

#define BLOCK_OF(qpn) ((qpn) >> HCA_QPN_BLOCK_BITS)
#define EVIL_BLOCK 16000u

/* Arguments and results of functions that run in the hostile process. */
struct note {
	uint32_t block;  /* to be called */
	uint32_t block2; /* of the correct peer */
	uint32_t qpn, src_qpn, psn, key;
	int count;
	enum evil_file segment, area;
	bool ok;
};

/* Of the hostile process, from one call to the next. */
static struct evil evil;
/* What `a` may take for its queue pair. */
static uint32_t evil_qpn;

static uint64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static struct note told(struct pair *p, side_fn *fn, struct note n)
{
	n.block = BLOCK_OF(p->a.qpn[0]);
	n.block2 = BLOCK_OF(p->b.qpn[0]);
	side_run(&p->spare[0], fn, &n, sizeof(n));
	return n;
}

/* QP 1 of `a`, connected to the hostile process. */
static void connect_to_evil(struct pair *p)
{
	struct connection c = p->conn;

	c.timeout = 1;
	c.retry_cnt = 1;
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_to_init(&p->a, 1, IBV_ACCESS_REMOTE_WRITE), 0);
	expect_eq(side_to_rtr(&p->a, 1, &c, &p->a.gid, evil_qpn, 100), 0);
	expect_eq(side_to_rts(&p->a, 1, &c, 200), 0);
}

static int evil_starts(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = !evil_open(&evil, EVIL_BLOCK);
	evil_qpn = n->qpn = evil.block << HCA_QPN_BLOCK_BITS | 5;
	evil.segment->qps[5].qpn = evil_qpn;
	evil.segment->qps[5].state = IBV_QPS_RTS;
	return 0;
}

static int evil_calls(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = !evil_call(&evil, n->block);
	return 0;
}

static int evil_ends(struct end *e, void *arg)
{
	evil_close(&evil);
	return 0;
}

static int evil_is_cut_off(struct end *e, void *arg)
{
	struct note *n = arg;

	n->ok = evil_closed(evil.fd, WAIT_MS);
	return 0;
}

static void start_evil(struct pair *p)
{
	struct note n = told(p, evil_starts, (struct note){ 0 });

	expect(n.ok);
	evil_qpn = n.qpn;
}

static void start(struct pair *p)
{
	pair_start(p, NULL);
	exchange(p);
	start_evil(p);
}

/* ---- the handshake ---- */

static int hello_with(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_HELLO);
	int fd = evil_connect(n->block);
	int fds[3] = {
		evil_memory("s", sizeof(struct hca_segment), n->segment),
		evil.kick_fd,
		evil_memory("a", sizeof(struct shm_area), n->area),
	};

	n->ok = !evil_send(fd, &msg, sizeof(msg), fds, 3) &&
		evil_closed(fd, WAIT_MS);
	if (n->segment == EVIL_UNSEALED && ftruncate(fds[0], 0))
		n->ok = false;
	if (n->area == EVIL_UNSEALED && ftruncate(fds[2], 0))
		n->ok = false;
	close(fds[0]);
	close(fds[2]);
	close(fd);
	return 0;
}

static void memory_that_can_shrink_is_refused(struct pair *p)
{
	static const enum evil_file kinds[] = { EVIL_UNSEALED, EVIL_SHORT,
						EVIL_PIPE };

	start(p);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		expect(told(p, hello_with,
			    (struct note){ .segment = kinds[i] }).ok);
		expect(told(p, hello_with, (struct note){ .area = kinds[i] }).ok);
		exchange(p);
	}
	told(p, evil_ends, (struct note){ 0 });
}

static int hello_with_pipe_as_kick(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_HELLO);
	int fd = evil_connect(n->block), pipe_fds[2];
	int area = evil_memory("a", sizeof(struct shm_area), EVIL_SEALED);

	if (pipe2(pipe_fds, n->count ? O_NONBLOCK : 0))
		return 0;
	n->ok = !evil_send(fd, &msg, sizeof(msg),
			   (int[]){ evil.segment_fd, pipe_fds[1], area }, 3) &&
		evil_closed(fd, WAIT_MS);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(area);
	close(fd);
	return 0;
}

static void a_wake_up_descriptor_that_blocks_is_refused(struct pair *p)
{
	start(p);
	for (int i = 0; i < 2; i++)
		expect(told(p, hello_with_pipe_as_kick,
			    (struct note){ .count = i }).ok);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

/* An empty message, too many descriptors, and wrong ones of every kind. */
static int messages_with_descriptors(struct end *e, void *arg)
{
	struct note *n = arg;
	int fds[16];

	n->ok = true;
	for (int i = 0; i < 16; i++)
		fds[i] = evil.kick_fd;
	for (int i = 0; i < 9; i++) {
		struct shm_control msg = evil_control(&evil, SHM_HELLO);
		size_t size = sizeof(msg);
		int fd = evil_connect(n->block), count = 3;

		switch (i) {
		case 0: size = 0; break;
		case 1: count = 4; break;
		case 2: count = 16; break;
		case 3: size = 7; break;
		case 4: msg.magic++; break;
		case 5: msg.version++; break;
		case 6: msg.block_count = 65; break;
		case 7: msg.kind = SHM_WELCOME; break;
		default: msg.area_bytes--; break;
		}
		n->ok = n->ok && !evil_send(fd, &msg, size, fds, count) &&
			evil_closed(fd, WAIT_MS);
		close(fd);
	}
	return 0;
}

static void descriptors_of_refused_messages_are_closed(struct pair *p)
{
	uint64_t end = now_ms() + WAIT_MS;
	int fds;

	start(p);
	fds = open_fds();
	expect(told(p, messages_with_descriptors, (struct note){ 0 }).ok);
	/* The caller sees the end before we have closed the rest. */
	while (open_fds() > fds)
		expect(now_ms() < end);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

/* Those of the connections that are still open, once they are `few` or three seconds are
 * over; those that are kept are for five. */
static int evil_open_fall(const int fds[], int count, int few)
{
	const uint64_t end = now_ms() + 3000;
	int open;

	do {
		poll(NULL, 0, 50);
		open = 0;
		for (int i = 0; i < count; i++)
			open += !evil_closed(fds[i], 0);
	} while (open > few && now_ms() < end);
	return open;
}

static int connections_that_say_nothing(struct end *e, void *arg)
{
	struct note *n = arg;
	int fds[100], open, closed = 0;

	for (int i = 0; i < 100; i++)
		fds[i] = evil_connect(n->block);
	/* Few are kept, and not for long. */
	open = evil_open_fall(fds, 100, 16);
	for (int i = 0; i < 100; i++)
		closed += evil_closed(fds[i], WAIT_MS);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
	n->ok = open <= 16 && closed == 100;
	n->count = open;
	return 0;
}

static void callers_that_say_nothing_are_few_and_sent_away(struct pair *p)
{
	struct note n = { 0 };

	start(p);
	n.block = BLOCK_OF(p->a.qpn[0]);
	side_start(&p->spare[0], connections_that_say_nothing, &n, sizeof(n));
	for (int i = 0; i < 20; i++)
		exchange(p);
	side_join(&p->spare[0], &n, sizeof(n));
	expect(n.ok);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

static int as_another_user(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_control msg = evil_control(&evil, SHM_HELLO);
	int area = evil_memory("a", sizeof(struct shm_area), EVIL_SEALED);
	int fds[20], open, fd;

	if (setresuid(65534, 65534, 65534))
		return 0;
	for (int i = 0; i < 20; i++)
		fds[i] = evil_connect(n->block);
	open = evil_open_fall(fds, 20, 4);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	poll(NULL, 0, 200);
	fd = evil_connect(n->block);
	evil_send(fd, &msg, sizeof(msg),
		  (int[]){ evil.segment_fd, evil.kick_fd, area }, 3);
	n->ok = open <= 4 && evil_closed(fd, WAIT_MS);
	close(fd);
	close(area);
	return 0;
}

/* Root's would be let in, and root lets all in. */
static int as_a_user(struct end *e, void *arg)
{
	return setresuid(65533, 65533, 65533) || prctl(PR_SET_DUMPABLE, 1);
}

static void processes_of_other_users_are_few_and_refused(struct pair *p)
{
	if (geteuid() != 0)
		exit(77);
	expect_eq(side_run(&p->b, as_a_user, NULL, 0), 0);
	expect_eq(side_run(&p->a, as_a_user, NULL, 0), 0);
	start(p);
	expect(told(p, as_another_user, (struct note){ 0 }).ok);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

static void a_caller_waits_while_descriptors_are_short(struct pair *p)
{
	struct rlimit old, low;
	struct note n = { 0 };
	uint64_t before;

	start(p);
	n.block = BLOCK_OF(p->a.qpn[0]);
	expect_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 3;
	expect_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	side_start(&p->spare[0], evil_calls, &n, sizeof(n));
	exchange(p);
	before = cpu_ms();
	poll(NULL, 0, 300);
	/* A caller that waits in the backlog causes no busy loop. */
	expect(cpu_ms() - before < 150);
	expect_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	side_join(&p->spare[0], &n, sizeof(n));
	expect(n.ok);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

/* ---- in the name of others ---- */

static int claims_block_and_name(struct end *e, void *arg)
{
	struct note *n = arg;
	struct evil other;

	/* The peer's name, from the peer. */
	n->ok = !evil_open(&other, 0) && !evil_call(&other, n->block2);
	memcpy(evil.uuid, other.victim_uuid, sizeof(evil.uuid));
	memcpy(evil.segment->uuid, evil.uuid, sizeof(evil.uuid));
	evil_close(&other);
	evil.block = n->block2;
	evil.segment->blocks[0] = n->block2;
	for (unsigned i = 0; i < HCA_QPN_BLOCK_SIZE; i++) {
		evil.segment->qps[i].qpn = n->block2 << HCA_QPN_BLOCK_BITS | i;
		evil.segment->qps[i].state = IBV_QPS_RTS;
	}
	n->ok = n->ok && !evil_call(&evil, n->block);
	return 0;
}

static void nobody_else_answers_for_a_block_of_numbers(struct pair *p)
{
	pair_open(p, NULL);
	start_evil(p);
	expect(told(p, claims_block_and_name, (struct note){ 0 }).ok);
	pair_connect_qp(p, 0);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

static int sends_as_another(struct end *e, void *arg)
{
	static const uint8_t ops[] = { SHM_SEND, SHM_WRITE_IMM, SHM_FETCH_ADD,
				       SHM_ACCESS_FAULT };
	struct note *n = arg;
	uint64_t end = now_ms() + WAIT_MS;

	n->ok = !evil_call(&evil, n->block);
	for (size_t i = 0; n->ok && i < ARRAY_SIZE(ops); i++) {
		struct shm_slot *s = evil_slot(&evil);

		s->op = ops[i];
		s->dst_qpn = n->qpn;
		s->src_qpn = n->src_qpn;
		s->psn = n->psn;
		s->length = 8;
		s->imm = IBV_WC_REM_ACCESS_ERR;
		evil_publish(&evil);
	}
	while (n->ok && evil_consumed(&evil) != ARRAY_SIZE(ops))
		n->ok = now_ms() < end;
	return 0;
}

static void messages_in_the_name_of_another_process_are_dropped(struct pair *p)
{
	struct ibv_qp_attr attr;

	start(p);
	side_query(&p->a, 0, &attr, NULL);
	side_recv(&p->a, 77, 0, 1000);
	expect(told(p, sends_as_another,
		    (struct note){ .qpn = p->a.qpn[0], .src_qpn = p->b.qpn[0],
				   .psn = attr.rq_psn }).ok);
	side_expect_none(&p->a, RECV_CQ);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->a, QUIET_MS), -1);
	side_fill(&p->b, 1000, 1000, 9);
	side_send(&p->b, 78, 1000, 1000);
	side_wait_ok(&p->a, RECV_CQ, 77);
	side_check(&p->a, 0, 1000, 9);
	side_wait_ok(&p->b, SEND_CQ, 78);
	told(p, evil_ends, (struct note){ 0 });
}

/* ---- on the link ---- */

static int breaks_a_rule(struct end *e, void *arg)
{
	struct note *n = arg;
	struct shm_slot *s = evil_slot(&evil);

	s->op = 99;
	s->dst_qpn = n->qpn;
	s->src_qpn = evil_qpn;
	evil_publish(&evil);
	n->ok = evil_closed(evil.fd, WAIT_MS);
	return 0;
}

static int is_not_answered(struct end *e, void *arg)
{
	struct note *n = arg;
	int fd = evil_connect(n->block);

	n->ok = evil_closed(fd, WAIT_MS);
	close(fd);
	return 0;
}

static void who_breaks_a_rule_loses_the_link_while_we_poll(struct pair *p)
{
	struct note n = { 0 };

	start(p);
	expect(told(p, evil_calls, (struct note){ 0 }).ok);
	connect_to_evil(p);
	n.qpn = p->a.qpn[1];
	side_start(&p->spare[0], breaks_a_rule, &n, sizeof(n));
	/* Polls for the whole time: nobody else moves messages. */
	for (int i = 0; i < 100; i++)
		exchange(p);
	side_join(&p->spare[0], &n, sizeof(n));
	expect(n.ok);
	expect(told(p, is_not_answered, (struct note){ 0 }).ok);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

static int holds_a_key(struct end *e, void *arg)
{
	struct note *n = arg;
	uint64_t tag;

	memcpy(&tag, evil.victim_uuid, sizeof(tag));
	evil.segment->hazards[3] = tag << 32 | n->key;
	return 0;
}

static int takes_memory_back(struct end *e, void *arg)
{
	int index = *(int *)arg;
	int ret = ibv_dereg_mr(e->mr[index]);

	e->mr[index] = NULL;
	return ret;
}

static void a_key_that_is_held_for_ever_delays_us_once(struct pair *p)
{
	struct region r[2], local;
	uint64_t start_ms;

	start(p);
	expect(told(p, evil_calls, (struct note){ 0 }).ok);
	for (int i = 0; i < 2; i++) {
		r[i] = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE |
							IBV_ACCESS_REMOTE_WRITE, 0);
		expect(r[i].index >= 0);
	}
	/* A key without remote rights: a peer's announcement of it is not waited for. */
	local = side_reg(&p->a, 0, 4096, IBV_ACCESS_LOCAL_WRITE, 0);
	told(p, holds_a_key, (struct note){ .key = local.rkey });
	start_ms = now_ms();
	expect_eq(side_dereg(&p->a, local.index), 0);
	expect(now_ms() - start_ms < 5000);
	told(p, holds_a_key, (struct note){ .key = r[0].rkey });
	/* Meanwhile everything else goes on. */
	side_start(&p->a, takes_memory_back, &r[0].index, sizeof(int));
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
	for (int i = 0; i < 20; i++)
		exchange(p);
	expect_eq(side_join(&p->a, &r[0].index, sizeof(int)), 0);
	expect(told(p, evil_is_cut_off, (struct note){ 0 }).ok);
	start_ms = now_ms();
	expect_eq(side_dereg(&p->a, r[1].index), 0);
	expect(now_ms() - start_ms < 5000);
	exchange(p);
	told(p, evil_ends, (struct note){ 0 });
}

static void datagrams_to_who_reads_nothing_do_not_hold_up_others(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD, .send_wr = 1024,
					 .cqe = 2048 };
	struct send_req r;
	int ah;

	p->conn.access_a = p->conn.access_b = 0x1111; /* the Q_Key */
	pair_start(p, &ud);
	start_evil(p);
	expect(told(p, evil_calls, (struct note){ 0 }).ok);
	ah = side_ah_to(&p->a, &p->b.gid);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
	r.flags = 0;
	r.ah = ah;
	r.qkey = 0x1111;
	r.remote_qpn = evil_qpn;
	for (int i = 0; i < 700; i++)
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	r.remote_qpn = p->b.qpn[0];
	r.flags = IBV_SEND_SIGNALED;
	side_recv(&p->b, 5, 0, 200);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 5);
	side_ah_destroy(&p->a, ah);
	told(p, evil_ends, (struct note){ 0 });
}

static int answers_late(struct end *e, void *arg)
{
	struct note *n = arg;
	uint64_t end = now_ms() + WAIT_MS;

	n->ok = !evil_answer(&evil, WAIT_MS);
	for (unsigned i = 0; n->ok && i < 2; i++) {
		struct shm_slot *s = &evil.rx->slots[i];

		while (n->ok && atomic_load(&s->tag) != 1)
			n->ok = now_ms() < end;
		n->ok = n->ok && s->op == SHM_SEND && s->dst_qpn == evil_qpn &&
			s->length == 100 + i;
	}
	return 0;
}

/* It may be busy, for longer than the change to RTR waits for it. */
static void unreliable_messages_wait_for_who_has_not_answered_yet(struct pair *p)
{
	const struct side_options opt = { .type = IBV_QPT_UC };

	pair_open(p, &opt);
	start_evil(p);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->a.gid, evil_qpn, 100), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 200), 0);
	side_send(&p->a, 1, 0, 100);
	side_send(&p->a, 2, 0, 101);
	side_expect_none(&p->a, SEND_CQ);
	expect(told(p, answers_late, (struct note){ 0 }).ok);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 2);
	told(p, evil_ends, (struct note){ 0 });
}

#define HOSTILE(fn_) \
	{ .name = #fn_, .fn = fn_, .where = ONLY_TWO_PROCESSES, .spares = 1 }

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		HOSTILE(memory_that_can_shrink_is_refused),
		HOSTILE(a_wake_up_descriptor_that_blocks_is_refused),
		HOSTILE(descriptors_of_refused_messages_are_closed),
		HOSTILE(callers_that_say_nothing_are_few_and_sent_away),
		HOSTILE(processes_of_other_users_are_few_and_refused),
		HOSTILE(a_caller_waits_while_descriptors_are_short),
		HOSTILE(nobody_else_answers_for_a_block_of_numbers),
		HOSTILE(messages_in_the_name_of_another_process_are_dropped),
		HOSTILE(who_breaks_a_rule_loses_the_link_while_we_poll),
		HOSTILE(a_key_that_is_held_for_ever_delays_us_once),
		HOSTILE(datagrams_to_who_reads_nothing_do_not_hold_up_others),
		HOSTILE(unreliable_messages_wait_for_who_has_not_answered_yet),
	};

	return RUN_CASES(argc, argv, cases);
}
