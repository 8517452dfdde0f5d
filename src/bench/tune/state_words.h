/* SPDX-License-Identifier: BSD-2-Clause */
/* Words of the state file, for those who write and read it. */
#ifndef BENCH_TUNE_STATE_WORDS_H
#define BENCH_TUNE_STATE_WORDS_H

#include "bench/tune/change.h"

extern const char *const tune_state_kinds[TUNE_KINDS];
extern const char *const tune_state_progress[TUNE_DROPPED];

#endif
