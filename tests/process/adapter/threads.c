/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads: each on a queue pair of its own, some with completion queues
 * in common, while others create and destroy objects (the verbs are thread
 * safe as a whole).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "pair.h"

enum {
	THREADS = 4,
	WINDOW = 16, /* slots; receives posted ahead: half of that */
	READY = WINDOW / 2,
	AHEAD = 4,   /* sends ahead of those received; the peer has receives for all of them */
	ROOM = 4096,
	MESSAGES = 2000,
};

/* Threads 0 and 1 share both queues of the side; 2 and 3 have their own. */
struct crew {
	struct end *e;
	struct ibv_cq *cq[THREADS][2];
	atomic_int sent[THREADS], received[THREADS];
	/* A receive is posted there, or its completion was polled by a thread
	 * that has not looked at the message yet: not to be posted again. */
	atomic_bool taken[THREADS][WINDOW];
	atomic_int error;
	atomic_bool done;
};

static struct crew crews[2]; /* one process: both sides */

static struct crew *crew_of(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		if (crews[i].e == e)
			return &crews[i];
		if (!crews[i].e) {
			crews[i].e = e;
			return &crews[i];
		}
	}
	return NULL;
}

static int hire(struct end *e, void *arg)
{
	struct crew *c = crew_of(e);
	uint32_t *qpn = arg;

	for (int t = 0; t < THREADS; t++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = WINDOW, .max_recv_wr = WINDOW,
				 .max_send_sge = 1, .max_recv_sge = 1 },
		};

		for (int k = 0; k < 2; k++) {
			c->cq[t][k] = t < 2 ? e->cq[k] :
					      ibv_create_cq(e->ctx, 2 * WINDOW,
							    NULL, NULL, 0);
			if (!c->cq[t][k])
				return -1;
		}
		init.send_cq = c->cq[t][SEND_CQ];
		init.recv_cq = c->cq[t][RECV_CQ];
		e->qp[1 + t] = ibv_create_qp(e->pd, &init);
		if (!e->qp[1 + t])
			return -1;
		qpn[t] = e->qp[1 + t]->qp_num;
	}
	return 0;
}

static int dismiss(struct end *e, void *arg)
{
	struct crew *c = crew_of(e);
	int bad = 0;

	for (int t = 0; t < THREADS; t++) {
		bad += ibv_destroy_qp(e->qp[1 + t]) != 0;
		e->qp[1 + t] = NULL;
	}
	for (int t = 2; t < THREADS; t++)
		for (int k = 0; k < 2; k++)
			bad += ibv_destroy_cq(c->cq[t][k]) != 0;
	return bad;
}

struct worker {
	struct crew *crew;
	int t;
	pthread_t thread;
};

static uint8_t *slot_of(struct end *e, int t, int half, int i)
{
	return e->buffer + ((t * 2 + half) * WINDOW + i % WINDOW) * ROOM;
}

static uint32_t length_of(int t, int i)
{
	return 8 + (uint32_t)(i * 37 + t * 1001) % (ROOM - 8);
}

static int post(struct crew *c, int t, int i, bool send)
{
	struct end *e = c->e;
	uint8_t *at = slot_of(e, t, send, i);
	struct ibv_sge sge = { (uintptr_t)at, send ? length_of(t, i) : ROOM,
			       e->mr[0]->lkey };
	uint64_t wr_id = (uint64_t)t << 32 | (uint32_t)i;
	struct ibv_send_wr swr = { .wr_id = wr_id, .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED,
				   .sg_list = &sge, .num_sge = 1 }, *bad_s;
	struct ibv_recv_wr rwr = { .wr_id = wr_id, .sg_list = &sge,
				   .num_sge = 1 }, *bad_r;

	if (!send) {
		c->taken[t][i % WINDOW] = true;
		return ibv_post_recv(e->qp[1 + t], &rwr, &bad_r);
	}
	memset(at, (t * 50 + i) & 0xff, sge.length);
	return ibv_post_send(e->qp[1 + t], &swr, &bad_s);
}

