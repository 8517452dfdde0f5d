/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections at once, ended at every stage by either side, from a random number that
 * is printed and may be given as argv[2]. Nothing may hang or be reported twice, and the
 * sanitizers must find no error.
 */
#include "cm_help.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#define CALLERS 3
#define ROUNDS 40

struct caller {
	pthread_t thread;
	unsigned seed;
	uint16_t port;
	unsigned established, refused;
};

static int next_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *ev;
	int type;

	CHECK(rdma_get_cm_event(ch, &ev) == 0);
	type = ev->event;
	CHECK(rdma_ack_cm_event(ev) == 0);
	return type;
}

/* One connection, ended at a random stage. */
static void call_once(struct caller *c, struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, c->port);
	int type;

	cm_qp(id);
	if (rand_r(&c->seed) % 8 == 0)
		goto out;
	CHECK(rdma_connect(id, NULL) == 0);
	if (rand_r(&c->seed) % 6 == 0)
		goto out;
	type = next_event(ch);
	if (type == RDMA_CM_EVENT_REJECTED) {
		c->refused++;
		goto out;
	}
		/* The callee may have ended between its REP and our RTU. */
	CHECK(type == RDMA_CM_EVENT_ESTABLISHED ||
	      type == RDMA_CM_EVENT_CONNECT_ERROR);
	if (type == RDMA_CM_EVENT_CONNECT_ERROR)
		goto out;
	c->established++;
	if (rand_r(&c->seed) % 3 == 0)
		goto out;
	CHECK(rdma_disconnect(id) == 0);
	if (rand_r(&c->seed) % 3)
		CHECK(next_event(ch) == RDMA_CM_EVENT_DISCONNECTED);
out:
	cm_id_free(id);
}

static void *call_often(void *arg)
{
	struct caller *c = arg;
	struct rdma_event_channel *ch = rdma_create_event_channel();

	CHECK(ch);
	for (int i = 0; i < ROUNDS; i++)
		call_once(c, ch);
	/* With the identifiers their events were removed. */
	cm_expect_quiet(ch, 0);
	rdma_destroy_event_channel(ch);
	return NULL;
}

/* Rejects some requests, destroys some unanswered, accepts the others. */
static void on_request(struct rdma_cm_id *id, unsigned *seed)
{
	unsigned pick = (unsigned)rand_r(seed) % 8;

	if (pick == 0) {
		rdma_reject(id, NULL, 0);
		cm_id_free(id);
		return;
	}
	cm_qp(id);
	/* It fails if the caller has ended meanwhile, which an event reports as well. */
	if (pick > 1)
		rdma_accept(id, NULL);
	if (pick == 2 || pick == 1)
		cm_id_free(id);
}

static void on_event(struct rdma_cm_event *ev, unsigned *seed)
{
	struct rdma_cm_id *id = ev->id;
	int type = ev->event;

	CHECK(rdma_ack_cm_event(ev) == 0);
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		on_request(id, seed);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		CHECK(rdma_disconnect(id) == 0);
		cm_id_free(id);
		break;
	default:
		fprintf(stderr, "unexpected %s\n", rdma_event_str((enum rdma_cm_event_type)type));
		exit(1);
	}
}

static unsigned seed;

static void connections_ended_at_every_stage_leave_nothing_behind(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct pollfd pfd = { .events = POLLIN };
	struct caller callers[CALLERS];
	struct rdma_cm_event *ev;
	struct rdma_cm_id *listener;
	unsigned live = CALLERS, established = 0;
	uint16_t port;

	printf("seed %u\n", seed);
	listener = cm_listener(ch, RDMA_PS_TCP, 64, &port);
	pfd.fd = ch->fd;
	CHECK(fcntl(ch->fd, F_SETFL, O_NONBLOCK) == 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ .seed = seed + i, .port = port };
		CHECK(pthread_create(&callers[i].thread, NULL, call_often,
				     &callers[i]) == 0);
	}
	/* Until the callers are done and no event has come for a while. */
	for (;;) {
		if (poll(&pfd, 1, live ? 10 : 2000) == 1) {
			while (!rdma_get_cm_event(ch, &ev))
				on_event(ev, &seed);
			CHECK(errno == EAGAIN);
			continue;
		}
		if (!live)
			break;
		while (live && !pthread_tryjoin_np(callers[live - 1].thread, NULL))
			established += callers[--live].established;
	}
	CHECK(established > 0);
	cm_id_free(listener);
	rdma_destroy_event_channel(ch);
}

static uint16_t flicker_port;
static atomic_bool flicker_ends;

/* Makes and destroys a listener again and again. */
static void *flicker(void *arg)
{
	struct rdma_event_channel *ch = arg;

	while (!atomic_load(&flicker_ends)) {
		struct rdma_cm_id *id;

		CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
		CHECK(rdma_bind_addr(id, cm_loopback(flicker_port)) == 0);
		poll(NULL, 0, 2);
		CHECK(rdma_listen(id, 8) == 0);
		poll(NULL, 0, 1);
		CHECK(rdma_destroy_id(id) == 0);
	}
	return NULL;
}

/* Without a listener a caller tries again at intervals; it may be destroyed while it
 * finds one. */
static void callers_may_leave_while_they_look_for_a_listener(void)
{
	struct rdma_event_channel *callee_ch = rdma_create_event_channel();
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *first;
	pthread_t thread;

	printf("seed %u\n", seed);
	first = cm_listener(callee_ch, RDMA_PS_TCP, 8, &flicker_port);
	cm_id_free(first);
	CHECK(pthread_create(&thread, NULL, flicker, callee_ch) == 0);
	for (int i = 0; i < 300; i++) {
		struct rdma_cm_id *id = cm_caller(ch, RDMA_PS_TCP, flicker_port);
		struct rdma_conn_param param = { .qp_num = 0 };

		CHECK(rdma_connect(id, &param) == 0);
		poll(NULL, 0, rand_r(&seed) % 8);
		cm_id_free(id);
	}
	atomic_store(&flicker_ends, true);
	CHECK(pthread_join(thread, NULL) == 0);
	cm_expect_quiet(ch, 0);
	rdma_destroy_event_channel(ch);
	rdma_destroy_event_channel(callee_ch);
}

int main(int argc, char **argv)
{
	static const struct cm_case cases[] = {
		CASE(connections_ended_at_every_stage_leave_nothing_behind),
		CASE(callers_may_leave_while_they_look_for_a_listener),
	};

	seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;
	return cm_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
