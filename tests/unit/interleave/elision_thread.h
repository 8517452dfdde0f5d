/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread of the test of elision: compiles src/hca/run/elide.c with variables of its own in
 * place of thread-local ones, which coroutines do not have. The variable that all threads
 * share (hca_elision) is merged by the linker. The file's static variable (the thread that
 * entered last) is not shared; it only decides when ownership changes.
 */
#include <stdint.h>

#include "elision.h"

#define JOINED_(a, b) a##_##b
#define JOINED(a, b) JOINED_(a, b)
#define MINE(name) JOINED(name, ELISION_THREAD)

#define _Thread_local
#define tls_model(model) unused
#define hca_self MINE(hca_self)
#define hca_elision_start MINE(hca_elision_start)
#define hca_elision_forked MINE(hca_elision_forked)
#define hca_enter_slow MINE(hca_enter_slow)
#define hca_enter_with_locks MINE(hca_enter_with_locks)
#define hca_leave_slow MINE(hca_leave_slow)
#define hca_make_way MINE(hca_make_way)
#define hca_lock_outside MINE(hca_lock_outside)
#define hca_unlock_outside MINE(hca_unlock_outside)

#include "../../../src/hca/run/elide.c"

struct hca_self hca_self;

static void make(bool owner, uint32_t streak)
{
	hca_self = (struct hca_self){ .streak = streak };
	foreign.last = &hca_self;
	foreign.count = 0;
	if (owner)
		hca_elision.owner = (uintptr_t)&hca_self;
}

static void works(void)
{
	hca_enter();
	hca_lock(&elision_lock);
	elision_touch();
	hca_unlock(&elision_lock);
	hca_leave();
}

static void works_outside(void)
{
	hca_lock(&elision_lock);
	elision_touch();
	hca_unlock(&elision_lock);
}

static void works_with_locks(void)
{
	hca_enter_with_locks();
	hca_lock(&elision_lock);
	elision_touch();
	hca_unlock(&elision_lock);
	hca_leave();
}

static void start(void)
{
	hca_elision = (struct hca_elision){ .owner = 0 };
}

const struct elision_thread MINE(elision_thread) = { start, make, works,
						     works_outside,
						     works_with_locks };
