/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/trace_text.h"

/* Prints the table of flows, the verdict on each with its evidence, and what is not known. */
void trace_print(const struct trace_report *t);
/* The same as one JSON object. 0 or -ENOMEM. */
int trace_json(const struct trace_report *t, int status);
/* Writes the report as one HTML page that needs no other file; "-": to standard output. 0 or a
 * negative errno, with a message; -EINTR: `stopped` has become true. */
int trace_page(const struct trace_report *t, const char *path, bool (*stopped)(void));

#endif
