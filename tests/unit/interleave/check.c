/* SPDX-License-Identifier: BSD-2-Clause */
/* The scheduler and the memory of the checker; see check.h. */
#include "check.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define PLACES 512       /* known locations, of which few are contended */
#define LOCATIONS 44     /* contended locations */
#define VALUES 96        /* values of one location in one run */
#define STACK_BYTES (256u << 10)
#define DECISIONS 4096
#define STEPS 4096
#define INTERRUPTIONS 2
#define OLD_VALUES 1
#define ALL CHECK_THREADS

/* The newest value seen of each location, then the number of plain reads per thread. */
struct view {
	uint8_t at[LOCATIONS + CHECK_THREADS];
};

struct value {
	uint64_t bits;
	struct view view;
};

/* A location, over all runs of a scenario: which threads use it. */
struct place {
	uintptr_t at;
	unsigned users, writers; /* a bit per thread */
	int location;            /* -1: not contended */
};

struct location {
	uintptr_t at;
	bool started;
	bool plain;          /* not atomic */
	unsigned newest;
	uint8_t read_by[CHECK_THREADS]; /* plain reads since the last write */
	struct value values[VALUES];
};

enum thread_state { RUNS, WAITS, WANTS_LOCK, SLEEPS, ENDED };

struct thread {
	ucontext_t context;
	enum thread_state state;
	const void *wants;       /* the lock or word for which it waits */
	unsigned stores_seen;
	bool found_old;          /* a load found an old value since it waited */
	unsigned fresh;          /* number of next loads that find the newest value */
	struct view now, acquired, released;
};

struct step {
	int thread;
	const char *what;
	uintptr_t at;
	uint64_t value;
	int order;
	bool old;
};

static struct {
	const struct check_scenario *scenario;
	enum check_memory memory;
	struct check_break without;
	bool all_memories;

	struct thread threads[CHECK_THREADS];
	unsigned thread_count;
	int running;             /* -1: none of the threads (set-up, end) */
	ucontext_t main;
	struct view sequence;    /* of sequentially consistent operations */
	unsigned stores;
	unsigned interruptions_left, old_left;

	struct place places[PLACES];
	unsigned place_count;
	struct location locations[LOCATIONS];
	unsigned location_count;
	bool learned;            /* a location became contended in this run */
	struct { uintptr_t from, to; } data[8];
	unsigned data_count;

	struct { uint8_t chosen, count; } decisions[DECISIONS];
	unsigned decided, depth;

	bool failed;
	char failure[256];
	struct step steps[STEPS];
	unsigned step_count;
} c;

static char stacks[CHECK_THREADS][STACK_BYTES] __attribute__((aligned(64)));

/* ---- decisions ---- */
static unsigned choose(unsigned count)
{
	if (count <= 1)
		return 0;
	if (c.depth == DECISIONS) {
		check_fail("too many decisions");
		return 0;
	}
	if (c.depth == c.decided) {
		c.decisions[c.decided].chosen = 0;
		c.decisions[c.decided++].count = (uint8_t)count;
	}
	return c.decisions[c.depth++].chosen;
}

/* Prepares the decisions of the next run; false: all were tried. */
static bool next_decisions(void)
{
	while (c.decided > 0) {
		if (++c.decisions[c.decided - 1].chosen <
		    c.decisions[c.decided - 1].count)
			return true;
		c.decided--;
	}
	return false;
}

static void note(const char *what, uintptr_t at, uint64_t value, int order, bool old)
{
	if (c.step_count < STEPS)
		c.steps[c.step_count++] = (struct step){ c.running, what, at,
							 value, order, old };
}

void check_note(const char *what)
{
	note(what, 0, 0, -1, false);
}

/* ---- threads ---- */
static bool lock_held(const void *lock)
{
	return *(const volatile unsigned *)lock != 0;
}

static bool can_go_on(const struct thread *t)
{
	switch (t->state) {
	case RUNS:
		return true;
	case WAITS:
		return t->stores_seen != c.stores;
	case WANTS_LOCK:
		return !lock_held(t->wants);
	case SLEEPS:
		return *(const volatile uint64_t *)t->wants != 0;
	default:
		return false;
	}
}

static void switch_to(int next)
{
	int from = c.running;

	if (next == from)
		return;
	c.running = next;
	swapcontext(from < 0 ? &c.main : &c.threads[from].context,
		    next < 0 ? &c.main : &c.threads[next].context);
}

