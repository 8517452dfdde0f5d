/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the peer has mapped (device memory, application memory moved by
 * BUSBAR_MAP_MEMORY, and what was registered by its file): the target need not run, its death is noticed, its
 * withdrawal is final, and bytes become visible in their order.
 *
 * All other ways into a peer's memory are switched off, so that nothing but the
 * mapping can do it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

enum { PAGES = 4 * 4096, ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static const struct side_options plain = { .mr_access = ALL, .cqe = 1024,
					   .send_wr = 256, .bytes = 1 << 20 };

/* The next descriptor is passed to nobody: the socket has no room. */
static atomic_bool no_room;

static bool passes_one_descriptor(const struct msghdr *h)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(h);

	return c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int));
}

/* The adapter's calls come here. */
ssize_t sendmsg(int fd, const struct msghdr *h, int flags)
{
	if (atomic_load(&no_room) && passes_one_descriptor(h) &&
	    atomic_exchange(&no_room, false)) {
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_sendmsg, (long)fd, h, (long)flags);
}

static int leave_no_room(struct end *e, void *arg)
{
	(void)e;
	(void)arg;
	atomic_store(&no_room, true);
	return 0;
}

static int there_was_no_room(struct end *e, void *arg)
{
	(void)e;
	(void)arg;
	return !atomic_load(&no_room);
}

/* Of the side in this process that owns it. */
static struct ibv_dm *dm;
static struct ibv_mr *dm_mr;

struct target {
	uint64_t at;
	uint32_t rkey;
};

static int own(struct end *e, void *arg)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGES };
	static const uint8_t zeros[PAGES];
	struct target *t = arg;

	dm = ibv_alloc_dm(e->ctx, &attr);
	if (!dm || ibv_memcpy_to_dm(dm, 0, zeros, PAGES))
		return -1;
	dm_mr = ibv_reg_dm_mr(e->pd, dm, 0, PAGES, ALL | IBV_ACCESS_ZERO_BASED);
	if (!dm_mr)
		return -1;
	*t = (struct target){ .rkey = dm_mr->rkey };
	return 0;
}

static int disown(struct end *e, void *arg)
{
	return ibv_dereg_mr(dm_mr) || ibv_free_dm(dm);
}

static void let_go(struct side *s)
{
	int unused = 0;

	expect_eq(side_run(s, disown, &unused, sizeof(unused)), 0);
}

/* Regions that lie in this process, our own included. */
static int regions_here(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "busbar-region") != NULL;
	if (f)
		fclose(f);
	return n;
}

static struct send_req request(struct pair *p, enum ibv_wr_opcode opcode,
			       uint64_t wr_id, const struct target *t,
			       uint32_t length)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, wr_id, 0, 0, length);

	r.remote_addr = t->at;
	r.rkey = t->rkey;
	return r;
}

static void complete(struct pair *p, const struct send_req *r)
{
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, r->wr_id);
}

static void wait_for_regions(int count)
{
	uint64_t until = now_ms() + WAIT_MS;

	while (regions_here() != count)
		if (now_ms() > until)
			fail("%d regions are mapped here, expected %d",
			     regions_here(), count);
}

/* Uses b's memory until the adapter has mapped it here, as /proc shows; the adapter uses
 * the mapping soon after. */
static void map(struct pair *p, const struct target *t)
{
	struct send_req r = request(p, IBV_WR_RDMA_WRITE, 0, t, 8);
	int before = regions_here();
	uint64_t until = now_ms() + WAIT_MS;

	while (regions_here() == before) {
		if (now_ms() > until)
			fail("the peer's memory was not mapped");
		complete(p, &r);
	}
}

/* Stops b, once a does without it. */
static void stop(struct pair *p, const struct target *t)
{
	struct send_req r = request(p, IBV_WR_RDMA_WRITE, 0, t, 8);

	for (int tries = 0; tries < 100; tries++) {
		side_stop(&p->b);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		if (side_poll(&p->a, SEND_CQ, 1, QUIET_MS).count == 1)
			return;
		side_signal(&p->b, SIGCONT);
		side_wait_ok(&p->a, SEND_CQ, 0);
	}
	fail("nothing completes without the target");
}

