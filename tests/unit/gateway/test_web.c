/* SPDX-License-Identifier: BSD-2-Clause */
/* What others offer through the HTTP server: files, and endpoints that take connections
 * over, with a client of plain sockets. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake.h"
#include "gateway/http/http.h"
#include "gateway/plugin/web.h"
#include "util/container_of.h"

#define LONG_BYTES 200000

static struct super_node *sn;
static struct config *config;
static struct http *http;
static int port;

/* An endpoint that sends back what comes, and "woken" when it is woken. */
struct echo {
	struct web_endpoint endpoint;
	struct web_stream *stream;
	unsigned opened;
	_Atomic unsigned closed;
};

static int echo_open(struct web_endpoint *e, struct web_stream *s, const struct web_request *r,
		     char *head, size_t size, void **client)
{
	struct echo *echo = e->arg;

	if (strcmp(r->upgrade, "test"))
		return 501;
	echo->stream = s;
	echo->opened++;
	*client = echo;
	snprintf(head, size, "X-Path: %s\r\nX-Query: %s\r\n", r->path, r->query);
	return web_stream_send(s, "hello ", 6) ? 500 : 101;
}

static int echo_received(void *client, const void *data, size_t len)
{
	struct echo *echo = client;

	if (len == 3 && !memcmp(data, "end", 3)) {
		web_stream_send(echo->stream, "bye", 3);
		return -1;
	}
	/* All of it fits, as nothing is read before it is gone. */
	assert_int_equal(web_stream_send(echo->stream, data, len), 0);
	return 0;
}

static void echo_woken(struct web_endpoint *e)
{
	struct echo *echo = e->arg;

	web_stream_send(echo->stream, "woken", 5);
}

static void echo_closed(void *client)
{
	struct echo *echo = client;

	echo->closed++;
}

static const struct web_endpoint_ops echo_ops = {
	.open = echo_open, .received = echo_received, .woken = echo_woken,
	.closed = echo_closed,
};

static const struct web_file files[] = {
	{ .path = "/", .type = "text/html", .etag = "\"1\"", .policy = "default-src 'self'",
	  .data = "<p>", .len = 3 },
};

static void start_server(void)
{
	static const char before[] = "http://127.0.0.1:";
	const char *at = NULL;

	assert_int_equal(http_start(&http, sn, "127.0.0.1:0"), 0);
	for (const char *p = fake_log(); (p = strstr(p, before)); p++)
		at = p;
	assert_non_null(at);
	port = atoi(at + strlen(before));
	assert_true(port > 0);
}

static int setup(void **state)
{
	sn = fake_super_node("stats = 0.0; hugepages = 0;", &config);
	assert_non_null(sn);
	assert_int_equal(super_node_start(sn), 0);
	start_server();
	/* In place of the page of a gateway, which http_start() offers; nobody asks yet. */
	web_files_set(files, ARRAY_SIZE(files));
	return 0;
}

static int teardown(void **state)
{
	http_stop(http);
	super_node_stop(sn);
	fake_end(sn, config);
	return 0;
}

static int connect_now(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Reads until `text` has come; all that has come by then is in `room`. */
static char room[4096];

static void hear(int fd, const char *text)
{
	size_t len = 0;

	room[0] = '\0';
	while (!strstr(room, text)) {
		ssize_t n = recv(fd, room + len, sizeof(room) - len - 1, 0);

		if (n <= 0)
			fail_msg("'%s' does not come: %s", text, room);
		len += (size_t)n;
		room[len] = '\0';
	}
}

static bool is_over(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) <= 0;
}