/* The running thread waits or has ended: another one runs. */
static void give_way(void)
{
	int able[CHECK_THREADS];
	unsigned count = 0;

	if (c.failed) {
		switch_to(-1);
		return;
	}
	for (unsigned i = 0; i < c.thread_count; i++)
		if (can_go_on(&c.threads[i]))
			able[count++] = (int)i;
	switch_to(count ? able[choose(count)] : -1);
}

/* Before a step that other threads can observe: another one may run first. */
static void may_be_interrupted(void)
{
	int able[CHECK_THREADS];
	unsigned count = 0, chosen;

	if (c.failed) {
		switch_to(-1);
		return;
	}
	if (!c.interruptions_left)
		return;
	able[count++] = c.running;
	for (unsigned i = 0; i < c.thread_count; i++)
		if ((int)i != c.running && can_go_on(&c.threads[i]))
			able[count++] = (int)i;
	chosen = choose(count);
	if (!chosen)
		return;
	c.interruptions_left--;
	switch_to(able[chosen]);
}

static void thread_main(unsigned nth)
{
	c.scenario->threads[nth]();
	c.threads[nth].state = ENDED;
	give_way();
}

void check_fail(const char *fmt, ...)
{
	va_list ap;

	if (c.failed)
		return;
	c.failed = true;
	va_start(ap, fmt);
	vsnprintf(c.failure, sizeof(c.failure), fmt, ap);
	va_end(ap);
}

bool check_is_without(enum check_without w)
{
	return c.without.without == w;
}

static bool left_out(enum check_without w, const void *at)
{
	return c.without.without == w &&
	       (c.without.thread < 0 || c.without.thread == c.running) &&
	       (!c.without.lock || c.without.lock == at);
}

/* ---- which threads use which locations ---- */
static struct place *place_of(uintptr_t at)
{
	unsigned i = (unsigned)(at * 2654435761u >> 7) % PLACES;

	while (c.places[i].at && c.places[i].at != at)
		i = (i + 1) % PLACES;
	if (!c.places[i].at) {
		if (++c.place_count == PLACES) {
			fprintf(stderr, "too many places\n");
			exit(1);
		}
		c.places[i] = (struct place){ .at = at, .location = -1 };
	}
	return &c.places[i];
}

/* The number of a location that several threads use; -1: one thread alone uses it. */
static int contended(uintptr_t at, bool write)
{
	struct place *p = place_of(at);

	p->users |= 1u << c.running;
	if (write)
		p->writers |= 1u << c.running;
	if (p->location < 0 && p->writers && (p->users & (p->users - 1))) {
		if (c.location_count == LOCATIONS) {
			fprintf(stderr, "too many locations\n");
			exit(1);
		}
		c.locations[c.location_count].at = at;
		p->location = (int)c.location_count++;
		/* This adds decisions: the scenario starts again from its first run. */
		c.learned = true;
		switch_to(-1);
	}
	return p->location;
}

/* ---- memory ---- */
static uint64_t load_real(uintptr_t at, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, (const void *)at, bytes);
	return v;
}

static void join(struct view *to, const struct view *from)
{
	for (unsigned i = 0; i < sizeof(to->at); i++)
		if (to->at[i] < from->at[i])
			to->at[i] = from->at[i];
}

static void fence_of(struct thread *t, int order)
{
	if (order != memory_order_release)
		join(&t->now, &t->acquired);
	if (order == memory_order_seq_cst) {
		join(&t->now, &c.sequence);
		c.sequence = t->now;
	}
	if (order != memory_order_acquire && order != memory_order_consume)
		t->released = t->now;
}

void check_fence(int order)
{
	if (c.running < 0 || left_out(WITHOUT_FENCES, NULL))
		return;
	note("fence", 0, 0, order, false);
	fence_of(&c.threads[c.running], order);
}

void check_membarrier(void)
{
	if (c.running < 0 || left_out(WITHOUT_MEMBARRIER, NULL))
		return;
	may_be_interrupted();
	note("membarrier", 0, 0, memory_order_seq_cst, false);
	/* Each thread sees what all others have done. */
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < c.thread_count; i++)
			fence_of(&c.threads[i], memory_order_seq_cst);
}

