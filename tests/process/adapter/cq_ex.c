/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended completion queues: polling entry by entry, the fields that were asked
 * for, completion times (ibv_create_cq_ex(3), ibv_query_rt_values_ex(3)).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

static const uint64_t stamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

/* ---- both sides: queues in place of the plain ones ---- */

struct make {
	uint64_t wc_flags;
	uint32_t cqe, flags;
	bool channel;
	uint32_t qpn; /* of the new queue pair */
};

/* Replaces the receive queue's CQ and the QP. */
static int make_extended(struct end *e, void *arg)
{
	struct make *m = arg;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = m->cqe ? m->cqe : 64,
		.cq_context = e,
		.channel = m->channel ? e->channel : NULL,
		.wc_flags = m->wc_flags,
		.comp_mask = m->flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = m->flags,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = e->qp[0]->qp_type,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e->ctx, &attr);

	if (!cq || ibv_destroy_qp(e->qp[0]) || ibv_destroy_cq(e->cq[RECV_CQ]))
		return -1;
	e->qp[0] = NULL;
	e->cq[RECV_CQ] = ibv_cq_ex_to_cq(cq);
	init.send_cq = e->cq[SEND_CQ];
	init.recv_cq = e->cq[RECV_CQ];
	e->qp[0] = ibv_create_qp(e->pd, &init);
	if (!e->qp[0])
		return -1;
	m->qpn = e->qp[0]->qp_num;
	return 0;
}

static void start_with(struct pair *p, const struct side_options *opt,
		       struct make m)
{
	pair_open(p, opt);
	expect_eq(side_run(&p->b, make_extended, &m, sizeof(m)), 0);
	p->b.qpn[0] = m.qpn;
	pair_connect_qp(p, 0);
}

static void start(struct pair *p, uint64_t wc_flags)
{
	start_with(p, NULL, (struct make){ .wc_flags = wc_flags });
}

struct seen {
	uint64_t wr_id, ticks, wall_ns;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len, imm, qp_num, src_qp, slid, flags, vendor_err;
	uint8_t sl, path_bits;
};

struct batch {
	int want, got;  /* completions */
	int last;       /* what ibv_next_poll or ibv_start_poll said at the end */
	struct seen seen[5];
};
_Static_assert(sizeof(struct batch) <= NOTE_BYTES, "a note");

static struct seen look(struct ibv_cq_ex *cq)
{
	struct seen s = {
		.wr_id = cq->wr_id,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.vendor_err = ibv_wc_read_vendor_err(cq),
	};

#define READ(field, reader)         \
	if (cq->read_##reader)      \
		s.field = ibv_wc_read_##reader(cq)
	READ(byte_len, byte_len);
	READ(imm, imm_data);
	READ(qp_num, qp_num);
	READ(src_qp, src_qp);
	READ(slid, slid);
	READ(sl, sl);
	READ(path_bits, dlid_path_bits);
	READ(ticks, completion_ts);
	READ(wall_ns, completion_wallclock_ns);
#undef READ
	return s;
}

/* As many batches as it takes until `want` completions came; the last one is
 * read to its end. */
static int poll_batches(struct end *e, void *arg)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e->cq[RECV_CQ];
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct batch *b = arg;
	uint64_t end = now_ms() + WAIT_MS;

	b->got = 0;
	while (b->got < b->want && now_ms() < end) {
		b->last = ibv_start_poll(cq, &attr);
		if (b->last == ENOENT)
			continue;
		if (b->last)
			return 0;
		do {
			if (b->got < 5)
				b->seen[b->got] = look(cq);
			b->got++;
			b->last = ibv_next_poll(cq);
		} while (!b->last);
		ibv_end_poll(cq);
	}
	return 0;
}

static struct batch poll_want(struct side *s, int want)
{
	struct batch b = { .want = want };

	expect_eq(side_run(s, poll_batches, &b, sizeof(b)), 0);
	expect_eq(b.got, want);
	return b;
}

static int poll_nothing(struct end *e, void *arg)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	int ret = 0;

	/* Several times: what fails must not be ended. */
	for (int i = 0; i < 3 && (!ret || ret == ENOENT); i++)
		ret = ibv_start_poll((struct ibv_cq_ex *)e->cq[RECV_CQ], &attr);
	return ret;
}

enum { ATTEMPTS = 20 };

