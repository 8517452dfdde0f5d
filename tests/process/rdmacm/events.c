/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels: blocking, polling, cancelling, acknowledging, migrating. */
#include "../../threads_rest.h"
#include "cm_help.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

static struct rdma_event_channel *ch;

static struct rdma_cm_id *resolving(void)
{
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, cm_loopback(1), 100) == 0);
	return id;
}

static void a_non_blocking_channel_says_eagain(void)
{
	struct pollfd pfd = { .events = POLLIN };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	ch = rdma_create_event_channel();
	pfd.fd = ch->fd;
	CHECK(fcntl(ch->fd, F_GETFD) & FD_CLOEXEC);
	CHECK(fcntl(ch->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	CHECK(poll(&pfd, 1, 0) == 0);
	id = resolving();
	CHECK(poll(&pfd, 1, 0) == 1 && pfd.revents == POLLIN);
	CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
	CHECK(poll(&pfd, 1, 0) == 0);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	cm_id_free(id);
	rdma_destroy_event_channel(ch);
}

static void events_of_a_destroyed_identifier_are_gone(void)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *one, *two;

	ch = rdma_create_event_channel();
	CHECK(fcntl(ch->fd, F_SETFL, O_NONBLOCK) == 0);
	one = resolving();
	two = resolving();
	cm_id_free(one);
	ev = cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(ev->id == two);
	rdma_ack_cm_event(ev);
	CHECK(rdma_get_cm_event(ch, &ev) == -1 && errno == EAGAIN);
	cm_id_free(two);
	rdma_destroy_event_channel(ch);
}

static void *wait_for_event(void *arg)
{
	struct rdma_cm_event *ev;

	rdma_get_cm_event(arg, &ev);
	return NULL;
}

static void a_thread_that_waits_can_be_cancelled(void)
{
	pthread_t thread;
	void *result;

	ch = rdma_create_event_channel();
	CHECK(pthread_create(&thread, NULL, wait_for_event, ch) == 0);
	cm_expect_quiet(ch, 50);
	CHECK(pthread_cancel(thread) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	/* The channel still works. */
	cm_id_free(({ struct rdma_cm_id *id = resolving();
		      CHECK(cm_expect_ack(ch, RDMA_CM_EVENT_ADDR_RESOLVED) == 0);
		      id; }));
	rdma_destroy_event_channel(ch);
}

static atomic_bool destroyed;

static void *destroy_id(void *arg)
{
	CHECK(rdma_destroy_id(arg) == 0);
	atomic_store(&destroyed, true);
	return NULL;
}

static void destruction_waits_for_acknowledgement(void)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	pthread_t thread;

	ch = rdma_create_event_channel();
	id = resolving();
	ev = cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(pthread_create(&thread, NULL, destroy_id, id) == 0);
	cm_expect_quiet(ch, 50);
	CHECK(!atomic_load(&destroyed));
	CHECK(rdma_ack_cm_event(ev) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(atomic_load(&destroyed));
	rdma_destroy_event_channel(ch);
}

static void migration_takes_queued_events_along(void)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id, *stays, *listener, *caller, *callee;
	struct rdma_cm_event *ev;
	uint16_t port;

	ch = rdma_create_event_channel();
	stays = resolving();
	id = resolving();
	CHECK(rdma_migrate_id(id, other) == 0);
	CHECK(id->channel == other);
	ev = cm_expect(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(ev->id == id);
	rdma_ack_cm_event(ev);
	ev = cm_expect(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(ev->id == stays);
	rdma_ack_cm_event(ev);
	cm_expect_quiet(ch, 0);

	/* A listener that migrates takes its waiting requests along. */
	listener = cm_listener(ch, RDMA_PS_TCP, 4, &port);
	caller = cm_caller(other, RDMA_PS_TCP, port);
	cm_qp(caller);
	CHECK(rdma_connect(caller, NULL) == 0);
	CHECK(poll(&(struct pollfd){ .fd = ch->fd, .events = POLLIN }, 1, 5000) == 1);
	CHECK(rdma_migrate_id(listener, other) == 0);
	cm_expect_quiet(ch, 0);
	ev = cm_expect(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	callee = ev->id;
	CHECK(callee->channel == other);
	rdma_ack_cm_event(ev);
	cm_id_free(listener);
	cm_id_free(callee);
	cm_id_free(caller);
	cm_id_free(id);
	cm_id_free(stays);
	rdma_destroy_event_channel(other);
	rdma_destroy_event_channel(ch);
}

static void connect_in_child(int fd, uint16_t unused)
{
	struct cm_pair p;

	(void)unused;
	cm_pair_make(&p);
	cm_message(p.caller, p.callee);
	cm_pair_free(&p);
	CHECK(write(fd, "c", 1) == 1);
	_exit(0); /* without freeing the parent's objects */
}

static void a_forked_child_may_use_the_library_anew(void)
{
	struct cm_child child;

#if defined(__SANITIZE_THREAD__)
	exit(77); /* the sanitizer allows no threads in a forked child */
#endif
	ch = rdma_create_event_channel();
	CHECK(ch);
	threads_rest(); /* the progress thread, which has just begun */
	child = cm_fork(connect_in_child, 0);
	cm_child_expect(&child, 'c');
	cm_child_join(&child);
	rdma_destroy_event_channel(ch);
}

static void every_event_has_its_name(void)
{
	CHECK(!strcmp(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
		      "RDMA_CM_EVENT_ADDR_RESOLVED"));
	CHECK(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		      "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
	CHECK(!strcmp(rdma_event_str((enum rdma_cm_event_type)99),
		      "UNKNOWN EVENT"));
}

CM_MAIN(CASE(a_non_blocking_channel_says_eagain),
	CASE(events_of_a_destroyed_identifier_are_gone),
	CASE(a_thread_that_waits_can_be_cancelled),
	CASE(destruction_waits_for_acknowledgement),
	CASE(migration_takes_queued_events_along),
	CASE(a_forked_child_may_use_the_library_anew),
	CASE(every_event_has_its_name))
