/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sub-commands of `busbar tune` begin with. */
#ifndef BENCH_TUNE_WORK_H
#define BENCH_TUNE_WORK_H

#include "bench/tune/setting.h"
#include "bench/tune/tune.h"

/* Checks the names of --only and reads the host and --cpus. 0 or a negative errno, logged. */
int tune_prepare(const struct tune_options *o, struct tune_host *host);
/* Is the setting among those of --only? */
bool tune_wanted(const struct tune_options *o, const struct tune_setting *s);

#endif
