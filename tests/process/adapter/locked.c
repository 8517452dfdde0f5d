/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that lock all of their memory, as those do that must meet deadlines
 * (mlockall(2)): the adapter has little of it, before and after a connection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pair.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
/* Of the process, with its libraries. */
enum { LIMIT_KIB = 32 << 10, KEYS = 6000, KEYS_KIB = 2 << 10 };

struct locked {
	int flags;
	long resident_kib;
};

/* Out: what of the process is in memory. */
static int lock(struct end *e, void *arg)
{
	struct locked *l = arg;
	char line[128];
	FILE *f;

	if (mlockall(l->flags))
		return errno;
	f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &l->resident_kib) == 1)
			break;
	if (f)
		fclose(f);
	return 0;
}

/* Without a thread of the test's, whose stack would be locked. */
static int run(struct side *s, side_fn *fn, void *arg, size_t size)
{
	return s->end ? fn(s->end, arg) : side_run(s, fn, arg, size);
}

static long locked(struct side *s, int flags)
{
	struct locked l = { .flags = flags };

	expect_eq(run(s, lock, &l, sizeof(l)), 0);
	return l.resident_kib;
}

static void exchange(struct pair *p, uint64_t seed)
{
	struct send_req r = rdma_req(&p->b, &p->a, IBV_WR_RDMA_WRITE, seed, 0, 8192,
				     4096);

	side_recv(&p->b, seed, 0, 4096);
	side_fill(&p->a, 0, 4096, seed);
	side_send(&p->a, seed, 0, 4096);
	side_wait_ok(&p->a, SEND_CQ, seed);
	side_wait_ok(&p->b, RECV_CQ, seed);
	side_check(&p->b, 0, 4096, seed);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, seed);
	side_check(&p->a, 8192, 4096, seed);
}

static void needs_room_for_locked_memory(void)
{
	/* Address space counts against the limit, whether anything is there or not. */
	const size_t space = (size_t)1 << 30;
	void *at;

	/* Under a sanitizer its shadow would be locked, too. */
	if (SANITIZED || mlockall(MCL_CURRENT | MCL_FUTURE))
		exit(77);
	at = mmap(NULL, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		exit(77);
	munmap(at, space);
	munlockall();
}

static void little_is_locked_with_a_peer(struct pair *p)
{
	const int now = MCL_CURRENT, all = MCL_CURRENT | MCL_FUTURE;
	struct side *sides[] = { &p->a, &p->b };
	long before[2];

	needs_room_for_locked_memory();
	for (int i = 0; i < 2; i++)
		before[i] = locked(sides[i], all);
	pair_start(p, NULL);
	exchange(p, 1);
	for (int i = 0; i < 2; i++) {
		long with = locked(sides[i], now | MCL_FUTURE);

		printf("# side %c: %ld KiB before, %ld KiB with a peer\n", 'a' + i,
		       before[i], with);
		expect(with > before[i]);
		if (p->two_processes && with >= LIMIT_KIB)
			fail("%ld KiB are resident, at most %d are to be", with,
			     LIMIT_KIB);
	}
	exchange(p, 2);
}

static int register_many(struct end *e, void *arg)
{
	struct ibv_mr **mr = calloc(KEYS, sizeof(struct ibv_mr *));
	uint32_t *last = arg;
	int ret = 0;

	for (int i = 0; mr && i < KEYS; i++) {
		mr[i] = ibv_reg_mr(e->pd, e->buffer, 4096,
				   IBV_ACCESS_LOCAL_WRITE |
					   IBV_ACCESS_REMOTE_WRITE);
		ret |= !mr[i];
	}
	/* All but one go at once; that one with the process. */
	for (int i = 0; mr && !ret && i < KEYS - 1; i++)
		ret |= ibv_dereg_mr(mr[i]);
	if (!mr || ret)
		return -1;
	*last = mr[KEYS - 1]->rkey;
	e->mr[1] = mr[KEYS - 1];
	free(mr);
	return 0;
}

/* And the peer finds a key in a part of the table that it had not seen before. */
static void more_keys_cost_what_they_need(struct pair *p)
{
	const int all = MCL_CURRENT | MCL_FUTURE;
	struct send_req r;
	uint32_t rkey;
	long a, b;

	needs_room_for_locked_memory();
	locked(&p->a, all);
	locked(&p->b, all);
	pair_start(p, NULL);
	exchange(p, 1);
	a = locked(&p->a, all);
	b = locked(&p->b, all);
	expect_eq(run(&p->a, register_many, &rkey, sizeof(rkey)), 0);
	expect(rkey >> 8 > 4096);
	r = rdma_req(&p->b, &p->a, IBV_WR_RDMA_WRITE, 7, 0, 8, 64);
	r.rkey = rkey;
	side_fill(&p->b, 0, 64, 3);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, 7);
	side_check(&p->a, 8, 64, 3);
	if (!p->two_processes)
		return;
	expect(locked(&p->a, all) - a < KEYS_KIB);
	expect(locked(&p->b, all) - b < KEYS_KIB);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		CASE(little_is_locked_with_a_peer),
		CASE(more_keys_cost_what_they_need),
	};

	return RUN_CASES(argc, argv, cases);
}
