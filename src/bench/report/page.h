/* SPDX-License-Identifier: BSD-2-Clause */
/* The page of a report: the files of src/page/report with the data in them, one file of HTML. */
#ifndef BENCH_REPORT_PAGE_H
#define BENCH_REPORT_PAGE_H

#include <jansson.h>
#include <stddef.h>

/* What stands before and behind the data; made by pack.py. */
extern const char report_page_head[], report_page_tail[];
extern const size_t report_page_head_size, report_page_tail_size;

/* The whole page; *text is malloc()ed. 0 or -ENOMEM. */
int report_page_make(const json_t *data, char **text, size_t *size);

#endif
