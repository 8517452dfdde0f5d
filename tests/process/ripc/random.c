/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random SECONDS [SEED|time [PROCESSES [kills] [moves] [datagrams] [mixed]]]: processes with
 * services that send each other short and long messages at random; with `kills` one of them
 * dies now and then and comes back, so that its services move to another instance; with `moves`
 * some services are closed and opened at another process again and again. With `mixed` the
 * number chooses: kills, datagrams, short queues and receivers that pause, connections that
 * are idle soon; and for each process what its adapter is without. random combine [SEED]: a
 * short run of each combination of all that, with and without return buffers and their revocation.
 *
 * Each message says from whom, to whom and the how-manieth it is, and is filled from that.
 * Whoever receives it checks all bytes, and that the messages of a sender come in order and
 * none twice. In memory that all share stand the numbers that were sent with success and
 * those that came: without kills each long message must have come; short ones, too, over
 * connections; but for those that a service had not received when it was closed to be moved.
 */
#include <busbar/ripc.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/prng.h"

enum { PROCESSES_MAX = 16, SERVICES = 3, MOVERS = 2, MOVER = PROCESSES_MAX * SERVICES,
       SENDERS = MOVER + MOVERS, LIVES = 8, ID = 100,
       LONG_MAX_BYTES = 300000, QUIET_MS = 300, LATE_MS = 10000 };

/* Of runs in short: messages of each kind, and limits. */
#define COMBINATIONS 256u
enum { COMBINE_MESSAGES = 40, COMBINE_SECONDS = 10, COMBINE_AT_A_TIME = 6 };

struct pair {
	atomic_uint_fast64_t sent[2], came[2]; /* short, long */
	/* Number of the last one that came, of each of the last lives of the sender. */
	atomic_uint_fast64_t newest[2][LIVES];
};

static struct {
	struct pair pairs[SENDERS][SENDERS];   /* from, to */
	atomic_uint numbers[SENDERS];          /* of messages, over all lives of a sender */
	atomic_uint senders[PROCESSES_MAX];    /* those that are at it */
	atomic_uint at[MOVERS], moves[MOVERS]; /* where services that move are; how often they have */
	atomic_bool stop_sending, stop, failed;
	atomic_uint_fast64_t errors[4096], slowest_ns;
	/* What the instances counted, each in its last life. */
	struct ripc_counters counted[PROCESSES_MAX];
} *all;

static unsigned processes = 4;
static bool kills, moves, datagrams, mixed, lazy, hasty, no_returns, no_revokes;
static const char *without; /* in the adapters of all; NULL: as the environment says */
static uint64_t seed = 1;
static uint16_t port; /* of the resolver, so that tests do not find each other */

struct head {
	uint32_t from, to, number, is_long, life;
	uint64_t fill;
};

static void fail(const char *what, uint32_t from, uint32_t to, uint32_t number)
{
	printf("failed: %s: from %u to %u, number %u (process %d)\n", what, from, to, number,
	       (int)getpid());
	fflush(stdout);
	atomic_store(&all->failed, true);
	atomic_store(&all->stop, true);
}