/* The next yield of this thread lets `meanwhile` happen. */
static _Thread_local void (*meanwhile)(struct end *e);
static struct end *sender;

int sched_yield(void)
{
	void (*fn)(struct end *e) = meanwhile;

	meanwhile = NULL;
	if (fn)
		fn(sender);
	return (int)syscall(SYS_sched_yield);
}

static void send_one(struct end *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 8, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_send(e->qp[0], &wr, &bad))
		meanwhile = send_one; /* which poll_until_yield() takes for a failure */
}

/* Polls until the message has been sent in a yield; what that poll said. */
static int poll_until_yield(struct end *e, void *arg)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e->cq[RECV_CQ];
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	const bool *extended = arg;
	struct ibv_wc wc;
	int ret = 0;

	meanwhile = send_one;
	for (unsigned i = 0; i < 100000 && meanwhile; i++)
		ret = *extended ? ibv_start_poll(cq, &attr) : ibv_poll_cq(e->cq[RECV_CQ], 1, &wc);
	if (meanwhile)
		return -1;
	if (*extended && !ret)
		ibv_end_poll(cq);
	return *extended ? !ret : ret;
}

/* Polls until there is one, and begins a batch with it. */
static int begin_batch(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	uint64_t end = now_ms() + WAIT_MS;

	while (ibv_start_poll(cq, &attr))
		if (now_ms() > end)
			return -1;
	return 0;
}

/* Of a thread of this process, as proc(5) has it in `stat`; 0: it is not known. */
static char state_of(pid_t thread)
{
	char path[60], line[200] = "", *at = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		at = strstr(line, ") ");
	if (f)
		fclose(f);
	return at ? at[2] : 0;
}

/* The last message has woken the progress thread, which would also take one that comes at once. */
static void wait_until_it_sleeps(void)
{
	pid_t progress = thread_named(getpid(), "busbar-progress");
	uint64_t end = now_ms() + WAIT_MS;

	while (progress && state_of(progress) != 'S' && now_ms() < end)
		;
}

/* Another message comes between the first of a batch and the look for the next. */
static int next_behind_a_message(struct end *e, void *arg)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e->cq[RECV_CQ];
	struct ibv_sge sge = { (uintptr_t)e->buffer, 100, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int ret;

	(void)arg;
	send_one(sender);
	if (begin_batch(cq) || ibv_post_recv(e->qp[0], &wr, &bad))
		return -1;
	wait_until_it_sleeps();
	send_one(sender);
	ret = ibv_next_poll(cq);
	ibv_end_poll(cq);
	return !ret;
}

/* Where a message is there as soon as it is posted. */
static bool begin_with_sender(struct pair *p)
{
	if (transport_under_test()->waits || transport_under_test()->loses)
		return false;
	start(p, IBV_WC_STANDARD_FLAGS);
	sender = p->a.end;
	side_recv(&p->b, 1, 0, 100);
	side_recv(&p->b, 2, 0, 100);
	return true;
}

/* ---- polling ---- */

static void expect_mostly(struct pair *p, side_fn *fn, bool extended)
{
	int found = 0;

	for (int i = 0; i < ATTEMPTS; i++) {
		int ret = side_run(&p->b, fn, &extended, sizeof(extended));

		expect(ret >= 0);
		found += ret;
		if (!ret) /* now it is found */
			poll_want(&p->b, 1);
		side_recv(&p->b, 1, 0, 100);
	}
	/* Seldom another thread moves the message just then, and the poll does not wait. */
	if (found < ATTEMPTS / 2)
		fail("%d of %d polls found the message", found, ATTEMPTS);
}

static void a_poll_that_yielded_finds_what_came_meanwhile(struct pair *p)
{
	if (!begin_with_sender(p))
		return;
	expect_mostly(p, poll_until_yield, false);
	expect_mostly(p, poll_until_yield, true);
}

static void the_next_of_a_batch_may_come_behind_its_first(struct pair *p)
{
	if (begin_with_sender(p))
		expect_mostly(p, next_behind_a_message, true);
}

static void an_empty_queue_says_enoent_and_needs_no_end(struct pair *p)
{
	start(p, IBV_WC_STANDARD_FLAGS);
	expect_eq(side_run(&p->b, poll_nothing, NULL, 0), ENOENT);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 2, 0, 100);
	expect_eq(poll_want(&p->b, 1).seen[0].wr_id, 1);
	expect_eq(side_run(&p->b, poll_nothing, NULL, 0), ENOENT);
}