static void connect_sides(struct pair *p)
{
	p->conn.access_a = p->conn.access_b =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &plain);
}

static struct target start(struct pair *p)
{
	struct target t;

	connect_sides(p);
	expect_eq(side_run(&p->b, own, &t, sizeof(t)), 0);
	map(p, &t);
	return t;
}

static struct target start_with_buffer(struct pair *p)
{
	struct target t;

	connect_sides(p);
	t = (struct target){ p->b.addr, p->b.rkey };
	map(p, &t);
	return t;
}

/* Everything that the initiator can do by itself. */
static void use_stopped(struct pair *p, const struct target *t)
{
	struct send_req r;
	uint64_t found;

	stop(p, t);
	side_fill(&p->a, 0, PAGES, 1);
	r = request(p, IBV_WR_RDMA_WRITE, 1, t, PAGES);
	complete(p, &r);
	side_set(&p->a, 0, PAGES, 0);
	r = request(p, IBV_WR_RDMA_READ, 2, t, PAGES);
	complete(p, &r);
	side_check(&p->a, 0, PAGES, 1);
	r = request(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, t, 8);
	r.compare_add = 1;
	complete(p, &r);
	complete(p, &r);
	side_peek(&p->a, 0, &found, 8);
	expect_eq((uint8_t)found, (uint8_t)(pattern(1, 0) + 1));
	side_signal(&p->b, SIGCONT);
}

static void device_memory_of_a_stopped_target_is_used(struct pair *p)
{
	struct target t = start(p);

	use_stopped(p, &t);
	let_go(&p->b);
}

static void a_region_whose_announcement_found_no_room_is_mapped_later(struct pair *p)
{
	struct target t;
	int unused = 0;

	connect_sides(p);
	t = (struct target){ p->b.addr, p->b.rkey };
	expect_eq(side_run(&p->b, leave_no_room, &unused, sizeof(unused)), 0);
	map(p, &t);
	expect_eq(side_run(&p->b, there_was_no_room, &unused, sizeof(unused)), 1);
}

static void application_memory_of_a_stopped_target_is_used(struct pair *p)
{
	struct target t = start_with_buffer(p);
	uint8_t seen[64];

	use_stopped(p, &t);
	side_peek(&p->b, PAGES - 64, seen, sizeof(seen));
	for (uint32_t k = 0; k < sizeof(seen); k++)
		expect_eq(seen[k], pattern(1, PAGES - 64 + k));
}

static void a_killed_target_is_not_written(struct pair *p)
{
	struct target t;
	struct send_req r;

	p->conn.timeout = 14;
	p->conn.retry_cnt = 2;
	t = start(p);
	side_kill(&p->b);
	r = request(p, IBV_WR_RDMA_WRITE, 1, &t, 8);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
}

static void mappings_end_with_the_memory(struct pair *p)
{
	int before;

	connect_sides(p);
	before = regions_here();
	for (int i = 0; i < 5; i++) {
		struct target t;

		expect_eq(side_run(&p->b, own, &t, sizeof(t)), 0);
		map(p, &t);
		let_go(&p->b);
		wait_for_regions(before);
	}
}

static void mappings_end_with_the_link(struct pair *p)
{
	start(p);
	let_go(&p->b);
	side_close(&p->b);
	side_close(&p->a);
	expect_eq(regions_here(), 0);
}

/* ---- by its file ---- */

enum {
	FILE_BYTES = 18 << 20, /* past the caches from 16 MiB on */
	LONG = (16 << 20) + 5 * 4096 + 77,
	FILE_AT = 4096, /* of the registration, in the file */
	THERE = 13,     /* of what is written, in the registration */
};
#define IOVA UINT64_C(0x123000)

static const struct side_options large = { .mr_access = ALL, .cqe = 1024, .send_wr = 256,
					   .bytes = FILE_BYTES };

/* Of the side in this process that owns it. */
static uint8_t *file_memory;
static struct ibv_mr *file_mr;

