/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile process that does random things to `a` while `a` and `b` go on
 * exchanging messages. In each of many episodes another process (evil.h) calls
 * `a` or is called, writes garbage or something almost right into ring, data
 * area, tables and control messages, and ends at any point.
 *
 * `a` must neither crash nor hang, must go on with `b`, must keep all bytes
 * outside of what it posted or granted, and all its descriptors.
 *
 *     adapter-hostile-random [SECONDS [SEED]]
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "evil.h"
#include "pair.h"

enum {
	EVIL_BLOCK = 15900,
	STEPS = 400,          /* of an episode */
	RECVS = 4,
	ROOM = 70000,         /* in a receive of the hostile connection */
	PLAIN = 8192,         /* for the exchange with `b` */
	GRANT = 65536,        /* where the receives start */
	COUNTER = 16384,      /* where ATOMICs may */
	BYTES = GRANT + RECVS * (ROOM + 4096) + 65536,
};

static unsigned seconds = 8;
static uint64_t seed;

struct plan {
	uint64_t seed;
	uint32_t block, block2;    /* of `a`, of `b` */
	uint32_t qpn, qpn_ud, qpn_b, b_qpn; /* a's QPs: hostile, UD, with b */
	uint32_t lkey, rkey;       /* of `a`; rkey: ATOMICs at `addr` */
	uint64_t addr;
	uint32_t psn;
	int status;                /* of the hostile process */
};

/* ---- the hostile process ---- */

static uint64_t state;

static uint32_t dice(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 24) % n;
}

static uint32_t any_word(void)
{
	return dice(2) ? dice(UINT32_MAX) : dice(1 << 17);
}

/* Where the data of a SEND or a datagram may stand. */
static void place_data(struct evil *e, struct shm_slot *s)
{
	struct shm_extent x = { .length = s->length };
	struct shm_pull pull[SHM_PULL_MAX] = { 0 };
	bool datagram = s->op == SHM_DATAGRAM || s->op == SHM_DATAGRAM_IMM;

	switch (dice(3)) {
	case 0: /* in the slot */
		s->length = (datagram ? HCA_GRH_BYTES : 0) + s->length % 56;
		break;
	case 1:
		x.offset = dice(SHM_DATA_BYTES - ROOM);
		if (!datagram && s->length > 1 && dice(3) == 0) {
			x.length = 1 + dice(s->length - 1);
			s->flags |= SHM_MORE;
		}
		memcpy(s->payload, &x, sizeof(x));
		s->flags |= SHM_IN_DATA;
		break;
	default:
		if (datagram)
			break;
		pull[0].addr = dice(8) ? (uintptr_t)e->area :
					 (uint64_t)any_word() << 16;
		pull[0].length = s->length / 2;
		pull[1].addr = (uintptr_t)e->area + 99;
		pull[1].length = s->length - s->length / 2;
		memcpy(s->payload, pull, sizeof(pull));
		s->flags |= SHM_PULL;
		break;
	}
}

static void atomic_request(const struct plan *p, struct shm_slot *s)
{
	struct shm_atomic a = {
		.remote_addr = p->addr + dice(8) * 8, .compare_add = any_word(),
		.swap = any_word(), .rkey = p->rkey,
	};

	if (dice(8) == 0)
		a.remote_addr += any_word();
	if (dice(8) == 0)
		a.rkey = dice(2) ? p->lkey : any_word();
	memcpy(s->payload, &a, sizeof(a));
}

/* One field of a slot that does not keep to the rules. */
static void spoil(struct shm_slot *s, const struct plan *p)
{
	switch (dice(9)) {
	case 0: s->op = (uint8_t)dice(256); break;
	case 1: s->flags ^= (uint8_t)(1 << dice(8)); break;
	case 2: s->dst_qpn = dice(2) ? p->qpn_b : any_word(); break;
	case 3: s->src_qpn = dice(2) ? p->b_qpn : any_word(); break;
	case 4: s->length = any_word(); break;
	case 5: s->psn += dice(3); break;
	case 6: s->payload[dice(SHM_SLOT_PAYLOAD)] = (uint8_t)dice(256); break;
	case 7: ((uint32_t *)s->payload)[dice(8)] = any_word(); break;
	default: s->ack = any_word(); break;
	}
}

