/* SPDX-License-Identifier: BSD-2-Clause */
/* Both sides over ripc: an echo service, or the file server and its client. */
#define LOG_ROOM "bench/ripc"
#include <busbar/ripc.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/ripc/ripc.h"
#include "util/log.h"
#include "web/client.h"
#include "web/server.h"

#define WAIT_MS 50
#define TICK_NS 5000000 /* how often the file server tells its counter */
#define LOST_NS UINT64_C(5000000000)
#define CACHE_BYTES (UINT64_C(1) << 30)

struct side {
	struct ripc_bench *b;
	struct ripc *r;
	struct ripc_service *s;
	char *payload;
	struct ripc_item offer[2]; /* return buffers; who answers sends one while it offers the other */
	unsigned next;             /* of them */
	struct client client;
	uint64_t registrations; /* before the part that counts */
};

static int fail(const char *what, int err)
{
	return log_fail(err, "%s: %s", what, ripc_error());
}

static uint64_t registrations_of(struct side *e)
{
	struct ripc_counters n;

	ripc_counters(e->r, &n);
	return n.registrations;
}

/* ---- who answers ---- */

static int echo_one(struct side *e, uint64_t *count)
{
	const unsigned offers = e->b->pushed;
	struct ripc_message m;
	int ret = ripc_receive(e->s, &m, WAIT_MS);

	if (ret)
		return ret == -EAGAIN ? 0 : fail("receiving", ret);
	ret = m.is_long ? ripc_send_long(e->s, m.from, m.items, m.count, &e->offer[e->next], offers,
					 NULL) :
			  ripc_send_short(e->s, m.from, m.items, m.count, NULL, 0);
	ripc_release(&m);
	/* The next message comes in what was offered now; the other one is free then. */
	e->next ^= offers;
	++*count;
	/* A client that has gone has its own error. */
	return ret == -ECONNRESET ? 0 : ret ? fail("answering", ret) : 0;
}

static int echo(struct side *e)
{
	uint64_t count = 0;
	int ret = 0;

	while (!ret && !atomic_load(&e->b->stop)) {
		ret = echo_one(e, &count);
		if (count == e->b->warmup)
			atomic_store(&e->b->server_warm, registrations_of(e));
	}
	atomic_store(&e->b->server_registrations, registrations_of(e));
	return ret;
}

static void *work(void *arg)
{
	server_work(arg);
	return NULL;
}

static int serve(struct side *e)
{
	static struct server v;
	const struct ripc_item none = { (char[1]){ 0 }, 0 };
	const struct timespec pause = { .tv_nsec = TICK_NS };
	pthread_t thread;
	int ret;

	v.r = e->r;
	v.service = e->s;
	v.content_max = SIZE_MAX;
	ret = store_open(&v.store, e->r, e->b->folder, CACHE_BYTES);
	if (!ret)
		ret = -pthread_create(&thread, NULL, work, &v);
	if (ret) {
		log_error("the file server does not start: %s", strerror(-ret));
		store_close(v.store);
		return ret;
	}
	while (!atomic_load(&e->b->stop)) {
		nanosleep(&pause, NULL);
		atomic_store(&e->b->server_registrations, registrations_of(e));
	}
	atomic_store(&v.stop, true);
	ripc_send_short(e->s, ripc_service_id(e->s), &none, 1, NULL, 0);
	pthread_join(thread, NULL);
	atomic_store(&e->b->server_registrations, registrations_of(e));
	store_close(v.store);
	return 0;
}

static int make_offers(struct side *e)
{
	for (unsigned i = 0; i < 2 && e->b->pushed; i++) {
		e->offer[i] = (struct ripc_item){ ripc_alloc(e->r, e->b->size), e->b->size };
		if (!e->offer[i].data)
			return fail("no return buffer", -ENOMEM);
	}
	return 0;
}

static int answer(struct side *e)
{
	int ret = make_offers(e);

	if (ret)
		return ret;
	e->b->service = ripc_service_id(e->s);
	atomic_store(&e->b->ready, true);
	return e->b->fetch ? serve(e) : echo(e);
}

/* ---- who asks ---- */

