/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled at any time (pthread_cancel(3)): a call that is under way
 * ends first, only waiting for an event is given up. So no lock stays held, nothing
 * of a call is left over, and the process goes on.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "join.h"
#include "pair.h"

enum { ROUNDS = 40, BYTES = 64 };

/* One turn of a thread: makes something, uses it, and takes it away again. */
typedef void turn_fn(struct end *e);

static void region(struct end *e)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buffer, BYTES,
				       IBV_ACCESS_LOCAL_WRITE |
					       IBV_ACCESS_REMOTE_READ);

	expect(mr);
	expect_eq(ibv_dereg_mr(mr), 0);
}

static void queue(struct end *e)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->ctx);
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 4, NULL, ch, 0);

	expect(ch && cq);
	expect_eq(ibv_req_notify_cq(cq, 0), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect_eq(ibv_destroy_comp_channel(ch), 0);
}

static void device(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = ibv_open_device(list[0]);
	struct ibv_port_attr port;
	union ibv_gid gid;

	expect(ctx);
	expect_eq(ibv_query_gid(ctx, 1, 0, &gid), 0);
	expect_eq(ibv_query_port(ctx, 1, &port), 0);
	expect_eq(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
}

static struct ibv_qp *make_qp(struct end *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	expect(qp);
	return qp;
}

/* What an armed queue reports goes through a descriptor. */
static void message_at(struct end *e, uint8_t *at)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(e->ctx);
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 4, NULL, ch, 0);
	struct ibv_qp *qp = make_qp(e, cq);
	/* Over a stream another one. */
	struct ibv_qp *sender = transport_under_test()->streams ? make_qp(e, cq) : qp;
	struct ibv_sge sge = { (uintptr_t)at, BYTES, e->mr[0]->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 }, *bad_r;
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED,
				   .sg_list = &sge, .num_sge = 1 }, *bad_s;
	struct ibv_wc wc;

	join(sender, qp);
	expect_eq(ibv_req_notify_cq(cq, 0), 0);
	expect_eq(ibv_post_recv(qp, &rwr, &bad_r), 0);
	expect_eq(ibv_post_send(sender, &swr, &bad_s), 0);
	for (int got = 0; got < 2;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		expect(n >= 0);
		if (n > 0)
			expect_status(wc, IBV_WC_SUCCESS);
		got += n;
	}
	if (sender != qp)
		expect_eq(ibv_destroy_qp(sender), 0);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect_eq(ibv_destroy_cq(cq), 0);
	expect_eq(ibv_destroy_comp_channel(ch), 0);
}

/* Two threads at a time send, each its own bytes. */
static void message(struct end *e)
{
	message_at(e, e->buffer);
}

static void other_message(struct end *e)
{
	message_at(e, e->buffer + BYTES);
}

/* Here nothing is held, and nothing ever comes. */
static void wait_for_event(struct end *e)
{
	struct ibv_cq *cq;
	void *context;

	ibv_get_cq_event(e->channel, &cq, &context);
}

static void wait_for_async(struct end *e)
{
	struct ibv_async_event event;

	ibv_get_async_event(e->ctx, &event);
}

static turn_fn *const turns[] = { region, queue, device, message,
				 other_message,
				  wait_for_event, wait_for_async };
enum { TURNS = sizeof(turns) / sizeof(*turns) };

struct worker {
	struct end *e;
	turn_fn *turn;
	pthread_t thread;
};

static void *work(void *arg)
{
	const struct worker *w = arg;

	for (;;) {
		pthread_testcancel();
		w->turn(w->e);
	}
	return NULL;
}

static void cancelled_threads_leave_nothing_behind(struct pair *p)
{
	const struct side_options opt = { .events = true };
	struct worker w[TURNS];
	unsigned seed = 1;
	void *ret;

	side_open(&p->a, &opt);
	for (int round = 0; round < ROUNDS; round++) {
		struct timespec t = { .tv_nsec = rand_r(&seed) % 4000000 };

		for (int i = 0; i < TURNS; i++) {
			w[i] = (struct worker){ p->a.end, turns[i], 0 };
			expect_eq(pthread_create(&w[i].thread, NULL, work, &w[i]),
				  0);
		}
		nanosleep(&t, NULL);
		for (int i = 0; i < TURNS; i++)
			expect_eq(pthread_cancel(w[i].thread), 0);
		for (int i = 0; i < TURNS; i++) {
			expect_eq(pthread_join(w[i].thread, &ret), 0);
			expect(ret == PTHREAD_CANCELED);
		}
		for (int i = 0; i < 5; i++)
			turns[i](p->a.end);
	}
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_ONE_PROCESS, cancelled_threads_leave_nothing_behind),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