/* Of the hostile connection; how many messages were taken in. */
static uint32_t accepted;

static void wait_for(struct evil *e, const struct plan *p,
		     const struct shm_slot *s)
{
	uint64_t end = now_ms() + 5;

	while (evil_consumed(e) != e->pos)
		if (now_ms() > end)
			return;
	accepted += s->dst_qpn == p->qpn && !(s->flags & SHM_MORE) &&
		    s->op <= SHM_FETCH_ADD && atomic_load(&s->status) == SHM_OK;
}

/* A message to one of a's QPs, mostly as it should be. */
static void any_slot(struct evil *e, const struct plan *p)
{
	static const uint8_t ops[] = { SHM_SEND, SHM_SEND_IMM, SHM_WRITE_IMM,
				       SHM_COMPARE_SWAP, SHM_FETCH_ADD };
	struct shm_slot *s = evil_slot(e);
	bool datagram = dice(4) == 0;

	s->op = datagram ? (uint8_t)(SHM_DATAGRAM + dice(2)) : ops[dice(5)];
	if (dice(100) == 0)
		s->op = SHM_ACCESS_FAULT;
	s->dst_qpn = datagram ? p->qpn_ud : p->qpn;
	s->src_qpn = e->block << HCA_QPN_BLOCK_BITS | 5;
	s->length = datagram ? HCA_GRH_BYTES + dice(4097) :
		    dice(2)  ? dice(ROOM + 100) :
			       dice(200);
	s->imm = any_word();
	s->psn = datagram ? 0x1111 : p->psn + accepted;
	if (s->op == SHM_COMPARE_SWAP || s->op == SHM_FETCH_ADD)
		atomic_request(p, s);
	else if (s->op != SHM_WRITE_IMM)
		place_data(e, s);
	if (dice(8) == 0)
		spoil(s, p);
	evil_publish(e);
	if (dice(4))
		wait_for(e, p, s);
}

static void any_scribble(struct evil *e, const struct plan *p)
{
	uint32_t *w = (uint32_t *)e->area;
	struct hca_segment *g = e->segment;
	struct hca_key *keys = e->keys;
	struct shm_slot *sent = &e->rx->slots[dice(SHM_SLOTS)];
	uint64_t tag = 0;

	memcpy(&tag, e->victim_uuid, sizeof(uint32_t));
	switch (dice(10)) {
	case 0: /* anywhere */
		w[dice(sizeof(*e->area) / 4)] = any_word();
		break;
	case 1:
		atomic_store(&e->rx->ack.word, any_word());
		break;
	case 2: /* marks in what it sent us */
		atomic_store(&sent->status, (uint8_t)dice(256));
		atomic_store(&sent->timer, (uint8_t)dice(256));
		break;
	case 3:
		g->blocks[dice(64)] = dice(2) ? p->block2 : any_word();
		break;
	case 4:
		g->qps[dice(10)].state = dice(2) ? IBV_QPS_RTS : any_word();
		g->qps[5].dest_qpn = dice(4) ? p->qpn : any_word();
		break;
	case 5: /* of the key that `a` writes with */
		keys[1].length = any_word();
		keys[1].addr = dice(2) ? (uintptr_t)e->area :
					 (uint64_t)any_word() << 16;
		keys[1].key = dice(4) ? 0x101 : any_word();
		break;
	case 6:
		g->wants_kick = dice(3);
		g->key_count = dice(2) ? HCA_KEYS : any_word();
		break;
	case 7:
		g->hazards[dice(HCA_HAZARDS)] = any_word();
		break;
	case 8: /* all tags at once */
		for (unsigned i = 0; i < SHM_SLOTS; i++)
			atomic_store(&e->tx->slots[i].tag, e->pos / SHM_SLOTS + 1);
		break;
	default:
		atomic_store(&e->rx->ack.word, dice(SHM_SLOTS));
		break;
	}
}

static void any_control(struct evil *e)
{
	struct shm_control msg = evil_control(e, dice(12));
	int fds[4] = { e->segment_fd, e->kick_fd, e->area_fd, e->fd };

	switch (dice(8)) {
	case 0: msg.magic = any_word(); break;
	case 1: msg.block_count = any_word(); break;
	case 2: msg.area_bytes = any_word(); break;
	case 3: msg.segment_addr = any_word(); break;
	case 4: /* of a region, or for one */
		msg.id = dice(8);
		msg.key = dice(2) ? 0x101 : any_word();
		msg.length = any_word();
		msg.touch_length = any_word();
		msg.writable = dice(2);
		break;
	default: break;
	}
	evil_send(e->fd, &msg, dice(4) ? sizeof(msg) : dice(sizeof(msg)), fds,
		  (int)dice(5));
}