/* Whoever polls it works for the thread that posted it. */
static int take(struct crew *c, const struct ibv_wc *wc)
{
	int t = (int)(wc->wr_id >> 32), i = (int)(uint32_t)wc->wr_id;
	const uint8_t *at = slot_of(c->e, t, 0, i);

	if (wc->status)
		return 100 + (int)wc->status;
	if (t < 0 || t >= THREADS || wc->qp_num != c->e->qp[1 + t]->qp_num)
		return 2;
	if (!(wc->opcode & IBV_WC_RECV)) {
		atomic_fetch_add(&c->sent[t], 1);
		return 0;
	}
	if (wc->byte_len != length_of(t, i) ||
	    at[0] != ((t * 50 + i) & 0xff) ||
	    at[wc->byte_len - 1] != ((t * 50 + i) & 0xff))
		return 3;
	c->taken[t][i % WINDOW] = false;
	atomic_fetch_add(&c->received[t], 1);
	return 0;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct crew *c = w->crew;
	int t = w->t, out = 0, in = READY; /* as make_ready() has posted them */
	uint64_t end = now_ms() + 4 * WAIT_MS;

	while ((c->sent[t] < MESSAGES || c->received[t] < MESSAGES) &&
	       !c->error) {
		int empty = 0;

		while (in < MESSAGES && in - c->received[t] < READY &&
		       !c->taken[t][in % WINDOW]) {
			if (post(c, t, in++, false))
				c->error = 4;
		}
		while (out < MESSAGES && out - c->received[t] < AHEAD &&
		       (out + AHEAD < in || in == MESSAGES) && out - c->sent[t] < WINDOW / 2) {
			if (post(c, t, out++, true))
				c->error = 5;
		}
		for (int k = 0; k < 2; k++) {
			struct ibv_wc wc[4];
			int n = ibv_poll_cq(c->cq[t][k], 4, wc);

			empty += n == 0;
			for (int i = 0; i < n; i++) {
				int error = take(c, &wc[i]);

				if (error)
					c->error = error;
			}
		}
		if (empty == 2)
			sched_yield();
		if (now_ms() > end)
			c->error = 6;
	}
	return NULL;
}

/* Objects come and go meanwhile. */
static void *churn(void *arg)
{
	struct crew *c = arg;
	struct end *e = c->e;

	while (!c->done) {
		struct ibv_cq *cq = ibv_create_cq(e->ctx, 10, NULL, NULL, 0);
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
			.cap = { .max_send_wr = 2, .max_recv_wr = 2,
				 .max_send_sge = 1, .max_recv_sge = 1 },
		};
		struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buffer, ROOM,
					       IBV_ACCESS_LOCAL_WRITE);
		struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
					    .port_num = 1 };
		struct ibv_recv_wr rwr = { .wr_id = 1 }, *bad;
		struct ibv_wc wc;

		if (!cq || !mr || !qp ||
		    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
						     IBV_QP_PKEY_INDEX |
						     IBV_QP_ACCESS_FLAGS) ||
		    ibv_post_recv(qp, &rwr, &bad))
			c->error = 7;
		attr.qp_state = IBV_QPS_ERR;
		if (!c->error && (ibv_modify_qp(qp, &attr, IBV_QP_STATE) ||
				  ibv_poll_cq(cq, 1, &wc) != 1 ||
				  wc.status != IBV_WC_WR_FLUSH_ERR))
			c->error = 8;
		if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq))
			c->error = 9;
		if (c->error)
			break;
	}
	return NULL;
}

static int make_ready(struct end *e, void *arg)
{
	(void)arg;
	for (int t = 0; t < THREADS; t++)
		for (int i = 0; i < READY; i++)
			if (post(crew_of(e), t, i, false))
				return -1;
	return 0;
}

