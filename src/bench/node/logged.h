/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node file under test: it ends the way of a sample. What it has written is read again and
 * compared with what was sent. Behind it in the same path stands a loopback, whose samples tell
 * when the path was done with the file: so a step that was missed because the path still wrote
 * can be told from one that the generator missed by itself.
 */
#ifndef BENCH_NODE_LOGGED_H
#define BENCH_NODE_LOGGED_H

#include <stdint.h>

#include "bench/delivery/match.h"
#include "bench/node/settings.h"
#include "bench/result/result.h"

#define BENCH_NODE_LOGGED "logged.txt"

/* The node of a configuration; a new object. */
json_t *bench_node_logger(const struct bench_node_settings *s);

/*
 * Steps that were missed while the path was still at the sample before them: when it came back
 * they were late by more than the generator makes up. An upper bound: what else held the path
 * up meanwhile, or who reads the loopback, counts as the file's. Lists as delivery_match()
 * leaves them.
 */
uint64_t bench_node_missed_behind(const struct delivery_samples *sent,
				  const struct delivery_samples *received,
				  double period_ns, double catch_up_ns);

/* Figures of the file. Matches `sent` anew: whoever needs its matches was before. 0 or a
 * negative errno, logged. */
int bench_node_logged_figures(const char *dir, const struct bench_node_settings *s,
			      struct delivery_samples *sent,
			      const struct delivery_samples *received,
			      struct result_case *result);

#endif
