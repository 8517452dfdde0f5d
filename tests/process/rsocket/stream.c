/* SPDX-License-Identifier: BSD-2-Clause */
/* All bytes of a stream arrive once and in order, with every way to read them. */
#include "rs_help.h"

#include <pthread.h>
#include <sys/uio.h>

static void a_number_collides_with_no_other_descriptor(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), other;

	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(other >= 0 && other != fd);
	CHECK(rclose(fd) == 0);
	CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	CHECK(rclose(fd) == -1 && errno == EBADF);
	CHECK(rread(other, &fd, 1) == -1 && errno == EBADF);
	close(other);
}

static void bytes_arrive_by_every_call(void)
{
	struct rs_pair p;
	char out[] = "abcdefgh", in[9] = "";
	struct iovec two[2] = { { out, 3 }, { out + 3, 5 } };
	struct iovec into[2] = { { in, 1 }, { in + 1, 7 } };
	struct msghdr msg = { .msg_iov = two, .msg_iovlen = 2 };
	struct msghdr got = { .msg_iov = into, .msg_iovlen = 2 };

	rs_pair_make(&p, NULL);
#define ROUND(send, recv)                                  \
	do {                                               \
		memset(in, 0, sizeof(in));                 \
		CHECK((send) == 8);                        \
		CHECK(rs_poll(p.callee, POLLIN, -1) & POLLIN); \
		CHECK((recv) == 8);                        \
		CHECK(!strcmp(in, out));                   \
	} while (0)
	ROUND(rsend(p.caller, out, 8, 0), rrecv(p.callee, in, 8, 0));
	ROUND(rwrite(p.caller, out, 8), rread(p.callee, in, 8));
	ROUND(rwritev(p.caller, two, 2), rreadv(p.callee, into, 2));
	ROUND(rsendmsg(p.caller, &msg, 0), rrecvmsg(p.callee, &got, 0));
	ROUND(rsendto(p.caller, out, 8, 0, NULL, 0),
	      rrecvfrom(p.callee, in, 8, 0, NULL, NULL));
	CHECK(rsend(p.caller, out, 0, 0) == 0);
	rs_pair_free(&p);
}

