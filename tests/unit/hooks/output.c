/* SPDX-License-Identifier: BSD-2-Clause */
/* Hooks that write: print, dump, digest. */
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/hook/part/select.h"
#include "harness.h"

#define R HOOK_NODE_READ
#define P HOOK_PATH
#define SIGNALS "signals = ( { name = \"u\"; unit = \"V\" }, { name = \"k\"; type = \"integer\" } ); "

static char path[64];

static void new_file(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/busbar-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
}

static const char *content(void)
{
	static char text[65536];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Standard output or error into the file until given_back(). */
static int taken(FILE *stream)
{
	int saved, fd;

	fflush(stream);
	saved = dup(fileno(stream));
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_true(saved >= 0 && fd >= 0);
	assert_true(dup2(fd, fileno(stream)) >= 0);
	close(fd);
	return saved;
}

static void given_back(FILE *stream, int saved)
{
	fflush(stream);
	assert_true(dup2(saved, fileno(stream)) >= 0);
	close(saved);
}

/* Configuration with the file's name in the place of %s. */
static const char *with_path(const char *text)
{
	static char full[1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(full, sizeof(full), text, path);
#pragma GCC diagnostic pop
	return full;
}

static void send(struct harness *t, uint64_t sequence, double u, int64_t k)
{
	struct sample *s = harness_sample(t, sequence,
					  1700000000000000000 +
						  sequence * 1000000);

	put_real(s, u);
	put_integer(s, k);
	assert_ptr_equal(harness_run(t, s), s);
}

static void print_appends_to_a_file(void **state)
{
	struct harness t;

	new_file();
	for (unsigned turn = 0; turn < 2; turn++) {
		harness_start(&t, R, with_path(SIGNALS "hooks = ( { type = \"print\"; output = \"%s\"; format = \"csv\" } );"));
		send(&t, turn, 0.5, -3);
		harness_end(&t);
	}
	/* One header, though it was opened twice. */
	assert_string_equal(content(),
		"# secs,nsecs,offset,sequence,u[V],k\n"
		"1700000000,000000000,0.000005000,0,0.5,-3\n"
		"1700000000,001000000,0.000005000,1,0.5,-3\n");
	unlink(path);
}

static void print_is_flushed_at_the_rate_of_the_statistics(void **state)
{
	struct harness t;

	new_file();
	harness_start(&t, R, with_path(SIGNALS "hooks = ( { type = \"print\"; output = \"%s\"; format = { type = \"villas.human\"; header = false; offset = false } } );"));
	send(&t, 7, 1, 2);
	assert_string_equal(content(), "");
	hook_list_periodic(t.hooks);
	assert_string_equal(content(), "1700000000.007000000(7)\t1.0\t2\n");
	harness_end(&t);
	unlink(path);
}

static void print_puts_who_it_is_before_each_line(void **state)
{
	const struct {
		enum hook_place place;
		const char *key, *expected;
	} cases[] = {
		{ R, "", "Node n: 1700000000.000000000(0)\t1.0\t2\nNode n: 1700000000.001000000(1)\t3.0\t4\n" },
		{ P, "", "Path a -> b: 1700000000.000000000(0)\t1.0\t2\nPath a -> b: 1700000000.001000000(1)\t3.0\t4\n" },
		{ P, "prefix = \"> \";", "> 1700000000.000000000(0)\t1.0\t2\n> 1700000000.001000000(1)\t3.0\t4\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct harness t;
		char text[400];
		int saved;

		new_file();
		snprintf(text, sizeof(text),
			 SIGNALS "hooks = ( { type = \"print\"; %s format = { type = \"villas.human\"; header = false; offset = false } } );",
			 cases[i].key);
		saved = taken(stdout);
		harness_start(&t, cases[i].place, text);
		send(&t, 0, 1, 2);
		send(&t, 1, 3, 4);
		harness_end(&t);
		given_back(stdout, saved);
		assert_string_equal(content(), cases[i].expected);
		unlink(path);
	}
}

static void print_takes_samples_of_any_length(void **state)
{
	struct harness t;
	struct sample *s;

	new_file();
	harness_start(&t, R, with_path("signals = \"20000f\"; hooks = ( { type = \"print\"; output = \"%s\" } );"));
	s = harness_sample(&t, 1, 1);
	for (unsigned i = 0; i < 20000; i++)
		put_real(s, 0.1);
	assert_non_null(harness_run(&t, s));
	harness_end(&t);
	{
		struct stat st;

		/* The header names all, the line holds all: 4 bytes each. */
		assert_int_equal(stat(path, &st), 0);
		assert_true(st.st_size > 20000 * 4 + 20000 * 11);
	}
	unlink(path);
}

static void dump_shows_all_that_is_known(void **state)
{
	struct harness t;
	struct sample *s;
	int saved;

	new_file();
	saved = taken(stderr);
	harness_start(&t, R, "signals = ( { name = \"u\"; unit = \"kV\" }, { name = \"k\"; type = \"integer\" },"
			 " { name = \"on\"; type = \"boolean\" }, { name = \"z\"; type = \"complex\" } ); hooks = ( \"dump\" );");
	s = harness_sample(&t, 3, 1700000000000000007);
	s->flags |= SAMPLE_NEW_FRAME;
	put_real(s, 0.1);
	put_integer(s, -7);
	put_integer(s, 1);
	put_complex(s, 1.5f, -2);
	put_real(s, 9);
	assert_ptr_equal(harness_run(&t, s), s);
	harness_end(&t);
	given_back(stderr, saved);
	assert_string_equal(content(),
		"n: sequence 3, origin 1700000000.000000007, received 1700000000.000005007, "
		"flags sequence|origin|received|data|new_frame, 5 of 8 values, 1 references\n"
		"  [0] u = 0.1 kV (float)\n"
		"  [1] k = -7 (integer)\n"
		"  [2] on = true (boolean)\n"
		"  [3] z = 1.5 -2.0i (complex)\n"
		"  [4] ? = 9.0 (float)\n");
	unlink(path);
}

#ifdef HAVE_DIGEST
/*
 * Reference value: the bytes of the sample as it is described in digest.c, put
 * together by hand and digested by sha256sum.
 */
static void digest_of_a_frame_is_that_of_its_bytes(void **state)
{
	struct harness t;
	struct sample *s;

	new_file();
	harness_start(&t, P, with_path("signals = ( { name = \"f\" }, { name = \"i\"; type = \"integer\" },"
			 " { name = \"b\"; type = \"boolean\" }, { name = \"z\"; type = \"complex\" } );"
			 " hooks = ( { type = \"digest\"; uri = \"%s\" } );"));
	s = harness_sample(&t, 2, 1500000000);
	s->flags |= SAMPLE_NEW_FRAME;
	put_real(s, 1.0);
	put_integer(s, -1);
	put_integer(s, 7); /* true, whatever it is */
	put_complex(s, 1, -2);
	assert_ptr_equal(harness_run(&t, s), s);
	/* The next frame ends this one. */
	s = harness_sample(&t, 3, 1600000000);
	s->flags |= SAMPLE_NEW_FRAME;
	harness_run(&t, s);
	harness_end(&t);
	assert_string_equal(content(),
		"1.500000000-2 1.500000000-2 sha256 97EAE0C2BDF3EAEAE826162A0666540A281B57728518D6797D258B2CD96D033F\n");
	unlink(path);
}

static const char *frames_of(const char *keys, double value, const char **text)
{
	struct harness t;
	char hooks[300];

	snprintf(hooks, sizeof(hooks),
		 SIGNALS "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 2 }, { type = \"digest\"; uri = \"%s\"; %s } );",
		 path, keys);
	harness_start(&t, P, hooks);
	for (uint64_t i = 0; i < 5; i++)
		send(&t, i, i == 2 ? value : 1, (int64_t)i);
	harness_end(&t);
	*text = content();
	return *text;
}

static void digest_writes_a_line_for_each_frame(void **state)
{
	char first[4096];
	const char *text, *line;
	unsigned n = 0;

	new_file();
	strcpy(first, frames_of("algorithm = \"md5\"", 1, &text));
	assert_int_equal(strncmp(first, "1700000000.000000000-0 1700000000.001000000-1 md5 ", 50), 0);
	for (line = first; line; line = strchr(line + 1, '\n'))
		n++;
	/* The last frame has one sample, and nothing says that it is whole. */
	assert_int_equal(n - 1, 2);
	assert_null(strstr(first, "1700000000.004000000-4"));
	/* The same again gives the same; one bit in the second frame changes
	 * that line alone. */
	assert_string_equal(frames_of("algorithm = \"md5\"", 1, &text), first);
	frames_of("algorithm = \"md5\"", nextafter(1, 2), &text);
	line = strchr(text, '\n') + 1;
	assert_int_equal(strncmp(first, text, (size_t)(line - text)), 0);
	assert_string_not_equal(line, first + (line - text));
	assert_string_equal(strchr(line, '\n'), strchr(first + (line - text), '\n'));
	unlink(path);
}

static void every_nan_has_the_same_digest(void **state)
{
	union signal_data other = { .bits = 0xfff8000000001234 };
	char first[4096];
	const char *text;

	new_file();
	strcpy(first, frames_of("", (double)NAN, &text));
	assert_string_equal(frames_of("", other.f, &text), first);
	unlink(path);
}

static void digest_says_when_there_are_no_frames(void **state)
{
	struct harness t;

	new_file();
	harness_start(&t, P, with_path(SIGNALS "hooks = ( { type = \"digest\"; uri = \"%s\" } );"));
	send(&t, 0, 0, 0);
	harness_end(&t);
	assert_string_equal(content(), "");
	assert_non_null(strstr(fake_log(), "no sample began a frame"));
	unlink(path);
}
#endif

static void keys_that_make_no_sense_are_refused(void **state)
{
	expect_refused(R, "hooks = ( { type = \"print\"; format = 3 } );", "hooks[0].format: expected the name of a format");
	expect_refused(R, "hooks = ( { type = \"print\"; format = \"cvs\" } );", "no format 'cvs', did you mean 'csv'?");
	expect_refused(R, "hooks = ( { type = \"print\"; format = { type = \"csv\"; separatr = \";\" } } );", "did you mean 'separator'?");
	expect_refused(R, "hooks = ( { type = \"print\"; output = \"/nowhere/file\" } );", "hook print cannot write /nowhere/file: No such file or directory");
	expect_refused(R, "hooks = ( { type = \"dump\"; output = \"/nowhere/file\" } );", "hooks[0].output: unknown key");
#ifdef HAVE_DIGEST
	expect_refused(P, "hooks = ( \"digest\" );", "hooks[0].uri: missing, but required");
	expect_refused(P, "hooks = ( { type = \"digest\"; uri = \"/nowhere/file\" } );", "hook digest cannot write /nowhere/file: No such file or directory");
	expect_refused(P, "hooks = ( { type = \"digest\"; uri = \"x\"; algorithm = \"sha265\" } );", "OpenSSL knows no digest 'sha265', did you mean 'sha256'?");
	expect_refused(P, "hooks = ( { type = \"digest\"; uri = \"x\"; algorithm = \"none whatever\" } );", "sha256 and sha512 are usual");
	expect_refused(R, "hooks = ( { type = \"digest\"; uri = \"x\" } );", "cannot stand on the `in` side");
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print_appends_to_a_file),
		cmocka_unit_test(print_is_flushed_at_the_rate_of_the_statistics),
		cmocka_unit_test(print_puts_who_it_is_before_each_line),
		cmocka_unit_test(print_takes_samples_of_any_length),
		cmocka_unit_test(dump_shows_all_that_is_known),
#ifdef HAVE_DIGEST
		cmocka_unit_test(digest_of_a_frame_is_that_of_its_bytes),
		cmocka_unit_test(digest_writes_a_line_for_each_frame),
		cmocka_unit_test(every_nan_has_the_same_digest),
		cmocka_unit_test(digest_says_when_there_are_no_frames),
#endif
		cmocka_unit_test(keys_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
