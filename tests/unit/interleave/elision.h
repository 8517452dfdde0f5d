/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INTERLEAVE_ELISION_H
#define INTERLEAVE_ELISION_H

#include <stdbool.h>
#include <stdint.h>

#include "util/spin.h"

/* The operations of a thread; see elision_thread.h. */
struct elision_thread {
	void (*start)(void); /* nobody owns the data path */
	void (*make)(bool owner, uint32_t streak);
	void (*works)(void);
	void (*works_outside)(void);
	void (*works_with_locks)(void);
};

extern const struct elision_thread elision_thread_0, elision_thread_1,
	elision_thread_2;
extern struct spin elision_lock;
/* Uses the data that the lock guards. */
void elision_touch(void);

#endif
