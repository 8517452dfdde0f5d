/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of keys of a process is given to peers that may access its memory themselves,
 * and to no others. For the others the process carries RDMA operations out. `spare[0]`
 * tries to get the table (evil.h), as root or as another user.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "evil.h"
#include "pair.h"

enum { ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
       NOBODY = 65534, PIECE = 1 << 20 };

struct look {
	uint32_t block;
	uint64_t addr;    /* of a registered region */
	bool another_user;
	bool linked, given, in_keys, in_segment;
};

/* Does the number stand anywhere in the file? */
static bool contains(int fd, uint64_t number)
{
	uint64_t *words = malloc(PIECE);
	bool found = false;
	struct stat st;

	if (!words || fstat(fd, &st))
		exit(2);
	for (off_t at = 0; at < st.st_size && !found; at += PIECE) {
		ssize_t n = pread(fd, words, PIECE, at);

		for (ssize_t i = 0; i < n / 8 && !found; i++)
			found = words[i] == number;
	}
	free(words);
	return found;
}

static int look(struct end *e, void *arg)
{
	struct look *l = arg;
	struct evil evil;

	if (l->another_user && setresuid(NOBODY, NOBODY, NOBODY))
		return -1;
	if (evil_open(&evil, 0))
		return -1;
	l->linked = !evil_call(&evil, l->block);
	l->given = evil.victim_keys >= 0;
	l->in_keys = l->given && contains(evil.victim_keys, l->addr);
	for (size_t i = 0; l->linked && i < sizeof(*evil.victim) / 8; i++)
		l->in_segment |= ((const uint64_t *)(const void *)evil.victim)[i] ==
				 l->addr;
	evil_close(&evil);
	return 0;
}

static struct look looked(struct pair *p, bool another_user)
{
	struct look l = { .another_user = another_user };

	setenv("BUSBAR_SHM_PEERS", "any", 1);
	pair_start(p, NULL);
	l.block = p->a.qpn[0] >> HCA_QPN_BLOCK_BITS;
	l.addr = p->a.addr;
	expect_eq(side_run(&p->spare[0], look, &l, sizeof(l)), 0);
	expect(l.linked);
	return l;
}

static void who_may_reach_the_memory_sees_the_keys(struct pair *p)
{
	struct look l = looked(p, false);

	expect(l.given);
	expect(l.in_keys);
	expect(!l.in_segment);
}

static void others_see_none(struct pair *p)
{
	struct look l;

	if (geteuid() != 0)
		exit(77);
	l = looked(p, true);
	expect(!l.given);
	expect(!l.in_segment);
}

static int become_nobody(struct end *e, void *arg)
{
	setenv("BUSBAR_SHM_PEERS", "any", 1);
	return setresuid(NOBODY, NOBODY, NOBODY);
}

static void operate(struct side *from, struct side *to,
		    enum ibv_wr_opcode opcode, uint64_t seed)
{
	struct send_req r = rdma_req(from, to, opcode, seed, 0, 8192,
				     opcode >= IBV_WR_ATOMIC_CMP_AND_SWP ? 8 : 4096);
	bool read = opcode == IBV_WR_RDMA_READ;

	side_fill(from, 0, 4096, seed);
	side_fill(to, 8192, 4096, seed + 1);
	expect_eq(side_post_send(from, 0, &r, 1).ret, 0);
	side_wait_ok(from, SEND_CQ, seed);
	if (opcode == IBV_WR_RDMA_WRITE || read)
		side_check(read ? from : to, read ? 0 : 8192, 4096,
			   read ? seed + 1 : seed);
}

static void their_work_is_done_for_them(struct pair *p)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD
	};
	struct send_req r;

	if (geteuid() != 0)
		exit(77);
	setenv("BUSBAR_SHM_PEERS", "any", 1);
	expect_eq(side_run(&p->b, become_nobody, NULL, 0), 0);
	p->conn.access_a = p->conn.access_b = ALL;
	pair_start(p, &(struct side_options){ .mr_access = ALL });
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		operate(&p->a, &p->b, opcodes[i], 2 * i + 1);
		operate(&p->b, &p->a, opcodes[i], 2 * i + 100);
	}
	/* A key that there is not is refused all the same. */
	r = rdma_req(&p->b, &p->a, IBV_WR_RDMA_WRITE, 9, 0, 8192, 64);
	r.rkey ^= 1;
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{ .name = "who_may_reach_the_memory_sees_the_keys",
		  .fn = who_may_reach_the_memory_sees_the_keys, .spares = 1,
		  .where = ONLY_TWO_PROCESSES },
		{ .name = "others_see_none", .fn = others_see_none, .spares = 1,
		  .where = ONLY_TWO_PROCESSES },
		CASE_IN(ONLY_TWO_PROCESSES, their_work_is_done_for_them),
	};

	return RUN_CASES(argc, argv, cases);
}
