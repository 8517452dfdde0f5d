/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * random SECONDS [SEED|time [PROCESSES [kills] [datagrams]]]: processes with services that send each other short
 * and long messages at random; with `kills` one of them dies now and then and comes back, so
 * that its services move to another instance.
 *
 * Each message says from whom, to whom and the how-manieth it is, and is filled from that.
 * Whoever receives it checks all bytes, and that the messages of a sender come in order and
 * none twice. In memory that all share stand the numbers that were sent with success and
 * those that came: without kills each long message must have come; short ones, too, over
 * connections.
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

enum { PROCESSES_MAX = 16, SERVICES = 3, SENDERS = PROCESSES_MAX * SERVICES, ID = 100,
       LONG_MAX_BYTES = 300000, QUIET_MS = 300 };

struct pair {
	atomic_uint_fast64_t sent[2], came[2]; /* short, long */
	atomic_uint_fast64_t newest[2];        /* number of the last one that came */
};

static struct {
	struct pair pairs[SENDERS][SENDERS];   /* from, to */
	atomic_uint numbers[SENDERS];          /* of messages, over all lives of a sender */
	atomic_uint senders[PROCESSES_MAX];    /* threads that are at it */
	atomic_bool stop_sending, stop, failed;
	atomic_uint_fast64_t errors[4096], slowest_ns;
} *all;

static unsigned processes = 4;
static bool kills, datagrams;
static uint64_t seed = 1;
static uint16_t port; /* of the resolver, so that tests do not find each other */

struct head {
	uint32_t from, to, number, is_long;
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
	if (h.number <= atomic_load(&p->newest[h.is_long]) && !(datagrams && !h.is_long))
		fail("twice or out of order", m->from, me, h.number);
	atomic_store(&p->newest[h.is_long], h.number);
	atomic_fetch_add(&p->came[h.is_long], 1);
}

#define OFFERS 32

struct end {
	struct ripc_service *s;
	uint32_t id;
	struct ripc *r;
	uint64_t seed;
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
	struct ripc_message m;

	for (;;) {
		int ret = ripc_receive(e->s, &m, 100);

		if (ret == -EAGAIN && atomic_load(&all->stop))
			return NULL;
		if (ret == -EAGAIN)
			continue;
		if (ret) {
			fail(ripc_error(), 0, e->id, 0);
			return NULL;
		}
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
	case -EHOSTUNREACH: case -ECONNRESET: case -ETIMEDOUT: case -ECONNREFUSED:
		return kills;
	case -EAGAIN:
		return true;
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
	uint32_t to = ID + (uint32_t)prng_below(p, processes * SERVICES);
	bool is_long = prng_below(p, 2);
	struct head h = {
		.from = e->id, .to = to, .is_long = is_long, .fill = prng_next(p),
		.number = atomic_fetch_add(&all->numbers[e->id - ID], 1) + 1,
	};
	size_t bytes = is_long ? prng_below(p, prng_below(p, 4) ? 3000 : LONG_MAX_BYTES) :
				 prng_below(p, 1400);
	struct ripc_item items[2] = { { &h, sizeof(h) }, { buffer, bytes } }, back;
	unsigned returns = 0;
	uint64_t begun;
	int ret;

	if (!prng_below(p, 4)) {
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
	if (!prng_below(p, 50)) {
		take_back(e, to);
	}
}

static void *send_all(void *arg)
{
	struct end *e = arg;
	struct prng p = prng_from(e->seed);
	uint8_t *buffer = ripc_alloc(e->r, LONG_MAX_BYTES);

	while (buffer && !atomic_load(&all->stop_sending) && !atomic_load(&all->stop))
		send_one(e, &p, buffer);
	atomic_fetch_sub(&all->senders[(e->id - ID) / SERVICES], 1);
	return NULL;
}

_Noreturn static void live(unsigned number, uint64_t own_seed)
{
	struct end ends[SERVICES];
	pthread_t receivers[SERVICES], senders[SERVICES];
	struct ripc_config c = { .resolver_port = port, .claim_ms = UINT32_MAX, .resolve_timeout_ms = 5000,
				 .connect_timeout_ms = 10000,
				 .short_by = datagrams ? RIPC_SHORT_DATAGRAM :
							 RIPC_SHORT_CONNECTION };
	struct ripc *r;

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
	for (unsigned i = 0; i < SERVICES; i++) {
		pthread_join(senders[i], NULL);
		pthread_join(receivers[i], NULL);
	}
	ripc_close(r);
	_exit(0);
}

/* ---- the parent ---- */

static pid_t start(unsigned number, struct prng *p)
{
	uint64_t own = prng_next(p);
	pid_t pid;

	atomic_store(&all->senders[number], SERVICES);
	pid = fork();

	if (!pid)
		live(number, own);
	return pid;
}

static void nap(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static uint64_t came_so_far(void)
{
	uint64_t n = 0;

	for (unsigned a = 0; a < SENDERS; a++)
		for (unsigned b = 0; b < SENDERS; b++)
			n += all->pairs[a][b].came[0] + all->pairs[a][b].came[1];
	return n;
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
				if (!kills && !(datagrams && !k) && p->sent[k] > p->came[k])
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
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	pid_t pids[PROCESSES_MAX];
	struct prng p;
	uint64_t before;
	int status, bad = 0;

	if (argc > 2 && strcmp(argv[2], "time") != 0)
		seed = strtoull(argv[2], NULL, 0);
	else
		seed = (uint64_t)time(NULL);
	if (argc > 3)
		processes = (unsigned)atoi(argv[3]);
	for (int i = 4; i < argc; i++) {
		kills |= !strcmp(argv[i], "kills");
		datagrams |= !strcmp(argv[i], "datagrams");
	}
	if (processes < 2 || processes > PROCESSES_MAX)
		return 2;
	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	port = (uint16_t)(20000 + getpid() % 20000);
	p = prng_from(seed);
	for (unsigned i = 0; i < processes; i++)
		pids[i] = start(i, &p);
	for (unsigned ms = 0; ms < seconds * 1000 && !atomic_load(&all->stop); ms += 100) {
		nap(100);
		if (kills && ms > 500 && ms % 300 == 0) {
			unsigned i = (unsigned)prng_below(&p, processes);

			kill(pids[i], SIGKILL);
			waitpid(pids[i], &status, 0);
			pids[i] = start(i, &p);
		}
	}
	atomic_store(&all->stop_sending, true);
	for (unsigned i = 0; i < processes; i++)
		while (atomic_load(&all->senders[i]) && !atomic_load(&all->stop))
			nap(10);
	/* Until nothing has come for a while. */
	do {
		before = came_so_far();
		nap(QUIET_MS);
	} while (before != came_so_far());
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
