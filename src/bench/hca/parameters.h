/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of the kind "hca": the table. */
#ifndef BENCH_HCA_PARAMETERS_H
#define BENCH_HCA_PARAMETERS_H

#include "bench/kind/kind.h"

extern const struct bench_parameter hca_parameters[];

#endif
