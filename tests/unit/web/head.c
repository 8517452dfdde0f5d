/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads of HTTP: what is accepted and what it means. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "web/head.h"

static struct head_text text_of(const char *t)
{
	return (struct head_text){ t, strlen(t) };
}

static int parse(struct head_request *q, const char *t)
{
	return head_request_parse(q, t, strlen(t));
}

static void reads_method_target_and_fields(void **state)
{
	struct head_request q;

	(void)state;
	assert_int_equal(parse(&q, "GET /a HTTP/1.1\r\nhost: x\r\nA:  b c \r\n\r\nmore"), 0);
	assert_int_equal(q.method, HEAD_GET);
	assert_true(head_is(q.target, "/a"));
	assert_int_equal(q.minor, 1);
	assert_int_equal(q.head.count, 2);
	assert_true(head_is(head_find(&q.head, "a")->value, "b c"));
	assert_int_equal(q.head.bytes, strlen("GET /a HTTP/1.1\r\nhost: x\r\nA:  b c \r\n\r\n"));
}

static void waits_for_the_end_at_every_length(void **state)
{
	static const char t[] = "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n";
	struct head_request q;

	(void)state;
	for (size_t n = 0; n < sizeof(t) - 1; n++)
		assert_int_equal(head_request_parse(&q, t, n), -EAGAIN);
	assert_int_equal(head_request_parse(&q, t, sizeof(t) - 1), 0);
	assert_int_equal(q.method, HEAD_HEAD);
}

static void refuses_what_others_may_read_differently(void **state)
{
	static const char *const bad[] = {
		"GET /a HTTP/1.1\nHost: x\n\n",               /* no CR */
		"GET /a HTTP/1.1\r\nHost : x\r\n\r\n",        /* blank before the colon */
		"GET /a HTTP/1.1\r\nHost: x\r\n b: c\r\n\r\n", /* folded */
		"GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"GET /a HTTP/1.1\r\n\r\n",                    /* no host */
		"GET  /a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a\r\nHost: x\r\n\r\n", "/a HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", "\r\n\r\n",
	};
	struct head_request q;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(&q, bad[i]) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(parse(&q, "GET /a HTTP/2.0\r\nHost: x\r\n\r\n"), -EPROTONOSUPPORT);
	assert_int_equal(parse(&q, "GET /a HTTP/1.0\r\n\r\n"), 0);
}

static void has_a_limit_of_fields(void **state)
{
	char t[20 + 6 * (HEAD_FIELDS_MAX + 1) + 3] = "GET / HTTP/1.0\r\n";
	struct head_request q;

	(void)state;
	for (unsigned i = 0; i < HEAD_FIELDS_MAX; i++)
		strcat(t, "a: b\r\n");
	strcat(t, "\r\n");
	assert_int_equal(parse(&q, t), 0);
	strcpy(t + strlen(t) - 2, "a: b\r\n\r\n");
	assert_int_equal(parse(&q, t), -E2BIG);
}

static void path_is(const char *target, const char *want)
{
	char out[32];

	assert_int_equal(head_path(text_of(target), out, sizeof(out)), 0);
	assert_string_equal(out, want);
}

static void paths_are_decoded_and_stay_inside(void **state)
{
	char out[8];

	(void)state;
	path_is("/", "");
	path_is("/a/b", "a/b");
	path_is("//a/./b//c/?q=/../x", "a/b/c/");
	path_is("/a%20b%2fc", "a b/c");
	path_is("/..a/b..", "..a/b..");
	path_is("http://host/a", "a");
	path_is("http://host", "");
	assert_int_equal(head_path(text_of("/../a"), out, sizeof(out)), -EACCES);
	assert_int_equal(head_path(text_of("/a/.."), out, sizeof(out)), -EACCES);
	assert_int_equal(head_path(text_of("/%2E%2e%2Fa"), out, sizeof(out)), -EACCES);
	assert_int_equal(head_path(text_of("/a%00b"), out, sizeof(out)), -EBADMSG);
	assert_int_equal(head_path(text_of("/a%2"), out, sizeof(out)), -EBADMSG);
	assert_int_equal(head_path(text_of("a"), out, sizeof(out)), -EBADMSG);
	assert_int_equal(head_path(text_of("/123456"), out, sizeof(out)), 0);
	assert_int_equal(head_path(text_of("/1234567"), out, sizeof(out)), 0);
	assert_int_equal(head_path(text_of("/12345678"), out, sizeof(out)), -ENAMETOOLONG);
}

static void range_is(const char *value, int ret, uint64_t first, uint64_t count)
{
	uint64_t f = 0, c = 0;

	assert_int_equal(head_range(text_of(value), 1000, &f, &c), ret);
	assert_int_equal(f, first);
	assert_int_equal(c, count);
}

static void ranges_are_cut_at_the_end(void **state)
{
	uint64_t f, c;

	(void)state;
	range_is("bytes=0-0", 0, 0, 1);
	range_is("bytes=10-19", 0, 10, 10);
	range_is("bytes=990-2000", 0, 990, 10);
	range_is("bytes=999-", 0, 999, 1);
	range_is("bytes=-5", 0, 995, 5);
	range_is("bytes=-5000", 0, 0, 1000);
	range_is("bytes=5-9223372036854775807", 0, 5, 995);
	range_is("bytes=1000-", -ERANGE, 0, 0);
	range_is("bytes=5-4", -ENOENT, 0, 0);
	range_is("bytes=0-1,3-4", -ENOENT, 0, 0);
	range_is("bytes=-", -ENOENT, 0, 0);
	range_is("bytes=0-18446744073709551616", -ENOENT, 0, 0);
	range_is("lines=0-1", -ENOENT, 0, 0);
	assert_int_equal(head_range(text_of("bytes=-0"), 10, &f, &c), -ERANGE);
	assert_int_equal(head_range(text_of("bytes=0-"), 0, &f, &c), -ERANGE);
}

static void dates_have_three_forms(void **state)
{
	static const char *const forms[] = {
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994",
	};
	char text[HEAD_DATE_BYTES];
	time_t when;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(head_date_parse(text_of(forms[i]), &when));
		assert_int_equal(when, 784111777);
	}
	assert_false(head_date_parse(text_of("yesterday"), &when));
	head_date_print(784111777, text);
	assert_string_equal(text, forms[0]);
}

static void answers_have_a_status(void **state)
{
	static const char good[] = "HTTP/1.1 404 Not Found\r\nRipc-Request: 7\r\n\r\n";
	static const char bad[] = "HTTP/1.1 40 Not\r\n\r\n";
	struct head_answer a;

	(void)state;
	assert_int_equal(head_answer_parse(&a, good, sizeof(good) - 1), 0);
	assert_int_equal(a.status, 404);
	assert_int_equal(head_answer_parse(&a, bad, sizeof(bad) - 1), -EBADMSG);
	assert_true(head_lists(text_of("keep-alive, Close"), text_of("close")));
	assert_false(head_lists(text_of("closed"), text_of("close")));
	assert_string_equal(head_content_type("a.b/c.HTML"), "text/html; charset=utf-8");
	assert_string_equal(head_content_type("a.html/c"), "application/octet-stream");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_method_target_and_fields),
		cmocka_unit_test(waits_for_the_end_at_every_length),
		cmocka_unit_test(refuses_what_others_may_read_differently),
		cmocka_unit_test(has_a_limit_of_fields),
		cmocka_unit_test(paths_are_decoded_and_stay_inside),
		cmocka_unit_test(ranges_are_cut_at_the_end),
		cmocka_unit_test(dates_have_three_forms),
		cmocka_unit_test(answers_have_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
