/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The largest message that the port allows, 1 GiB, in one piece and by each
 * operation, and one byte more (ibv_query_port(3)). Left out on machines
 * without the memory.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

/* Twice both buffers. */
#define NEEDED_KB (UINT64_C(4) << 20)
#define GIB (UINT64_C(1) << 30)

enum { STEP = 1 << 20, MARKS = 1024 };

static const struct side_options huge = { .bytes = GIB + 4096 };

/* The thread sanitizer needs several times of it for itself. */
static void skip_without_memory(void)
{
#ifdef __SANITIZE_THREAD__
	exit(77);
#endif
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kb = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	if (kb < NEEDED_KB)
		exit(77);
}

/* A word in each MiB, not at the same place of it, and the last one. */
static uint64_t *mark_at(struct end *e, uint64_t i)
{
	uint64_t at = i == MARKS - 1 ? GIB - 8 :
				       i * STEP + i * 1032 % (STEP - 8);

	return (uint64_t *)(void *)(e->buffer + (at & ~UINT64_C(7)));
}

static int set_marks(struct end *e, void *arg)
{
	for (uint64_t i = 0; i < MARKS; i++)
		*mark_at(e, i) = *(uint64_t *)arg + i;
	return 0;
}

static int check_marks(struct end *e, void *arg)
{
	for (uint64_t i = 0; i < MARKS; i++)
		if (*mark_at(e, i) != *(uint64_t *)arg + i)
			return (int)i + 1;
	/* Nothing is written after the end of the message. */
	for (uint64_t at = GIB; at < GIB + 4096; at++)
		if (e->buffer[at])
			return MARKS + 1;
	return e->buffer[STEP / 2] ? MARKS + 2 : 0;
}

static void put(struct side *s, uint64_t seed)
{
	expect_eq(side_run(s, set_marks, &seed, sizeof(seed)), 0);
}

static void check(struct side *s, uint64_t seed)
{
	expect_eq(side_run(s, check_marks, &seed, sizeof(seed)), 0);
}

/* A WRITE over a stream is complete before it has arrived. */
static void check_written(struct side *s, uint64_t seed)
{
	const uint64_t end = now_ms() + (transport_under_test()->streams ? 8 * WAIT_MS : 0);

	while (side_run(s, check_marks, &seed, sizeof(seed)) && now_ms() < end)
		;
	check(s, seed);
}

static struct ibv_wc wait_long(struct side *s, enum side_cq cq)
{
	struct polled p = side_poll(s, cq, 1, 8 * WAIT_MS);

	expect_eq(p.count, 1);
	expect_status(p.wc[0], IBV_WC_SUCCESS);
	return p.wc[0];
}

static void start(struct pair *p)
{
	skip_without_memory();
	p->conn.timeout = 20;
	pair_start(p, &huge);
}

static void a_message_of_1_gib_is_sent(struct pair *p)
{
	start(p);
	put(&p->a, 1000);
	side_recv(&p->b, 1, 0, (uint32_t)GIB + 4096);
	side_send(&p->a, 2, 0, (uint32_t)GIB);
	/* Nobody polls at the sender meanwhile. */
	expect_eq(wait_long(&p->b, RECV_CQ).byte_len, GIB);
	wait_long(&p->a, SEND_CQ);
	check(&p->b, 1000);
}

static void gib_of_memory_is_written_and_read(struct pair *p)
{
	struct send_req r;

	start(p);
	put(&p->a, 3000);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, (uint32_t)GIB);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wait_long(&p->a, SEND_CQ);
	check_written(&p->b, 3000);
	put(&p->a, 5);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 0, 0, (uint32_t)GIB);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(wait_long(&p->a, SEND_CQ).byte_len, GIB);
	check(&p->a, 3000);
}

static void one_byte_more_is_refused(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ
	};
	struct ibv_port_attr port;

	start(p);
	expect_eq(ibv_query_port(p->a.end->ctx, 1, &port), 0);
	expect_eq(port.max_msg_sz, GIB);
	for (int i = 0; i < 3; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, ops[i], 1, 0, 0,
					     (uint32_t)GIB + 1);

		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
		/* The sum counts. */
		r.sge[0].length = (uint32_t)GIB;
		r.sge[1] = side_sge(&p->a, 0, 1);
		r.num_sge = 2;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
	}
	side_expect_none(&p->a, SEND_CQ);
}

#define LIMIT "ibv_query_port(3)"
#define LARGE(fn_)                                                       \
	{ .name = #fn_, .fn = fn_, .where = ONLY_TWO_PROCESSES,          \
	  .limit_s = 120, .rule = LIMIT }

static const struct test_case cases[] = {
	LARGE(a_message_of_1_gib_is_sent),
	LARGE(gib_of_memory_is_written_and_read),
	LARGE(one_byte_more_is_refused),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
