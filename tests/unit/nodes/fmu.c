/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives of the node-type fmu that take more than they may, and values on their way between
 * signals and variables of all types. That wrong archives of other kinds are refused is shown by
 * tests/process/fmu.
 */
#include "fixture.h"

#include <archive.h>
#include <archive_entry.h>
#include <math.h>
#include <sys/stat.h>

#include "gateway/node/fmu/fmu.h"

/* ---- archives ---- */

struct file {
	const char *name;
	size_t size; /* of zeros */
};

static void make_archive(const char *path, const struct file files[], unsigned count)
{
	static const char zeros[65536];
	struct archive *a = archive_write_new();

	assert_int_equal(archive_write_set_format_zip(a), ARCHIVE_OK);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	for (unsigned i = 0; i < count; i++) {
		struct archive_entry *e = archive_entry_new();

		archive_entry_set_pathname(e, files[i].name);
		archive_entry_set_filetype(e, AE_IFREG);
		archive_entry_set_perm(e, 0644);
		assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
		for (size_t left = files[i].size; left;) {
			la_ssize_t n = archive_write_data(a, zeros, MIN(left, sizeof(zeros)));

			assert_true(n > 0);
			left -= (size_t)n;
		}
		archive_entry_free(e);
	}
	assert_int_equal(archive_write_free(a), ARCHIVE_OK);
}

static unsigned count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		count += d->d_name[0] != '.';
	closedir(dir);
	return count;
}

static int unpack(const char *path, const struct fmu_limits *limits, char folder[4096],
		  struct fmu_why *why)
{
	int ret;

	assert_true(!mkdir(scratch("parent"), 0700) || errno == EEXIST);
	ret = fmu_archive_unpack(path, scratch("parent"), "model", limits, folder, 4096, why);
	/* Of what was refused nothing is left. */
	assert_int_equal(count_files(scratch("parent")), !ret);
	return ret;
}

static void an_archive_unpacks_to_no_more_than_it_may(void **unused)
{
	static const struct file files[] = {
		{ "modelDescription.xml", 1000 }, { "documentation/large", 300000 },
		{ "resources/a", 100000 }, { "resources/b", 50000 },
	};
	struct fmu_limits limits = fmu_limits;
	char folder[4096], *text;
	char path[300];
	struct fmu_why why;
	struct stat st;
	size_t length;

	snprintf(path, sizeof(path), "%s", scratch("a.fmu"));
	make_archive(path, files, ARRAY_SIZE(files));
	stat(path, &st);
	assert_true(st.st_size < 10000);
	limits.bytes = 151000;
	assert_int_equal(unpack(path, &limits, folder, &why), 0);
	snprintf(folder + strlen(folder), 30, "/resources/b");
	assert_true(!stat(folder, &st) && st.st_size == 50000 && !(st.st_mode & 077));
	*strstr(folder, "/resources") = '\0';
	snprintf(path, sizeof(path), "%.200s/documentation", folder);
	assert_true(access(path, F_OK));
	fmu_folder_remove(folder);
	assert_int_equal(count_files(scratch("parent")), 0);

	snprintf(path, sizeof(path), "%s", scratch("a.fmu"));
	for (uint64_t bytes = 0; bytes < 151000; bytes += 10066) {
		limits.bytes = bytes;
		assert_int_equal(unpack(path, &limits, folder, &why), -EFBIG);
		assert_non_null(strstr(why.text, "unpacks to more than"));
	}
	limits = fmu_limits;
	for (limits.entries = 0; limits.entries < 4; limits.entries++) {
		assert_int_equal(unpack(path, &limits, folder, &why), -EFBIG);
		assert_non_null(strstr(why.text, "more than"));
	}
	limits.description = 999;
	assert_int_equal(fmu_archive_describe(path, &limits, &text, &length, &why), -EFBIG);
	limits.description = 1000;
	assert_int_equal(fmu_archive_describe(path, &limits, &text, &length, &why), 0);
	assert_int_equal(length, 1000);
	free(text);
	rmdir(scratch("parent"));
	clear_scratch();
}

/* ---- values ---- */

static const struct {
	enum fmu_type type;
	double min, max;
} integers[] = {
	{ FMU_INT8, -128, 127 },         { FMU_UINT8, 0, 255 },
	{ FMU_INT16, -32768, 32767 },    { FMU_UINT16, 0, 65535 },
	{ FMU_INT32, -0x1p31, 0x1p31 - 1 }, { FMU_UINT32, 0, 0x1p32 - 1 },
};

