/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The slow cases of lock elision; see elide.h.
 *
 * Correctness. The owner stores 1 in `inside` and then loads `others`; another thread
 * increments `others`, has all running threads of the process execute a full fence
 * (membarrier), and then waits until `inside` is 0. So either the owner sees `others` and
 * takes the locks, or the other thread sees `inside` and waits. Every thread that takes
 * locks is counted in `others`, also the owner. Ownership passes on only while the thread
 * that takes it is the only one counted. A thread that was interrupted between finding
 * itself to be the owner and storing `inside` then loads `others` and once more `owner`:
 * either `others` is not 0, or the other threads have left and it sees all their stores, also
 * a change of the owner.
 */
#define LOG_ROOM "hca"
#include "hca/run/elide.h"

#include <time.h>
#include <unistd.h>

#include "hca/run/progress.h"
#include "hca/run/yield.h"
#include "util/clock.h"
#include "util/fence.h"
#include "util/log.h"

/* If application threads that are not the owner enter so often in one period, or wait so long for
 * their entries, elision costs more than it saves. The time counts because a membarrier takes
 * 2 us on some machines and 100 us on others: virtual ones, where it is an exit for each processor. */
#define FOREIGN_LIMIT 4096
#define FOREIGN_SPENT_NS UINT64_C(10000000)
#define FOREIGN_PERIOD_NS NSEC_PER_SEC
/* Of an entry at most this counts: in a longer one the kernel ran another thread. */
#define FOREIGN_MOST_NS UINT64_C(200000)
/* A thread that enters so often, each time soon after the last, without another one in between,
 * becomes the owner. So ownership passes from a thread that only set up objects to the one that
 * posts and polls. That has to come before FOREIGN_SPENT_NS also where a membarrier takes long. */
#define STREAK_TO_OWN 64
#define STREAK_GAP_NS UINT64_C(1000000)
/* Slow entries of the owner after which it yields its processor, because the other thread that is
 * inside may be waiting for it. */
#define BESIDE_TO_YIELD 64

struct hca_elision hca_elision;

static struct {
	_Atomic(struct hca_self *) last;
	_Atomic uint32_t count;
	_Atomic uint64_t spent_ns, since_ns;
} foreign;

void hca_elision_start(void)
{
	bool usable = fence_others_offered(FENCE_PROCESS);

	/* Threads may be inside already, from before the adapter was last stopped or in
	 * librdmacm. There is no owner yet. */
	if (!usable && !atomic_exchange(&hca_elision.off, true))
		atomic_fetch_add(&hca_elision.others, 1);
}

/* In a forked child, whose only thread is outside. */
void hca_elision_forked(void)
{
	bool off = atomic_load(&hca_elision.off);

	atomic_store(&hca_elision.owner, 0);
	for (unsigned i = 0; i < HCA_OWNERS; i++)
		atomic_store(&hca_elision.inside[i], 0);
	atomic_store(&hca_elision.others, off ? 1 : 0);
	hca_self = (struct hca_self){ 0 };
}

static bool is_self(uintptr_t owner)
{
	return owner - (uintptr_t)&hca_self < HCA_OWNERS;
}

#define REST_NS 10000
#define REST_MOST_DOUBLINGS 4u

void hca_make_way(unsigned nth)
{
	const struct timespec rest = { .tv_nsec = REST_NS << MIN(nth / 2, REST_MOST_DOUBLINGS) };

	/* The kernel delays a thread that has yielded, even when it is woken for work that no
	 * other thread does, for milliseconds. A short sleep has no such price, but the kernel
	 * makes sleeps of the program's threads longer. */
	if (progress_is_self())
		nanosleep(&rest, NULL);
	else
		sched_yield();
}

static void wait_for_owner(uintptr_t owner)
{
	unsigned tries = 0;

	/* Cannot fail: without membarrier there is never an owner. */
	fence_others(FENCE_PROCESS, true);
	while (atomic_load_explicit(&hca_elision.inside[owner % HCA_OWNERS],
				    memory_order_acquire)) {
		if (++tries % 256 == 0)
			hca_make_way(tries / 256);
		cpu_relax();
	}
}

