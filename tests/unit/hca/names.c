/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of names of the abstract namespace, read from texts as the kernel gives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/names.h"

#define HEAD "Num       RefCount Protocol Flags    Type St Inode Path\n"
#define ONE "0000000000000000: 00000002 00000000 00010000 0005 01 11 @busbar.qpn.7\n"
#define TWO "0000000000000000: 00000002 00000000 00000000 0005 01 12 @busbar.qpn.8\n"
#define THREE "0000000000000000: 00000002 00000000 00010000 0005 01 13 @busbar.qpn.9\n"
#define OTHERS "0000000000000000: 00000003 00000000 00000000 0001 03 20\n" \
	       "0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/busbar.qpn.7\n" \
	       "0000000000000000: 00000002 00000000 00010000 0001 01 22 @other.qpn.7\n"

static const char *const *passes; /* what each reading of the list gives; the last one again */
static unsigned reads;

/* fopen() has the second name with large files. */
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode) __attribute__((alias("__wrap_fopen")));
FILE *__wrap_fopen(const char *path, const char *mode)
{
	const char *text = *passes;

	assert_string_equal(path, "/proc/net/unix");
	assert_int_equal(*mode, 'r');
	if (passes[1])
		passes++;
	reads++;
	if (!text) {
		errno = EACCES;
		return NULL;
	}
	return fmemopen((void *)(uintptr_t)text, strlen(text), "r");
}

static void note(const struct hca_name_seen *seen, void *arg)
{
	char *to = arg;

	sprintf(to + strlen(to), "%s:%llu%s ", seen->rest, (unsigned long long)seen->inode,
		seen->listens ? "" : "!");
}

static void expect_names(const char *const texts[], const char *names)
{
	char got[200] = "";

	passes = texts;
	reads = 0;
	assert_int_equal(hca_names_each(HCA_NAME_OF_BLOCKS, note, got), 0);
	assert_string_equal(got, names);
}

static void names_of_the_prefix_are_found(void **state)
{
	(void)state;
	expect_names((const char *[]){ HEAD ONE OTHERS TWO, NULL }, "7:11 8:12! ");
	expect_names((const char *[]){ HEAD OTHERS, NULL }, "");
}

static void a_name_that_comes_twice_is_found_once(void **state)
{
	(void)state;
	expect_names((const char *[]){ HEAD ONE TWO ONE, NULL }, "7:11 8:12! ");
}

static void a_name_that_was_left_out_is_found(void **state)
{
	(void)state;
	expect_names((const char *[]){ HEAD ONE, HEAD ONE TWO, NULL }, "7:11 8:12! ");
	expect_names((const char *[]){ HEAD, HEAD ONE, NULL }, "7:11 ");
	expect_names((const char *[]){ HEAD ONE TWO, HEAD THREE TWO, HEAD ONE, NULL },
		     "7:11 8:12! 9:13 ");
}

static void names_without_end_come_to_an_end(void **state)
{
	static char lines[20][100];
	const char *texts[21] = { NULL };
	char got[1000] = "";

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(lines[i], sizeof(lines[i]), "0: 0 0 00010000 0005 01 %d @busbar.qpn.%d\n",
			 i + 1, i + 1);
		texts[i] = lines[i];
	}
	passes = texts;
	reads = 0;
	assert_int_equal(hca_names_each(HCA_NAME_OF_BLOCKS, note, got), 0);
	assert_in_range(reads, 2, 19);
}

static void a_list_that_cannot_be_read_is_an_error(void **state)
{
	char got[200] = "";

	(void)state;
	passes = (const char *[]){ NULL, NULL };
	assert_int_equal(hca_names_each(HCA_NAME_OF_BLOCKS, note, got), -EACCES);
	assert_string_equal(got, "");
}

struct owner {
	int socket;
	pthread_t thread;
};

/* Comes a little later, and takes all who have called. */
static void *take_callers(void *arg)
{
	struct owner *o = arg;
	int fd;

	poll(NULL, 0, 2);
	while ((fd = accept4(o->socket, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		close(fd);
	return NULL;
}

static void a_socket_with_too_many_callers_is_called_again(void **state)
{
	/* No block has such a number, so nobody asks for it. */
	const uint32_t block = 1000000 + (uint32_t)getpid();
	struct owner o = { .socket = hca_block_bind(block) };
	int callers[1000], count, found = -EAGAIN;

	assert_true(o.socket >= 0);
	/* The thread may be late; not always. */
	for (int tries = 0; tries < 50 && found == -EAGAIN; tries++) {
		for (count = 0; (callers[count] = hca_block_connect(block)) >= 0;)
			assert_true(++count < 1000);
		assert_int_equal(callers[count], -EAGAIN);
		assert_int_equal(pthread_create(&o.thread, NULL, take_callers, &o), 0);
		found = hca_block_call(block);
		pthread_join(o.thread, NULL);
		while (count > 0)
			close(callers[--count]);
	}
	assert_true(found >= 0);
	close(found);
	close(o.socket);
	assert_int_equal(hca_block_call(block), -ECONNREFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_the_prefix_are_found),
		cmocka_unit_test(a_name_that_comes_twice_is_found_once),
		cmocka_unit_test(a_name_that_was_left_out_is_found),
		cmocka_unit_test(names_without_end_come_to_an_end),
		cmocka_unit_test(a_list_that_cannot_be_read_is_an_error),
		cmocka_unit_test(a_socket_with_too_many_callers_is_called_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
