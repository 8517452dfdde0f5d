/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers of the distributions that the bootstrap needs. */
#ifndef BENCH_RESULT_DRAW_H
#define BENCH_RESULT_DRAW_H

#include "util/prng.h"

/* Standard normal; one of the two numbers of Marsaglia's polar method. */
double draw_normal(struct prng *p);
/* Gamma with scale 1, shape >= 1 (Marsaglia and Tsang, 2000). */
double draw_gamma(struct prng *p, double shape);
/* Beta; both shapes >= 1. The k-th smallest of n uniform numbers is beta(k, n + 1 - k). */
double draw_beta(struct prng *p, double a, double b);

#endif
