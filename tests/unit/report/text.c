/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside stays text in data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/text.h"

static void assert_clean(const char *in, const char *want)
{
	char *clean = report_text_clean(in);

	assert_string_equal(clean, want);
	free(clean);
}

static void what_is_no_text_is_replaced(void **state)
{
	/* Not UTF-8, too long a form, a surrogate, control characters, right to left. */
	assert_clean("a\xff" "b", "a\xef\xbf\xbd" "b");
	assert_clean("\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd");
	assert_clean("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_clean("a\x01\x1b[0m\n", "a\xef\xbf\xbd\xef\xbf\xbd[0m ");
	assert_clean("\xe2\x80\xae", "\xef\xbf\xbd");
	/* A character that the end of the text cuts off. */
	assert_clean("\xe2\x80", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void a_clean_text_has_no_other_characters(void **state)
{
	char *clean = report_text_clean("a<\xff\xe2\x80\xae\tb");

	assert_string_equal(clean, "a<\xef\xbf\xbd\xef\xbf\xbd b");
	free(clean);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_text_is_replaced),
		cmocka_unit_test(a_clean_text_has_no_other_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