static bool acquires(int order)
{
	return order == memory_order_acquire || order == memory_order_consume ||
	       order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static bool releases(int order)
{
	return order == memory_order_release || order == memory_order_acq_rel ||
	       order == memory_order_seq_cst;
}

static void take_view(struct thread *t, int n, unsigned nth, int order)
{
	const struct location *l = &c.locations[n];

	t->now.at[n] = (uint8_t)nth;
	join(&t->acquired, &l->values[nth].view);
	if (acquires(order))
		join(&t->now, &l->values[nth].view);
}

static uint64_t load(struct thread *t, int n, int order, bool *old)
{
	struct location *l = &c.locations[n];
	unsigned oldest = t->now.at[n], nth = l->newest;

	if (order == memory_order_seq_cst && oldest < c.sequence.at[n])
		oldest = c.sequence.at[n];
	if (t->fresh)
		t->fresh--;
	else if (c.memory != CHECK_SC && c.old_left)
		nth -= choose(nth - oldest + 1);
	*old = nth != l->newest;
	if (*old) {
		c.old_left--;
		t->found_old = true;
	}
	take_view(t, n, nth, order);
	return l->values[nth].bits;
}

static void store(struct thread *t, int n, uint64_t bits, int order, bool exchange)
{
	struct location *l = &c.locations[n];
	struct value *v;

	if (l->newest + 1 == VALUES) {
		check_fail("too many values of one location");
		return;
	}
	v = &l->values[l->newest + 1];
	v->bits = bits;
	v->view = t->released;
	t->now.at[n] = (uint8_t)(l->newest + 1);
	if (releases(order))
		join(&v->view, &t->now);
	v->view.at[n] = t->now.at[n];
	if (exchange) /* continues the release sequence of the value that it read */
		join(&v->view, &l->values[l->newest].view);
	l->newest++;
	c.stores++;
	if (order == memory_order_seq_cst)
		c.sequence.at[n] = (uint8_t)l->newest;
}

static void start_location(int n, unsigned bytes, bool plain)
{
	struct location *l = &c.locations[n];

	if (l->started)
		return;
	l->started = true;
	l->plain = plain;
	l->newest = 0;
	memset(&l->values[0].view, 0, sizeof(struct view));
	memset(l->read_by, 0, sizeof(l->read_by));
	l->values[0].bits = plain ? 0 : load_real(l->at, bytes);
}

static uint64_t changed(enum check_op op, uint64_t found, uint64_t value)
{
	switch (op) {
	case CHECK_ADD: return found + value;
	case CHECK_AND: return found & value;
	case CHECK_OR: return found | value;
	default: return value;
	}
}

static uint64_t masked(uint64_t v, unsigned bytes)
{
	return bytes == 8 ? v : v & ((UINT64_C(1) << 8 * bytes) - 1);
}

/* An atomic operation on a location that one thread alone uses. */
static uint64_t atomic_alone(enum check_op op, uintptr_t at, unsigned bytes,
			     uint64_t value, const uint64_t *expected)
{
	uint64_t found = load_real(at, bytes);

	if (op != CHECK_LOAD && (op != CHECK_COMPARE || found == *expected)) {
		value = changed(op, found, value);
		memcpy((void *)at, &value, bytes);
	}
	return found;
}

uint64_t check_atomic(enum check_op op, void *address, unsigned bytes,
		      uint64_t value, const uint64_t *expected, int order)
{
	static const char *const names[] = { "load", "store", "exchange", "add",
					     "and", "or", "compare" };
	uintptr_t at = (uintptr_t)address;
	struct thread *t;
	uint64_t found;
	bool old = false;
	int n;

	if (c.running < 0)
		return atomic_alone(op, at, bytes, value, expected);
	t = &c.threads[c.running];
	n = contended(at, op != CHECK_LOAD);
	if (n < 0)
		return atomic_alone(op, at, bytes, value, expected);
	may_be_interrupted();
	start_location(n, bytes, false);
	if (left_out(WITHOUT_ORDER, address))
		order = memory_order_relaxed;
	if (c.memory == CHECK_TSO && order != memory_order_seq_cst)
		order = op == CHECK_LOAD  ? memory_order_acquire :
			op == CHECK_STORE ? memory_order_release :
					    memory_order_seq_cst;
	if (op == CHECK_LOAD) {
		found = load(t, n, order, &old);
		note("load", at, found, order, old);
		return found;
	}
	found = c.locations[n].values[c.locations[n].newest].bits;
	if (op == CHECK_STORE) {
		store(t, n, masked(value, bytes), order, false);
	} else {
		take_view(t, n, c.locations[n].newest, order);
		if (op == CHECK_COMPARE && found != *expected) {
			note("compare, differs", at, found, order, false);
			return found;
		}
		value = masked(changed(op, found, value), bytes);
		store(t, n, value, order, true);
	}
	memcpy(address, &value, bytes);
	note(names[op], at, masked(value, bytes), order, false);
	if (c.memory == CHECK_TSO && order == memory_order_seq_cst)
		fence_of(t, memory_order_seq_cst);
	return found;
}

/* ---- accesses that are not atomic ---- */
void check_data(const void *at, size_t bytes)
{
	c.data[c.data_count].from = (uintptr_t)at;
	c.data[c.data_count++].to = (uintptr_t)at + bytes;
}

static bool is_data(uintptr_t at)
{
	for (unsigned i = 0; i < c.data_count; i++)
		if (at >= c.data[i].from && at < c.data[i].to)
			return true;
	return false;
}

static void plain_word(uintptr_t at, bool write)
{
	struct thread *t = &c.threads[c.running];
	struct location *l;
	int n = contended(at, write);

	if (n < 0)
		return;
	may_be_interrupted();
	l = &c.locations[n];
	start_location(n, 8, true);
	if (!l->plain)
		return;
	note(write ? "plain write" : "plain read", at, 0, -1, false);
	if (t->now.at[n] != l->newest)
		check_fail("%s of what another thread wrote at %#lx, in no order",
			   write ? "write" : "read", (unsigned long)at);
	if (!write) {
		l->read_by[c.running] = ++t->now.at[LOCATIONS + c.running];
		return;
	}
	for (unsigned i = 0; i < c.thread_count; i++)
		if ((int)i != c.running &&
		    t->now.at[LOCATIONS + i] < l->read_by[i])
			check_fail("write of what another thread may still read at %#lx",
				   (unsigned long)at);
	store(t, n, 0, memory_order_relaxed, false);
}

void check_plain(const void *address, size_t bytes, bool write)
{
	uintptr_t at = (uintptr_t)address & ~(uintptr_t)7;

	if (c.running < 0 || !c.data_count)
		return;
	for (; at < (uintptr_t)address + bytes; at += 8)
		if (is_data(at))
			plain_word(at, write);
}

/* ---- locks and waiting ---- */
static unsigned *held(void *lock)
{
	return lock;
}

bool check_trylock(void *lock)
{
	int n;

	if (c.running < 0 || left_out(WITHOUT_LOCK, lock))
		return true;
	n = contended((uintptr_t)lock, true);
	if (n < 0)
		return true;
	may_be_interrupted();
	start_location(n, 4, false);
	if (*held(lock))
		return false;
	*held(lock) = 1;
	take_view(&c.threads[c.running], n, c.locations[n].newest,
		  memory_order_acquire);
	note("lock", (uintptr_t)lock, 0, -1, false);
	return true;
}

void check_lock(void *lock)
{
	struct thread *t;

	while (!check_trylock(lock)) {
		t = &c.threads[c.running];
		t->state = WANTS_LOCK;
		t->wants = lock;
		give_way();
		t->state = RUNS;
		if (c.failed)
			switch_to(-1);
	}
}

void check_unlock(void *lock)
{
	int n;

	if (c.running < 0 || left_out(WITHOUT_LOCK, lock))
		return;
	n = contended((uintptr_t)lock, true);
	if (n < 0 || !c.locations[n].started)
		return;
	*held(lock) = 0;
	note("unlock", (uintptr_t)lock, 0, -1, false);
	store(&c.threads[c.running], n, 0, memory_order_release, false);
}

void check_wait(void)
{
	struct thread *t = &c.threads[c.running];

	if (c.running < 0)
		return;
	/* Stored values become visible after some time. */
	t->fresh = 8;
	if (!t->found_old) {
		t->state = WAITS;
		t->stores_seen = c.stores;
		give_way();
		t->state = RUNS;
		if (c.failed)
			switch_to(-1);
	}
	t->found_old = false;
}

void check_sleep(const uint64_t *word)
{
	struct thread *t = &c.threads[c.running];

	t->wants = word;
	t->state = SLEEPS;
	note("sleeps", 0, 0, -1, false);
	give_way();
	t->state = RUNS;
	if (c.failed)
		switch_to(-1);
	join(&t->now, &c.sequence);
	for (unsigned i = 0; i < c.thread_count; i++)
		join(&t->now, &c.threads[i].now);
	note("woken", 0, 0, -1, false);
}

/* ---- runs ---- */
static void run_once(void)
{
	const struct check_scenario *s = c.scenario;

	c.running = -1;
	c.depth = c.step_count = c.stores = c.data_count = 0;
	c.failed = false;
	c.interruptions_left = s->interruptions;
	c.old_left = s->old_values;
	memset(&c.sequence, 0, sizeof(c.sequence));
	for (unsigned i = 0; i < c.location_count; i++)
		c.locations[i].started = false;
	s->setup();
	c.thread_count = 0;
	for (unsigned i = 0; i < CHECK_THREADS && s->threads[i]; i++) {
		struct thread *t = &c.threads[c.thread_count++];

		t->state = RUNS;
		t->found_old = false;
		t->fresh = 0;
		memset(&t->now, 0, sizeof(t->now));
		memset(&t->acquired, 0, sizeof(t->acquired));
		memset(&t->released, 0, sizeof(t->released));
		getcontext(&t->context);
		t->context.uc_stack.ss_sp = stacks[i];
		t->context.uc_stack.ss_size = STACK_BYTES;
		t->context.uc_link = NULL;
		makecontext(&t->context, (void (*)(void))thread_main, 1, i);
	}
	give_way();
	if (c.learned)
		return;
	for (unsigned i = 0; i < c.thread_count; i++)
		if (c.threads[i].state != ENDED && !c.failed &&
		    !(c.threads[i].state == SLEEPS && (s->idle >> i & 1)))
			check_fail("thread %u never goes on: %s", i,
				   c.threads[i].state == SLEEPS ?
					   "nobody wakes it" :
				   c.threads[i].state == WANTS_LOCK ?
					   "a lock is not given back" :
					   "what it waits for does not come");
	if (!c.failed)
		s->finish();
}

static void forget_decisions(void)
{
	c.decided = 0;
}

/* Runs all decisions of a scenario; true: a fault was found. */
static bool explore(const struct check_scenario *s, enum check_memory memory,
		    const struct check_break *without, unsigned long *runs)
{
	static const struct check_break nothing;

	c.scenario = s;
	c.memory = memory;
	c.without = without ? *without : nothing;
	forget_decisions();
	for (*runs = 1;; ++*runs) {
		c.learned = false;
		run_once();
		if (c.learned)
			forget_decisions();
		else if (c.failed)
			return true;
		else if (!next_decisions())
			return false;
	}
}

static void print_steps(void)
{
	static const char *const orders[] = { "relaxed", "consume", "acquire",
					      "release", "acq_rel", "seq_cst" };

	for (unsigned i = 0; i < c.step_count; i++) {
		const struct step *s = &c.steps[i];

		printf("    %*sthread %d %s", s->thread * 2, "", s->thread,
		       s->what);
		if (s->at)
			printf(" %#lx", (unsigned long)s->at);
		if (s->at && s->order >= 0)
			printf(" = %#llx", (unsigned long long)s->value);
		if (s->order >= 0)
			printf(" %s", orders[s->order]);
		printf("%s\n", s->old ? ", an old value" : "");
	}
}

static int check_one(const struct check_scenario *s)
{
	static const char *const memories[] = { "in sequence", "x86", "C" };
	unsigned long runs;
	int bad = 0;

	memset(c.places, 0, sizeof(c.places));
	c.place_count = c.location_count = 0;
	for (enum check_memory m = CHECK_SC; m <= CHECK_C11; m++) {
		bool found;

		/* A property that holds in C's memory model holds in stronger ones. */
		if (m != CHECK_C11 && !c.all_memories)
			continue;
		found = explore(s, m, NULL, &runs);

		printf("%s: %s, memory %s: %lu runs\n", found ? "not ok" : "ok",
		       s->name, memories[m], runs);
		if (found) {
			printf("  %s\n", c.failure);
			print_steps();
			bad = 1;
		}
	}
	for (const struct check_break *b = s->breaks; b && b->what; b++) {
		bool found = explore(s, b->memory, b, &runs);

		printf("%s: %s, %s, memory %s: %s after %lu runs\n",
		       found ? "ok" : "not ok", s->name, b->what,
		       memories[b->memory], found ? c.failure : "NOT FOUND", runs);
		if (getenv("CHECK_SHOW") && found)
			print_steps();
		bad |= !found;
	}
	return bad;
}

int check_main(int argc, char **argv, const struct check_scenario *scenarios,
	       size_t count)
{
	unsigned more = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned more_old = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	int bad = 0;

	c.all_memories = argc > 1;
	for (size_t i = 0; i < count; i++) {
		struct check_scenario s = scenarios[i];

		s.interruptions = (s.interruptions ? s.interruptions :
						     INTERRUPTIONS) + more;
		s.old_values = (s.old_values == CHECK_NONE ? 0 :
				s.old_values		   ? s.old_values :
							     OLD_VALUES) +
			       more_old;
		bad |= check_one(&s);
		fflush(stdout);
	}
	return bad;
}
