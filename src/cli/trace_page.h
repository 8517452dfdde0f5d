/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_PAGE_H
#define CLI_TRACE_PAGE_H

#include "cli/trace_text.h"

/* Writes the report as one HTML page that needs no other file; "-": to standard output. 0 or a
 * negative errno, with a message; -EINTR: `stopped` has become true. */
int trace_page(const struct trace_report *t, const char *path, bool (*stopped)(void));

#endif
