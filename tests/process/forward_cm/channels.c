/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels that have events of both sides, and the life of shadows. */
#include "help.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define ROUNDS 20

static bool readable(struct rdma_event_channel *ch)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1;
}

static void one_channel_has_events_of_both(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *real, *soft, *shadow;
	int fd = ch->fd, seen[2] = { 0 };

	CHECK(rdma_create_id(ch, &real, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_create_id(ch, &soft, NULL, RDMA_PS_TCP) == 0);
	CHECK(!readable(ch));
	CHECK(rdma_resolve_addr(real, address_of(REAL_HOST, 0),
				address_of(REAL_HOST, 7), 1000) == 0);
	shadow = standin()->newest();
	CHECK(readable(ch));
	CHECK(rdma_resolve_addr(soft, NULL, address_of(SOFT_HOST, 7), 1000) == 0);
	for (int i = 0; i < 3; i++)
		standin()->play(shadow, RDMA_CM_EVENT_ADDR_CHANGE, i);
	for (int i = 0; i < 5; i++) {
		struct rdma_cm_event *ev;

		CHECK(readable(ch) && rdma_get_cm_event(ch, &ev) == 0);
		CHECK(ev->id == real || ev->id == soft);
		/* Each side's in its order. */
		CHECK(ev->event == (seen[ev->id == soft] ?
					    RDMA_CM_EVENT_ADDR_CHANGE :
					    RDMA_CM_EVENT_ADDR_RESOLVED));
		CHECK(ev->status == (seen[ev->id == soft] ?
					     seen[ev->id == soft] - 1 : 0));
		seen[ev->id == soft]++;
		/* Neither keeps the other waiting. */
		CHECK(i == 0 || seen[1] == 1);
		CHECK(rdma_ack_cm_event(ev) == 0);
	}
	CHECK(seen[0] == 4 && seen[1] == 1 && !readable(ch) && ch->fd == fd);
	CHECK(rdma_destroy_id(real) == 0 && rdma_destroy_id(soft) == 0);
	rdma_destroy_event_channel(ch);
	CHECK(atomic_load(&standin()->channels) == 0);
}

static void a_merged_channel_that_does_not_block_says_eagain(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	CHECK(fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK) == 0);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	id = bound(ch, REAL_HOST, 0);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	standin()->play(standin()->newest(), RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DEVICE_REMOVAL) == 0);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	/* An event that goes with its identifier wakes nobody. */
	standin()->play(standin()->newest(), RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	CHECK(rdma_destroy_id(id) == 0);
	CHECK(!readable(ch) && atomic_load(&standin()->events) == 0);
	rdma_destroy_event_channel(ch);
}

static void *wait_for_event(void *arg)
{
	struct rdma_cm_event *ev;

	rdma_get_cm_event(arg, &ev);
	return arg; /* not reached by one that is cancelled */
}

static void a_thread_that_waits_for_both_can_be_cancelled(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id = bound(ch, REAL_HOST, 0);
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, wait_for_event, ch) == 0);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	/* It did no harm. */
	standin()->play(standin()->newest(), RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_DEVICE_REMOVAL) == 0);
	CHECK(rdma_destroy_id(id) == 0);
	rdma_destroy_event_channel(ch);
}

static void migration_takes_both_sides_along(void)
{
	struct rdma_event_channel *from = rdma_create_event_channel();
	struct rdma_event_channel *to = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 1 };
	struct rdma_cm_id *real, *listener, *soft;
	struct rdma_cm_event *ev;

	CHECK(rdma_create_id(from, &real, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(real, address_of(REAL_HOST, 0),
				address_of(REAL_HOST, 7), 1000) == 0);
	CHECK(rdma_migrate_id(real, to) == 0);
	CHECK(real->channel == to && !readable(from));
	CHECK(cm_expect_ack(to, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(rdma_destroy_id(real) == 0);

	/* A wildcard listener, with a request from each side. */
	listener = bound(from, "0.0.0.0", 0);
	CHECK(rdma_listen(listener, 2) == 0);
	real = routed(from, REAL_HOST, ntohs(rdma_get_src_port(listener)));
	soft = routed(from, SOFT_HOST, ntohs(rdma_get_src_port(listener)));
	CHECK(rdma_migrate_id(listener, to) == 0);
	CHECK(rdma_connect(real, &param) == 0 && rdma_connect(soft, &param) == 0);
	for (int i = 0; i < 2; i++) {
		struct rdma_cm_id *child;

		ev = cm_expect(to, RDMA_CM_EVENT_CONNECT_REQUEST);
		child = ev->id;
		CHECK(ev->listen_id == listener && child->channel == to);
		CHECK(rdma_ack_cm_event(ev) == 0);
		CHECK(rdma_destroy_id(child) == 0);
	}
	CHECK(rdma_destroy_id(real) == 0 && rdma_destroy_id(soft) == 0);
	CHECK(rdma_destroy_id(listener) == 0);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
	CHECK(atomic_load(&standin()->channels) == 0);
}

static atomic_bool destroyed;

static void *destroy(void *arg)
{
	CHECK(rdma_destroy_id(arg) == 0);
	atomic_store(&destroyed, true);
	return NULL;
}

static void destruction_waits_for_the_shadows_events(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 1 };
	struct rdma_cm_id *listener = bound(ch, "0.0.0.0", 0), *real, *child;
	struct rdma_cm_event *ev;
	pthread_t thread;
	unsigned before;

	CHECK(rdma_listen(listener, 1) == 0);
	real = routed(ch, REAL_HOST, ntohs(rdma_get_src_port(listener)));
	CHECK(rdma_connect(real, &param) == 0);
	ev = cm_expect(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	child = ev->id;
	before = standin()->count("rdma_destroy_id");
	CHECK(pthread_create(&thread, NULL, destroy, listener) == 0);
	/* It came as far as it can. */
	while (standin()->count("rdma_destroy_id") == before)
		sched_yield();
	CHECK(!atomic_load(&destroyed));
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(atomic_load(&destroyed));
	/* The request outlives its listener. */
	CHECK(rdma_accept(child, &param) == 0);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ESTABLISHED) == 0);
	CHECK(rdma_destroy_id(child) == 0 && rdma_destroy_id(real) == 0);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	rdma_destroy_event_channel(ch);
}

