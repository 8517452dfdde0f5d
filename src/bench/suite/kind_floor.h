/* SPDX-License-Identifier: BSD-2-Clause */
/* Kind "floor": the figures of `busbar bench floor` as cases of a suite. */
#ifndef BENCH_SUITE_KIND_FLOOR_H
#define BENCH_SUITE_KIND_FLOOR_H

#include "bench/kind/kind.h"

extern const struct bench_kind bench_kind_floor;

#endif