static void kick_storm(struct evil *e)
{
	const uint64_t most = UINT64_MAX - 1;
	uint64_t count;

	/* O_NONBLOCK is a flag of the open file description, which both processes share. */
	fcntl(e->victim_kick, F_SETFL, dice(2) ? 0 : O_NONBLOCK);
	for (int i = 0; i < 100; i++) {
		struct pollfd p = { .fd = e->victim_kick, .events = POLLOUT };

		if (poll(&p, 1, 0) == 1 &&
		    write(e->victim_kick, dice(4) ? &(uint64_t){ 1 } : &most,
			  sizeof(most)) < 0)
			break;
		p.events = POLLIN;
		if (dice(4) == 0 && poll(&p, 1, 0) == 1 &&
		    fcntl(e->victim_kick, F_SETFL, O_NONBLOCK) == 0 &&
		    read(e->victim_kick, &count, sizeof(count)) < 0)
			break;
	}
	fcntl(e->victim_kick, F_SETFL, O_NONBLOCK);
}

/* More links, that say nothing or hello again. */
static void any_calls(struct evil *e, const struct plan *p)
{
	for (unsigned i = dice(20); i > 0; i--) {
		struct shm_control msg = evil_control(e, SHM_HELLO);
		int fd = evil_connect(p->block);

		if (fd >= 0 && dice(2))
			evil_send(fd, &msg, sizeof(msg),
				  (int[]){ e->segment_fd, e->kick_fd,
					   e->area_fd }, 3);
		if (fd >= 0 && dice(4))
			close(fd); /* else it stays */
	}
}

static void hello_halfway(struct evil *e, const struct plan *p)
{
	struct shm_control msg = evil_control(e, SHM_HELLO);
	enum evil_file kinds[] = { EVIL_SEALED, EVIL_UNSEALED, EVIL_SHORT,
				   EVIL_PIPE };
	int fds[3] = {
		evil_memory("s", sizeof(*e->segment), kinds[dice(4)]),
		dice(2) ? e->kick_fd : evil_memory("k", 8, EVIL_PIPE),
		evil_memory("a", sizeof(*e->area), kinds[dice(4)]),
	};
	int fd = evil_connect(p->block);

	evil_send(fd, &msg, sizeof(msg), fds, (int)dice(4));
	if (ftruncate(fds[0], 0) || ftruncate(fds[2], 0)) {
		/* Sealed. */
	}
	if (dice(2))
		evil_recv(fd, &msg, fds, 20);
}

/* Waits until the victim's queue pair is in RTS and connected to us, by its segment. */
static void await_connection(struct evil *e, const struct plan *p)
{
	const struct hca_qp_public *q =
		&e->victim->qps[p->qpn & (HCA_QPN_BLOCK_SIZE - 1)];
	uint64_t end = now_ms() + 200;

	while ((atomic_load(&q->state) != IBV_QPS_RTS ||
		atomic_load(&q->dest_qpn) >> HCA_QPN_BLOCK_BITS != e->block) &&
	       now_ms() < end)
		poll(NULL, 0, 1);
}

static void episode(const struct plan *p)
{
	static struct evil e;

	if (evil_open(&e, EVIL_BLOCK))
		_exit(2);
	/* `a` expects our queue pairs in EVIL_BLOCK; in another block its calls have no
	 * answer. */
	for (unsigned i = 0; i < 10; i++) {
		e.segment->qps[i].qpn = e.block << HCA_QPN_BLOCK_BITS | i;
		e.segment->qps[i].state = IBV_QPS_RTS;
		e.segment->qps[i].access = 0xffff;
		e.segment->qps[i].dest_qpn = p->qpn;
	}
	e.lends = (uint32_t)dice(16);
	if (dice(8) == 0)
		hello_halfway(&e, p);
	if (dice(2) ? evil_call(&e, p->block) : evil_answer(&e, 100))
		_exit(0);
	if (dice(8))
		await_connection(&e, p);
	for (unsigned i = dice(STEPS); i > 0; i--) {
		switch (dice(24)) {
		case 0: any_control(&e); break;
		case 1: kick_storm(&e); break;
		case 2: any_calls(&e, p); break;
		case 3: case 4: case 5: case 6: any_scribble(&e, p); break;
		case 7: poll(NULL, 0, (int)dice(4)); break;
		case 8: e.pos = evil_consumed(&e); break;
		default: any_slot(&e, p); break;
		}
		if (dice(8) == 0 && evil_closed(e.fd, 0))
			break;
	}
	_exit(0);
}

