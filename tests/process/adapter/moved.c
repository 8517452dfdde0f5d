/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What BUSBAR_MAP_MEMORY does to the program's memory: it is the same memory to
 * the program, whatever it does with it, and it is the program's own again after
 * the last deregistration. Memory that cannot be moved is registered all the same.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { PAGE = 4096, ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ };

static const struct side_options plain = { .mr_access = ALL };

/* The line of /proc/self/maps that `at` is in says that it was moved. */
static bool moved(const void *at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	while (f && fgets(line, sizeof(line), f)) {
		uintptr_t start = strtoul(line, NULL, 16);
		uintptr_t end = strtoul(strchr(line, '-') + 1, NULL, 16);

		if ((uintptr_t)at >= start && (uintptr_t)at < end)
			found = strstr(line, "busbar-region") != NULL;
	}
	if (f)
		fclose(f);
	return found;
}

static uint8_t *pages(int count)
{
	uint8_t *at = mmap(NULL, (size_t)count * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect(at != MAP_FAILED);
	return at;
}

static struct ibv_mr *reg(struct pair *p, void *at, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(p->a.end->pd, at, length, ALL);

	expect(mr != NULL);
	return mr;
}

/* b writes to it, and it is there. */
static void write_and_check(struct pair *p, const struct ibv_mr *mr,
			    uint8_t *at, uint32_t length, uint64_t seed)
{
	struct send_req r = send_req(&p->b, IBV_WR_RDMA_WRITE, seed, 0, length);

	side_fill(&p->b, 0, length, seed);
	r.remote_addr = (uintptr_t)at;
	r.rkey = mr->rkey;
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, SEND_CQ, seed);
	for (uint32_t k = 0; k < length; k++)
		expect_eq(at[k], pattern(seed, k));
}

static void it_goes_and_comes_back_with_its_contents(struct pair *p)
{
	uint8_t *at = pages(40);
	struct ibv_mr *mr;

	pair_start(p, &plain);
	for (int k = 0; k < 40; k += 3) /* others were never touched */
		memset(at + k * PAGE, k + 1, PAGE);
	for (int i = 0; i < 3; i++) {
		mr = reg(p, at + 100, 39 * PAGE);
		expect(moved(at) && moved(at + 39 * PAGE));
		for (int k = 0; k < 40; k++)
			expect_eq(at[k * PAGE + 7], k % 3 ? 0 : k + 1);
		expect_eq(ibv_dereg_mr(mr), 0);
		expect(!moved(at) && !moved(at + 39 * PAGE));
		for (int k = 0; k < 40; k++)
			expect_eq(at[k * PAGE + 7], k % 3 ? 0 : k + 1);
	}
	munmap(at, 40 * PAGE);
}

static void neighbours_share_a_page_until_the_last_one(struct pair *p)
{
	uint8_t *at = pages(8);
	struct ibv_mr *left, *right, *all;

	pair_start(p, &plain);
	left = reg(p, at, 2 * PAGE + 100);
	right = reg(p, at + 2 * PAGE + 100, 3 * PAGE);
	all = reg(p, at, 8 * PAGE);
	for (uint64_t i = 0; i < 10; i++) {
		write_and_check(p, left, at + 2 * PAGE, 100, i);
		write_and_check(p, right, at + 2 * PAGE + 100, PAGE, i);
		write_and_check(p, all, at + 2 * PAGE + 50, 100, i);
	}
	expect_eq(ibv_dereg_mr(all), 0);
	expect(!moved(at + 7 * PAGE));
	expect_eq(ibv_dereg_mr(left), 0);
	expect(!moved(at) && moved(at + 2 * PAGE));
	write_and_check(p, right, at + 2 * PAGE + 100, PAGE, 77);
	expect_eq(ibv_dereg_mr(right), 0);
	expect(!moved(at + 2 * PAGE));
	expect_eq(at[2 * PAGE + 100], pattern(77, 0));
	munmap(at, 8 * PAGE);
}

/* ---- other threads ---- */

static atomic_bool stop;

struct counter {
	volatile uint64_t *at;
	uint64_t count;
};

static void *count(void *arg)
{
	struct counter *c = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		c->at[c->count % 1024]++;
		c->count++;
	}
	return NULL;
}