static int send_one(struct side *e)
{
	const struct ripc_item item = { e->payload, e->b->size };

	return e->b->is_long ?
		       ripc_send_long(e->s, e->b->service, &item, 1, e->offer, e->b->pushed, NULL) :
		       ripc_send_short(e->s, e->b->service, &item, 1, NULL, 0);
}

static int round_trip(struct ripc_bench *b, void *arg, uint64_t number)
{
	struct side *e = arg;
	uint64_t until = 0;
	struct ripc_message m;
	int ret;

	memcpy(e->payload, &number, MIN(b->size, sizeof(number)));
	ret = send_one(e);
	if (ret)
		return fail("sending", ret);
	while ((ret = ripc_receive(e->s, &m, WAIT_MS)) == -EAGAIN) {
		uint64_t now = clock_monotonic_ns_slow();

		if (atomic_load(&b->stop))
			return -EINTR;
		until = until ?: now + LOST_NS;
		if (now > until)
			return log_fail(-ETIMEDOUT, "message %llu did not come back",
					(unsigned long long)number);
	}
	if (ret)
		return fail("receiving", ret);
	if (m.count != 1 || m.items[0].bytes != b->size ||
	    memcmp(m.items[0].data, e->payload, MIN(b->size, 16u)))
		ret = log_fail(-EIO, "message %llu came back changed", (unsigned long long)number);
	b->returned += number >= b->warmup && m.returned & 1;
	ripc_release(&m);
	return ret;
}

static int fetch(struct ripc_bench *b, void *arg, uint64_t number)
{
	struct side *e = arg;
	struct client_answer a;
	int ret = client_ask(&e->client, "GET", RIPC_BENCH_FILE, "", &a);

	if (ret)
		return ret == -EINTR ? ret : fail("fetching", ret);
	if (a.head.status != 200 || a.bytes != b->size)
		ret = log_fail(-EIO, "the file came as %zu bytes with status %u", a.bytes,
			       a.head.status);
	client_release(&a);
	return ret;
}

static void warm(struct ripc_bench *b, void *arg)
{
	const struct timespec ticks = { .tv_nsec = 3 * TICK_NS };
	struct side *e = arg;

	e->registrations = registrations_of(e);
	if (!b->fetch)
		return;
	nanosleep(&ticks, NULL);
	atomic_store(&b->server_warm, atomic_load(&b->server_registrations));
}

static int ask(struct side *e)
{
	struct ripc_bench *b = e->b;
	int ret;

	if (!b->fetch && !b->is_long && b->size > ripc_short_max(e->r, 1))
		return log_fail(-EINVAL, "size %zu is not usable, a short message has at most %zu",
				b->size, ripc_short_max(e->r, 1));
	e->payload = ripc_alloc(e->r, b->fetch ? 1 : b->size);
	if (!e->payload)
		return -ENOMEM;
	ret = make_offers(e);
	if (ret)
		return ret;
	if (!b->fetch)
		for (size_t i = 0; i < b->size; i++)
			e->payload[i] = (char)(i * 2654435761u >> 13);
	e->client = (struct client){ .r = e->r, .service = e->s, .server = b->service,
				     .timeout_ms = 20000, .stop = &b->stop };
	ret = ripc_bench_loop(b, b->fetch ? fetch : round_trip, e, warm);
	b->registrations = registrations_of(e) - e->registrations;
	ripc_free(e->r, e->payload);
	return ret;
}

int bench_ripc_end(struct ripc_bench *b, enum ripc_side which)
{
	const struct ripc_config config = {
		.short_by = b->datagram ? RIPC_SHORT_DATAGRAM : RIPC_SHORT_CONNECTION,
		.poll_us = b->poll_us, .claim_ms = UINT_MAX, .pool_bytes_max = CACHE_BYTES,
	};
	struct side e = { .b = b };
	int ret = ripc_open(&config, &e.r);

	if (ret)
		return fail("no instance of ripc", ret);
	ret = ripc_service_open(e.r, 0, NULL, &e.s);
	if (ret) {
		fail("no service", ret);
	} else {
		ret = which == RIPC_ANSWERS ? answer(&e) : ask(&e);
		ripc_service_close(e.s);
	}
	ripc_close(e.r);
	return ret;
}