/* ---- synchronous identifiers ---- */

static void *serve(void *arg)
{
	struct rdma_cm_id *child;

	CHECK(rdma_get_request(arg, &child) == 0);
	CHECK(child->event && child->event->id == child);
	CHECK(child->channel != ((struct rdma_cm_id *)arg)->channel);
	CHECK(qp_make(child, IBV_QPT_RC) == 0);
	CHECK(rdma_accept(child, NULL) == 0);
	CHECK(child->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_disconnect(child) == 0);
	CHECK(child->event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(child);
	return NULL;
}

static void connect_synchronously(const char *host, const char *device)
{
	struct rdma_cm_id *listener = bound(NULL, host, 0), *id;
	pthread_t thread;

	CHECK(is_on(listener, device) && rdma_listen(listener, 1) == 0);
	CHECK(pthread_create(&thread, NULL, serve, listener) == 0);
	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, address_of(host, 0),
				address_of(host,
					   ntohs(rdma_get_src_port(listener))),
				1000) == 0);
	CHECK(id->event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	CHECK(is_on(id, device) && qp_make(id, IBV_QPT_RC) == 0);
	CHECK(rdma_connect(id, NULL) == 0);
	CHECK(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(pthread_join(thread, NULL) == 0);
	rdma_destroy_ep(id);
	CHECK(rdma_destroy_id(listener) == 0);
}

static void synchronous_calls_wait_for_the_shadow(void)
{
	connect_synchronously(REAL_HOST, "stand0");
	connect_synchronously(SOFT_HOST, "soft0");
	CHECK(atomic_load(&standin()->identifiers) == 0);
	CHECK(atomic_load(&standin()->channels) == 0);
	CHECK(atomic_load(&standin()->events) == 0);
}

/* ---- threads ---- */

static void *thread_run(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		connect_synchronously(REAL_HOST, "stand0");
		if (i % 4 == 0)
			connect_synchronously(SOFT_HOST, "soft0");
	}
	return NULL;
}

/* Several identifiers of one channel come to a side at once. */
static void *thread_bind(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		const char *host = i % 2 ? REAL_HOST : SOFT_HOST;
		atomic_bool resolved = false;
		struct rdma_cm_event *ev;
		struct rdma_cm_id *id;

		CHECK(rdma_create_id(arg, &id, &resolved, RDMA_PS_TCP) == 0);
		CHECK(rdma_resolve_addr(id, address_of(host, 0),
					address_of(host, 7), 1000) == 0);
		/* Whosever it is. */
		CHECK(rdma_get_cm_event(arg, &ev) == 0);
		CHECK(ev->event == RDMA_CM_EVENT_ADDR_RESOLVED);
		atomic_store((atomic_bool *)ev->id->context, true);
		CHECK(rdma_ack_cm_event(ev) == 0);
		while (!atomic_load(&resolved))
			sched_yield();
		CHECK(is_on(id, i % 2 ? "stand0" : "soft0"));
		CHECK(rdma_destroy_id(id) == 0);
	}
	return NULL;
}

static void threads_connect_on_both(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	pthread_t threads[2 * THREADS];

	for (int i = 0; i < 2 * THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL,
				     i % 2 ? thread_run : thread_bind, ch) == 0);
	for (int i = 0; i < 2 * THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	rdma_destroy_event_channel(ch);
	CHECK(atomic_load(&standin()->identifiers) == 0);
	CHECK(atomic_load(&standin()->channels) == 0);
	CHECK(atomic_load(&standin()->events) == 0);
}

CM_MAIN(CASE(one_channel_has_events_of_both),
	CASE(a_merged_channel_that_does_not_block_says_eagain),
	CASE(a_thread_that_waits_for_both_can_be_cancelled),
	CASE(migration_takes_both_sides_along),
	CASE(destruction_waits_for_the_shadows_events),
	CASE(synchronous_calls_wait_for_the_shadow),
	CASE(threads_connect_on_both))