static void every_field_of_a_receive_can_be_read(struct pair *p)
{
	struct send_req r;
	struct seen s;

	start(p, IBV_WC_STANDARD_FLAGS);
	side_recv(&p->b, 11, 0, 1000);
	r = send_req(&p->a, IBV_WR_SEND_WITH_IMM, 1, 0, 333);
	r.imm = htonl(0xfeed);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	s = poll_want(&p->b, 1).seen[0];
	expect_eq(s.wr_id, 11);
	expect_eq(s.status, IBV_WC_SUCCESS);
	expect_eq(s.opcode, IBV_WC_RECV);
	expect_eq(s.flags, IBV_WC_WITH_IMM);
	expect_eq(s.byte_len, 333);
	expect_eq(s.imm, htonl(0xfeed));
	expect_eq(s.qp_num, p->b.qpn[0]);
	expect_eq(s.slid, 0);
	expect_eq(s.sl, 0);
	expect_eq(s.path_bits, 0);
	expect_eq(s.vendor_err, 0);
}

static void a_datagram_names_its_sender(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct send_req r;
	struct seen s;

	p->conn.access_a = p->conn.access_b = 0x1234;
	start_with(p, &ud, (struct make){ .wc_flags = IBV_WC_STANDARD_FLAGS });
	side_recv(&p->b, 11, 0, 1000);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 60);
	r.ah = side_ah_to(&p->a, &p->b.gid);
	r.remote_qpn = p->b.qpn[0];
	r.qkey = 0x1234;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	s = poll_want(&p->b, 1).seen[0];
	expect_eq(s.flags, IBV_WC_GRH);
	expect_eq(s.byte_len, 40 + 60);
	expect_eq(s.src_qp, p->a.qpn[0]);
}

static void next_poll_walks_to_the_end_of_the_queue(struct pair *p)
{
	struct batch b;

	start(p, IBV_WC_STANDARD_FLAGS);
	for (uint64_t i = 0; i < 5; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 5; i++) {
		side_send(&p->a, i, 0, (uint32_t)(10 * i));
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	b = poll_want(&p->b, 5);
	expect_eq(b.last, ENOENT);
	for (unsigned i = 0; i < 5; i++) {
		expect_eq(b.seen[i].wr_id, i);
		expect_eq(b.seen[i].byte_len, 10 * i);
	}
	expect_eq(side_run(&p->b, poll_nothing, NULL, 0), ENOENT);
}

/* One completion, then the end of the batch. */
static int take_one(struct end *e, void *arg)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)e->cq[RECV_CQ];
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	int wr_id;

	if (ibv_start_poll(cq, &attr))
		return -1;
	wr_id = (int)cq->wr_id;
	ibv_end_poll(cq);
	return wr_id;
}

static void a_batch_may_end_before_the_queue_does(struct pair *p)
{
	need_arrival();
	start(p, IBV_WC_STANDARD_FLAGS);
	for (uint64_t i = 0; i < 4; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 4; i++) {
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_eq(side_run(&p->b, take_one, NULL, 0), 0);
	expect_eq(side_run(&p->b, take_one, NULL, 0), 1);
	/* The plain way sees the same queue. */
	side_wait_ok(&p->b, RECV_CQ, 2);
	expect_eq(poll_want(&p->b, 1).seen[0].wr_id, 3);
}

static void flushed_receives_say_so(struct pair *p)
{
	struct batch b;

	start(p, IBV_WC_STANDARD_FLAGS | stamps);
	side_recv(&p->b, 1, 0, 100);
	side_recv(&p->b, 2, 0, 100);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	b = poll_want(&p->b, 2);
	for (unsigned i = 0; i < 2; i++) {
		expect_eq(b.seen[i].wr_id, i + 1);
		expect_eq(b.seen[i].status, IBV_WC_WR_FLUSH_ERR);
		expect_eq(b.seen[i].qp_num, p->b.qpn[0]);
		expect(b.seen[i].ticks != 0);
	}
}

static void an_attribute_of_polling_that_is_unknown_is_refused(struct pair *p)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	start(p, IBV_WC_STANDARD_FLAGS);
	expect_eq(ibv_start_poll((struct ibv_cq_ex *)p->b.end->cq[RECV_CQ],
				 &attr), EINVAL);
}