static void files_are_given(void **state)
{
	int fd = connect_now();

	say(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	hear(fd, "\r\n\r\n<p>");
	assert_non_null(strstr(room, " 200 "));
	assert_non_null(strstr(room, "ETag: \"1\"\r\nContent-Security-Policy: default-src 'self'\r\n"));
	say(fd, "GET /?x HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: \"1\"\r\n\r\n");
	hear(fd, "\r\n\r\n");
	assert_non_null(strstr(room, " 304 "));
	say(fd, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
	hear(fd, "there is nothing here");
	assert_non_null(strstr(room, "Content-Length: 3\r\n"));
	assert_null(strstr(room, "<p>"));
	close(fd);
}

static void upgrade(int fd, const char *path, const char *more)
{
	char text[300];

	snprintf(text, sizeof(text),
		 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\n%s\r\n",
		 path, more);
	say(fd, text);
}

static void endpoints_take_connections(void **state)
{
	struct echo echo = { .endpoint = { .path = "/a", .ops = &echo_ops, .arg = &echo } };
	struct web_endpoint same = { .path = "/a", .ops = &echo_ops };
	char *text = malloc(LONG_BYTES), *back = malloc(LONG_BYTES);
	int fd = connect_now(), other;

	assert_int_equal(web_endpoint_add(&echo.endpoint), 0);
	assert_int_equal(web_endpoint_add(&same), -EEXIST);
	/* Bytes right behind the header belong to the endpoint. */
	upgrade(fd, "/a.js%6fn?b=c", "Upgrade: test\r\n");
	say(fd, "first");
	hear(fd, "hello first");
	assert_non_null(strstr(room, "101 Switching Protocols\r\nUpgrade: test\r\n"));
	assert_non_null(strstr(room, "X-Path: /a.json\r\nX-Query: b=c\r\n\r\nhello first"));
	web_endpoint_wake(&echo.endpoint);
	hear(fd, "woken");
	memset(text, 'x', LONG_BYTES);
	assert_int_equal(send(fd, text, LONG_BYTES, 0), LONG_BYTES);
	assert_int_equal(recv(fd, back, LONG_BYTES, MSG_WAITALL), LONG_BYTES);
	assert_memory_equal(text, back, LONG_BYTES);
	say(fd, "end");
	hear(fd, "bye");
	assert_true(is_over(fd));
	close(fd);
	fd = connect_now();
	upgrade(fd, "/a", "Upgrade: test\r\n");
	hear(fd, "hello");
	/* Who is refused, and what is not there. */
	other = connect_now();
	upgrade(other, "/a", "Upgrade: magic\r\n");
	hear(other, " 501 ");
	close(other);
	other = connect_now();
	upgrade(other, "/a", "Upgrade: test\r\nOrigin: http://evil.example\r\n");
	hear(other, " 403 ");
	close(other);
	other = connect_now();
	upgrade(other, "/ab", "Upgrade: test\r\n");
	hear(other, " 404 ");
	close(other);
	/* The end of the endpoint is that of its connections. */
	assert_int_equal(echo.closed, 1);
	web_endpoint_remove(&echo.endpoint);
	assert_int_equal(echo.closed, 2);
	assert_int_equal(echo.opened, 2);
	assert_true(is_over(fd));
	close(fd);
	free(text);
	free(back);
}

static void an_endpoint_may_have_all_paths_that_nobody_else_has(void **state)
{
	struct echo rest = { .endpoint = { .path = "", .match = WEB_BELOW, .ops = &echo_ops,
					   .arg = &rest } };
	struct echo a = { .endpoint = { .path = "/a", .ops = &echo_ops, .arg = &a } };
	int fds[2] = { connect_now(), connect_now() };

	assert_int_equal(web_endpoint_add(&rest.endpoint), 0);
	assert_int_equal(web_endpoint_add(&a.endpoint), 0);
	upgrade(fds[0], "/a", "Upgrade: test\r\n");
	hear(fds[0], "X-Path: /a\r\n");
	upgrade(fds[1], "/b/c.d", "Upgrade: test\r\n");
	hear(fds[1], "X-Path: /b/c.d\r\n");
	assert_int_equal(a.opened, 1);
	assert_int_equal(rest.opened, 1);
	web_endpoint_remove(&a.endpoint);
	web_endpoint_remove(&rest.endpoint);
	for (unsigned i = 0; i < 2; i++)
		close(fds[i]);
}

/* Holds the server's thread for the first who asks, and sees at the next one how many bytes the
 * greedy client has been answered by then. */
struct hold {
	struct web_endpoint endpoint;
	sem_t entered, leave;
	unsigned asked;
	int greedy_fd, bytes;
};

static int hold_open(struct web_endpoint *e, struct web_stream *s, const struct web_request *r,
		     char *head, size_t size, void **client)
{
	struct hold *g = e->arg;

	if (g->asked++) {
		ioctl(g->greedy_fd, FIONREAD, &g->bytes);
	} else {
		sem_post(&g->entered);
		sem_wait(&g->leave);
	}
	return 501;
}

static void who_asks_for_much_at_once_does_not_hold_up_others(void **state)
{
	static const char one[] = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n";
	const int count = 180; /* what fits into the room for headers */
	static const struct web_endpoint_ops ops = { .open = hold_open };
	struct hold g = { .endpoint = { .path = "/hold", .ops = &ops, .arg = &g } };
	int first = connect_now(), last;

	sem_init(&g.entered, 0, 0);
	sem_init(&g.leave, 0, 0);
	assert_int_equal(web_endpoint_add(&g.endpoint), 0);
	upgrade(first, "/hold", "Upgrade: test\r\n");
	sem_wait(&g.entered);
	g.greedy_fd = connect_now();
	for (int i = 0; i < count; i++)
		say(g.greedy_fd, one);
	last = connect_now();
	upgrade(last, "/hold", "Upgrade: test\r\n");
	sem_post(&g.leave);
	hear(last, " 501 ");
	for (int i = 0, left = count * 100; left > 0; left -= i) {
		i = (int)recv(g.greedy_fd, room, sizeof(room), 0);
		assert_true(i > 0);
	}
	web_endpoint_remove(&g.endpoint);
	close(first);
	close(last);
	close(g.greedy_fd);
	sem_destroy(&g.entered);
	sem_destroy(&g.leave);
	/* Each answer is longer than 100 bytes. */
	assert_true(g.bytes < count / 4 * 100);
}

/* As one that is written to while the server is not yet, or no more, there to be woken. */
static void who_was_woken_without_a_server_is_woken_again(void **state)
{
	struct echo echo = { .endpoint = { .path = "/a", .ops = &echo_ops, .arg = &echo } };
	int fd;

	assert_int_equal(web_endpoint_add(&echo.endpoint), 0);
	http_stop(http);
	web_endpoint_wake(&echo.endpoint);
	start_server();
	fd = connect_now();
	upgrade(fd, "/a", "Upgrade: test\r\n");
	hear(fd, "hello");
	web_endpoint_wake(&echo.endpoint);
	hear(fd, "woken");
	web_endpoint_remove(&echo.endpoint);
	close(fd);
}

/* The copy of a text of which this number has come fails, in this thread. */
static _Thread_local unsigned copies_left;

char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

char *__wrap_strdup(const char *s)
{
	return copies_left && !--copies_left ? NULL : __real_strdup(s);
}

/* Without its certificate or its tokens it would let in who must not come in. */
static void without_memory_for_a_setting_no_server_starts(void **state)
{
	char path[] = "/tmp/busbar-web-XXXXXX", text[200];
	const char token[] = "watch 0123456789abcdef\n";
	int fd = mkstemp(path);
	struct super_node *own;
	struct config *c;
	struct http *h;
	unsigned nth = 0;
	int ret;

	assert_int_equal(write(fd, token, sizeof(token) - 1), sizeof(token) - 1);
	close(fd);
	snprintf(text, sizeof(text), "hugepages = 0; http = { token_file = \"%s\"; };", path);
	own = fake_super_node(text, &c);
	assert_non_null(own);
	do {
		copies_left = ++nth;
		ret = http_start(&h, own, "127.0.0.1:0");
		if (!copies_left)
			assert_int_equal(ret, -ENOMEM);
	} while (!copies_left);
	copies_left = 0;
	assert_int_equal(ret, 0);
	assert_true(nth > 3);
	http_stop(h);
	fake_end(own, c);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_given),
		cmocka_unit_test(endpoints_take_connections),
		cmocka_unit_test(an_endpoint_may_have_all_paths_that_nobody_else_has),
		cmocka_unit_test(who_asks_for_much_at_once_does_not_hold_up_others),
		cmocka_unit_test(who_was_woken_without_a_server_is_woken_again),
		cmocka_unit_test(without_memory_for_a_setting_no_server_starts),
	};

	return cmocka_run_group_tests_name("web", tests, setup, teardown);
}
