/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What no file of the kernel says and has to be measured: for how long a processor that
 * works is taken away, and whether keeping the others awake (/dev/cpu_dma_latency) makes
 * things better here. tuned's profiles call that force_latency; on some machines it makes
 * polling programs slower, because cores that may not sleep leave less of the power budget.
 */
#ifndef BENCH_TUNE_MEASURE_H
#define BENCH_TUNE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/tune/cpus.h"

/* What is shorter is an interrupt, and normal. */
#define TUNE_GAP_NS 20000

/* One time for which a loop did not run. */
struct tune_gap {
	uint64_t at_ns; /* since the start of the measurement */
	uint64_t ns;
	bool switched;  /* another thread ran meanwhile: it was this kernel's scheduler */
};

/* Who took the processor. */
enum tune_taker {
	TUNE_BELOW,    /* no other thread ran: the hypervisor, an interrupt, the firmware */
	TUNE_SWITCHED, /* another thread ran, or a quota of the cgroup was used up */
	TUNE_TAKERS,
};

struct tune_taken {
	size_t count;         /* gaps longer than TUNE_GAP_NS */
	uint64_t lost_ns, longest_ns;
	/* If most of the long gaps, or of all, come at even intervals: that interval and
	 * their median length; else 0. */
	uint64_t period_ns, regular_ns;
};

/* What a loop on one processor saw. */
struct tune_gaps {
	int cpu, err;         /* err: negative errno, it could not be measured */
	uint64_t duration_ns;
	struct tune_taken by[TUNE_TAKERS];
};

/* Fills in all but cpu and err from gaps in the order of their time. `count` may be 0. */
void tune_gaps_evaluate(const struct tune_gap *gaps, size_t count, uint64_t duration_ns,
			struct tune_gaps *out);

/*
 * A loop on each of `cpus` that this process may use, all at once, for that long. *out has
 * *count entries and is freed by the caller. 0 or a negative errno.
 */
int tune_gaps_measure(const struct tune_cpus *cpus, uint64_t duration_ns,
		      struct tune_gaps **out, size_t *count);

/* Without and with the flag, in turn. */
#define TUNE_BLOCKS 5

enum tune_flag { TUNE_FLAG_OFF, TUNE_FLAG_ON, TUNE_FLAGS };

enum tune_flag_verdict {
	TUNE_FLAG_UNKNOWN,  /* it could not be set */
	TUNE_FLAG_EQUAL,    /* no difference that is more than chance */
	TUNE_FLAG_HELPS,
	TUNE_FLAG_HARMS,
};

struct tune_latency {
	int err;                    /* it could not be measured at all */
	double median_ns[TUNE_FLAGS][TUNE_BLOCKS]; /* of each block */
	double worst_ns[TUNE_FLAGS];
	enum tune_flag_verdict verdict;
};

struct tune_wake {
	int flag_err;               /* why the flag could not be set; 0: it could */
	struct tune_latency timer;  /* how late a sleeping thread wakes */
	struct tune_latency poll;   /* round trip between two threads that poll */
};

/*
 * A rank test of the blocks: a verdict other than EQUAL is given by chance in at most 3 of
 * 100 cases, and only for a difference of at least 2 %.
 */
enum tune_flag_verdict tune_flag_judge(const struct tune_latency *l);
/* The median of the blocks' medians. */
double tune_flag_median(const struct tune_latency *l, enum tune_flag flag);

/* Takes about a second. The flag is released before it returns. */
void tune_wake_measure(struct tune_wake *out);

/* Opens /dev/cpu_dma_latency below the root and asks for at most that latency, for as long
 * as the descriptor is open. A descriptor or a negative errno. */
int tune_latency_request(const char *root, int32_t latency_us);

#endif
