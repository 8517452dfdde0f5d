/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_LADDER_H
#define CLI_TRACE_LADDER_H

#include "cli/trace_text.h"

/* Prints the ladder diagram of the flow whose packets the analyzer has kept. */
void trace_ladder_print(const struct trace_report *t);

#endif