static void integers_hold_what_their_type_holds(void **unused)
{
	for (size_t k = 0; k < ARRAY_SIZE(integers); k++) {
		const struct fmu_variable v = { .type = (uint8_t)integers[k].type };
		const double edges[] = { integers[k].min, integers[k].max };

		for (unsigned e = 0; e < 2; e++) {
			for (int by = -3; by <= 3; by++) {
				double value = edges[e] + by;
				bool fits = value >= integers[k].min && value <= integers[k].max;
				union signal_data i = { .i = (int64_t)value }, f = { .f = value + 0.25 };
				union signal_data back;
				union fmu_value to;

				assert_int_equal(!fmu_value_from_signal(&v, SIGNAL_INTEGER, &i, &to),
						 fits);
				assert_int_equal(!fmu_value_from_signal(&v, SIGNAL_FLOAT, &f, &to), fits);
				if (!fits)
					continue;
				fmu_value_to_signal(&v, to, SIGNAL_FLOAT, &back);
				assert_true(back.f == value);
				fmu_value_to_signal(&v, to, SIGNAL_INTEGER, &back);
				assert_int_equal(back.i, i.i);
			}
		}
	}
}

static void what_is_no_number_is_no_integer(void **unused)
{
	static const double wrong[] = { NAN, INFINITY, -INFINITY, 1e300, -1e19, 0x1p63 };

	for (unsigned type = FMU_INT8; type < FMU_NUMBERS; type++) {
		const struct fmu_variable v = { .type = (uint8_t)type };

		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
			union signal_data f = { .f = wrong[i] };
			union fmu_value to;
			bool fits = type == FMU_BOOLEAN && !isnan(wrong[i]);

			assert_int_equal(!fmu_value_from_signal(&v, SIGNAL_FLOAT, &f, &to), fits);
			assert_non_null(fmu_value_from_signal(&v, SIGNAL_COMPLEX, &f, &to));
		}
	}
}

static void values_of_64_bits_keep_all_of_them(void **unused)
{
	const struct fmu_variable i64 = { .type = FMU_INT64 }, u64 = { .type = FMU_UINT64 };
	union signal_data s = { .i = INT64_MIN };
	union fmu_value to;

	assert_null(fmu_value_from_signal(&i64, SIGNAL_INTEGER, &s, &to));
	fmu_value_to_signal(&i64, to, SIGNAL_INTEGER, &s);
	assert_true(s.i == INT64_MIN);
	assert_non_null(fmu_value_from_signal(&u64, SIGNAL_INTEGER, &s, &to));
	s.f = -0x1p63;
	assert_null(fmu_value_from_signal(&i64, SIGNAL_FLOAT, &s, &to));
	assert_true(to.i == INT64_MIN);
	/* Above what a signal can have. */
	to.i = -1;
	fmu_value_to_signal(&u64, to, SIGNAL_INTEGER, &s);
	assert_true(s.i == INT64_MAX);
	fmu_value_to_signal(&u64, to, SIGNAL_FLOAT, &s);
	assert_true(s.f == 0x1p64);
	fmu_value_to_signal(&u64, to, SIGNAL_BOOLEAN, &s);
	assert_int_equal(s.i, 1);
}

static void floats_and_booleans_are_converted(void **unused)
{
	const struct fmu_variable f = { .type = FMU_FLOAT64 }, b = { .type = FMU_BOOLEAN };
	union signal_data s = { .i = -7 };
	union fmu_value to;

	assert_null(fmu_value_from_signal(&f, SIGNAL_INTEGER, &s, &to));
	assert_true(to.f == -7);
	s.f = 0.5;
	assert_null(fmu_value_from_signal(&b, SIGNAL_FLOAT, &s, &to));
	assert_int_equal(to.i, 1);
	to.f = 2.75;
	fmu_value_to_signal(&f, to, SIGNAL_INTEGER, &s);
	assert_int_equal(s.i, 2);
	fmu_value_to_signal(&f, to, SIGNAL_BOOLEAN, &s);
	assert_int_equal(s.i, 1);
	to.f = NAN;
	fmu_value_to_signal(&f, to, SIGNAL_INTEGER, &s);
	assert_int_equal(s.i, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_archive_unpacks_to_no_more_than_it_may),
		cmocka_unit_test(integers_hold_what_their_type_holds),
		cmocka_unit_test(what_is_no_number_is_no_integer),
		cmocka_unit_test(values_of_64_bits_keep_all_of_them),
		cmocka_unit_test(floats_and_booleans_are_converted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
