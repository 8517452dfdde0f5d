/* SPDX-License-Identifier: BSD-2-Clause */
/* From the recordings of a case to its rows and figures. */
#ifndef BENCH_NODE_ROWS_H
#define BENCH_NODE_ROWS_H

#include <stdint.h>

#include "bench/node/settings.h"
#include "bench/result/result.h"

/* What the recordings do not say. */
struct bench_node_facts {
	int64_t missed, made_up;           /* steps, by the generator's own count */
	int64_t refused;                   /* samples that the node did not take */
	/* Processor time between two instants of CLOCK_REALTIME; < 0: unknown. */
	int64_t cpu_ns[BENCH_NODE_ENDS], cpu_from_ns, cpu_to_ns;
};

/* Reads DIR/sent.bin and DIR/received.bin. 0; -EBADMSG: they cannot be what the case made; or
 * another negative errno; logged. */
int bench_node_rows(const char *dir, const struct bench_node_settings *s,
		    const struct bench_node_facts *facts, struct result_case *result);

#endif
