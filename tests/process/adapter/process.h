/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of sides: for the runner. */
#ifndef ADAPTER_PROCESS_H
#define ADAPTER_PROCESS_H

#include "pair.h"

/* A process for `s`, which knows nothing of the `count` others. */
void process_spawn(struct side *s, const struct side *others, int count);
/* Lets it end and fails when it does not end well. */
void process_end(struct side *s);

#endif