/* Runs in the spare process, which does not use the adapter. */
static int hostile(struct end *unused, void *arg)
{
	struct plan *p = arg;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		state = p->seed;
		episode(p);
	}
	if (pid < 0 || waitpid(pid, &p->status, 0) != pid)
		p->status = -1;
	return 0;
}

/* ---- the victim ---- */

static uint64_t messages, garbage, taken;

/* Completions of the exchange with `b`; those of the hostile connection are
 * only counted. */
static bool seen(struct pair *p, struct side *s, enum side_cq cq, uint64_t id)
{
	struct polled polled = side_poll(s, cq, 1, 1);

	expect(polled.count >= 0);
	for (int i = 0; i < polled.count; i++) {
		const struct ibv_wc *wc = &polled.wc[i];

		if (s == &p->a && wc->qp_num != p->a.qpn[0]) {
			garbage++;
			taken += wc->status == IBV_WC_SUCCESS;
			continue;
		}
		expect_eq(wc->wr_id, id);
		expect_status(*wc, IBV_WC_SUCCESS);
		return true;
	}
	return false;
}

static void must_see(struct pair *p, struct side *s, enum side_cq cq,
		     uint64_t id)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!seen(p, s, cq, id))
		if (now_ms() > end)
			fail("the exchange with the good peer stopped");
}

static void exchange(struct pair *p)
{
	uint32_t length = 1 + (uint32_t)(messages * 7919 % PLAIN);
	uint64_t id = 1000 + messages;

	side_recv(&p->a, id, 0, length);
	side_recv(&p->b, id, 0, length);
	side_fill(&p->b, PLAIN, length, id);
	side_send(&p->b, id, PLAIN, length);
	must_see(p, &p->b, SEND_CQ, id);
	must_see(p, &p->a, RECV_CQ, id);
	side_check(&p->a, 0, length, id);
	side_send(&p->a, id, 0, length);
	must_see(p, &p->a, SEND_CQ, id);
	must_see(p, &p->b, RECV_CQ, id);
	side_check(&p->b, 0, length, id);
	messages += 2;
}

/* QP 1 of `a`: to the hostile process, with receives, and sends of all kinds. */
static void meet(struct pair *p, const struct plan *plan)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct connection c = { .psn_a = 1, .psn_b = plan->psn, .timeout = 2,
				.retry_cnt = 1, .rnr_retry = 1,
				.min_rnr_timer = 1 };

	expect_eq(side_to_state(&p->a, 1, IBV_QPS_RESET), 0);
	expect_eq(side_to_init(&p->a, 1, IBV_ACCESS_REMOTE_ATOMIC |
						 IBV_ACCESS_REMOTE_WRITE), 0);
	for (int i = 0; i < RECVS; i++) {
		struct recv_req r = { .wr_id = 1, .num_sge = 1 };

		r.sge[0] = side_sge(&p->a, GRANT + (uint64_t)i * (ROOM + 4096),
				    ROOM);
		expect_eq(side_post_recv(&p->a, 1, &r, 1).ret, 0);
		expect_eq(side_post_recv(&p->a, 2, &r, 1).ret, 0);
	}
	expect_eq(side_to_rtr(&p->a, 1, &c, &p->a.gid,
			      EVIL_BLOCK << HCA_QPN_BLOCK_BITS | 5, c.psn_b), 0);
	if (side_to_rts(&p->a, 1, &c, c.psn_a))
		return; /* it was faster, and has ended it */
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct send_req r = send_req(&p->a, ops[i], 2, PLAIN,
					     ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ?
						     8 : 3000);

		if (ops[i] == IBV_WR_RDMA_READ) /* into a receive's room */
			r.sge[0] = side_sge(&p->a, GRANT, 3000);
		r.rkey = 0x101;
		side_post_send(&p->a, 1, &r, 1);
	}
}

