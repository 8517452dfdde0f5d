/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces src/hca/run/elide.h by plain locks in tests of other protocols; elision.c tests
 * elision itself. */
#ifndef HCA_ELIDE_H
#define HCA_ELIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "util/spin.h"

#define hca_self checked_self
struct hca_self {
	uint32_t depth, since_move, polls;
	_Atomic uint8_t *elided;
	bool polls_found, looked;
	uint64_t vain_since_ns;
};
extern struct hca_self hca_self;

static inline void hca_elision_start(void) {}
static inline void hca_elision_forked(void) {}
static inline void hca_enter(void) {}
static inline void hca_leave(void) {}

static inline bool hca_alone(void)
{
	return false;
}

static inline void hca_lock(struct spin *s)
{
	check_lock(s);
}

static inline void hca_unlock(struct spin *s)
{
	check_unlock(s);
}

static inline bool hca_trylock(struct spin *s)
{
	return check_trylock(s);
}

#endif
