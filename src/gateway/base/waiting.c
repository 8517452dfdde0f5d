/* SPDX-License-Identifier: BSD-2-Clause */
/* When threads that wait spin and sleep; see waiting.h. */
#define LOG_ROOM "gateway/waiting"
#include "gateway/base/waiting.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/container_of.h"
#include "util/log.h"

/* Foretold so often in a row, the next one is waited for where it is due. */
#define TRUST_ENOUGH 4
#define TRUST_MAX 16
/* An arrival is waited for so long before and after its time at most: of ten a second
 * that takes less than a hundredth of a processor. */
#define AROUND_MOST_NS UINT64_C(400000)
/* So many sleeps show how late they end. Until then one is tried behind so many arrivals; where that
 * was too late to be of use, and where samples have ended too many of them, behind so many. */
#define SLEEPS_ENOUGH 8
#define TRIES_ENOUGH 16
#define ARRIVALS_BETWEEN 16
#define ARRIVALS_BETWEEN_VAIN 2048
/* Between the end of a sleep and the arrival, besides what was measured. */
#define AWAKE_NS UINT64_C(3000)
/* Between two looks of a spin: more, and another thread had the processor for a time
 * slice. Shorter times are those of threads that wake up, do a little and sleep again;
 * the kernel lets them go before one that spins, which does them no harm. */
#define AWAY_NS UINT64_C(400000)
/* The number of switches is read so often; one that was before a gap but after the last
 * reading looks like the cause of the gap. */
#define SWITCHES_NS UINT64_C(5000000)
/* So much of it is forgiven at once, and 1/AWAY_SHARE of the time for good: threads of the
 * kernel take that everywhere. */
#define AWAY_BURST_NS UINT64_C(1500000)
#define AWAY_SHARE 32
/* A generator bears more: asleep it leaves out every tenth step or so, and it waits for nothing
 * that others would be late for. */
#define AWAY_BURST_GENERATOR_NS UINT64_C(20000000)
#define AWAY_SHARE_GENERATOR 8
/* The ban, as long as it is found again soon after its end. */
#define BAN_FIRST_NS UINT64_C(400000000)
#define BAN_LAST_NS UINT64_C(5000000000)

static struct {
	atomic_uint processors;         /* 0: not looked up yet */
	atomic_int spinning, readers;   /* threads; readers among them */
	_Atomic uint64_t ban_end_ns, ban_ns;
} process;

static uint64_t count_switches(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}

uint64_t (*waiting_switches)(void) = count_switches;

/* Of the calling thread, when it looked last: a turn moves from thread to thread. */
static _Thread_local struct {
	uint64_t count, read_ns;
} switches;

/* Since the last call in this thread. */
static bool was_replaced(uint64_t now_ns)
{
	uint64_t before = switches.count;

	switches.count = waiting_switches();
	switches.read_ns = now_ns;
	return switches.count != before;
}

/* Only threads of the same kind have its processor, and the kernel for a twentieth of each
 * second, however it waits. */
