/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the abstract namespace: who has one, and that it ends with its socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "util/abstract.h"

static struct abstract_name name_of(const char *what)
{
	struct abstract_name name;

	assert_int_equal(abstract_name(&name, "busbar.test.%d.%s", (int)getpid(),
				       what), 0);
	return name;
}

static void a_name_has_one_holder_until_its_socket_ends(void **state)
{
	struct abstract_name name = name_of("one");
	int fd = abstract_open(&name, SOCK_SEQPACKET, 1), other;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(abstract_open(&name, SOCK_SEQPACKET, 1), -EADDRINUSE);
	other = abstract_connect(&name);
	assert_true(other >= 0);
	close(other);
	close(fd);
	assert_int_equal(abstract_connect(&name), -ECONNREFUSED);
	fd = abstract_open(&name, SOCK_SEQPACKET, 1);
	assert_true(fd >= 0);
	close(fd);
}

static void each_type_of_socket_has_names_of_its_own(void **state)
{
	struct abstract_name name = name_of("types");
	int fd = abstract_open(&name, SOCK_SEQPACKET, 1);
	int other = abstract_open(&name, SOCK_DGRAM, 0);

	(void)state;
	assert_true(fd >= 0 && other >= 0);
	assert_int_equal(abstract_open(&name, SOCK_DGRAM, 0), -EADDRINUSE);
	close(fd);
	close(other);
}

static void a_socket_looks_for_a_name_that_is_free(void **state)
{
	struct abstract_name first = name_of("first"), second = name_of("second");
	int holder = abstract_open(&first, SOCK_SEQPACKET, 0);
	int fd = abstract_socket(SOCK_SEQPACKET);

	(void)state;
	assert_true(holder >= 0 && fd >= 0);
	assert_int_equal(abstract_take(fd, &first), -EADDRINUSE);
	assert_int_equal(abstract_take(fd, &second), 0);
	close(fd);
	close(holder);
}

static void sockets_that_do_not_listen_or_are_of_another_type_refuse(void **state)
{
	struct abstract_name name = name_of("refuses");
	int fd = abstract_open(&name, SOCK_DGRAM, 0);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(abstract_connect(&name), -ECONNREFUSED);
	close(fd);
	fd = abstract_open(&name, SOCK_SEQPACKET, 0);
	assert_true(fd >= 0);
	assert_int_equal(abstract_connect(&name), -ECONNREFUSED);
	close(fd);
}

static void a_name_is_all_of_its_bytes_and_no_more(void **state)
{
	struct abstract_name name = name_of("abc"), start = name_of("ab"), longest;
	char text[sizeof(name.address.sun_path) + 1];
	int fd = abstract_open(&name, SOCK_SEQPACKET, 1);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(abstract_connect(&start), -ECONNREFUSED);
	close(fd);
	memset(text, 'x', sizeof(text));
	text[sizeof(name.address.sun_path) - 1] = '\0';
	assert_int_equal(abstract_name(&longest, "%s", text), -ENAMETOOLONG);
	text[sizeof(name.address.sun_path) - 2] = '\0';
	assert_int_equal(abstract_name(&longest, "%s", text), 0);
	fd = abstract_open(&longest, SOCK_SEQPACKET, 1);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_one_holder_until_its_socket_ends),
		cmocka_unit_test(each_type_of_socket_has_names_of_its_own),
		cmocka_unit_test(a_socket_looks_for_a_name_that_is_free),
		cmocka_unit_test(sockets_that_do_not_listen_or_are_of_another_type_refuse),
		cmocka_unit_test(a_name_is_all_of_its_bytes_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
