/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the recordings of a case to its rows and figures.
 *
 * The node file under test ends the way of a sample. What it has written is read again and
 * compared with what was sent. Behind it in the same path stands a loopback, whose samples tell
 * when the path was done with the file: so a step that was missed because the path still wrote
 * can be told from one that the generator missed by itself.
 */
#ifndef BENCH_NODE_ROWS_H
#define BENCH_NODE_ROWS_H

#include <stdint.h>

#include "bench/delivery/match.h"
#include "bench/node/settings.h"
#include "bench/result/result.h"

/* What the recordings do not say. */
struct bench_node_facts {
	int64_t missed, made_up;           /* steps, by the generator's own count */
	int64_t refused;                   /* samples that the node did not take */
	/* Processor time between two instants of CLOCK_REALTIME; < 0: unknown. */
	int64_t cpu_ns[BENCH_NODE_ENDS], cpu_from_ns, cpu_to_ns;
};

/*
 * Of a file under test: steps that were missed while the path was still at the sample before them:
 * when it came back they were late by more than the generator makes up. An upper bound: what else
 * held the path up meanwhile, or who reads the loopback, counts as the file's. Lists as
 * delivery_match() leaves them.
 */
uint64_t bench_node_missed_behind(const struct delivery_samples *sent,
				  const struct delivery_samples *received,
				  double period_ns, double catch_up_ns);

/* Reads DIR/sent.bin and DIR/received.bin. 0; -EBADMSG: they cannot be what the case made; or
 * another negative errno; logged. */
int bench_node_rows(const char *dir, const struct bench_node_settings *s,
		    const struct bench_node_facts *facts, struct result_case *result);

#endif