static bool is_real_time(void)
{
	int policy = sched_getscheduler(0);

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t margin(const struct waiting *w)
{
	return WAITING_MARGIN_NS + 4 * w->deviation_ns;
}

/* By this the interval moves towards what was seen: an eighth of the distance. */
static uint64_t towards(uint64_t mean, uint64_t seen)
{
	return seen > mean ? mean + (seen - mean) / 8 : mean - (mean - seen) / 8;
}

static void ban(uint64_t now_ns)
{
	uint64_t end = atomic_load(&process.ban_end_ns);
	uint64_t length = atomic_load(&process.ban_ns);

	if (now_ns < end)
		return;
	/* Long after the last one it is the first again. */
	length = !length || now_ns - end > 2 * BAN_LAST_NS ?
			 BAN_FIRST_NS : MIN(2 * length, BAN_LAST_NS);
	/* One of several threads that find it at the same time. */
	if (!atomic_compare_exchange_strong(&process.ban_end_ns, &end,
					    now_ns + length))
		return;
	atomic_store(&process.ban_ns, length);
	log_debug("others need the processors: nobody spins for %llu ms",
		  (unsigned long long)length / 1000000);
}

/* Since the last look of a spin; false: the ban has begun. */
static bool account_away(struct waiting *w, uint64_t now_ns)
{
	uint64_t since = w->looked_ns && now_ns > w->looked_ns ?
				 now_ns - w->looked_ns : 0;

	if (likely(since < AWAY_NS)) {
		w->away_ns -= MIN(w->away_ns, since / (w->generator ? AWAY_SHARE_GENERATOR :
								      AWAY_SHARE));
		if (unlikely(now_ns - switches.read_ns > SWITCHES_NS))
			was_replaced(now_ns);
		return true;
	}
	if (!was_replaced(now_ns) || is_real_time())
		return true;
	w->away_ns += since;
	if (w->away_ns <= (w->generator ? AWAY_BURST_GENERATOR_NS : AWAY_BURST_NS))
		return true;
	w->away_ns = 0;
	ban(now_ns);
	return false;
}

void waiting_arrived(struct waiting *w, uint64_t now_ns)
{
	uint64_t interval = now_ns - w->last_ns, off;
	bool first = !w->last_ns || now_ns < w->last_ns;

	/* What came while others had the processor is found before the next look. */
	account_away(w, now_ns);
	w->last_ns = now_ns;
	w->arrivals++;
	w->looked_ns = 0;
	if (first)
		return;
	if (!w->interval_ns) {
		w->interval_ns = interval ? interval : 1;
		w->deviation_ns = w->interval_ns / 4;
		return;
	}
	off = distance(interval, w->interval_ns);
	if (off <= margin(w)) {
		w->trust = MIN(w->trust + 1, (unsigned)TRUST_MAX);
	} else {
		w->trust = w->trust > 2 ? w->trust - 2 : 0;
		/* One that was held up says nothing about the next ones. */
		if (w->trust >= TRUST_ENOUGH)
			return;
	}
	w->interval_ns = towards(w->interval_ns, interval);
	w->deviation_ns = towards(w->deviation_ns, off);
}

void waiting_woke(struct waiting *w, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t late = now_ns - until_ns;

	w->arrivals = 0;
	w->tries = MIN(w->tries + 1, (unsigned)TRIES_ENOUGH);
	if (now_ns < until_ns)
		return;
	if (!w->sleeps) {
		w->late_ns = late;
		w->late_deviation_ns = late / 2;
	}
	w->sleeps = MIN(w->sleeps + 1, (unsigned)SLEEPS_ENOUGH);
	w->late_deviation_ns = towards(w->late_deviation_ns, distance(late, w->late_ns));
	w->late_ns = towards(w->late_ns, late);
}

/* Until when a reader sleeps whose samples are close together; a time that has passed: not. */
static uint64_t near_sleep(const struct waiting *w)
{
	uint64_t before = w->late_ns + 4 * w->late_deviation_ns + 2 * w->deviation_ns + AWAKE_NS;
	bool tries = w->sleeps < SLEEPS_ENOUGH && w->tries < TRIES_ENOUGH;

	if (w->sleeps == SLEEPS_ENOUGH && before <= w->interval_ns / 2)
		return w->last_ns + w->interval_ns - before;
	if (w->arrivals >= (tries ? ARRIVALS_BETWEEN : ARRIVALS_BETWEEN_VAIN))
		return w->last_ns + w->interval_ns / 8;
	return 0;
}

bool waiting_is_banned(uint64_t now_ns)
{
	return now_ns < atomic_load_explicit(&process.ban_end_ns,
					     memory_order_relaxed);
}

uint64_t waiting_plan(const struct waiting *w, uint64_t now_ns)
{
	uint64_t due = w->last_ns + w->interval_ns, from, until;
	uint64_t most = MIN(w->interval_ns / 4, AROUND_MOST_NS);
	uint64_t around = MIN(margin(w), most);

	if (w->trust < TRUST_ENOUGH || waiting_is_banned(now_ns))
		return WAITING_FOREVER;
	if (w->interval_ns <= WAITING_NEAR_NS) {
		/* One that was left out does not end the spin. */
		from = near_sleep(w);
		until = due + w->interval_ns + margin(w);
	} else if (WAITING_MARGIN_NS + 2 * w->deviation_ns <= most) {
		from = due - around;
		until = due + around;
	} else {
		return WAITING_FOREVER;
	}
	return now_ns < from ? from : now_ns < until ? 0 : WAITING_FOREVER;
}

bool waiting_begin_spin(struct waiting *w)
{
	int most = (int)waiting_processors();

	if (w->counted)
		return true;
	if (atomic_fetch_add(&process.spinning, 1) >= most && !w->generator)
		goto refuse;
	if (!w->generator && atomic_fetch_add(&process.readers, 1) >= most - 1) {
		atomic_fetch_sub(&process.readers, 1);
		goto refuse;
	}
	w->counted = true;
	w->looked_ns = 0;
	return true;
refuse:
	atomic_fetch_sub(&process.spinning, 1);
	return false;
}

bool waiting_is_crowded(const struct waiting *w)
{
	int others = atomic_load_explicit(&process.spinning, memory_order_relaxed) -
		     (w->counted ? 1 : 0);

	return others >= (int)waiting_processors() - 1;
}

void waiting_end_spin(struct waiting *w)
{
	if (!w->counted)
		return;
	w->counted = false;
	w->looked_ns = 0;
	if (!w->generator)
		atomic_fetch_sub(&process.readers, 1);
	atomic_fetch_sub(&process.spinning, 1);
}

bool waiting_look(struct waiting *w, uint64_t now_ns)
{
	bool good = account_away(w, now_ns);

	w->looked_ns = now_ns;
	/* Another thread may have found it. */
	return good && !waiting_is_banned(now_ns);
}

/* Whole processors of a quota of the control group; UINT_MAX: there is none. */
static unsigned quota(void)
{
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
	unsigned long long quota_us, period_us;
	unsigned whole = UINT_MAX;

	if (!f)
		return UINT_MAX;
	if (fscanf(f, "%llu %llu", &quota_us, &period_us) == 2 && period_us)
		whole = (unsigned)MIN(quota_us / period_us, (unsigned long long)UINT_MAX);
	fclose(f);
	return whole;
}

unsigned waiting_processors(void)
{
	unsigned n = atomic_load_explicit(&process.processors,
					  memory_order_relaxed);
	cpu_set_t set;

	if (likely(n))
		return n;
	/* Of the main thread: others may be bound to one processor. */
	n = sched_getaffinity(getpid(), sizeof(set), &set) ? 1 :
						      (unsigned)CPU_COUNT(&set);
	n = MIN(n, quota());
	n = MAX(n, 1u);
	atomic_store(&process.processors, n);
	return n;
}

void waiting_reset(unsigned processors)
{
	atomic_store(&process.processors, processors);
	atomic_store(&process.ban_end_ns, 0);
	atomic_store(&process.ban_ns, 0);
}

void waiting_sharpen_sleep(void)
{
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}
