/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that polls in vain lets others run on its processor. */
#ifndef HCA_YIELD_H
#define HCA_YIELD_H

/* Now and then, from a thread that has found nothing since the last time. */
void hca_yield(void);

#endif
