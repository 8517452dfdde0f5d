/* SPDX-License-Identifier: BSD-2-Clause */
/* What heads of HTTP consist of: fields, words, lists, numbers, versions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "util/container_of.h"
#include "util/head_text.h"

static bool is(struct head_text t, const char *want)
{
	return t.bytes == strlen(want) && !memcmp(t.at, want, t.bytes);
}

static void a_field_is_a_token_a_colon_and_a_trimmed_value(void **state)
{
	static const char *const wrong[] = {
		"", "no colon", ": x", "Host : x", " folded: y", "a(b: c", "a: \x01", "a: b\rc",
		"a: b\nc", "a: \x7f", "\xc3\xa4: b",
	};
	struct head_field f;

	assert_int_equal(head_field_parse(head_text_of("A-1:\t b\tc:d \t"), &f), 0);
	assert_true(is(f.name, "A-1") && is(f.value, "b\tc:d"));
	assert_int_equal(head_field_parse(head_text_of("a:"), &f), 0);
	assert_true(is(f.value, ""));
	assert_int_equal(head_field_parse(head_text_of("a: \xc3\xa4"), &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (head_field_parse(head_text_of(wrong[i]), &f) != -EBADMSG)
			fail_msg("accepted: %s", wrong[i]);
	assert_int_equal(head_field_parse((struct head_text){ "a: \0", 4 }, &f), -EBADMSG);
	assert_int_equal(head_field_parse((struct head_text){ "a\0: b", 5 }, &f), -EBADMSG);
}

static void a_request_is_cut_at_its_first_two_spaces(void **state)
{
	struct head_text method, target, version;

	assert_int_equal(head_request_split(head_text_of("GET /a HTTP/1.1"), &method, &target,
					    &version), 0);
	assert_true(is(method, "GET") && is(target, "/a") && is(version, "HTTP/1.1"));
	assert_int_equal(head_request_split(head_text_of("GET  a b"), &method, &target, &version),
			 0);
	assert_true(is(target, "") && is(version, "a b"));
	assert_int_equal(head_request_split(head_text_of("  "), &method, &target, &version), 0);
	assert_true(is(method, "") && is(target, "") && is(version, ""));
	assert_int_equal(head_request_split(head_text_of("GET /a"), &method, &target, &version),
			 -EBADMSG);
	assert_int_equal(head_request_split(head_text_of(""), &method, &target, &version),
			 -EBADMSG);
}

static void a_version_is_one_of_http_1(void **state)
{
	static const char *const wrong[] = { "", "HTTP/1", "HTTP/1.", "HTTP/1.1 ", "HTTP/11.",
					     "http/1.1", "HTTP/a.1", "HTTP/1.a" };
	unsigned minor;

	assert_int_equal(head_version_parse(head_text_of("HTTP/1.0"), &minor), 0);
	assert_int_equal(minor, 0);
	assert_int_equal(head_version_parse(head_text_of("HTTP/1.9"), &minor), 0);
	assert_int_equal(minor, 9);
	assert_int_equal(head_version_parse(head_text_of("HTTP/2.0"), &minor), -EPROTONOSUPPORT);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (head_version_parse(head_text_of(wrong[i]), &minor) != -EBADMSG)
			fail_msg("accepted: %s", wrong[i]);
}

static void words_are_found_in_lists_in_any_case(void **state)
{
	assert_true(head_is(head_text_of("Close"), "cLOSE"));
	assert_false(head_is(head_text_of("close"), "clos"));
	assert_true(head_lists(head_text_of("a ,\tClose , b"), head_text_of("close")));
	assert_true(head_lists(head_text_of(",,close"), head_text_of("close")));
	assert_false(head_lists(head_text_of("closed, clo se"), head_text_of("close")));
	assert_false(head_lists(head_text_of(""), head_text_of("close")));
	assert_true(head_is_token(head_text_of("!#$%&'*+-.^_`|~09azAZ")));
	assert_false(head_is_token(head_text_of("")));
	assert_false(head_is_token(head_text_of("a/b")));
}

static void a_number_has_digits_only_and_63_bits(void **state)
{
	static const char *const wrong[] = { "", "+1", " 1", "1 ", "0x1", "1.0",
					     "9223372036854775808", "18446744073709551617" };
	uint64_t n = 0;

	assert_true(head_number(head_text_of("0009223372036854775807"), &n));
	assert_int_equal(n, INT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (head_number(head_text_of(wrong[i]), &n))
			fail_msg("accepted: %s", wrong[i]);
}

static void an_escaped_byte_has_two_hexadecimal_digits(void **state)
{
	static const char *const wrong[] = { "", "%", "%4", "%4g", "%g4", "% 1", "%-1", "41" };

	assert_int_equal(head_escaped(head_text_of("%41x")), 'A');
	assert_int_equal(head_escaped(head_text_of("%fF")), 255);
	assert_int_equal(head_escaped(head_text_of("%00")), 0);
	assert_int_equal(head_escaped((struct head_text){ "%41", 2 }), -1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (head_escaped(head_text_of(wrong[i])) != -1)
			fail_msg("accepted: %s", wrong[i]);
}

static void a_status_has_a_reason(void **state)
{
	assert_string_equal(head_reason(404), "Not Found");
	assert_string_equal(head_reason(299), "Other");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_field_is_a_token_a_colon_and_a_trimmed_value),
		cmocka_unit_test(a_request_is_cut_at_its_first_two_spaces),
		cmocka_unit_test(a_version_is_one_of_http_1),
		cmocka_unit_test(words_are_found_in_lists_in_any_case),
		cmocka_unit_test(a_number_has_digits_only_and_63_bits),
		cmocka_unit_test(an_escaped_byte_has_two_hexadecimal_digits),
		cmocka_unit_test(a_status_has_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
