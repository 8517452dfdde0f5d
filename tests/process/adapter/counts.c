/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Of each kind of object there are as many as the device says, and one more is
 * refused with ENOMEM (ibv_query_device(3)); afterwards they can be had again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* One more object, on what the side has. */
typedef void *make_fn(struct end *e);
typedef int end_fn(void *object);

static void *make_pd(struct end *e)
{
	return ibv_alloc_pd(e->ctx);
}

static int end_pd(void *o)
{
	return ibv_dealloc_pd(o);
}

static void *make_cq(struct end *e)
{
	return ibv_create_cq(e->ctx, 1, NULL, NULL, 0);
}

static int end_cq(void *o)
{
	return ibv_destroy_cq(o);
}

static void *make_srq(struct end *e)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(e->pd, &init);
}

static int end_srq(void *o)
{
	return ibv_destroy_srq(o);
}

static void *make_ah(struct end *e)
{
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };

	expect_eq(ibv_query_gid(e->ctx, 1, 0, &attr.grh.dgid), 0);
	return ibv_create_ah(e->pd, &attr);
}

static int end_ah(void *o)
{
	return ibv_destroy_ah(o);
}

static void *make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = e->cq[0], .recv_cq = e->cq[1],
		.cap = { 1, 1, 1, 1, 0 },
	};

	return ibv_create_qp(e->pd, &init);
}

static int end_qp(void *o)
{
	return ibv_destroy_qp(o);
}

static void *make_mr(struct end *e)
{
	return ibv_reg_mr(e->pd, e->buffer, 1, 0);
}

static int end_mr(void *o)
{
	return ibv_dereg_mr(o);
}

static void *make_mw(struct end *e)
{
	return ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
}

static int end_mw(void *o)
{
	return ibv_dealloc_mw(o);
}

/* `used`: how many the side has already. */
static void count(struct end *e, int limit, int used, make_fn *make, end_fn *end)
{
	void **objects = calloc((size_t)limit, sizeof(*objects));
	int n = 0;

	expect(objects);
	while (n < limit - used) {
		errno = 0;
		objects[n] = make(e);
		if (!objects[n])
			fail("number %d of %d refused: %s", used + n + 1, limit,
			     strerror(errno));
		n++;
	}
	errno = 0;
	expect(!make(e));
	expect_eq(errno, ENOMEM);
	/* A place that becomes free is found. */
	expect_eq(end(objects[n / 2]), 0);
	objects[n / 2] = make(e);
	expect(objects[n / 2]);
	expect(!make(e));
	while (n > 0)
		expect_eq(end(objects[--n]), 0);
	free(objects);
}

static struct ibv_device_attr start(struct pair *p)
{
	struct ibv_device_attr dev;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_device(p->a.end->ctx, &dev), 0);
	return dev;
}

static void domains_and_address_handles(struct pair *p)
{
	struct ibv_device_attr dev = start(p);

	count(p->a.end, dev.max_pd, 2, make_pd, end_pd);
	if (!transport_under_test()->streams)
		count(p->a.end, dev.max_ah, 0, make_ah, end_ah);
}

static void queues(struct pair *p)
{
	struct ibv_device_attr dev = start(p);

	count(p->a.end, dev.max_cq, 2, make_cq, end_cq);
	count(p->a.end, dev.max_srq, 0, make_srq, end_srq);
}

/* The end of each waits for peers: only when asked for. */
static void queue_pairs(struct pair *p)
{
	struct ibv_device_attr dev = start(p);

	if (!getenv("ADAPTER_LONG"))
		exit(77);
	count(p->a.end, dev.max_qp, 1, make_qp, end_qp);
}

/* They share a table. A region takes the kernel's time for each look at its memory:
 * they are counted only when asked for. */
static void regions_and_windows(struct pair *p)
{
	struct ibv_device_attr dev = start(p);

	if (!transport_under_test()->streams) {
		expect_eq(dev.max_mr, dev.max_mw);
		count(p->a.end, dev.max_mw, 1, make_mw, end_mw);
	}
	if (getenv("ADAPTER_LONG"))
		count(p->a.end, dev.max_mr, 1, make_mr, end_mr);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device(3)",
		domains_and_address_handles),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device(3)", queues),
	{ .name = "queue_pairs", .fn = queue_pairs,
	  .where = ONLY_ONE_PROCESS, .limit_s = 240,
	  .rule = "ibv_query_device(3)" },
	{ .name = "regions_and_windows", .fn = regions_and_windows,
	  .where = ONLY_ONE_PROCESS, .limit_s = 240,
	  .rule = "ibv_query_device(3)" },
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