/* All that was not granted is as it was. */
static void check_canaries(struct end *e, const uint8_t *secret)
{
	for (uint64_t i = 2 * PLAIN; i < BYTES; i++) {
		uint64_t in = i >= GRANT ? (i - GRANT) % (ROOM + 4096) : ROOM;

		if (i == COUNTER) {
			i += 64 - 1;
			continue;
		}
		if (i >= GRANT && i < GRANT + RECVS * (ROOM + 4096) && in == 0) {
			i += ROOM - 1;
			continue;
		}
		if (e->buffer[i] != 0x5a)
			fail("byte %llu of the buffer was overwritten",
			     (unsigned long long)i);
	}
	for (size_t i = 0; i < 4096; i++)
		if (secret[i] != 0x3c)
			fail("memory without registration was overwritten");
}

static void connect_ud(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };

	expect_eq(side_qp_create(&p->a, &ud), 2);
	expect_eq(side_to_init(&p->a, 2, 0x1111), 0);
	expect_eq(side_to_state(&p->a, 2, IBV_QPS_RTR), 0);
}

/* A UD queue pair may have been filled up by datagrams. */
static void renew_ud(struct pair *p)
{
	expect_eq(side_to_state(&p->a, 2, IBV_QPS_RESET), 0);
	expect_eq(side_to_init(&p->a, 2, 0x1111), 0);
	expect_eq(side_to_state(&p->a, 2, IBV_QPS_RTR), 0);
}

static void nothing_a_hostile_process_does_harms_us(struct pair *p)
{
	const struct side_options opt = { .bytes = BYTES, .cqe = 4096 };
	struct plan plan = { .psn = 100 };
	struct region counter;
	uint8_t *secret;
	uint64_t end, episodes = 0;

	printf("    seed %llu, %u s\n", (unsigned long long)seed, seconds);
	fflush(stdout);
	secret = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(secret, 0x3c, 4096);
	p->conn.timeout = 18;
	pair_start(p, &opt);
	expect_eq(side_qp_create(&p->a, NULL), 1);
	connect_ud(p);
	side_set(&p->a, 0, BYTES, 0x5a);
	counter = side_reg(&p->a, COUNTER, 64,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0);
	plan.block = p->a.qpn[0] >> HCA_QPN_BLOCK_BITS;
	plan.block2 = p->b.qpn[0] >> HCA_QPN_BLOCK_BITS;
	plan.qpn_b = p->a.qpn[0];
	plan.b_qpn = p->b.qpn[0];
	plan.qpn = p->a.qpn[1];
	plan.qpn_ud = p->a.qpn[2];
	plan.lkey = p->a.lkey;
	plan.rkey = counter.rkey;
	plan.addr = counter.addr;
	end = now_ms() + seconds * 1000;
	for (; now_ms() < end; episodes++) {
		plan.seed = (seed + episodes) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		side_start(&p->spare[0], hostile, &plan, sizeof(plan));
		/* Now and then we are the first, and call it. */
		poll(NULL, 0, episodes % 4 ? 5 : 0);
		meet(p, &plan);
		for (int i = 0; i < 10; i++)
			exchange(p);
		side_join(&p->spare[0], &plan, sizeof(plan));
		expect_eq(plan.status, 0);
		exchange(p);
		renew_ud(p);
		check_canaries(p->a.end, secret);
		expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
		while (side_async(&p->a, 0) >= 0)
			;
	}
	printf("    %llu episodes, %llu messages, %llu completions of the other, %llu good\n",
	       (unsigned long long)episodes, (unsigned long long)messages,
	       (unsigned long long)garbage, (unsigned long long)taken);
	expect(taken > 0);
	munmap(secret, 4096);
}

int main(int argc, char **argv)
{
	struct test_case cases[] = {
		{ .name = "nothing_a_hostile_process_does_harms_us",
		  .fn = nothing_a_hostile_process_does_harms_us,
		  .where = ONLY_TWO_PROCESSES, .spares = 1 },
	};

	seed = now_ms();
	if (argc > 1)
		seconds = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = strtoull(argv[2], NULL, 10);
	cases[0].limit_s = seconds + 60;
	return RUN_CASES(1, argv, cases);
}
