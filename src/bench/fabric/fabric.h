/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the folder: how long a subnet manager takes (sweep.c). */
#ifndef BENCH_FABRIC_FABRIC_H
#define BENCH_FABRIC_FABRIC_H

#include "bench/kind/kind.h"

/* As bench_kind's run(). */
int fabric_bench_sweep(const json_t *parameters, const struct bench_context *context);
/* Sweeps that are measured. */
unsigned fabric_bench_sweeps(const json_t *parameters, double scale);

#endif
