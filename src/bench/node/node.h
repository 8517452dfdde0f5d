/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Benchmark of node-types, kind "node": a generator writes each sample to a file and to the
 * node under test; what the node delivers goes to a second file. Both files together say what
 * each sample took, what the generator missed and what the node lost. The gateways are
 * processes of this same program (`busbar run`), so what is measured is what users run.
 */
#ifndef BENCH_NODE_NODE_H
#define BENCH_NODE_NODE_H

#include "bench/kind/kind.h"

extern const struct bench_kind bench_kind_node;
/* Gateways themselves: start.c, reconnect.c. */
extern const struct bench_kind bench_kind_start, bench_kind_reconnect;

#endif
