/* SPDX-License-Identifier: BSD-2-Clause */
/* The slow side of gates; see gate.h. */
#include "gateway/base/gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/fence.h"

bool gate_barrier_by_kernel;

void gate_init_all(void)
{
	if (gate_barrier_by_kernel)
		return;
	gate_barrier_by_kernel = fence_others_offered(FENCE_PROCESS);
}

void gate_shut(struct gate *g, unsigned reasons)
{
	atomic_fetch_or(&g->shut, reasons);
	fence_others(FENCE_PROCESS, gate_barrier_by_kernel);
}

bool gate_is_empty(struct gate *g)
{
	return !atomic_load_explicit(&g->busy, memory_order_acquire);
}

void gate_wake(struct gate *g)
{
	syscall(SYS_futex, &g->shut, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void gate_open(struct gate *g, unsigned reasons)
{
	if ((atomic_fetch_and(&g->shut, ~reasons) & ~reasons) == 0)
		gate_wake(g);
}

bool gate_pass_slow(struct gate *g)
{
	while (!gate_enter(g)) {
		if (gate_reasons(g) & ~(unsigned)GATE_HOLD)
			return false;
		gate_wait(g, 1000000);
	}
	return true;
}

void gate_wait(struct gate *g, uint64_t timeout_ns)
{
	struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000),
			      .tv_nsec = (long)(timeout_ns % 1000000000) };
	unsigned seen = atomic_load_explicit(&g->shut, memory_order_acquire);

	if (seen)
		syscall(SYS_futex, &g->shut, FUTEX_WAIT_PRIVATE, seen, &t, NULL,
			0);
}
