/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to servers that refuse, are silent, or have several addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "gateway/base/dial.h"
#include "gateway/base/lookup.h"
#include "util/clock.h"
#include "util/wakeup.h"

#define MS UINT64_C(1000000)
#define FILLERS_MAX 32

static sem_t asked, may_answer, has_answered;
static char why[200];

static struct dial_limit within(uint64_t ns)
{
	return (struct dial_limit){ clock_now_ns() + ns, NULL, -1 };
}

/* A socket at `host`, with a backlog unless that is negative; sets `port` if it is "0". -1: the port
 * is taken. */
static int try_bind(const char *host, char port[8], int backlog)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, host, &a.sin_addr);
	assert_true(fd >= 0);
	if (bind(fd, (struct sockaddr *)&a, len)) {
		assert_int_equal(errno, EADDRINUSE);
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(port, 8, "%d", ntohs(a.sin_port));
	assert_true(backlog < 0 || !listen(fd, backlog));
	return fd;
}

static int bound(const char *host, char port[8], int backlog)
{
	int fd = try_bind(host, port, backlog);

	assert_true(fd >= 0);
	return fd;
}

/* Two sockets at 127.0.0.2 and 127.0.0.3, with the same port; the second one listens. */
static void bind_two(int fds[2], char port[8], int backlog)
{
	for (int i = 0; i < 100; i++) {
		strcpy(port, "0");
		fds[0] = bound("127.0.0.2", port, backlog);
		fds[1] = try_bind("127.0.0.3", port, 1);
		if (fds[1] >= 0)
			return;
		close(fds[0]);
	}
	fail_msg("no port is free at both addresses");
}

/* Connects until the listener takes no more. */
static unsigned fill(const char *host, const char *port, int fds[FILLERS_MAX])
{
	unsigned n = 0;

	for (; n < FILLERS_MAX; n++) {
		struct dial_limit l = within(500 * MS);

		fds[n] = dial_host(host, port, &l, why, sizeof(why));
		if (fds[n] < 0)
			break;
	}
	assert_true(n && n < FILLERS_MAX);
	assert_int_equal(fds[n], -ETIMEDOUT);
	return n;
}

static void close_all(const int fds[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
}

/* "lab.example" is first at 127.0.0.2, then at 127.0.0.3. */
static int two(const char *host, const char *service, const struct addrinfo *hints,
	       struct addrinfo **out)
{
	assert_string_equal(host, "lab.example");
	assert_int_equal(getaddrinfo("127.0.0.2", service, hints, out), 0);
	return getaddrinfo("127.0.0.3", service, hints, &(*out)->ai_next);
}

static int silent(const char *host, const char *service, const struct addrinfo *hints,
		  struct addrinfo **out)
{
	sem_post(&asked);
	while (sem_wait(&may_answer) && errno == EINTR)
		;
	sem_post(&has_answered);
	return EAI_FAIL;
}

static void release_resolver(void)
{
	sem_wait(&asked);
	sem_post(&may_answer);
	sem_wait(&has_answered);
}

/* ---- tests ---- */

static void a_connection_does_not_block_and_delays_nothing(void **state)
{
	struct dial_limit l = within(60 * NSEC_PER_SEC);
	char port[8] = "0";
	int listener = bound("127.0.0.1", port, 1), fd, on = 0;
	socklen_t len = sizeof(on);

	fd = dial_host("127.0.0.1", port, &l, why, sizeof(why));
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
	assert_true(on);
	close(fd);
	close(listener);
}

static void a_refusal_is_told(void **state)
{
	struct dial_limit l = within(60 * NSEC_PER_SEC);
	char port[8] = "0";
	int fd = bound("127.0.0.1", port, -1);

	assert_int_equal(dial_host("127.0.0.1", port, &l, why, sizeof(why)), -ECONNREFUSED);
	assert_string_equal(why, strerror(ECONNREFUSED));
	close(fd);
}

static void a_silent_server_is_given_up_in_time(void **state)
{
	char port[8] = "0";
	int listener = bound("127.0.0.1", port, 0), fds[FILLERS_MAX];
	unsigned n = fill("127.0.0.1", port, fds);
	uint64_t since_ns = clock_now_ns();
	struct dial_limit l = within(200 * MS);

	assert_int_equal(dial_host("127.0.0.1", port, &l, why, sizeof(why)), -ETIMEDOUT);
	assert_true(clock_now_ns() - since_ns >= 200 * MS);
	close_all(fds, n);
	close(listener);
}

static void the_second_address_is_tried_when_the_first_refuses(void **state)
{
	struct dial_limit l = within(60 * NSEC_PER_SEC);
	int servers[2], fd;
	char port[8];

	bind_two(servers, port, -1);
	lookup_resolver = two;
	fd = dial_host("lab.example", port, &l, why, sizeof(why));
	assert_true(fd >= 0);
	close(fd);
	close_all(servers, 2);
}

static void a_silent_first_address_leaves_time_for_the_second(void **state)
{
	int servers[2], fds[FILLERS_MAX], fd;
	struct dial_limit l;
	char port[8];
	unsigned n;

	bind_two(servers, port, 0);
	n = fill("127.0.0.2", port, fds);
	lookup_resolver = two;
	l = within(4 * NSEC_PER_SEC);
	fd = dial_host("lab.example", port, &l, why, sizeof(why));
	assert_true(fd >= 0);
	close(fd);
	close_all(fds, n);
	close_all(servers, 2);
}

static void a_name_without_an_answer_is_given_up_in_time(void **state)
{
	struct dial_limit l = within(50 * MS);

	lookup_resolver = silent;
	assert_int_equal(dial_host("lab.example", "1", &l, why, sizeof(why)), -ETIMEDOUT);
	release_resolver();
}

static void an_unknown_name_is_told(void **state)
{
	struct dial_limit l = within(60 * NSEC_PER_SEC);

	lookup_resolver = silent;
	sem_post(&may_answer);
	assert_int_equal(dial_host("lab.example", "1", &l, why, sizeof(why)), -EHOSTUNREACH);
	assert_non_null(strstr(why, "lab.example"));
	sem_wait(&asked);
	sem_wait(&has_answered);
}

struct canceller {
	atomic_bool cancelled;
	int wake_fd;
	bool after_question;        /* when the name is looked up */
};

static void *cancel(void *arg)
{
	struct canceller *c = arg;

	if (c->after_question)
		sem_wait(&asked);
	atomic_store(&c->cancelled, true);
	if (c->wake_fd >= 0)
		wakeup_post(c->wake_fd);
	return NULL;
}

static void expect_cancelled(const char *host, const char *port, struct canceller *c)
{
	struct dial_limit l = { clock_now_ns() + 600 * NSEC_PER_SEC, &c->cancelled, c->wake_fd };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cancel, c), 0);
	assert_int_equal(dial_host(host, port, &l, why, sizeof(why)), -ECANCELED);
	pthread_join(thread, NULL);
	if (c->wake_fd >= 0)
		close(c->wake_fd);
}

