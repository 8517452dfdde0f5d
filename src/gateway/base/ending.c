/* SPDX-License-Identifier: BSD-2-Clause */
#include "gateway/base/ending.h"

#include <stdatomic.h>
#include <stdint.h>

#include "util/clock.h"
#include "util/container_of.h"

static _Atomic uint64_t begun_ns;

void ending_begin(void)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&begun_ns, &none,
				       clock_monotonic_ns_slow());
}

bool ending_has_begun(void)
{
	return atomic_load_explicit(&begun_ns, memory_order_relaxed) != 0;
}

int ending_left_ms(enum ending_limit limit, int otherwise)
{
	uint64_t begun = atomic_load_explicit(&begun_ns, memory_order_relaxed);
	int64_t past;

	if (!begun)
		return otherwise;
	past = (int64_t)(clock_monotonic_ns_slow() - begun) / 1000000;
	return past >= limit ? 0 : (int)MIN(limit - past, (int64_t)otherwise);
}

bool ending_is_past(enum ending_limit limit)
{
	return ending_has_begun() && ending_left_ms(limit, 1) == 0;
}
