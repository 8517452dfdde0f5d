/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside stays text, in HTML and in data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/text.h"

static char *text;
static size_t size;

static void assert_html(const char *in, const char *want)
{
	FILE *f = open_memstream(&text, &size);

	report_text_html(f, in);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static void html_has_no_mark_up_of_its_own(void **state)
{
	assert_html("<script>&\"'", "&lt;script&gt;&amp;&quot;&#39;");
	assert_html(NULL, "");
	assert_html("\xc2\xb5s", "\xc2\xb5s");
}

static void what_is_no_text_is_replaced(void **state)
{
	/* Not UTF-8, too long a form, a surrogate, control characters, right to left. */
	assert_html("a\xff" "b", "a\xef\xbf\xbd" "b");
	assert_html("\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd");
	assert_html("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	assert_html("a\x01\x1b[0m\n", "a\xef\xbf\xbd\xef\xbf\xbd[0m ");
	assert_html("\xe2\x80\xae", "\xef\xbf\xbd");
	/* A character that the end of the text cuts off. */
	assert_html("\xe2\x80", "\xef\xbf\xbd\xef\xbf\xbd");
}

static void a_clean_text_has_no_other_characters(void **state)
{
	char *clean = report_text_clean("a<\xff\xe2\x80\xae\tb");

	assert_string_equal(clean, "a<\xef\xbf\xbd\xef\xbf\xbd b");
	free(clean);
}

static void only_arguments_are_escaped(void **state)
{
	FILE *f = open_memstream(&text, &size);

	report_html(f, "<b id=\"%zu\">%s</b> %d %%", (size_t)7, "<i>", -3);
	fclose(f);
	assert_string_equal(text, "<b id=\"7\">&lt;i&gt;</b> -3 %");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(html_has_no_mark_up_of_its_own),
		cmocka_unit_test(what_is_no_text_is_replaced),
		cmocka_unit_test(a_clean_text_has_no_other_characters),
		cmocka_unit_test(only_arguments_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
