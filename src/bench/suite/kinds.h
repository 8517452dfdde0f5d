/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of benchmarks by name. */
#ifndef BENCH_SUITE_KINDS_H
#define BENCH_SUITE_KINDS_H

#include "bench/kind/kind.h"

/* Names, whether they are in this build or not; NULL behind the last. */
const char *bench_kind_name(size_t index);
const char *bench_kind_summary(size_t index);
bool bench_kind_is_known(const char *name);

/* NULL: unknown, or not in this build, which why[size] says. A kind that needs verbs must be
 * there without them: it loads a module when it runs, for `busbar` is not linked with them. */
const struct bench_kind *bench_kind_find(const char *name, char *why, size_t size);

#endif
