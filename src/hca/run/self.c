/* SPDX-License-Identifier: BSD-2-Clause */
/* What the data path keeps of each thread (hca_self), which one is the progress thread, and the time
 * of that. */
#include <pthread.h>
#include <time.h>

#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "util/clock.h"

_Thread_local struct hca_self hca_self
	__attribute__((tls_model("initial-exec")));

static _Atomic clockid_t progress_clock; /* of the progress thread; 0: none yet */

uint64_t progress_now_ns(void)
{
	return clock_monotonic_ns_slow();
}

void progress_self_begin(void)
{
	clockid_t clock;

	hca_self.progress = true;
	if (!pthread_getcpuclockid(pthread_self(), &clock))
		atomic_store(&progress_clock, clock);
}

void progress_self_forked(void)
{
	hca_self.progress = false;
	atomic_store(&progress_clock, 0);
}

uint64_t progress_cpu_ns(void)
{
	clockid_t of = atomic_load_explicit(&progress_clock, memory_order_relaxed);
	struct timespec t;

	return of && !clock_gettime(of, &t) ? timespec_to_ns(t) : 0;
}

bool progress_is_self(void)
{
	return hca_self.progress;
}
