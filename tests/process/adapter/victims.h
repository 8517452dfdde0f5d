/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that processes attacked by a hostile one still work. */
#ifndef ADAPTER_VICTIMS_H
#define ADAPTER_VICTIMS_H

#include "pair.h"

/* A message each way between `a` and `b`, which must arrive. */
void exchange(struct pair *p);
/* How many descriptors this process has. */
int open_fds(void);

#endif