static void no_write_of_another_thread_is_lost(struct pair *p)
{
	uint8_t *at = pages(4);
	struct counter c = { .at = (volatile uint64_t *)(void *)at };
	uint64_t sum = 0;
	bool ever = false;
	pthread_t thread;

	pair_start(p, &plain);
	expect_eq(pthread_create(&thread, NULL, count, &c), 0);
	for (int i = 0; i < 200; i++) {
		struct ibv_mr *mr = reg(p, at, 4 * PAGE);

		ever |= moved(at);
		expect_eq(ibv_dereg_mr(mr), 0);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	for (int k = 0; k < 1024; k++)
		sum += c.at[k];
	expect_eq(sum, c.count);
	if (!ever)
		printf("    userfaultfd is not allowed: nothing was moved\n");
	munmap(at, 4 * PAGE);
}

/* ---- what is not moved ---- */

static void other_memory_is_registered_where_it_is(struct pair *p)
{
	uint8_t stack[5000];
	FILE *f = tmpfile();
	uint8_t *file, *shared;
	struct ibv_mr *mr;

	pair_start(p, &plain);
	expect(f != NULL);
	expect_eq(ftruncate(fileno(f), 2 * PAGE), 0);
	file = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE,
		    fileno(f), 0);
	shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect(file != MAP_FAILED && shared != MAP_FAILED);
	mr = reg(p, stack, sizeof(stack));
	expect(!moved(stack));
	write_and_check(p, mr, stack, 500, 1);
	expect_eq(ibv_dereg_mr(mr), 0);
	mr = reg(p, file, 2 * PAGE);
	expect(!moved(file));
	write_and_check(p, mr, file, 500, 2);
	expect_eq(ibv_dereg_mr(mr), 0);
	mr = reg(p, shared, 2 * PAGE);
	write_and_check(p, mr, shared, 500, 3);
	expect_eq(ibv_dereg_mr(mr), 0);
	munmap(file, 2 * PAGE);
	munmap(shared, 2 * PAGE);
	fclose(f);
}

static void memory_may_be_unmapped_before_and_after(struct pair *p)
{
	pair_start(p, &plain);
	for (uint64_t i = 0; i < 20; i++) {
		uint8_t *at = pages(4), *again;
		struct ibv_mr *mr = reg(p, at, 4 * PAGE);

		write_and_check(p, mr, at, 100, i);
		if (i % 2) {
			munmap(at, 4 * PAGE);
			expect_eq(ibv_dereg_mr(mr), 0);
		} else {
			expect_eq(ibv_dereg_mr(mr), 0);
			munmap(at, 4 * PAGE);
		}
		/* New memory at the place is new. */
		again = mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		expect(again == at);
		mr = reg(p, at, 4 * PAGE);
		for (int k = 0; k < 4 * PAGE; k++)
			expect_eq(at[k], 0);
		write_and_check(p, mr, at, 100, i + 1);
		expect_eq(ibv_dereg_mr(mr), 0);
		munmap(at, 4 * PAGE);
	}
}

static void memory_that_was_unmapped_while_registered_is_new_memory(struct pair *p)
{
	uint8_t *at = pages(4);
	struct ibv_mr *old, *mr;

	pair_start(p, &plain);
	old = reg(p, at, 4 * PAGE);
	memset(at, 5, 4 * PAGE);
	expect(mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	mr = reg(p, at, 4 * PAGE);
	for (int k = 0; k < 4 * PAGE; k++)
		expect_eq(at[k], 0);
	write_and_check(p, mr, at, 100, 4);
	expect_eq(ibv_dereg_mr(old), 0);
	write_and_check(p, mr, at, 100, 5);
	expect_eq(ibv_dereg_mr(mr), 0);
	expect_eq(at[0], pattern(5, 0));
	munmap(at, 4 * PAGE);
}

/* ---- fork ---- */

static void a_child_writes_to_its_own(struct pair *p)
{
	uint8_t *at = pages(2);
	struct ibv_mr *mr;
	int status;
	pid_t pid;

	pair_start(p, &plain);
	memset(at, 3, 2 * PAGE);
	mr = reg(p, at, 2 * PAGE);
	pid = fork();
	if (pid == 0) {
		bool same = at[0] == 3 && at[2 * PAGE - 1] == 3;

		memset(at, 9, 2 * PAGE);
		_exit(same && at[0] == 9 ? 0 : 1);
	}
	expect(waitpid(pid, &status, 0) == pid && status == 0);
	expect_eq(at[0], 3);
	write_and_check(p, mr, at, 200, 6);
	expect_eq(ibv_dereg_mr(mr), 0);
	expect_eq(at[PAGE], 3);
	munmap(at, 2 * PAGE);
}

static const struct test_case cases[] = {
	CASE(it_goes_and_comes_back_with_its_contents),
	CASE(neighbours_share_a_page_until_the_last_one),
	CASE(no_write_of_another_thread_is_lost),
	RULE("ibv_reg_mr(3)", other_memory_is_registered_where_it_is),
	CASE(memory_may_be_unmapped_before_and_after),
	CASE(memory_that_was_unmapped_while_registered_is_new_memory),
	RULE("ibv_fork_init(3)", a_child_writes_to_its_own),
};

int main(int argc, char **argv)
{
	setenv("BUSBAR_MAP_MEMORY", "on", 1);
	return RUN_CASES(argc, argv, cases);
}
