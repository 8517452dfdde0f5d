/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of processors in the two forms that the kernel's files have: lists and masks. */
#ifndef BENCH_TUNE_CPUS_H
#define BENCH_TUNE_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUNE_CPUS_MAX 4096

struct tune_cpus {
	uint64_t word[TUNE_CPUS_MAX / 64];
};

static inline bool tune_cpus_has(const struct tune_cpus *c, int cpu)
{
	return cpu >= 0 && cpu < TUNE_CPUS_MAX && (c->word[cpu / 64] >> (cpu % 64) & 1);
}

static inline void tune_cpus_add(struct tune_cpus *c, int cpu)
{
	c->word[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

unsigned tune_cpus_count(const struct tune_cpus *c);
/* a without b. */
struct tune_cpus tune_cpus_minus(const struct tune_cpus *a, const struct tune_cpus *b);
bool tune_cpus_meet(const struct tune_cpus *a, const struct tune_cpus *b);
bool tune_cpus_equal(const struct tune_cpus *a, const struct tune_cpus *b);
/* "0-3,8"; white space at the end is allowed, and an empty text is the empty set. 0; -EINVAL:
 * this is no list; -ERANGE: a number above TUNE_CPUS_MAX. */
int tune_cpus_parse_list(const char *text, struct tune_cpus *c);
/* "ff,ffffffff": hexadecimal, groups of 32 bits, the last group is CPUs 0 to 31. */
int tune_cpus_parse_mask(const char *text, struct tune_cpus *c);
/* Both print the whole set or return -ENAMETOOLONG. */
int tune_cpus_print_list(const struct tune_cpus *c, char *to, size_t size);
int tune_cpus_print_mask(const struct tune_cpus *c, char *to, size_t size);

#endif
