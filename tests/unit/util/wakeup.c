/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors that wake: what is counted, and that nothing but waiting blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "util/wakeup.h"

/* Whoever reads or writes it for ever is ended. */
#define TEST_LIMIT_S 20

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void set_blocking(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	assert_int_equal(fcntl(fd, F_SETFL, on ? flags & ~O_NONBLOCK :
						 flags | O_NONBLOCK), 0);
}

static void posts_of_a_signal_are_drained_at_once(void **state)
{
	int fd = wakeup_open_signal();

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_false(is_readable(fd));
	assert_int_equal(wakeup_drain(fd), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wakeup_post(fd), 0);
	assert_true(is_readable(fd));
	assert_int_equal(wakeup_drain(fd), 3);
	assert_false(is_readable(fd));
	close(fd);
}

static void a_full_signal_is_no_error(void **state)
{
	const uint64_t most = UINT64_MAX - 1;
	int fd = wakeup_open_signal();

	(void)state;
	assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
	assert_int_equal(wakeup_post(fd), 0);
	assert_int_equal(wakeup_drain(fd), most);
	close(fd);
}

static void draining_does_not_block_when_a_peer_made_it_blocking(void **state)
{
	int fd = wakeup_open_signal();

	(void)state;
	set_blocking(fd, true);
	assert_int_equal(wakeup_drain(fd), 0);
	close(fd);
}

static void each_post_of_a_counter_is_one_event(void **state)
{
	int fd = wakeup_open_counter();

	(void)state;
	assert_true(fd >= 0);
	assert_false(wakeup_take(fd)); /* the descriptor blocks, this does not */
	for (int i = 0; i < 3; i++)
		assert_int_equal(wakeup_post(fd), 0);
	assert_true(wakeup_take(fd));
	assert_int_equal(wakeup_wait(fd), 0);
	assert_true(is_readable(fd));
	assert_true(wakeup_take(fd));
	assert_false(wakeup_take(fd));
	assert_false(is_readable(fd));
	set_blocking(fd, false);
	assert_int_equal(wakeup_wait(fd), -EAGAIN);
	close(fd);
}

static void *poster(void *arg)
{
	assert_int_equal(wakeup_post(*(int *)arg), 0);
	return NULL;
}

static void who_waits_is_woken(void **state)
{
	int fd = wakeup_open_counter();
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, poster, &fd), 0);
	assert_int_equal(wakeup_wait(fd), 0);
	pthread_join(thread, NULL);
	close(fd);
}

static void what_is_no_wakeup_is_said(void **state)
{
	(void)state;
	assert_int_equal(wakeup_post(-1), -EBADF);
	assert_int_equal(wakeup_wait(-1), -EBADF);
	assert_int_equal(wakeup_drain(-1), 0);
	assert_false(wakeup_take(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posts_of_a_signal_are_drained_at_once),
		cmocka_unit_test(a_full_signal_is_no_error),
		cmocka_unit_test(draining_does_not_block_when_a_peer_made_it_blocking),
		cmocka_unit_test(each_post_of_a_counter_is_one_event),
		cmocka_unit_test(who_waits_is_woken),
		cmocka_unit_test(what_is_no_wakeup_is_said),
	};

	alarm(TEST_LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
