/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kind "fabric": an experiment on an InfiniBand subnet in virtual time (`busbar fabric simulate`), whose figures
 * become those of the case; or how long a subnet manager takes from the cut of a cable until it has set all
 * tables again, on a running fabric (`busbar fabric run`).
 */
#ifndef BENCH_FABRIC_FABRIC_H
#define BENCH_FABRIC_FABRIC_H

#include "bench/kind/kind.h"

/* Private to the folder: the two measures. As bench_kind's run(). */
int fabric_bench_simulate(const json_t *parameters, const struct bench_context *context);
int fabric_bench_sweep(const json_t *parameters, const struct bench_context *context);
/* Sweeps that are measured. */
unsigned fabric_bench_sweeps(const json_t *parameters, double scale);

#endif
