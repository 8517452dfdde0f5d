/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/trace_text.h"

/* Prints the table of flows, the verdict on each with its evidence, and what is not known. */
void trace_print(const struct trace_report *t);
/* The same as one JSON object. 0 or -ENOMEM. */
int trace_json(const struct trace_report *t, int status);

#endif