static void nap(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static uint64_t time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fill(uint8_t *at, size_t bytes, uint64_t start)
{
	struct prng p = prng_from(start);

	for (size_t i = 0; i < bytes; i += 64)
		at[i] = (uint8_t)prng_next(&p);
	if (bytes)
		at[bytes - 1] = (uint8_t)prng_next(&p);
}

static bool is_filled(const uint8_t *at, size_t bytes, uint64_t start)
{
	struct prng p = prng_from(start);
	uint8_t last;

	for (size_t i = 0; i < bytes; i += 64) {
		uint8_t want = (uint8_t)prng_next(&p);

		if (i + 1 != bytes && at[i] != want)
			return false;
	}
	last = (uint8_t)prng_next(&p);
	return !bytes || at[bytes - 1] == last;
}

/* ---- receiving ---- */

static void check(uint32_t me, const struct ripc_message *m)
{
	struct head h;
	atomic_uint_fast64_t *newest;
	struct pair *p;

	if (m->count != 2 || m->items[0].bytes != sizeof(h)) {
		fail("the items", m->from, me, 0);
		return;
	}
	memcpy(&h, m->items[0].data, sizeof(h));
	if (h.from != m->from || h.to != me || h.is_long != m->is_long || h.from < ID ||
	    h.from >= ID + SENDERS) {
		fail("for somebody else", m->from, me, h.number);
		return;
	}
	if (!is_filled(m->items[1].data, m->items[1].bytes, h.fill)) {
		fail("torn", m->from, me, h.number);
		return;
	}
	p = &all->pairs[h.from - ID][me - ID];
	/* One thread receives, and one sends. */
	newest = &p->newest[h.is_long][h.life % LIVES];
	if (h.number <= atomic_load(newest) && !(datagrams && !h.is_long))
		fail("twice or out of order", m->from, me, h.number);
	atomic_store(newest, h.number);
	atomic_fetch_add(&p->came[h.is_long], 1);
}

#define OFFERS 32

struct end {
	struct ripc_service *s;
	uint32_t id, life;
	struct ripc *r;
	uint64_t seed;
	atomic_bool leaves; /* to another process */
	/* Return buffers that are with the library. */
	pthread_mutex_t lock;
	struct {
		uint32_t to;
		void *data;
	} offers[OFFERS];
};

/* Room for one more; NULL: there is none. */
static void *offer(struct end *e, uint32_t to, size_t bytes)
{
	void *data = NULL;

	pthread_mutex_lock(&e->lock);
	for (unsigned i = 0; i < OFFERS && !data; i++)
		if (!e->offers[i].data) {
			data = ripc_alloc(e->r, bytes);
			e->offers[i].data = data;
			e->offers[i].to = to;
		}
	pthread_mutex_unlock(&e->lock);
	return data;
}

/* It is ours again. */
static void offers_back(struct end *e, uint32_t to, void *data)
{
	bool found = false;

	pthread_mutex_lock(&e->lock);
	for (unsigned i = 0; i < OFFERS; i++)
		if (e->offers[i].data == data && e->offers[i].to == to) {
			found = !ripc_free(e->r, data);
			e->offers[i].data = NULL;
		}
	pthread_mutex_unlock(&e->lock);
	if (!found)
		fail("in a buffer that was not offered", to, e->id, 0);
}

static void *receive(void *arg)
{
	struct end *e = arg;
	struct prng p = prng_from(e->seed + 1000);
	struct ripc_message m;

	for (;;) {
		int ret = ripc_receive(e->s, &m, e->id < ID + MOVER ? 100 : 5);

		if (ret == -EAGAIN && (atomic_load(&all->stop) || atomic_load(&e->leaves)))
			return NULL;
		if (ret == -EAGAIN)
			continue;
		if (ret) {
			fail(ripc_error(), 0, e->id, 0);
			return NULL;
		}
		if (lazy && !prng_below(&p, 100))
			nap(50);
		check(e->id, &m);
		for (unsigned i = 0; i < m.count; i++)
			if (m.returned & (1u << i))
				offers_back(e, m.from, m.items[i].data);
		ripc_release(&m);
	}
}

/* ---- sending ---- */

static bool may_be(int err)
{
	switch (err) {
	case -EHOSTUNREACH:
		return kills || moves;
	case -ETIMEDOUT: case -ECONNREFUSED:
		return kills;
	case -ECONNRESET:
		return kills || hasty;
	case -EAGAIN:
		return true;
	case -ENOBUFS: /* so many messages wait for the receiver, which has no thread as it leaves */
		return lazy || moves;
	default:
		return false;
	}
}

static void take_back(struct end *e, uint32_t to)
{
	struct ripc_item back[OFFERS];
	int n = ripc_returns_revoke(e->s, to, back, OFFERS);

	if (n < 0)
		fail(ripc_error(), e->id, to, 0);
	for (int i = 0; i < n; i++)
		offers_back(e, to, back[i].data);
}

static void send_one(struct end *e, struct prng *p, uint8_t *buffer)
{
	uint32_t fixed = processes * SERVICES;
	uint32_t drawn = (uint32_t)prng_below(p, fixed + (moves ? MOVERS : 0));
	uint32_t to = ID + (drawn < fixed ? drawn : MOVER + drawn - fixed);
	bool is_long = prng_below(p, 2);
	struct head h = {
		.from = e->id, .to = to, .is_long = is_long, .life = e->life, .fill = prng_next(p),
		.number = atomic_fetch_add(&all->numbers[e->id - ID], 1) + 1,
	};
	size_t bytes = is_long ? prng_below(p, prng_below(p, 4) ? 3000 : LONG_MAX_BYTES) :
				 prng_below(p, 1400);
	struct ripc_item items[2] = { { &h, sizeof(h) }, { buffer, bytes } }, back;
	unsigned returns = 0;
	uint64_t begun;
	int ret;

	if (!no_returns && !prng_below(p, 4)) {
		back.bytes = 1 + prng_below(p, LONG_MAX_BYTES);
		back.data = offer(e, to, back.bytes);
		returns = back.data ? 1 : 0;
	}
	fill(buffer, bytes, h.fill);
	begun = time_ns();
	if (is_long) {
		struct ripc_token token;

		bool later = prng_below(p, 2);

		ret = ripc_send_long(e->s, to, items, 2, &back, returns,
				     later ? &token : NULL);
		while (!ret && later && (ret = ripc_sent(e->s, token, 10)) == -EAGAIN &&
		       !atomic_load(&all->stop))
			ret = 0;
	} else {
		ret = ripc_send_short(e->s, to, items, 2, &back, returns);
	}
	begun = time_ns() - begun;
	if (begun > atomic_load(&all->slowest_ns))
		atomic_store(&all->slowest_ns, begun);
	if (!ret)
		atomic_fetch_add(&all->pairs[e->id - ID][to - ID].sent[is_long], 1);
	else if (may_be(ret))
		atomic_fetch_add(&all->errors[-ret], 1);
	else
		fail(ripc_error(), e->id, to, h.number);
	if (ret == -ECONNRESET && is_long)
		take_back(e, to);
	else if (ret && returns)
		offers_back(e, to, back.data);
	if (!no_revokes && !prng_below(p, 50))
		take_back(e, to);
}

static void *send_all(void *arg)
{
	struct end *e = arg;
	struct prng p = prng_from(e->seed);
	uint8_t *buffer = ripc_alloc(e->r, LONG_MAX_BYTES);

	while (buffer && !atomic_load(&all->stop_sending) && !atomic_load(&all->stop) &&
	       !atomic_load(&e->leaves))
		send_one(e, &p, buffer);
	ripc_free(e->r, buffer);
	return NULL;
}

/* ---- services that move ---- */

/* This process, from where `mover` comes and goes. */
struct move {
	struct ripc *r;
	unsigned process, mover;
	uint64_t seed;
};

/* One stay here; what was offered is ours again when the service is closed. */
static void stay(struct move *v, struct prng *p, bool *sends)
{
	struct end e = { .r = v->r, .id = ID + MOVER + v->mover, .seed = prng_next(p),
			 .life = atomic_fetch_add(&all->moves[v->mover], 1),
			 .lock = PTHREAD_MUTEX_INITIALIZER };
	uint64_t until = time_ns() + (5 + prng_below(p, 60)) * 1000000;
	pthread_t receiver, sender;

	if (ripc_service_open(v->r, e.id, NULL, &e.s)) {
		fail(ripc_error(), e.id, 0, 0);
		return;
	}
	pthread_create(&receiver, NULL, receive, &e);
	pthread_create(&sender, NULL, send_all, &e);
	while (!atomic_load(&all->stop_sending) && !atomic_load(&all->stop) && time_ns() < until)
		nap(1);
	atomic_store(&e.leaves, !atomic_load(&all->stop_sending));
	pthread_join(sender, NULL);
	if (!atomic_load(&e.leaves) && *sends) {
		atomic_fetch_sub(&all->senders[v->process], 1);
		*sends = false;
	}
	pthread_join(receiver, NULL);
	ripc_service_close(e.s);
	for (unsigned i = 0; i < OFFERS; i++)
		if (e.offers[i].data && ripc_free(v->r, e.offers[i].data))
			fail("a buffer that is not ours again", e.id, e.offers[i].to, 0);
}

static void *move(void *arg)
{
	struct move *v = arg;
	struct prng p = prng_from(v->seed);
	bool sends = true;

	while (!atomic_load(&all->stop)) {
		if (atomic_load(&all->at[v->mover]) == v->process) {
			stay(v, &p, &sends);
			atomic_store(&all->at[v->mover], prng_below(&p, processes));
		} else if (sends && atomic_load(&all->stop_sending)) {
			atomic_fetch_sub(&all->senders[v->process], 1);
			sends = false;
		} else {
			nap(1);
		}
	}
	return NULL;
}

/* What the adapter of this process is without. */
static void choose_adapter(uint64_t own_seed)
{
	static const char *const parts[] = { "ud", "uc", "multicast", "windows" };
	struct prng p = prng_from(own_seed ^ 77);
	char text[64] = "";

	for (unsigned i = 0; i < 4; i++)
		if (prng_below(&p, 2))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? "," : "", parts[i]);
	setenv("BUSBAR_WITHOUT", text, 1);
}

