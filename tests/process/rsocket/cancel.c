/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled (pthread_cancel(3)): calls that wait are cancelled and leave
 * their sockets unchanged; other calls end first.
 */
#include "rs_help.h"

#include <pthread.h>
#include <time.h>

enum { ROUNDS = 20 };

#define V4 ((socklen_t)sizeof(struct sockaddr_in))

static struct rs_pair pair;
static struct rdma_cm_id *passive;

static void *accept_one(void *arg)
{
	raccept(pair.listener, NULL, NULL);
	return NULL;
}

static void *receive(void *arg)
{
	char byte;

	rrecv(pair.callee, &byte, 1, 0);
	return NULL;
}

static void *poll_both(void *arg)
{
	struct pollfd fds[] = { { .fd = pair.caller, .events = POLLIN },
				{ .fd = pair.callee, .events = POLLIN } };

	rpoll(fds, 2, -1);
	return NULL;
}

/* More entries than fit on the stack, so rpoll() allocates memory. */
static void *poll_many(void *arg)
{
	struct pollfd fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = (struct pollfd){ .fd = i % 2 ? pair.caller : pair.callee,
					  .events = POLLIN };
	rpoll(fds, 20, -1);
	return NULL;
}

static void *get_request(void *arg)
{
	struct rdma_cm_id *id;

	rdma_get_request(passive, &id);
	return NULL;
}

/* Calls that do not wait; the test ends this thread by cancelling it. */
static void *open_and_close(void *arg)
{
	for (;;) {
		int fd;

		pthread_testcancel();
		fd = rsocket(AF_INET, SOCK_STREAM, 0);
		CHECK(fd >= 0);
		CHECK(rbind(fd, cm_loopback(0), V4) == 0);
		CHECK(rlisten(fd, 1) == 0);
		CHECK(rclose(fd) == 0);
	}
	return NULL;
}

static void *listen_and_leave(void *arg)
{
	for (;;) {
		struct rdma_event_channel *ch;
		struct rdma_cm_id *id;

		pthread_testcancel();
		ch = rdma_create_event_channel();
		CHECK(ch);
		CHECK(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP) == 0);
		CHECK(rdma_bind_addr(id, cm_loopback(0)) == 0);
		CHECK(rdma_listen(id, 1) == 0);
		CHECK(rdma_destroy_id(id) == 0);
		rdma_destroy_event_channel(ch);
	}
	return NULL;
}

static void *(*const calls[])(void *) = { accept_one, receive, poll_both,
					  poll_many, get_request,
					  open_and_close, listen_and_leave };
enum { CALLS = sizeof(calls) / sizeof(*calls) };

/* The sockets still work. */
static void sockets_go_on(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof(name);
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), made = -1;
	char byte = 0;

	CHECK(rsend(pair.caller, "x", 1, 0) == 1);
	CHECK(rrecv(pair.callee, &byte, 1, 0) == 1 && byte == 'x');
	CHECK(rgetsockname(pair.listener, (struct sockaddr *)&name, &len) == 0);
	CHECK(rconnect(fd, cm_loopback(ntohs(name.sin_port)), V4) == -1 &&
	      errno == EINPROGRESS);
	while (rs_poll(fd, POLLOUT, 0) == 0) {
		if (made < 0 && rs_poll(pair.listener, POLLIN, 0) & POLLIN)
			made = raccept(pair.listener, NULL, NULL);
	}
	CHECK(made >= 0 && rclose(made) == 0);
	CHECK(rclose(fd) == 0);
}

static void cancelled_calls_leave_their_sockets_as_they_were(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE,
				       .ai_port_space = RDMA_PS_TCP }, *res;
	unsigned seed = 1;

#ifdef __SANITIZE_THREAD__
	/* The thread sanitizer of gcc 12 does not see locks that a thread takes in a
	 * cleanup handler after it was cancelled in poll(). */
	exit(77);
#endif
	rs_pair_make(&pair, NULL);
	CHECK(rdma_getaddrinfo("127.0.0.1", "0", &hints, &res) == 0);
	CHECK(rdma_create_ep(&passive, res, NULL, NULL) == 0);
	CHECK(rdma_listen(passive, 1) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct timespec t = { .tv_nsec = rand_r(&seed) % 4000000 };
		pthread_t threads[CALLS];
		void *ret;

		for (int i = 0; i < CALLS; i++)
			CHECK(pthread_create(&threads[i], NULL, calls[i], NULL) ==
			      0);
		nanosleep(&t, NULL);
		for (int i = 0; i < CALLS; i++)
			CHECK(pthread_cancel(threads[i]) == 0);
		for (int i = 0; i < CALLS; i++) {
			CHECK(pthread_join(threads[i], &ret) == 0);
			CHECK(ret == PTHREAD_CANCELED);
		}
		sockets_go_on();
	}
	rdma_destroy_ep(passive);
	rdma_freeaddrinfo(res);
	rs_pair_free(&pair);
}

CM_MAIN(CASE(cancelled_calls_leave_their_sockets_as_they_were))
