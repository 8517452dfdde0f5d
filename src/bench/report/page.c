/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts the data into the page; see page.h. */
#include "bench/report/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Digits that a figure can show, and some more. */
#define DIGITS 10

/* JSON within an element of HTML: '<' occurs in strings only, where it has another form. */
static void put_data(FILE *out, const char *json)
{
	for (; *json; json++) {
		if (*json == '<')
			fputs("\\u003c", out);
		else
			putc(*json, out);
	}
}

int report_page_make(const json_t *data, char **text, size_t *size)
{
	char *json = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII |
					      JSON_REAL_PRECISION(DIGITS));
	FILE *out = json ? open_memstream(text, size) : NULL;
	int ret = out ? 0 : -ENOMEM;

	if (out) {
		fwrite(report_page_head, 1, report_page_head_size, out);
		put_data(out, json);
		fwrite(report_page_tail, 1, report_page_tail_size, out);
		if (ferror(out))
			ret = -ENOMEM;
		if (fclose(out))
			ret = -ENOMEM;
	}
	free(json);
	return ret;
}
