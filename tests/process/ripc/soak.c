/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak connects N | services N | processes N | storm N: what must not grow or break with
 * numbers.
 *
 *	connects   N times an instance is opened, sends, gets its answer and is closed, or (every
 *	           second time) lets its connection be closed as idle and connects again:
 *	           descriptors, memory and registrations of both sides are flat
 *	services   N services in one instance, each of which gets a message and answers
 *	processes  N processes of one service each; each sends to some others and gets answers
 *	storm      8 processes, of which N in all are killed and come back while all send
 */
#include <busbar/ripc.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SERVER = 100, CLIENT = 1000, STORM = 8, LONG_BYTES = 20000, PROCESSES_MAX = 256,
       RSS_SLACK_KB = 4096, /* peers are remembered for a minute */
       REGISTERED_SLACK = 1 << 20, DESCRIPTORS_SLACK = 8 };

struct facts {
	uint64_t descriptors, rss_kb, registered_bytes, registrations, connections;
};

static struct {
	atomic_uint ready, done, answered, failed;
	atomic_bool stop;
	atomic_uint asks;     /* how often the server was asked for its facts */
	atomic_uint told;
	struct facts facts;
} *all;

static uint16_t port;
static unsigned patience_ms = 10000;

#define CHECK(what) \
	do { \
		if (!(what)) { \
			printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, ripc_error()); \
			fflush(stdout); \
			atomic_fetch_add(&all->failed, 1); \
			atomic_store(&all->stop, true); \
			exit(1); \
		} \
	} while (0)