static void peeked_bytes_stay(void)
{
	struct rs_pair p;
	char in[16];

	rs_pair_make(&p, NULL);
	CHECK(rsend(p.caller, "one", 3, 0) == 3);
	CHECK(rsend(p.caller, "two", 3, 0) == 3);
	CHECK(rrecv(p.callee, in, 2, MSG_PEEK) == 2 && !memcmp(in, "on", 2));
	while (rrecv(p.callee, in, sizeof(in), MSG_PEEK) < 6)
		;
	CHECK(!memcmp(in, "onetwo", 6));
	CHECK(rrecv(p.callee, in, 4, MSG_WAITALL) == 4 && !memcmp(in, "onet", 4));
	CHECK(rrecv(p.callee, in, sizeof(in), MSG_PEEK) == 2);
	CHECK(rrecv(p.callee, in, sizeof(in), 0) == 2 && !memcmp(in, "wo", 2));
	CHECK(rrecv(p.callee, in, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	rs_pair_free(&p);
}

static void *write_in_parts(void *arg)
{
	for (int i = 0; i < 5; i++) {
		usleep(2000);
		CHECK(rsend(*(int *)arg, "12345", 5, 0) == 5);
	}
	return NULL;
}

static void waiting_for_all_waits_for_all(void)
{
	struct rs_pair p;
	pthread_t thread;
	char in[25];

	rs_pair_make(&p, NULL);
	CHECK(!pthread_create(&thread, NULL, write_in_parts, &p.caller));
	CHECK(rrecv(p.callee, in, 25, MSG_WAITALL) == 25);
	CHECK(!memcmp(in, "1234512345123451234512345", 25));
	CHECK(!pthread_join(thread, NULL));
	rs_pair_free(&p);
}

static void a_full_connection_says_eagain_and_recovers(void)
{
	static char block[3000];
	struct rs_pair p;
	uint64_t sent = 0, got = 0;
	ssize_t n;

	rs_pair_make(&p, NULL);
	rs_nonblock(p.caller, true);
	for (int round = 0; round < 5; round++) {
		for (;;) {
			for (size_t i = 0; i < sizeof(block); i++)
				block[i] = (char)rs_byte(sent + i);
			n = rsend(p.caller, block, sizeof(block), 0);
			CHECK(n > 0 || (n < 0 && errno == EAGAIN));
			sent += n > 0 ? (uint64_t)n : 0;
			/* Full for 50 ms: not only while messages are under way. */
			if (n < 0 && !rs_poll(p.caller, POLLOUT, 50))
				break;
		}
		CHECK(sent - got > 64 << 10 && sent - got < 4 << 20);
		while (got < sent) {
			n = rrecv(p.callee, block, sizeof(block), 0);
			CHECK(n > 0);
			for (ssize_t i = 0; i < n; i++)
				CHECK(block[i] == (char)rs_byte(got++));
		}
		CHECK(rs_poll(p.caller, POLLOUT, -1) & POLLOUT);
	}
	rs_pair_free(&p);
}

static void the_end_comes_after_all_bytes(void)
{
	struct rs_pair p;
	char in[64];

	rs_pair_make(&p, NULL);
	CHECK(rsend(p.caller, "last words", 10, 0) == 10);
	CHECK(rshutdown(p.caller, SHUT_WR) == 0);
	CHECK(rsend(p.caller, "x", 1, 0) == -1 && errno == EPIPE);
	CHECK(rrecv(p.callee, in, sizeof(in), MSG_WAITALL) == 10);
	CHECK(rrecv(p.callee, in, sizeof(in), 0) == 0);
	CHECK(rs_poll(p.callee, POLLIN | POLLRDHUP, 0) == (POLLIN | POLLRDHUP));
	/* The other direction is still open. */
	CHECK(rsend(p.callee, "answer", 6, 0) == 6);
	CHECK(rclose(p.callee) == 0);
	CHECK(rrecv(p.caller, in, sizeof(in), MSG_WAITALL) == 6);
	CHECK(rrecv(p.caller, in, sizeof(in), 0) == 0);
	CHECK(rclose(p.caller) == 0);
	CHECK(rclose(p.listener) == 0);
}

static void bytes_sent_before_close_are_read(void)
{
	static char out[300000], in[300000];
	struct rs_pair p;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)rs_byte(i);
	rs_pair_make(&p, NULL);
	rs_nonblock(p.caller, true);
	CHECK(rsend(p.caller, out, sizeof(out), 0) > 100000);
	CHECK(rclose(p.caller) == 0);
	for (size_t at = 0;;) {
		ssize_t n = rrecv(p.callee, in + at, sizeof(in) - at, 0);

		CHECK(n >= 0);
		at += (size_t)n;
		if (n)
			continue;
		CHECK(at > 100000 && !memcmp(in, out, at));
		break;
	}
	CHECK(rs_poll(p.callee, 0, -1) & POLLHUP);
	CHECK(rsend(p.callee, out, 1, 0) == -1 && errno == EPIPE);
	CHECK(rclose(p.callee) == 0);
	CHECK(rclose(p.listener) == 0);
}

/* rstream takes POLLHUP for the end, whatever is there beside it. */
static void who_reads_hears_of_the_bytes_before_the_end(void)
{
	struct rs_pair p;
	char in[8];

	rs_pair_make(&p, NULL);
	CHECK(rsend(p.caller, "the last", 8, 0) == 8);
	CHECK(rclose(p.caller) == 0);
	/* The end is here, behind the bytes, for who does not ask for them. */
	CHECK(rs_poll(p.callee, 0, -1) & POLLHUP);
	for (int left = 8; left; left--) {
		CHECK((rs_poll(p.callee, POLLIN, -1) & (POLLIN | POLLHUP)) == POLLIN);
		CHECK(rrecv(p.callee, in, 1, 0) == 1);
	}
	CHECK(rs_poll(p.callee, POLLIN, -1) & POLLHUP);
	CHECK(rrecv(p.callee, in, 1, 0) == 0);
	CHECK(rclose(p.callee) == 0);
	CHECK(rclose(p.listener) == 0);
}

static void *read_one(void *arg)
{
	char byte;
	ssize_t n = rrecv(*(int *)arg, &byte, 1, 0);

	return (void *)(intptr_t)(n == 1 ? byte : n - 1000);
}

static void a_waiting_reader_is_woken(void)
{
	struct rs_pair p;
	pthread_t thread;
	void *result;

	rs_pair_make(&p, NULL);
	CHECK(!pthread_create(&thread, NULL, read_one, &p.callee));
	usleep(20000); /* the other thread probably sleeps by then; the test holds if not */
	CHECK(rsend(p.caller, "x", 1, 0) == 1);
	CHECK(!pthread_join(thread, &result) && (intptr_t)result == 'x');

	CHECK(!pthread_create(&thread, NULL, read_one, &p.callee));
	usleep(20000);
	CHECK(rshutdown(p.callee, SHUT_RD) == 0);
	CHECK(!pthread_join(thread, &result) && (intptr_t)result == -1000);
	rs_pair_free(&p);
}

struct flow {
	int fd;
	uint64_t bytes;
	uint64_t done;
};

static void *flow_out(void *arg)
{
	static _Thread_local uint8_t buf[20000];
	struct flow *f = arg;

	while (f->done < f->bytes) {
		size_t len = 1 + f->done * 7919 % sizeof(buf);

		if (len > f->bytes - f->done)
			len = f->bytes - f->done;
		for (size_t i = 0; i < len; i++)
			buf[i] = rs_byte(f->done + i);
		rs_write_all(f->fd, buf, len);
		f->done += len;
	}
	return NULL;
}

static void *flow_in(void *arg)
{
	static _Thread_local uint8_t buf[15000];
	struct flow *f = arg;

	while (f->done < f->bytes) {
		ssize_t n = rrecv(f->fd, buf, 1 + f->done * 104729 % sizeof(buf), 0);

		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK(buf[i] == rs_byte(f->done++));
	}
	return NULL;
}

static void four_threads_use_both_directions_at_once(void)
{
	enum { BYTES = 4 << 20 };
	struct rs_pair p;
	pthread_t thread[4];

	rs_pair_make(&p, NULL);
	struct flow flow[4] = { { p.caller, BYTES, 0 }, { p.callee, BYTES, 0 },
				{ p.callee, BYTES, 0 }, { p.caller, BYTES, 0 } };
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, i % 2 ? flow_in : flow_out,
				      &flow[i]));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(thread[i], NULL));
	rs_pair_free(&p);
}

CM_MAIN(CASE(a_number_collides_with_no_other_descriptor),
	CASE(bytes_arrive_by_every_call),
	CASE(peeked_bytes_stay),
	CASE(waiting_for_all_waits_for_all),
	CASE(a_full_connection_says_eagain_and_recovers),
	CASE(the_end_comes_after_all_bytes),
	CASE(bytes_sent_before_close_are_read),
	CASE(who_reads_hears_of_the_bytes_before_the_end),
	CASE(a_waiting_reader_is_woken),
	CASE(four_threads_use_both_directions_at_once))