/* The queue pair is connected to itself, both ways on the extended queue. */
static struct ibv_qp *loop(struct pair *p, struct ibv_cq *cq)
{
	struct end *e = p->a.end;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	e->qp[1] = ibv_create_qp(e->pd, &init);
	expect(e->qp[1]);
	p->a.qpn[1] = e->qp[1]->qp_num;
	expect_eq(side_to_init(&p->a, 1, 0), 0);
	expect_eq(side_to_rtr(&p->a, 1, &p->conn, &p->a.gid, p->a.qpn[1], 7), 0);
	expect_eq(side_to_rts(&p->a, 1, &p->conn, 7), 0);
	return e->qp[1];
}

static void post_both(struct pair *p, uint64_t wr_id)
{
	struct recv_req in = { .wr_id = wr_id, .num_sge = 1,
			       .sge = { side_sge(&p->a, 4096, 64) } };
	struct send_req out = send_req(&p->a, IBV_WR_SEND, wr_id + 100, 0, 8);

	expect_eq(side_post_recv(&p->a, 1, &in, 1).ret, 0);
	expect_eq(side_post_send(&p->a, 1, &out, 1).ret, 0);
}

static struct ibv_cq_ex *create(struct end *e, uint32_t cqe, uint64_t wc_flags,
				uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .wc_flags = wc_flags, .flags = flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
	};

	return ibv_create_cq_ex(e->ctx, &attr);
}

static void destroy(struct pair *p, struct ibv_cq_ex *cq)
{
	expect_eq(side_qp_destroy(&p->a, 1), 0);
	expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void wait_start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	uint64_t end = now_ms() + WAIT_MS;
	int ret;

	while ((ret = ibv_start_poll(cq, &attr)) == ENOENT)
		expect(now_ms() < end);
	expect_eq(ret, 0);
}

static void work_posted_inside_a_batch_completes(struct pair *p)
{
	static const uint32_t flags[] = { 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED };
	struct ibv_cq_ex *cq;

	side_open(&p->a, NULL);
	for (int k = 0; k < 2; k++) {
		int got = 0;

		cq = create(p->a.end, 64, IBV_WC_STANDARD_FLAGS, flags[k]);
		expect(cq);
		loop(p, ibv_cq_ex_to_cq(cq));
		post_both(p, 0);
		while (got < 20) {
			wait_start(cq);
			do {
				expect_eq(cq->status, IBV_WC_SUCCESS);
				got++;
				/* Completes into the queue that is held. */
				if (cq->wr_id < 9)
					post_both(p, cq->wr_id + 1);
			} while (!ibv_next_poll(cq));
			ibv_end_poll(cq);
		}
		expect_eq(got, 20);
		destroy(p, cq);
	}
}

struct poller {
	struct ibv_cq_ex *cq;
	pthread_t thread;
	uint64_t sum;
	int *left; /* of all threads */
};

static void *poll_share(void *arg)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	struct poller *w = arg;

	while (__atomic_load_n(w->left, __ATOMIC_RELAXED) > 0) {
		if (ibv_start_poll(w->cq, &attr)) {
			const struct timespec pause = { .tv_nsec = 10000 };

			nanosleep(&pause, NULL);
			continue;
		}
		do {
			w->sum += w->cq->wr_id;
			if (ibv_wc_read_opcode(w->cq) != IBV_WC_SEND &&
			    ibv_wc_read_byte_len(w->cq) != 8)
				w->sum += 1 << 30; /* somebody else's */
			__atomic_fetch_sub(w->left, 1, __ATOMIC_RELAXED);
		} while (!ibv_next_poll(w->cq));
		ibv_end_poll(w->cq);
	}
	return NULL;
}