static int run_crew(struct end *e, void *arg)
{
	struct crew *c = crew_of(e);
	struct worker workers[THREADS];
	pthread_t churner;

	pthread_create(&churner, NULL, churn, c);
	for (int t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){ .crew = c, .t = t };
		pthread_create(&workers[t].thread, NULL, work, &workers[t]);
	}
	for (int t = 0; t < THREADS; t++)
		pthread_join(workers[t].thread, NULL);
	c->done = true;
	pthread_join(churner, NULL);
	return c->error;
}

static void four_threads_work_while_objects_come_and_go(struct pair *p)
{
	const struct side_options opt = {
		.bytes = THREADS * 2 * WINDOW * ROOM, .cqe = 8 * WINDOW
	};
	struct side *sides[] = { &p->a, &p->b };

	p->conn.timeout = 18;
	pair_open(p, &opt);
	for (int s = 0; s < 2; s++) {
		uint32_t qpn[THREADS];

		expect_eq(side_run(sides[s], hire, qpn, sizeof(qpn)), 0);
		memcpy(sides[s]->qpn + 1, qpn, sizeof(qpn));
	}
	for (int t = 0; t < THREADS; t++)
		pair_connect_qp(p, 1 + t);
	for (int s = 0; s < 2; s++)
		expect_eq(side_run(sides[s], make_ready, NULL, 0), 0);
	side_start(&p->b, run_crew, NULL, 0);
	expect_eq(run_crew(p->a.end, NULL), 0);
	expect_eq(side_join(&p->b, NULL, 0), 0);
	for (int s = 0; s < 2; s++)
		expect_eq(side_run(sides[s], dismiss, NULL, 0), 0);
}

/* ---- one queue pair, many posters ---- */

struct posters {
	struct end *e;
	atomic_int posted, error;
};

static void *post_some(void *arg)
{
	struct posters *ps = arg;
	struct end *e = ps->e;

	for (int i = 0; i < 1000; i++) {
		struct ibv_sge sge = { (uintptr_t)e->buffer, 64,
				       e->mr[0]->lkey };
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
					  .sg_list = &sge, .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED };
		struct ibv_send_wr *bad;
		struct ibv_wc wc[4];
		int ret;

		while ((ret = ibv_post_send(e->qp[0], &wr, &bad)) == ENOMEM) {
			int n = ibv_poll_cq(e->cq[SEND_CQ], 4, wc);

			for (int k = 0; k < n; k++)
				if (wc[k].status)
					ps->error = (int)wc[k].status;
			if (n < 0)
				return NULL;
			atomic_fetch_add(&ps->posted, -n);
		}
		if (ret)
			ps->error = -ret;
		atomic_fetch_add(&ps->posted, 1);
	}
	return NULL;
}

static int receive_4000(struct end *e, void *arg)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	uint64_t end = now_ms() + 2 * WAIT_MS;
	int out = 0, got = 0;
	struct ibv_wc wc;

	while (got < 4000 && now_ms() < end) {
		for (; out < 64 && got + out < 4000; out++)
			if (ibv_post_recv(e->qp[0], &wr, &bad))
				return -1;
		if (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc) != 1)
			continue;
		if (wc.status)
			return -2;
		got++;
		out--;
	}
	return got == 4000 ? 0 : -3;
}

static void four_threads_post_on_one_queue_pair(struct pair *p)
{
	/* Nobody polls before the send queue is full: room for everything. */
	const struct side_options opt = { .send_wr = 32, .cqe = 4096 };
	struct posters ps = { .e = p->a.end };
	pthread_t threads[THREADS];

	need_rnr();
	p->conn.timeout = 18;
	pair_start(p, &opt);
	side_start(&p->b, receive_4000, NULL, 0);
	for (int t = 0; t < THREADS; t++)
		pthread_create(&threads[t], NULL, post_some, &ps);
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	expect_eq(ps.error, 0);
	for (int left = ps.posted; left > 0;) {
		int n = left < MAX_WCS ? left : MAX_WCS;

		expect_eq(side_poll(&p->a, SEND_CQ, n, WAIT_MS).count, n);
		left -= n;
	}
	expect_eq(side_join(&p->b, NULL, 0), 0);
}