_Noreturn static void live(unsigned number, uint64_t own_seed)
{
	struct end ends[SERVICES];
	struct move movers[MOVERS];
	pthread_t receivers[SERVICES], senders[SERVICES], moving[MOVERS];
	struct ripc_config c = { .resolver_port = port, .claim_ms = UINT32_MAX, .resolve_timeout_ms = 5000,
				 .connect_timeout_ms = 10000,
				 .short_by = datagrams ? RIPC_SHORT_DATAGRAM :
							 RIPC_SHORT_CONNECTION };
	struct ripc *r;

	if (without)
		setenv("BUSBAR_WITHOUT", without, 1);
	else if (mixed)
		choose_adapter(own_seed);
	if (lazy)
		c.queue_max = 20;
	if (hasty)
		c.idle_close_ms = 2;
	if (ripc_open(&c, &r)) {
		fail(ripc_error(), number, 0, 0);
		_exit(1);
	}
	for (unsigned i = 0; i < SERVICES; i++) {
		ends[i] = (struct end){ .r = r, .id = ID + number * SERVICES + i,
					.seed = own_seed + i,
					.lock = PTHREAD_MUTEX_INITIALIZER };
		if (ripc_service_open(r, ends[i].id, NULL, &ends[i].s)) {
			fail(ripc_error(), ends[i].id, 0, 0);
			_exit(1);
		}
	}
	for (unsigned i = 0; i < SERVICES; i++) {
		pthread_create(&receivers[i], NULL, receive, &ends[i]);
		pthread_create(&senders[i], NULL, send_all, &ends[i]);
	}
	for (unsigned i = 0; moves && i < MOVERS; i++) {
		movers[i] = (struct move){ r, number, i, own_seed + SERVICES + i };
		pthread_create(&moving[i], NULL, move, &movers[i]);
	}
	for (unsigned i = 0; i < SERVICES; i++) {
		pthread_join(senders[i], NULL);
		atomic_fetch_sub(&all->senders[number], 1);
	}
	for (unsigned i = 0; i < SERVICES; i++)
		pthread_join(receivers[i], NULL);
	for (unsigned i = 0; moves && i < MOVERS; i++)
		pthread_join(moving[i], NULL);
	ripc_counters(r, &all->counted[number]);
	ripc_close(r);
	_exit(0);
}