static void threads_that_share_a_queue_see_each_completion_once(struct pair *p)
{
	enum { ROUNDS = 30, EACH = 16 };
	struct poller pollers[3];
	struct ibv_cq_ex *cq;
	uint64_t sum = 0, want = 0;
	int left = ROUNDS * EACH * 2, sent = 0;

	side_open(&p->a, NULL);
	cq = create(p->a.end, 2048, IBV_WC_STANDARD_FLAGS, 0);
	expect(cq);
	loop(p, ibv_cq_ex_to_cq(cq));
	for (int i = 0; i < 3; i++) {
		pollers[i] = (struct poller){ .cq = cq, .left = &left };
		expect_eq(pthread_create(&pollers[i].thread, NULL, poll_share,
					 &pollers[i]), 0);
	}
	for (uint64_t i = 0; i < ROUNDS * EACH; i++) {
		post_both(p, i);
		want += i + i + 100;
		sent += 2;
		while (ROUNDS * EACH * 2 - sent <
		       __atomic_load_n(&left, __ATOMIC_RELAXED) - 60)
			;
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(pollers[i].thread, NULL);
		sum += pollers[i].sum;
	}
	expect_eq(sum, want);
	destroy(p, cq);
}

/* ---- what is offered ---- */

static void a_field_that_was_not_asked_for_has_no_reader(struct pair *p)
{
	struct ibv_cq_ex *cq;

	side_open(&p->a, NULL);
	cq = create(p->a.end, 4, IBV_WC_EX_WITH_BYTE_LEN, 0);
	expect(cq);
	expect(cq->read_opcode && cq->read_vendor_err && cq->read_wc_flags);
	expect(cq->read_byte_len);
	expect(!cq->read_imm_data && !cq->read_qp_num && !cq->read_src_qp &&
	       !cq->read_slid && !cq->read_sl && !cq->read_dlid_path_bits);
	expect(!cq->read_completion_ts && !cq->read_completion_wallclock_ns);
	expect(!cq->read_cvlan && !cq->read_flow_tag && !cq->read_tm_info);
	expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void what_cannot_be_filled_is_refused(struct pair *p)
{
	static const uint64_t flags[] = { IBV_WC_EX_WITH_CVLAN,
					  IBV_WC_EX_WITH_FLOW_TAG,
					  IBV_WC_EX_WITH_TM_INFO, 1 << 30 };

	side_open(&p->a, NULL);
	for (int i = 0; i < 4; i++) {
		errno = 0;
		expect(!create(p->a.end, 4, IBV_WC_STANDARD_FLAGS | flags[i], 0));
		expect_eq(errno, EOPNOTSUPP);
	}
}

static void attributes_that_make_no_sense_are_refused(struct pair *p)
{
	const struct ibv_cq_init_attr_ex good = { .cqe = 4 };
	struct ibv_cq_init_attr_ex a;
	struct end *e = p->a.end;

	side_open(&p->a, NULL);
#define REFUSED(...)                                      \
	do {                                              \
		a = good;                                 \
		__VA_ARGS__;                              \
		errno = 0;                                \
		expect(!ibv_create_cq_ex(e->ctx, &a));    \
		expect_eq(errno, EINVAL);                 \
	} while (0)
	REFUSED(a.cqe = 0);
	REFUSED(a.cqe = 1u << 31);
	REFUSED(a.comp_vector = (uint32_t)e->ctx->num_comp_vectors);
	REFUSED(a.comp_mask = 1 << 7);
	REFUSED(a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, a.flags = 1 << 9);
	REFUSED(a.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD);
	/* A protection domain is no parent domain. */
	REFUSED(a.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		a.parent_domain = e->pd);
	/* What is not in comp_mask is not looked at. */
	a = good;
	a.flags = 1 << 9;
	a.parent_domain = e->pd;
	expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(ibv_create_cq_ex(e->ctx, &a))),
		  0);
}

