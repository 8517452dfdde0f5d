/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wall clock is set back while the adapter waits for a stopped peer, which must not
 * make it wait longer. The library reads the clock that this program
 * gives it, an hour ahead of the one by which the kernel would wait.
 */
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pair.h"

enum { QKEY = 0x11111111, AHEAD_S = 3600 };

int clock_gettime(clockid_t id, struct timespec *t)
{
	int ret = (int)syscall(SYS_clock_gettime, id, t);

	if (id == CLOCK_REALTIME)
		t->tv_sec += AHEAD_S;
	return ret;
}

static void a_connection_waits_for_a_peer_by_a_clock_that_nobody_sets(struct pair *p)
{
	pair_open(p, NULL);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	side_stop(&p->b);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0], 1), 0);
	side_signal(&p->b, SIGCONT);
}

static int join(struct end *e, void *arg)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 1 } };
	uint32_t run = *(uint32_t *)arg;

	memcpy(gid.raw + 14, &run, 2);
	return ibv_attach_mcast(e->qp[0], &gid, 0) ||
	       ibv_detach_mcast(e->qp[0], &gid, 0);
}

static void a_group_is_joined_by_a_clock_that_nobody_sets(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	uint32_t run = (uint32_t)getpid();

	pair_open(p, &ud);
	expect_eq(side_to_init(&p->a, 0, QKEY), 0);
	expect_eq(side_to_init(&p->b, 0, QKEY), 0);
	expect_eq(side_run(&p->b, join, &run, sizeof(run)), 0);
	side_stop(&p->b);
	expect_eq(side_run(&p->a, join, &run, sizeof(run)), 0);
	side_signal(&p->b, SIGCONT);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_TWO_PROCESSES,
		a_connection_waits_for_a_peer_by_a_clock_that_nobody_sets),
	CASE_IN(ONLY_TWO_PROCESSES, a_group_is_joined_by_a_clock_that_nobody_sets),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