/* ---- the parent ---- */

static pid_t start(unsigned number, struct prng *p)
{
	uint64_t own = prng_next(p);
	pid_t pid;

	atomic_store(&all->senders[number], SERVICES + (moves ? MOVERS : 0));
	pid = fork();

	if (!pid)
		live(number, own);
	return pid;
}

static uint64_t came_so_far(bool is_long)
{
	uint64_t n = 0;

	for (unsigned a = 0; a < SENDERS; a++)
		for (unsigned b = 0; b < SENDERS; b++)
			n += all->pairs[a][b].came[is_long];
	return n;
}

static bool is_lost(unsigned from, unsigned to, bool is_long)
{
	const struct pair *p = &all->pairs[from][to];

	return !kills && !((datagrams || hasty) && !is_long) && to < MOVER &&
	       p->sent[is_long] > p->came[is_long];
}

static bool some_are_lost(void)
{
	for (unsigned a = 0; a < SENDERS; a++)
		for (unsigned b = 0; b < SENDERS; b++)
			if (is_lost(a, b, false) || is_lost(a, b, true))
				return true;
	return false;
}

/* Why something may have been lost. */
static void print_counters(void)
{
	for (unsigned i = 0; i < processes; i++) {
		const struct ripc_counters *c = &all->counted[i];

		printf("process %u: short %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64
		       " dropped; long %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64
		       " failed; %" PRIu64 " connects, %" PRIu64 " failures, %" PRIu64
		       " refused; %" PRIu64 " bad packets, %" PRIu64 " unauthentic\n",
		       i, c->short_sent, c->short_received, c->short_dropped, c->long_sent,
		       c->long_received, c->long_failed, c->connects, c->connect_failures,
		       c->refused, c->bad_packets, c->unauthentic);
	}
}