/* ---- a channel whose queues come and go ---- */

struct listener {
	struct ibv_comp_channel *channel;
	atomic_bool stop;
	atomic_int events;
};

static void *listen_for_events(void *arg)
{
	struct listener *l = arg;

	while (!l->stop) {
		struct pollfd fd = { .fd = l->channel->fd, .events = POLLIN };
		struct ibv_cq *cq;
		void *context;

		if (poll(&fd, 1, 10) != 1 ||
		    ibv_get_cq_event(l->channel, &cq, &context))
			continue;
		ibv_ack_cq_events(cq, 1);
		l->events++;
	}
	return NULL;
}

static void queues_are_destroyed_while_a_thread_takes_their_events(struct pair *p)
{
	const struct side_options opt = { .events = true };
	struct listener l = { 0 };
	struct end *e = p->a.end;
	pthread_t thread;

	side_open(&p->a, &opt);
	l.channel = e->channel;
	fcntl(e->channel->fd, F_SETFL, O_NONBLOCK);
	pthread_create(&thread, NULL, listen_for_events, &l);
	for (int i = 0; i < 3000; i++) {
		struct ibv_cq *cq = ibv_create_cq(e->ctx, 4, NULL, e->channel, 0);
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1,
				 .max_send_sge = 1, .max_recv_sge = 1 },
		};
		struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
					    .port_num = 1 };
		struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

		expect_eq(ibv_modify_qp(qp, &attr,
					IBV_QP_STATE | IBV_QP_PORT |
						IBV_QP_PKEY_INDEX |
						IBV_QP_ACCESS_FLAGS), 0);
		expect_eq(ibv_post_recv(qp, &wr, &bad), 0);
		expect_eq(ibv_req_notify_cq(cq, 0), 0);
		attr.qp_state = IBV_QPS_ERR;
		expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
		expect_eq(ibv_destroy_qp(qp), 0);
		expect_eq(ibv_destroy_cq(cq), 0);
	}
	l.stop = true;
	pthread_join(thread, NULL);
}

/* ---- two threads that make the same change ---- */

struct connecting {
	struct ibv_qp *qp;
	pthread_barrier_t start;
	atomic_int good, refused;
};

static void *connect_to_itself(void *arg)
{
	struct connecting *c = arg;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = c->qp->qp_num, .ah_attr = { .dlid = 1, .port_num = 1 },
	};
	int ret;

	pthread_barrier_wait(&c->start);
	ret = ibv_modify_qp(c->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	c->good += ret == 0;
	c->refused += ret == EINVAL;
	return NULL;
}

/* One of them connects the queue pair, the other one finds it in another state. */
static void of_two_threads_that_connect_a_queue_pair_one_is_refused(struct pair *p)
{
	struct end *e = p->a.end;

	need_no_rnic("its queue pairs are connected over streams");
	side_open(&p->a, NULL);
	for (int i = 0; i < 200; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .send_cq = e->cq[SEND_CQ],
			.recv_cq = e->cq[RECV_CQ],
			.cap = { .max_send_wr = 1, .max_recv_wr = 1,
				 .max_send_sge = 1, .max_recv_sge = 1 },
		};
		struct connecting c = { .qp = ibv_create_qp(e->pd, &init) };
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		pthread_t thread;

		expect_eq(ibv_modify_qp(c.qp, &attr,
					IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
						IBV_QP_ACCESS_FLAGS), 0);
		pthread_barrier_init(&c.start, NULL, 2);
		pthread_create(&thread, NULL, connect_to_itself, &c);
		connect_to_itself(&c);
		pthread_join(thread, NULL);
		pthread_barrier_destroy(&c.start);
		expect_eq(c.good, 1);
		expect_eq(c.refused, 1);
		expect_eq(ibv_destroy_qp(c.qp), 0);
	}
}

/* ---- a thread that posts while another one resets ---- */

struct poster {
	struct end *e;
	const struct side *target;
	atomic_bool stop;
	atomic_int posted, wrong;
};

