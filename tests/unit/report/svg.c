/* SPDX-License-Identifier: BSD-2-Clause */
/* gnuplot's picture as a part of a page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/svg.h"

static const struct svg_texts texts = {
	.id = "f1", .title = "A <question>?", .description = "An & answer.",
};
static char *text;
static size_t size;

static int convert(const char *picture, const struct svg_texts *t)
{
	FILE *f = open_memstream(&text, &size);
	int ret = svg_write(f, picture, t);

	fclose(f);
	return ret;
}

#define HEAD "<?xml version=\"1.0\"?>\n<svg width=\"640\" height=\"420\" " \
	"viewBox=\"0 0 640 420\" xmlns=\"http://www.w3.org/2000/svg\">" \
	"<title>Gnuplot</title><desc>Produced by GNUPLOT</desc>"

static void size_address_and_names_of_gnuplot_are_gone(void **state)
{
	assert_int_equal(convert(HEAD "</svg>", &texts), 0);
	assert_null(strstr(text, "width="));
	assert_null(strstr(text, "http"));
	assert_null(strstr(text, "nuplot"));
	assert_non_null(strstr(text, "viewBox=\"0 0 640 420\""));
	assert_non_null(strstr(text, "<title id=\"f1-t\">A &lt;question&gt;?</title>"));
	assert_non_null(strstr(text, "<desc id=\"f1-d\">An &amp; answer.</desc>"));
	free(text);
}

static void roles_become_properties_and_colours_stay(void **state)
{
	assert_int_equal(convert(HEAD "<path stroke='rgb(  1,   1,   1)' fill='black'/>"
				      "<path fill='rgb( 65,  68, 135)' color=\"white\"/></svg>", &texts), 0);
	assert_non_null(strstr(text, "stroke='var(--c1)' fill='var(--text)'"));
	assert_non_null(strstr(text, "fill='rgb(65,68,135)' color=\"var(--page)\""));
	free(text);
}

static void ids_are_of_this_figure(void **state)
{
	assert_int_equal(convert(HEAD "<circle id='gpDot'/><use xlink:href='#gpDot'/>"
				      "<g id=\"a\" filter='url(#b)'></g></svg>", &texts), 0);
	assert_non_null(strstr(text, "<circle id='f1-gpDot'/><use href='#f1-gpDot'/>"));
	assert_non_null(strstr(text, "<g id=\"f1-a\" filter='url(#f1-b)'>"));
	free(text);
}

static void texts_are_not_changed(void **state)
{
	assert_int_equal(convert(HEAD "<text>rgb(1,1,1) id='x' 'black' a>b</text></svg>",
				 &texts), 0);
	assert_non_null(strstr(text, "<text>rgb(1,1,1) id='x' 'black' a>b</text>"));
	free(text);
}

static void a_file_of_its_own_has_its_colours_with_it(void **state)
{
	struct svg_texts alone = texts;

	alone.alone = true;
	assert_int_equal(convert(HEAD "</svg>", &alone), 0);
	assert_non_null(strstr(text, "--c1:"));
	assert_non_null(strstr(text, "prefers-color-scheme:dark"));
	assert_non_null(strstr(text, "xmlns="));
	free(text);
}

static void what_is_no_picture_is_refused(void **state)
{
	assert_int_equal(convert("no picture", &texts), -EBADMSG);
	assert_int_equal(size, 0);
	free(text);
	assert_int_equal(convert("<svg>", &texts), -EBADMSG);
	assert_int_equal(size, 0);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_address_and_names_of_gnuplot_are_gone),
		cmocka_unit_test(roles_become_properties_and_colours_stay),
		cmocka_unit_test(ids_are_of_this_figure),
		cmocka_unit_test(texts_are_not_changed),
		cmocka_unit_test(a_file_of_its_own_has_its_colours_with_it),
		cmocka_unit_test(what_is_no_picture_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