static void compare(void)
{
	uint64_t total[2][2] = { { 0 } };

	for (unsigned a = 0; a < SENDERS; a++)
		for (unsigned b = 0; b < SENDERS; b++)
			for (unsigned k = 0; k < 2; k++) {
				const struct pair *p = &all->pairs[a][b];

				total[0][k] += p->sent[k];
				total[1][k] += p->came[k];
				if (is_lost(a, b, k))
					fail(k ? "a long message is lost" :
						 "a short message is lost", ID + a, ID + b,
					     (uint32_t)p->came[k]);
			}
	printf("short: %" PRIu64 " sent, %" PRIu64 " came; long: %" PRIu64 " sent, %" PRIu64
	       " came; slowest call %" PRIu64 " ms\n", total[0][0], total[1][0], total[0][1], total[1][1],
	       all->slowest_ns / 1000000);
	for (unsigned i = 0; i < 4096; i++)
		if (all->errors[i])
			printf("%s: %" PRIuFAST64 "\n", strerror((int)i), all->errors[i]);
	if (!total[1][0] || !total[1][1])
		fail("nothing came", 0, 0, 0);
	if (atomic_load(&all->failed))
		print_counters();
}

/* A number of messages of both kinds, and what was asked for has happened. */
static bool is_enough(uint64_t more)
{
	return came_so_far(false) >= more && came_so_far(true) >= more &&
	       (!moves || atomic_load(&all->moves[0]) > 2);
}

/* In short: until enough has come, with one that dies in the middle. */
static void go_on(unsigned seconds, bool in_short, pid_t *pids, struct prng *p)
{
	unsigned step_ms = in_short ? 2 : 100, killed = 0;
	int status;

	for (unsigned ms = 0; ms < seconds * 1000 && !atomic_load(&all->stop); ms += step_ms) {
		bool middle = in_short && is_enough(COMBINE_MESSAGES / 2);

		if (in_short && is_enough(COMBINE_MESSAGES) && (!kills || killed))
			return;
		nap(step_ms);
		if (kills && (in_short ? middle && !killed : ms > 500 && ms % 300 == 0)) {
			unsigned i = (unsigned)prng_below(p, processes);

			kill(pids[i], SIGKILL);
			waitpid(pids[i], &status, 0);
			pids[i] = start(i, p);
			killed++;
		}
	}
}