static void the_queue_is_as_large_as_asked_for(struct pair *p)
{
	static const uint32_t sizes[] = { 1, 4, 5, 1000 };

	side_open(&p->a, NULL);
	for (int i = 0; i < 4; i++) {
		struct ibv_cq_ex *cq = create(p->a.end, sizes[i], stamps, 0);

		expect(cq);
		expect(cq->cqe >= (int)sizes[i]);
		expect(cq->context == p->a.end->ctx);
		expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
}

/* ---- overrun ---- */

/* One more than a sender may complete before the receiver has moved any. */
enum { BEYOND = 9 };

/* Receives whose queue holds three, as grants go. */
static void fill_beyond(struct pair *p, uint32_t flags, int *cqe)
{
	start_with(p, NULL, (struct make){
		.wc_flags = IBV_WC_STANDARD_FLAGS | stamps, .cqe = 1,
		.flags = flags });
	*cqe = 3;
	for (uint64_t i = 0; i < BEYOND; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < BEYOND; i++)
		side_send(&p->a, i, 0, 10);
}

static void ignoring_an_overrun_keeps_the_newest(struct pair *p)
{
	struct batch b;
	int cqe;

	need_arrival();
	fill_beyond(p, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, &cqe);
	for (uint64_t i = 0; i < BEYOND; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	b = poll_want(&p->b, cqe);
	for (int i = 0; i < cqe; i++)
		expect_eq(b.seen[i].wr_id, BEYOND - cqe + i);
	expect(b.seen[0].ticks <= b.seen[cqe - 1].ticks);
	expect_eq(side_async(&p->b, QUIET_MS), -1);
	/* It goes on as before. */
	side_recv(&p->b, 20, 0, 100);
	side_send(&p->a, 21, 0, 10);
	expect_eq(poll_want(&p->b, 1).seen[0].wr_id, 20);
}

static void after_an_overrun_polling_fails(struct pair *p)
{
	int cqe, ret;

	fill_beyond(p, 0, &cqe);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_CQ_ERR);
	for (int i = 0; i < cqe; i++)
		expect_eq(side_run(&p->b, take_one, NULL, 0), i);
	ret = side_run(&p->b, poll_nothing, NULL, 0);
	expect(ret && ret != ENOENT);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_FATAL);
}

/* ---- time ---- */

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int read_clock(struct end *e, void *arg)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t *ticks = arg;

	if (ibv_query_rt_values_ex(e->ctx, &v) ||
	    v.comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		return -1;
	*ticks = (uint64_t)v.raw_clock.tv_sec * 1000000000 +
		 (uint64_t)v.raw_clock.tv_nsec;
	return 0;
}

static uint64_t clock_of(struct side *s)
{
	uint64_t ticks = 0;

	expect_eq(side_run(s, read_clock, &ticks, sizeof(ticks)), 0);
	return ticks;
}

static void completion_times_lie_between_readings_of_the_clock(struct pair *p)
{
	uint64_t before, after;
	struct batch b;

	need_arrival();
	start(p, IBV_WC_STANDARD_FLAGS | stamps);
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		before = clock_of(&p->b);
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->a, SEND_CQ, i);
		after = clock_of(&p->b);
		/* It arrived before, however late it is polled. */
		side_poll(&p->b, SEND_CQ, 1, 5);
		b = poll_want(&p->b, 1);
		expect(b.seen[0].ticks >= before);
		expect(p->two_processes || b.seen[0].ticks <= after);
		expect(b.seen[0].ticks <= clock_of(&p->b));
	}
}

static void completion_times_do_not_go_back(struct pair *p)
{
	struct batch b;

	start(p, stamps);
	for (uint64_t i = 0; i < 5; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 5; i++)
		side_send(&p->a, i, 0, 10);
	b = poll_want(&p->b, 5);
	for (int i = 1; i < 5; i++)
		expect(b.seen[i].ticks >= b.seen[i - 1].ticks);
}

static void wall_clock_times_are_those_of_clock_realtime(struct pair *p)
{
	const uint64_t noise_ns = 1000000;
	uint64_t before, after;
	struct batch b;

	start(p, stamps);
	side_recv(&p->b, 1, 0, 100);
	before = clock_ns(CLOCK_REALTIME);
	side_send(&p->a, 1, 0, 10);
	side_wait_ok(&p->a, SEND_CQ, 1);
	b = poll_want(&p->b, 1);
	after = clock_ns(CLOCK_REALTIME);
	expect(b.seen[0].wall_ns + noise_ns >= before);
	expect(b.seen[0].wall_ns <= after + noise_ns);
}

static void the_clock_runs_as_fast_as_the_device_says(struct pair *p)
{
	const struct timespec pause = { .tv_nsec = 60000000 };
	struct ibv_device_attr_ex dev;
	/* Around each reading of the device's clock, because the program may be kept
	 * from running between any two. */
	uint64_t outer_ns, inner_ns, ticks, ns;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device_ex(p->a.end->ctx, NULL, &dev), 0);
	expect(dev.hca_core_clock > 0);
	expect_eq(dev.completion_timestamp_mask, UINT64_MAX);
	outer_ns = clock_ns(CLOCK_MONOTONIC);
	ticks = clock_of(&p->a);
	inner_ns = clock_ns(CLOCK_MONOTONIC);
	nanosleep(&pause, NULL);
	inner_ns = clock_ns(CLOCK_MONOTONIC) - inner_ns;
	ticks = clock_of(&p->a) - ticks;
	outer_ns = clock_ns(CLOCK_MONOTONIC) - outer_ns;
	ns = ticks * 1000000 / dev.hca_core_clock;
	if (ns < inner_ns - inner_ns / 10 || ns > outer_ns + outer_ns / 10)
		fail("%llu ticks of %llu kHz in %llu to %llu ns",
		     (unsigned long long)ticks,
		     (unsigned long long)dev.hca_core_clock,
		     (unsigned long long)inner_ns, (unsigned long long)outer_ns);
}

