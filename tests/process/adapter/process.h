/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of sides: for the runner. */
#ifndef ADAPTER_PROCESS_H
#define ADAPTER_PROCESS_H

#include "pair.h"

void process_spawn(struct side *s);
/* Lets it end and fails when it does not end well. */
void process_end(struct side *s);

#endif
