/* SPDX-License-Identifier: BSD-2-Clause */
/* A descriptor from a peer is mapped only if no access to the mapping can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transport/shm/ring/area.h"

enum { BYTES = 8192 };

static int memory_file(off_t bytes, unsigned flags, int seals)
{
	int fd = memfd_create("test", flags);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	if (seals)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static int check_and_close(int fd, uint64_t length)
{
	bool stays = shm_memory_stays(fd, length);

	close(fd);
	return stays ? 0 : -1;
}

static void a_sealed_file_of_the_length_is_mapped(void **state)
{
	assert_int_equal(check_and_close(memory_file(BYTES, MFD_ALLOW_SEALING,
						     F_SEAL_SHRINK |
							     F_SEAL_GROW),
					 BYTES), 0);
}

static void a_file_that_is_too_short_is_not(void **state)
{
	assert_true(check_and_close(memory_file(BYTES - 1, MFD_ALLOW_SEALING,
						F_SEAL_SHRINK),
				    BYTES) < 0);
	assert_true(check_and_close(memory_file(0, MFD_ALLOW_SEALING,
						F_SEAL_SHRINK),
				    UINT64_MAX) < 0);
}

static void a_file_that_can_become_shorter_is_not(void **state)
{
	assert_true(check_and_close(memory_file(BYTES, MFD_ALLOW_SEALING, 0),
				    BYTES) < 0);
	assert_true(check_and_close(memory_file(BYTES, MFD_ALLOW_SEALING,
						F_SEAL_GROW),
				    BYTES) < 0);
}

static void what_is_no_memory_file_is_not(void **state)
{
	FILE *f = tmpfile();
	int ends[2];

	assert_non_null(f);
	assert_int_equal(ftruncate(fileno(f), BYTES), 0);
	assert_true(!shm_memory_stays(fileno(f), BYTES));
	fclose(f);
	assert_int_equal(pipe(ends), 0);
	assert_true(!shm_memory_stays(ends[0], BYTES));
	close(ends[1]);
	assert_true(check_and_close(ends[0], BYTES) < 0);
	assert_true(check_and_close(open("/dev/zero", O_RDWR), BYTES) < 0);
	assert_true(!shm_memory_stays(-1, BYTES));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sealed_file_of_the_length_is_mapped),
		cmocka_unit_test(a_file_that_is_too_short_is_not),
		cmocka_unit_test(a_file_that_can_become_shorter_is_not),
		cmocka_unit_test(what_is_no_memory_file_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