static void *write_to_target(void *arg)
{
	struct poster *p = arg;
	struct end *e = p->e;
	struct ibv_sge sge = { (uintptr_t)e->buffer, 8, e->mr[0]->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { p->target->addr + 64, p->target->rkey },
	}, *bad;
	struct ibv_wc wc[4];

	while (!p->stop) {
		int ret = ibv_post_send(e->qp[0], &wr, &bad);

		p->posted += ret == 0;
		p->wrong += ret && ret != EINVAL && ret != ENOMEM;
		for (int n = ibv_poll_cq(e->cq[SEND_CQ], 4, wc); n > 0; n--)
			p->wrong += wc[n - 1].status != IBV_WC_SUCCESS &&
				    wc[n - 1].status != IBV_WC_WR_FLUSH_ERR;
	}
	return NULL;
}

static void connect_side_to_itself(struct pair *p)
{
	const struct connection *c = &p->conn;

	expect_eq(side_to_init(&p->a, 0, IBV_ACCESS_REMOTE_WRITE), 0);
	expect_eq(side_to_rtr(&p->a, 0, c, &p->a.gid, p->a.qpn[0], c->psn_a), 0);
	expect_eq(side_to_rts(&p->a, 0, c, c->psn_a), 0);
}

/* Work is refused or dropped while the queue pair is in RESET, and nothing else happens. */
static void a_queue_pair_is_reset_and_connected_while_a_thread_posts(struct pair *p)
{
	const bool rnic = transport_under_test()->streams;
	struct poster poster = { .e = p->a.end, .target = rnic ? &p->b : &p->a };
	pthread_t thread;

	pair_open(p, NULL);
	pthread_create(&thread, NULL, write_to_target, &poster);
	for (int i = 0; i < 200; i++) {
		int before;

		if (rnic)
			pair_connect_qp(p, 0);
		else
			connect_side_to_itself(p);
		before = poster.posted;
		for (uint64_t end = now_ms() + WAIT_MS;
		     poster.posted == before && now_ms() < end;)
			sched_yield();
		expect(poster.posted > before);
		pair_reset_qp(p, 0);
	}
	poster.stop = true;
	pthread_join(thread, NULL);
	expect_eq(poster.wrong, 0);
}

/* Drains its send queue and goes on, until a failure ends that. */
static int drain_until_failed(struct end *e, void *arg)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_qp_attr a;

	do {
		a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD };
		if (ibv_modify_qp(e->qp[0], &a, IBV_QP_STATE))
			return 0;
		a.qp_state = IBV_QPS_RTS;
		if (ibv_modify_qp(e->qp[0], &a, IBV_QP_STATE))
			return 0;
	} while (now_ms() < end);
	return -1;
}

/* While side a changes its state, a message fails there, which another thread takes
 * in: no change may undo that. */
static void a_failed_queue_pair_is_not_revived_by_a_change_of_state(struct pair *p)
{
	need_arrival();
	pair_start(p, NULL);
	for (int i = 0; i < 60; i++) {
		side_recv(&p->a, 1, 0, 10);
		side_start(&p->a, drain_until_failed, NULL, 0);
		side_send(&p->b, 2, 0, 11);
		expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
		expect_eq(side_join(&p->a, NULL, 0), 0);
		expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
		expect_status(side_wait(&p->a, RECV_CQ), IBV_WC_LOC_LEN_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static const struct test_case cases[] = {
	CASE(four_threads_work_while_objects_come_and_go),
	CASE(four_threads_post_on_one_queue_pair),
	RULE("IBTA 10.3.1.7", a_failed_queue_pair_is_not_revived_by_a_change_of_state),
	CASE_IN(ONLY_ONE_PROCESS,
		queues_are_destroyed_while_a_thread_takes_their_events),
	CASE_IN(ONLY_ONE_PROCESS,
		of_two_threads_that_connect_a_queue_pair_one_is_refused),
	CASE_IN(ONLY_ONE_PROCESS,
		a_queue_pair_is_reset_and_connected_while_a_thread_posts),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
