/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar tune check` has found, for those who print it. */
#ifndef BENCH_TUNE_CHECK_H
#define BENCH_TUNE_CHECK_H


#include "bench/tune/measure.h"
#include "bench/tune/setting.h"

struct check_row {
	const struct tune_setting *setting;
	struct tune_look look;
	size_t changes; /* lines of the profile of apply that would make it better */
};

struct check {
	struct tune_host host;
	struct check_row *rows;
	size_t count;
	bool measured;
	int gaps_err; /* negative errno */
	struct tune_gaps *gaps;
	size_t gaps_count;
	double steal_ns; /* by the hypervisor's own account, all processors together */
	struct tune_wake wake;
};

/* For how long and how often that one takes the processors away: one sentence. */
void check_gaps_sentence(const struct check *c, enum tune_taker taker, char *to, size_t size);
/* Is /dev/cpu_dma_latency of use here? */
const char *check_flag_sentence(const struct tune_wake *w);

#endif
