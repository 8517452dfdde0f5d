/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside stays text, in HTML and in commands of gnuplot. */
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

static void assert_gnuplot(const char *in, unsigned width, const char *want)
{
	FILE *f = open_memstream(&text, &size);

	report_text_gnuplot(f, in, width);
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

static void gnuplot_executes_nothing_of_a_text(void **state)
{
	assert_gnuplot("`touch x`", 0, "'`touch x`'");
	assert_gnuplot("a'; system('x", 0, "'a''; system(''x'");
	assert_gnuplot("a\nplot", 0, "'a plot'");
	assert_gnuplot("\\n%g", 0, "'\\n%g'");
}

static void long_texts_end_with_an_ellipsis(void **state)
{
	assert_gnuplot("abcdef", 6, "'abcdef'");
	assert_gnuplot("abcdefg", 6, "'abcde\xe2\x80\xa6'");
	assert_gnuplot("\xc2\xb5\xc2\xb5\xc2\xb5", 2, "'\xc2\xb5\xe2\x80\xa6'");
}

static void labels_of_tics_have_no_formats(void **state)
{
	FILE *f = open_memstream(&text, &size);

	report_text_tic(f, "50 %d", 0);
	fclose(f);
	assert_string_equal(text, "'50 %%d'");
	free(text);
}

static void only_arguments_are_escaped(void **state)
{
	FILE *f = open_memstream(&text, &size);

	report_html(f, "<b id=\"%zu\">%s</b> %d %%", (size_t)7, "<i>", -3);
	fclose(f);
	assert_string_equal(text, "<b id=\"7\">&lt;i&gt;</b> -3 %");
	free(text);
}

static void times_have_three_digits_and_a_unit(void **state)
{
	char buf[32];

	assert_string_equal(report_text_time(buf, 40), "40 ns");
	assert_string_equal(report_text_time(buf, 999), "999 ns");
	assert_string_equal(report_text_time(buf, 1269), "1.27 \xc2\xb5s");
	assert_string_equal(report_text_time(buf, 45200), "45.2 \xc2\xb5s");
	assert_string_equal(report_text_time(buf, 4.1e6), "4.10 ms");
	assert_string_equal(report_text_time(buf, 2.5e9), "2.50 s");
	assert_string_equal(report_text_time(buf, -1269), "-1.27 \xc2\xb5s");
	assert_string_equal(report_text_time(buf, 0.0 / 0.0), "-");
	assert_string_equal(report_text_number(buf, 0.0125), "0.0125");
	assert_string_equal(report_text_number(buf, 4096), "4096");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(html_has_no_mark_up_of_its_own),
		cmocka_unit_test(what_is_no_text_is_replaced),
		cmocka_unit_test(gnuplot_executes_nothing_of_a_text),
		cmocka_unit_test(long_texts_end_with_an_ellipsis),
		cmocka_unit_test(labels_of_tics_have_no_formats),
		cmocka_unit_test(only_arguments_are_escaped),
		cmocka_unit_test(times_have_three_digits_and_a_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