/* The kernel gives up after two minutes, the test's time limit is shorter. */
static void a_connection_on_its_way_is_cancelled(void **state)
{
	struct canceller woken = { .wake_fd = wakeup_open_signal() }, looks = { .wake_fd = -1 };
	char port[8] = "0";
	int listener = bound("127.0.0.1", port, 0), fds[FILLERS_MAX];
	unsigned n = fill("127.0.0.1", port, fds);

	expect_cancelled("127.0.0.1", port, &woken);
	expect_cancelled("127.0.0.1", port, &looks);
	close_all(fds, n);
	close(listener);
}

static void a_post_without_a_cancellation_ends_nothing(void **state)
{
	atomic_bool cancelled = false;
	struct dial_limit l = { 0, &cancelled, wakeup_open_signal() };
	char port[8] = "0";
	int listener = bound("127.0.0.1", port, 0), fds[FILLERS_MAX];
	unsigned n = fill("127.0.0.1", port, fds);

	wakeup_post(l.wake_fd);
	l.until_ns = clock_now_ns() + 100 * MS;
	assert_int_equal(dial_host("127.0.0.1", port, &l, why, sizeof(why)), -ETIMEDOUT);
	assert_int_equal(wakeup_drain(l.wake_fd), 0);
	close(l.wake_fd);
	close_all(fds, n);
	close(listener);
}

static void a_lookup_is_cancelled(void **state)
{
	struct canceller c = { .wake_fd = -1, .after_question = true };

	lookup_resolver = silent;
	expect_cancelled("lab.example", "1", &c);
	sem_post(&may_answer);
	sem_wait(&has_answered);
}

/* The kernel may give an outgoing connection the port that it calls. */
static void a_socket_that_reaches_itself_is_refused(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct dial_limit limit = within(1000 * MS);
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(dial_connect(fd, (struct sockaddr *)&a, len, &limit), -ECONNREFUSED);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_socket_that_reaches_itself_is_refused),
		cmocka_unit_test(a_connection_does_not_block_and_delays_nothing),
		cmocka_unit_test(a_refusal_is_told),
		cmocka_unit_test(a_silent_server_is_given_up_in_time),
		cmocka_unit_test(the_second_address_is_tried_when_the_first_refuses),
		cmocka_unit_test(a_silent_first_address_leaves_time_for_the_second),
		cmocka_unit_test(a_name_without_an_answer_is_given_up_in_time),
		cmocka_unit_test(an_unknown_name_is_told),
		cmocka_unit_test(a_connection_on_its_way_is_cancelled),
		cmocka_unit_test(a_post_without_a_cancellation_ends_nothing),
		cmocka_unit_test(a_lookup_is_cancelled),
	};

	clock_init();
	sem_init(&asked, 0, 0);
	sem_init(&may_answer, 0, 0);
	sem_init(&has_answered, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
