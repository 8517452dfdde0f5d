/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: what waits for a slow peer comes in order and whole, and the result of each call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/stream/stream.h"
#include "util/container_of.h"
#include "util/prng.h"

static void make_pair(struct stream *s, int *peer)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	stream_init(s, fds[0]);
	*peer = fds[1];
}

/* Takes what has come, and compares it with the bytes that count upward. */
static size_t take(int peer, uint8_t *next, size_t max)
{
	uint8_t bytes[4096];
	size_t taken = 0;
	ssize_t n;

	while (taken < max && (n = read(peer, bytes, MIN(sizeof(bytes), max - taken))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(bytes[i], (*next)++);
		taken += (size_t)n;
	}
	return taken;
}

static void what_waits_comes_in_order(void **state)
{
	struct prng random = { .state = 5 };
	uint8_t from = 0, to = 0, bytes[5000];
	size_t put = 0, taken = 0, sent = 0;
	struct stream s;
	int peer;

	make_pair(&s, &peer);
	while (put < 4u << 20) {
		size_t len = prng_next(&random) % sizeof(bytes);

		for (size_t i = 0; i < len; i++)
			bytes[i] = from++;
		assert_int_equal(stream_buffer_put(&s.out, bytes, len), 0);
		put += len;
		if (prng_next(&random) % 2)
			assert_int_equal(stream_flush(&s, &sent), 0);
		assert_int_equal(sent + stream_buffer_filled(&s.out), put);
		/* On average as fast as it is sent, with times in which all buffers are full. */
		taken += take(peer, &to, prng_next(&random) % (put >> 20 & 1 ? 10000 : 100));
	}
	while (taken < put) {
		assert_int_equal(stream_flush(&s, &sent), 0);
		taken += take(peer, &to, SIZE_MAX);
	}
	assert_int_equal(sent, put);
	assert_int_equal(stream_buffer_filled(&s.out), 0);
	stream_close(&s);
	assert_int_equal(s.fd, -1);
	assert_null(s.out.at);
	close(peer);
}

static void it_waits_for_what_it_needs(void **state)
{
	struct stream s;
	int peer;

	make_pair(&s, &peer);
	assert_int_equal(stream_events(&s, true, false), POLLIN);
	assert_int_equal(stream_events(&s, false, false), 0);
	assert_int_equal(stream_buffer_put(&s.out, "x", 1), 0);
	assert_int_equal(stream_events(&s, false, false), POLLOUT);
	assert_int_equal(stream_events(&s, true, false), POLLIN | POLLOUT);
	s.tls_want_read = true; /* TLS must read before it can send */
	assert_int_equal(stream_events(&s, false, false), POLLIN);
	s.tls_want_read = false;
	assert_int_equal(stream_flush(&s, NULL), 0);
	s.tls_want_write = true; /* and the other way round */
	assert_int_equal(stream_events(&s, true, false), POLLOUT);
	stream_close(&s);
	close(peer);
}

static void a_peer_that_is_gone_is_an_error(void **state)
{
	char bytes[8];
	struct stream s;
	int peer;

	make_pair(&s, &peer);
	assert_int_equal(stream_recv(&s, bytes, sizeof(bytes)), -EAGAIN);
	assert_int_equal(write(peer, "last", 4), 4);
	shutdown(peer, SHUT_WR);
	assert_int_equal(stream_recv(&s, bytes, sizeof(bytes)), 4);
	assert_int_equal(stream_recv(&s, bytes, sizeof(bytes)), 0);
	close(peer);
	assert_int_equal(stream_buffer_put(&s.out, bytes, sizeof(bytes)), 0);
	assert_int_equal(stream_flush(&s, NULL), -EPIPE); /* and no SIGPIPE */
	stream_close(&s);
	stream_close(&s); /* without effect */
}

static void a_buffer_moves_before_it_grows(void **state)
{
	struct stream_buffer b = { 0 };
	char bytes[512] = { 0 };

	assert_int_equal(stream_buffer_put(&b, bytes, sizeof(bytes)), 0);
	assert_int_equal(b.size, 512);
	b.start = 500;
	assert_int_equal(stream_buffer_put(&b, bytes, 500), 0);
	assert_int_equal(b.size, 512);
	assert_int_equal(stream_buffer_filled(&b), 512);
	assert_int_equal(stream_buffer_put(&b, "x", 1), 0);
	assert_int_equal(b.size, 1024);
	assert_int_equal(b.at[512], 'x');
	stream_buffer_free(&b);
	assert_null(b.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_comes_in_order),
		cmocka_unit_test(it_waits_for_what_it_needs),
		cmocka_unit_test(a_peer_that_is_gone_is_an_error),
		cmocka_unit_test(a_buffer_moves_before_it_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