static void only_the_values_that_are_known_are_answered(struct pair *p)
{
	struct ibv_values_ex v = { .comp_mask = 0x80, .raw_clock = { 1, 2 } };

	side_open(&p->a, NULL);
	expect_eq(ibv_query_rt_values_ex(p->a.end->ctx, &v), 0);
	expect_eq(v.comp_mask, 0);
	expect_eq(v.raw_clock.tv_nsec, 2);
}

static void resizing_keeps_completion_times(struct pair *p)
{
	struct batch b;
	struct ibv_cq *cq;
	uint64_t before, after;

	need_arrival();
	start(p, IBV_WC_STANDARD_FLAGS | stamps);
	cq = p->b.end->cq[RECV_CQ];
	before = clock_of(&p->b);
	for (uint64_t i = 0; i < 4; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 4; i++) {
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_eq(side_run(&p->b, take_one, NULL, 0), 0);
	after = clock_of(&p->b);
	expect_eq(ibv_resize_cq(cq, 500), 0);
	expect(cq->cqe >= 500);
	expect_eq(ibv_resize_cq(cq, 3), 0);
	expect_eq(ibv_resize_cq(cq, 2), EINVAL);
	b = poll_want(&p->b, 3);
	for (int i = 0; i < 3; i++) {
		expect_eq(b.seen[i].wr_id, i + 1);
		expect(b.seen[i].ticks >= before && b.seen[i].ticks <= after);
	}
}

static void an_extended_queue_raises_events(struct pair *p)
{
	const struct side_options ev = { .events = true };

	start_with(p, &ev, (struct make){ .wc_flags = stamps, .channel = true });
	expect_eq(side_arm(&p->b, RECV_CQ, false), 0);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 10);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_eq(poll_want(&p->b, 1).seen[0].wr_id, 1);
	expect_eq(side_event(&p->b, QUIET_MS), -1);
}

#define PAGE "ibv_create_cq_ex(3)"
static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, a_poll_that_yielded_finds_what_came_meanwhile),
	CASE_IN(ONLY_ONE_PROCESS, the_next_of_a_batch_may_come_behind_its_first),
	RULE(PAGE, an_empty_queue_says_enoent_and_needs_no_end),
	RULE(PAGE, every_field_of_a_receive_can_be_read),
	RULE(PAGE, a_datagram_names_its_sender),
	RULE(PAGE, next_poll_walks_to_the_end_of_the_queue),
	RULE(PAGE, a_batch_may_end_before_the_queue_does),
	RULE("ibv_poll_cq(3)", flushed_receives_say_so),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		an_attribute_of_polling_that_is_unknown_is_refused),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, work_posted_inside_a_batch_completes),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		threads_that_share_a_queue_see_each_completion_once),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		a_field_that_was_not_asked_for_has_no_reader),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, what_cannot_be_filled_is_refused),
	RULE_IN(ONLY_ONE_PROCESS, PAGE,
		attributes_that_make_no_sense_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, PAGE, the_queue_is_as_large_as_asked_for),
	RULE(PAGE, ignoring_an_overrun_keeps_the_newest),
	RULE("ibv_poll_cq(3)", after_an_overrun_polling_fails),
	RULE(PAGE, completion_times_lie_between_readings_of_the_clock),
	RULE(PAGE, completion_times_do_not_go_back),
	RULE(PAGE, wall_clock_times_are_those_of_clock_realtime),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device_ex(3)",
		the_clock_runs_as_fast_as_the_device_says),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_rt_values_ex(3)",
		only_the_values_that_are_known_are_answered),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_resize_cq(3)",
		resizing_keeps_completion_times),
	RULE("ibv_req_notify_cq(3)", an_extended_queue_raises_events),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
