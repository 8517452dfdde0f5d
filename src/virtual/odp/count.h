/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the packets of a run by what they do. */
#ifndef VIRTUAL_ODP_COUNT_H
#define VIRTUAL_ODP_COUNT_H

#include "virtual/odp/ends.h"
#include "virtual/odp/run.h"

/* Counts and records (record.h) the packets from now on, until virtual_close(); the server gets none unless the point
 * says that it answers. */
void odp_count_begin(const struct odp_ends *ends, struct odp_counts *counts);

#endif
