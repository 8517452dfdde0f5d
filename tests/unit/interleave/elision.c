/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With and without locks only one thread at a time is inside: the owner that takes none,
 * other threads that come, and one that becomes the owner meanwhile.
 */
#include "elision.h"

#include "check.h"

/* One less than the number of lone entries that make a thread the owner (elide.c). */
#define NEARLY_OWNER 63

struct spin elision_lock;
static _Alignas(8) uint64_t touched;
static unsigned touches;

bool progress_is_self(void);
bool progress_is_self(void)
{
	return false;
}

void elision_touch(void)
{
	check_plain(&touched, sizeof(touched), true);
	touches++;
}

static void start(uint32_t second_streak)
{
	elision_lock.held = 0;
	touches = 0;
	check_data(&touched, sizeof(touched));
	elision_thread_0.start();
	elision_thread_0.make(true, 0);
	elision_thread_1.make(false, second_streak);
	elision_thread_2.make(false, 0);
}

static void owned(void)
{
	start(0);
}

static void to_be_owned_by_another(void)
{
	start(NEARLY_OWNER);
}

static void first_works(void)
{
	elision_thread_0.works();
}

static void first_works_twice(void)
{
	elision_thread_0.works();
	elision_thread_0.works();
}

/* As who copies for long does, and is the owner. */
static void first_works_with_locks_too(void)
{
	elision_thread_0.works_with_locks();
	elision_thread_0.works();
}

static void second_works(void)
{
	elision_thread_1.works();
}

static void second_works_twice(void)
{
	elision_thread_1.works();
	elision_thread_1.works();
}

static void second_works_outside(void)
{
	elision_thread_1.works_outside();
}

static void third_works(void)
{
	elision_thread_2.works();
}

static void two(void)
{
	check_that(touches == 2, "somebody did not work");
}

static void three(void)
{
	check_that(touches == 3, "somebody did not work");
}

static void four(void)
{
	check_that(touches == 4, "somebody did not work");
}

static const struct check_break no_membarrier[] = {
	{ "membarrier does nothing", WITHOUT_MEMBARRIER, NULL, -1, CHECK_TSO },
	{ "the lock is not taken", WITHOUT_LOCK, &elision_lock, -1, CHECK_SC },
	{ 0 },
};

static const struct check_break no_membarrier_only[] = {
	{ "membarrier does nothing", WITHOUT_MEMBARRIER, NULL, -1, CHECK_TSO },
	{ 0 },
};

static const struct check_scenario scenarios[] = {
	{ .name = "a second thread comes", .setup = owned,
	  .threads = { first_works_twice, second_works }, .finish = three,
	  .breaks = no_membarrier },
	{ .name = "a thread takes a lock outside", .setup = owned,
	  .threads = { first_works, second_works_outside }, .finish = two,
	  .breaks = no_membarrier_only },
	{ .name = "a second thread comes while the owner uses locks",
	  .setup = owned,
	  .threads = { first_works_with_locks_too, second_works_twice },
	  .finish = four, .breaks = no_membarrier },
	{ .name = "a second thread becomes the owner",
	  .setup = to_be_owned_by_another,
	  .threads = { first_works, second_works_twice }, .finish = three,
	  .breaks = no_membarrier_only },
	{ .name = "a second thread becomes the owner while a third one comes",
	  .setup = to_be_owned_by_another,
	  .threads = { first_works, second_works_twice, third_works },
	  .finish = four, .breaks = no_membarrier_only },
};

int main(int argc, char **argv)
{
	return check_main(argc, argv, scenarios,
			  sizeof(scenarios) / sizeof(scenarios[0]));
}