/* Counts the caller in `others`, and waits until the owner is outside or takes locks. */
static void announce(void)
{
	uintptr_t owner;

	atomic_fetch_add(&hca_elision.others, 1);
	owner = atomic_load(&hca_elision.owner);
	if (owner && !is_self(owner))
		wait_for_owner(owner);
}

static void withdraw(void)
{
	atomic_fetch_sub(&hca_elision.others, 1);
}

/* Makes the caller the owner, if no other thread is inside. It is not counted in `others`. */
static void adopt(void)
{
	uintptr_t owner = atomic_load(&hca_elision.owner);
	uintptr_t nth = owner ? owner % HCA_OWNERS + 1 : 0;

	if (hca_self.auto_held || atomic_load(&hca_elision.off) ||
	    nth == HCA_OWNERS)
		return;
	announce();
	if (atomic_load(&hca_elision.others) == 1 &&
	    atomic_compare_exchange_strong(&hca_elision.owner, &owner,
					   (uintptr_t)&hca_self + nth) &&
	    atomic_load(&hca_elision.others) != 1)
		/* A thread entered meanwhile, and may not have seen the new owner. */
		atomic_store(&hca_elision.owner, owner);
	withdraw();
}

/* Counts an entry of a thread that is not the owner, which began at `from_ns`; switches elision
 * off if there are too many. */
static void count_foreign(uint64_t from_ns)
{
	uint64_t now = progress_now_ns();
	uint64_t spent = MIN(now - from_ns, FOREIGN_MOST_NS);
	uint64_t before = atomic_fetch_add(&foreign.spent_ns, spent);

	/* One thread sees that a limit is reached. */
	if (atomic_fetch_add(&foreign.count, 1) != FOREIGN_LIMIT &&
	    (before >= FOREIGN_SPENT_NS || before + spent < FOREIGN_SPENT_NS))
		return;
	atomic_store(&foreign.count, 0);
	atomic_store(&foreign.spent_ns, 0);
	if (now - atomic_exchange(&foreign.since_ns, now) > FOREIGN_PERIOD_NS)
		return;
	/* The caller is counted, so the owner is outside. This increment is never undone. */
	if (!atomic_load(&hca_elision.off)) {
		atomic_fetch_add(&hca_elision.others, 1);
		atomic_store(&hca_elision.off, true);
	}
}

void hca_enter_slow(void)
{
	uint64_t from_ns;
	uintptr_t owner;
	bool owns;

	if (likely(atomic_load_explicit(&hca_elision.off,
					memory_order_acquire)))
		return;
	hca_self.announced = true;
	owns = is_self(atomic_load(&hca_elision.owner));
	if (owns || progress_is_self()) {
		/* Before the work, so that this entry finds messages that come meanwhile. */
		if (unlikely(hca_self.beside >= BESIDE_TO_YIELD)) {
			hca_self.beside = 0;
			hca_yield(NULL);
		}
		announce();
		hca_self.beside += owns;
		return;
	}
	from_ns = progress_now_ns();
	announce();
	owner = atomic_load(&hca_elision.owner);
	if (atomic_exchange(&foreign.last, &hca_self) != &hca_self ||
	    from_ns - hca_self.entered_ns > STREAK_GAP_NS)
		hca_self.streak = 0;
	hca_self.entered_ns = from_ns;
	hca_self.streak++;
	if (owner)
		count_foreign(from_ns);
}

void hca_enter_with_locks(void)
{
	if (hca_self.depth++ ||
	    atomic_load_explicit(&hca_elision.off, memory_order_acquire))
		return;
	announce();
	hca_self.announced = true;
}

void hca_leave_slow(void)
{
	hca_self.announced = false;
	withdraw();
	if (hca_self.streak >= STREAK_TO_OWN) {
		hca_self.streak = 0;
		adopt();
	}
}

void hca_lock_outside(struct spin *s)
{
	if (hca_self.auto_held++ == 0 &&
	    !atomic_load_explicit(&hca_elision.off, memory_order_acquire)) {
		announce();
		hca_self.auto_announced = true;
	}
	spin_lock(s);
}

void hca_unlock_outside(struct spin *s)
{
	spin_unlock(s);
	if (--hca_self.auto_held == 0 && hca_self.auto_announced) {
		hca_self.auto_announced = false;
		withdraw();
	}
}