static int own_file(struct end *e, void *arg)
{
	int fd = memfd_create("busbar-region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct target *t = arg;

	if (fd < 0 || ftruncate(fd, FILE_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	file_memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	file_mr = ibv_reg_dmabuf_mr(e->pd, FILE_AT, FILE_BYTES - FILE_AT, IOVA, fd, ALL);
	close(fd);
	if (file_memory == MAP_FAILED || !file_mr)
		return -1;
	*t = (struct target){ IOVA, file_mr->rkey };
	return 0;
}

static int disown_file(struct end *e, void *arg)
{
	return ibv_dereg_mr(file_mr) || munmap(file_memory, FILE_BYTES);
}

/* All that was written is there, and nothing beside it. */
static int check_file(struct end *e, void *arg)
{
	const uint8_t *at = file_memory + FILE_AT + THERE;

	for (uint32_t k = 0; k < LONG; k++)
		if (at[k] != pattern(1, k))
			return (int)k + 1;
	return at[-1] || at[LONG] ? -1 : 0;
}

static struct target start_with_file(struct pair *p)
{
	struct target t;

	p->conn.access_a = p->conn.access_b = ALL & ~IBV_ACCESS_LOCAL_WRITE;
	pair_start(p, &large);
	expect_eq(side_run(&p->b, own_file, &t, sizeof(t)), 0);
	map(p, &t);
	return t;
}

static void let_go_of_file(struct side *s)
{
	int unused = 0;

	expect_eq(side_run(s, disown_file, &unused, sizeof(unused)), 0);
}

static void memory_registered_by_its_file_is_used_of_a_stopped_target(struct pair *p)
{
	struct target t = start_with_file(p);

	use_stopped(p, &t);
	let_go_of_file(&p->b);
}

/* Addresses without any alignment. */
static void what_goes_past_the_caches_comes_whole(struct pair *p)
{
	struct target t = start_with_file(p);
	struct send_req r;
	int unused = 0;

	side_set(&p->a, 0, 8, 0);
	r = request(p, IBV_WR_RDMA_WRITE, 1, &t, 8);
	complete(p, &r);
	side_fill(&p->a, 5, LONG, 1);
	r = request(p, IBV_WR_RDMA_WRITE, 1, &t, LONG);
	r.remote_addr += THERE;
	r.sge[0].addr += 5;
	complete(p, &r);
	expect_eq(side_run(&p->b, check_file, &unused, sizeof(unused)), 0);
	side_set(&p->a, 0, FILE_BYTES, 0xee);
	r.opcode = IBV_WR_RDMA_READ;
	r.sge[0].addr += 4;
	complete(p, &r);
	side_check(&p->a, 9, LONG, 1);
	let_go_of_file(&p->b);
}

/* ---- withdrawal ---- */

/* Writes until it is refused. */
static int write_on(struct end *e, void *arg)
{
	const struct target *t = arg;
	struct ibv_sge sge = { (uintptr_t)e->buffer, PAGES, e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t until = now_ms() + WAIT_MS;
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	wr.wr.rdma.remote_addr = t->at;
	wr.wr.rdma.rkey = t->rkey;
	while (wc.status == IBV_WC_SUCCESS) {
		if (now_ms() > until || ibv_post_send(e->qp[0], &wr, &bad))
			return -1;
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) == 0)
			;
	}
	return (int)wc.status;
}

/* a owns here, b writes. */
static void device_memory_is_not_written_after_its_deregistration(struct pair *p)
{
	static uint8_t mine[PAGES], seen[PAGES];
	int unused = 0;

	connect_sides(p);
	memset(mine, 0x11, sizeof(mine));
	for (int i = 0; i < 20; i++) {
		struct target t;

		expect_eq(side_run(&p->a, own, &t, sizeof(t)), 0);
		side_set(&p->b, 0, PAGES, 0xaa);
		side_start(&p->b, write_on, &t, sizeof(t));
		do
			expect_eq(ibv_memcpy_from_dm(seen, dm, 0, PAGES), 0);
		while (seen[PAGES - 1] != 0xaa);
		for (int k = 0; k < 10 * i; k++)
			sched_yield();
		expect_eq(ibv_dereg_mr(dm_mr), 0);
		expect_eq(ibv_memcpy_to_dm(dm, 0, mine, PAGES), 0);
		expect_eq(side_join(&p->b, &unused, 0), IBV_WC_REM_ACCESS_ERR);
		expect_eq(ibv_memcpy_from_dm(seen, dm, 0, PAGES), 0);
		expect(!memcmp(seen, mine, PAGES));
		expect_eq(ibv_free_dm(dm), 0);
		expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

/* ---- order ---- */

struct watch {
	uint32_t length, round;
};

/* Waits for the last byte as programs do, then looks at all of it: every byte
 * has the round's value, or the message was not in order. */
__attribute__((no_sanitize("thread"))) static int look(struct end *e, void *arg)
{
	const struct watch *w = arg;
	const volatile uint8_t *bytes = e->buffer;
	uint64_t until = now_ms() + WAIT_MS;

	while (bytes[w->length - 1] != (uint8_t)w->round)
		if (now_ms() > until)
			return -1;
	for (uint32_t k = 0; k < w->length; k++)
		if (bytes[k] != (uint8_t)w->round)
			return (int)k + 1;
	return 0;
}

static void the_last_byte_is_the_last_one(struct pair *p)
{
	static const uint32_t lengths[] = { 1,	 2,   8,    9,	 63,   64,
					    100, 255, 4096, 4100, 70001 };
	struct target t = start_with_buffer(p);

	side_set(&p->b, 0, 1 << 20, 0);
	for (uint32_t round = 1; round < 200; round++) {
		struct watch w = { lengths[round % 11], round };
		struct send_req r = request(p, IBV_WR_RDMA_WRITE, round, &t,
					    w.length);

		side_set(&p->a, 0, w.length, (uint8_t)round);
		side_start(&p->b, look, &w, sizeof(w));
		complete(p, &r);
		expect_eq(side_join(&p->b, &w, sizeof(w)), 0);
	}
}

/* ---- atomics ---- */

enum { ADDITIONS = 20000 };

static int add_oneself(struct end *e, void *arg)
{
	for (int i = 0; i < ADDITIONS; i++)
		__atomic_fetch_add((uint64_t *)(void *)e->buffer, 1,
				   __ATOMIC_RELAXED);
	return 0;
}

static void additions_of_both_sides_are_all_there(struct pair *p)
{
	struct target t = start_with_buffer(p);
	struct send_req r = request(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &t, 8);
	int unused = 0;
	uint64_t sum;

	r.compare_add = 1;
	side_set(&p->b, 0, 8, 0);
	side_start(&p->b, add_oneself, &unused, sizeof(unused));
	for (int i = 0; i < ADDITIONS / 20; i++)
		complete(p, &r);
	expect_eq(side_join(&p->b, &unused, sizeof(unused)), 0);
	side_peek(&p->b, 0, &sum, sizeof(sum));
	expect_eq(sum, ADDITIONS + ADDITIONS / 20);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_TWO_PROCESSES, device_memory_of_a_stopped_target_is_used),
	CASE_IN(ONLY_TWO_PROCESSES,
		application_memory_of_a_stopped_target_is_used),
	RULE_IN(ONLY_TWO_PROCESSES, "ibv_reg_dmabuf_mr(3)",
		memory_registered_by_its_file_is_used_of_a_stopped_target),
	CASE(a_region_whose_announcement_found_no_room_is_mapped_later),
	CASE(what_goes_past_the_caches_comes_whole),
	CASE_IN(ONLY_TWO_PROCESSES, a_killed_target_is_not_written),
	CASE(mappings_end_with_the_memory),
	CASE(mappings_end_with_the_link),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.6.5",
		device_memory_is_not_written_after_its_deregistration),
	CASE(the_last_byte_is_the_last_one),
	CASE(additions_of_both_sides_are_all_there),
};

int main(int argc, char **argv)
{
	setenv("BUSBAR_SHM_ACCESS", "target", 1);
	setenv("BUSBAR_MAP_MEMORY", "on", 1);
	return RUN_CASES(argc, argv, cases);
}