static void nap(unsigned ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct facts facts_of(struct ripc *r)
{
	unsigned long whole, rss = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	DIR *d = opendir("/proc/self/fd");
	struct facts now = { 0 };
	struct ripc_counters c = { 0 };

	CHECK(f && d && fscanf(f, "%lu %lu", &whole, &rss) == 2);
	fclose(f);
	while (readdir(d))
		now.descriptors++;
	closedir(d);
	if (r)
		ripc_counters(r, &c);
	now.rss_kb = (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	now.registered_bytes = c.registered_bytes;
	now.registrations = c.registrations;
	now.connections = c.connections;
	return now;
}

static void print_facts(const char *who, const struct facts *f)
{
	printf("%s: %llu descriptors, %llu KiB, %llu bytes registered by %llu registrations, "
	       "%llu connections\n", who, (unsigned long long)f->descriptors,
	       (unsigned long long)f->rss_kb, (unsigned long long)f->registered_bytes,
	       (unsigned long long)f->registrations, (unsigned long long)f->connections);
	fflush(stdout);
}

static struct ripc *open_instance(unsigned idle_ms)
{
	const struct ripc_config c = { .resolver_port = port, .claim_ms = UINT32_MAX,
				       .resolve_timeout_ms = patience_ms,
				       .connect_timeout_ms = patience_ms,
				       .idle_close_ms = idle_ms };
	struct ripc *r;

	CHECK(!ripc_open(&c, &r));
	return r;
}

/* Sends back what comes. */
static int answer_one(struct ripc_service *s, int timeout_ms)
{
	struct ripc_message m;
	int ret = ripc_receive(s, &m, timeout_ms);

	if (ret)
		return ret;
	if (m.is_long)
		ret = ripc_send_long(s, m.from, m.items, m.count, NULL, 0, NULL);
	else
		ret = ripc_send_short(s, m.from, m.items, m.count, NULL, 0);
	ripc_release(&m);
	return ret;
}

/* A message there and back. False: lost, because somebody has died. */
static bool exchange(struct ripc_service *s, uint32_t to, bool is_long, int timeout_ms)
{
	static uint8_t bytes[LONG_BYTES];
	struct ripc_item item = { bytes, is_long ? LONG_BYTES : 50 };
	struct ripc_message m;
	int ret = is_long ? ripc_send_long(s, to, &item, 1, NULL, 0, NULL) :
			    ripc_send_short(s, to, &item, 1, NULL, 0);

	if (ret || ripc_receive(s, &m, timeout_ms))
		return false;
	ret = m.from == to && m.count == 1 && m.items[0].bytes == item.bytes;
	ripc_release(&m);
	return ret;
}

/* ---- connects ---- */

_Noreturn static void serve(void)
{
	struct ripc *r = open_instance(0);
	struct ripc_service *s;
	unsigned told = 0;

	CHECK(!ripc_service_open(r, SERVER, NULL, &s));
	atomic_fetch_add(&all->ready, 1);
	while (!atomic_load(&all->stop)) {
		answer_one(s, 20); /* the sender may have gone */
		if (atomic_load(&all->asks) != told) {
			all->facts = facts_of(r);
			told = atomic_load(&all->asks);
			atomic_store(&all->told, told);
		}
	}
	ripc_close(r);
	exit(0);
}

/* When the connections of those that have gone are closed. */
static struct facts of_server(void)
{
	for (unsigned i = 0; i < 500; i++) {
		unsigned n = atomic_fetch_add(&all->asks, 1) + 1;

		while (atomic_load(&all->told) != n && !atomic_load(&all->failed))
			nap(1);
		if (!all->facts.connections)
			break;
		nap(10);
	}
	return all->facts;
}

static void connect_once(unsigned i)
{
	bool twice = i & 1;
	struct ripc *r = open_instance(twice ? 20 : 0);
	struct ripc_service *s;
	struct ripc_counters c;

	/* Not one that the server believes to be elsewhere. */
	CHECK(!ripc_service_open(r, CLIENT + i, NULL, &s));
	/* A short message may be lost where a connection is closed as idle. */
	CHECK(exchange(s, SERVER, twice || (i & 2), 10000));
	for (unsigned ms = 0; twice && ms < 10000; ms += 5) {
		ripc_counters(r, &c);
		if (!c.connections)
			break;
		nap(5);
	}
	if (twice) {
		CHECK(!c.connections);
		CHECK(exchange(s, SERVER, true, 10000));
		ripc_counters(r, &c);
		CHECK(c.connects >= 2);
	}
	ripc_close(r);
}

static void are_flat(const char *who, const struct facts *a, const struct facts *b)
{
	print_facts(who, a);
	print_facts(who, b);
	/* Some are of a connection that is just ending. */
	CHECK(b->descriptors <= a->descriptors + DESCRIPTORS_SLACK);
	CHECK(b->registered_bytes <= a->registered_bytes + REGISTERED_SLACK);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* keep what was freed */
	CHECK(b->rss_kb <= a->rss_kb + RSS_SLACK_KB + a->rss_kb / 10);
#endif
	CHECK(b->connections == a->connections);
}

static void connects(unsigned n)
{
	pid_t server = fork();
	struct facts mine[2], its[2];
	int status;

	if (!server)
		serve();
	while (!atomic_load(&all->ready) && !atomic_load(&all->failed))
		nap(1);
	/* The first ones make what stays. */
	for (unsigned i = 0; i < n; i++) {
		if (i == n / 4) {
			mine[0] = facts_of(NULL);
			its[0] = of_server();
		}
		connect_once(i);
		if (i % 500 == 499) {
			printf("%u\n", i + 1);
			fflush(stdout);
		}
	}
	mine[1] = facts_of(NULL);
	its[1] = of_server();
	atomic_store(&all->stop, true);
	CHECK(waitpid(server, &status, 0) == server && !status);
	are_flat("client", &mine[0], &mine[1]);
	are_flat("server", &its[0], &its[1]);
}

/* ---- services ---- */

static struct ripc_service **services;
static unsigned services_count;

static void *answer_all(void *arg)
{
	for (unsigned i = 0; i < 2 * services_count && !atomic_load(&all->stop); i++)
		CHECK(!answer_one(services[i % services_count], 30000));
	atomic_fetch_add(&all->done, 1);
	return arg;
}

static void many_services(unsigned n)
{
	pid_t client = fork();
	pthread_t thread;
	struct ripc *r;
	int status;

	if (!client) {
		struct ripc_service *s;

		while (!atomic_load(&all->ready))
			nap(1);
		r = open_instance(0);
		CHECK(!ripc_service_open(r, CLIENT + n, NULL, &s));
		for (unsigned i = 0; i < 2 * n; i++)
			CHECK(exchange(s, CLIENT + i % n, i & 2, 30000));
		/* The last answer is to be confirmed, too. */
		while (!atomic_load(&all->done) && !atomic_load(&all->stop))
			nap(1);
		ripc_close(r);
		exit(0);
	}
	r = open_instance(0);
	services = calloc(n, sizeof(services[0]));
	services_count = n;
	CHECK(services);
	for (unsigned i = 0; i < n; i++)
		CHECK(!ripc_service_open(r, CLIENT + i, NULL, &services[i]));
	atomic_fetch_add(&all->ready, 1);
	CHECK(!pthread_create(&thread, NULL, answer_all, NULL));
	CHECK(waitpid(client, &status, 0) == client && !status);
	pthread_join(thread, NULL);
	ripc_close(r);
	free(services);
}

/* ---- processes ---- */

static void *answer_until_stop(void *arg)
{
	while (!atomic_load(&all->stop))
		answer_one(arg, 50);
	return NULL;
}

_Noreturn static void live(unsigned number, unsigned count, unsigned sends, bool storm)
{
	struct ripc *r = open_instance(0);
	struct ripc_service *server, *client;
	pthread_t thread;
	unsigned to = number;

	CHECK(!ripc_service_open(r, SERVER + number, NULL, &server));
	CHECK(!ripc_service_open(r, CLIENT + number, NULL, &client));
	CHECK(!pthread_create(&thread, NULL, answer_until_stop, server));
	atomic_fetch_add(&all->ready, 1);
	while (!storm && atomic_load(&all->ready) < count && !atomic_load(&all->stop))
		nap(5);
	for (unsigned i = 0; i < sends && !atomic_load(&all->stop); i++) {
		/* Others by steps that grow, so that each has connections both ways. */
		to = (number + 1 + i * (i + 1) / 2) % count;
		if (to == number)
			continue;
		if (exchange(client, SERVER + to, i & 1, storm ? 500 : 30000))
			atomic_fetch_add(&all->answered, 1);
		else
			CHECK(storm);
	}
	atomic_fetch_add(&all->done, 1);
	while (!atomic_load(&all->stop))
		nap(10);
	pthread_join(thread, NULL);
	ripc_close(r);
	exit(0);
}

static pid_t pids[PROCESSES_MAX];

static pid_t start(unsigned i, unsigned count, unsigned sends, bool storm)
{
	pid_t pid = fork();

	if (!pid)
		live(i, count, sends, storm);
	CHECK(pid > 0);
	return pid;
}

static void stop_all(unsigned n)
{
	int status;

	atomic_store(&all->stop, true);
	for (unsigned i = 0; i < n; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(!status);
	}
	CHECK(!atomic_load(&all->failed));
}

static void many_processes(unsigned n)
{
	CHECK(n <= PROCESSES_MAX);
	for (unsigned i = 0; i < n; i++)
		pids[i] = start(i, n, 8, false);
	while (atomic_load(&all->done) < n && !atomic_load(&all->stop))
		nap(10);
	printf("%u exchanges\n", atomic_load(&all->answered));
	stop_all(n);
}

/* After the last one has come back all must be able to speak with all again. */
static void storm(unsigned n)
{
	unsigned before;

	patience_ms = 1000; /* many of those that are asked for are dead */
	for (unsigned i = 0; i < STORM; i++)
		pids[i] = start(i, STORM, UINT32_MAX, true);
	for (unsigned i = 0; i < n && !atomic_load(&all->stop); i++) {
		unsigned who = i * 5 % STORM;
		int status;

		nap(i % 8 ? 20 : 100); /* now and then several at once */
		kill(pids[who], SIGKILL);
		waitpid(pids[who], &status, 0);
		pids[who] = start(who, STORM, UINT32_MAX, true);
	}
	before = atomic_load(&all->answered);
	for (unsigned ms = 0; ms < 20000 && atomic_load(&all->answered) < before + 100; ms += 10)
		nap(10);
	printf("%u exchanges, %u of them in the end\n", atomic_load(&all->answered),
	       atomic_load(&all->answered) - before);
	CHECK(atomic_load(&all->answered) >= before + 100);
	stop_all(STORM);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(unsigned);
	} parts[] = {
		{ "connects", connects }, { "services", many_services },
		{ "processes", many_processes }, { "storm", storm },
	};
	double begun = now_s();

	all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return 1;
	port = (uint16_t)(20000 + getpid() % 12000);
	for (size_t i = 0; argc > 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(argv[1], parts[i].name) != 0)
			continue;
		parts[i].run((unsigned)atoi(argv[2]));
		printf("%s %s: %.1f s\n", argv[1], argv[2], now_s() - begun);
		return 0;
	}
	fprintf(stderr, "soak connects|services|processes|storm N\n");
	return 2;
}