static int run(unsigned seconds, bool in_short, struct prng *p)
{
	pid_t pids[PROCESSES_MAX];
	int status, bad = 0;
	uint64_t before;

	printf("seed %" PRIu64 "%s%s%s%s%s%s%s%s%s\n", seed, kills ? ", kills" : "",
	       moves ? ", moves" : "", datagrams ? ", datagrams" : "", lazy ? ", pauses" : "",
	       hasty ? ", idle soon" : "", no_returns ? ", no return buffers" : "",
	       no_revokes ? ", no revocation" : "", without ? ", without " : "",
	       without ? without : "");
	fflush(stdout);
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	port = (uint16_t)(12000 + getpid() % 20000); /* below those that the kernel gives */
	for (unsigned i = 0; i < processes; i++)
		pids[i] = start(i, p);
	go_on(seconds, in_short, pids, p);
	atomic_store(&all->stop_sending, true);
	for (unsigned i = 0; i < processes; i++)
		while (atomic_load(&all->senders[i]) && !atomic_load(&all->stop))
			nap(in_short ? 1 : 10);
	/* Until nothing has come for a while; what is still missing may come later, because packets
	 * are repeated after a time and a process may have to wait for a processor. */
	do {
		before = came_so_far(false) + came_so_far(true);
		for (unsigned ms = 0; ms < LATE_MS && before == came_so_far(false) + came_so_far(true) &&
				      (some_are_lost() || (!in_short && ms < QUIET_MS)); ms += 20)
			nap(20);
	} while (before != came_so_far(false) + came_so_far(true));
	atomic_store(&all->stop, true);
	for (unsigned i = 0; i < processes; i++) {
		waitpid(pids[i], &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			printf("failed: process %u ended with status %#x\n", i, status);
			bad = 1;
		}
	}
	compare();
	return bad || atomic_load(&all->failed);
}

/* ---- all combinations ---- */

static int combination(unsigned n)
{
	static const char *const adapters[] = { "", "windows", "multicast", "windows,multicast" };
	struct prng p;

	without = adapters[n & 3];
	datagrams = n & 4;
	no_returns = n & 8;
	no_revokes = n & 16;
	moves = n & 32;
	kills = n & 64;
	hasty = n & 128;
	processes = 2;
	seed += n;
	p = prng_from(seed);
	return run(COMBINE_SECONDS, true, &p);
}

/* Some at a time, for they wait a lot. */
static int combine(void)
{
	unsigned running = 0, failures = 0;

	for (unsigned n = 0; n < COMBINATIONS || running; n++) {
		int status;

		if (n < COMBINATIONS) {
			fflush(stdout);
			if (!fork())
				exit(combination(n));
			running++;
		}
		if (n < COMBINE_AT_A_TIME - 1)
			continue;
		wait(&status);
		running--;
		failures += status != 0;
	}
	printf("%u of %u combinations failed\n", failures, COMBINATIONS);
	return failures != 0;
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	struct prng p;

	if (argc > 2 && strcmp(argv[2], "time") != 0)
		seed = strtoull(argv[2], NULL, 0);
	else
		seed = (uint64_t)time(NULL);
	if (argc > 1 && !strcmp(argv[1], "combine"))
		return combine();
	if (argc > 3)
		processes = (unsigned)atoi(argv[3]);
	for (int i = 4; i < argc; i++) {
		kills |= !strcmp(argv[i], "kills");
		moves |= !strcmp(argv[i], "moves");
		datagrams |= !strcmp(argv[i], "datagrams");
		mixed |= !strcmp(argv[i], "mixed");
	}
	if (processes < 2 || processes > PROCESSES_MAX)
		return 2;
	p = prng_from(seed);
	if (mixed) {
		kills = prng_below(&p, 2);
		datagrams = prng_below(&p, 2);
		lazy = prng_below(&p, 2);
		hasty = prng_below(&p, 2);
	}
	return run(seconds, false, &p);
}
