/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the pool share: a device, and registrations that fail when asked. */
#ifndef POOL_HELP_H
#define POOL_HELP_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ripc/memory/pool.h"

#define check(cond)                                                               \
	do {                                                                      \
		if (!(cond)) {                                                    \
			fprintf(stderr, "%s:%d: expected: %s\n", __FILE__,        \
				__LINE__, #cond);                                 \
			abort();                                                  \
		}                                                                 \
	} while (0)
#define check_eq(got, want)                                                       \
	do {                                                                      \
		const long long got_ = (long long)(got), want_ = (long long)(want); \
		if (got_ != want_) {                                              \
			fprintf(stderr, "%s:%d: %s is %lld, expected %s = %lld\n", \
				__FILE__, __LINE__, #got, got_, #want, want_);    \
			abort();                                                  \
		}                                                                 \
	} while (0)

struct ground {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct pool *pool;
};

void ground_open(struct ground *g, size_t kept_bytes_max);
/* Fails where a registration is left: the domain would be busy. */
void ground_close(struct ground *g);

struct pool_counters counters_of(struct pool *p);

/* The adapter pins nothing, so it never runs into a limit: how many bytes may be
 * registered at a time, and with which errno more is refused. */
extern atomic_size_t registered_max;
extern atomic_int refused_with;
extern atomic_size_t refused; /* how often */
/* Refuses rights to write (IBV_ACCESS_LOCAL_WRITE) with EFAULT, as on read-only memory. */
extern atomic_bool read_only;

#endif
