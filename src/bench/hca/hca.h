/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar bench hca`: one-way latencies between two adapters or queue pairs of one host, with
 * one clock; round trips and throughput too, also between two hosts. Besides RDMA itself the
 * public verbs and the connection manager are used only, so real adapters are measured in the
 * same way.
 */
#ifndef BENCH_HCA_HCA_H
#define BENCH_HCA_HCA_H

#include "bench/suite/kind.h"

extern const struct bench_kind bench_kind_hca;

/* The command, argv[0] is its name; exit statuses as in suite/commands.h. */
int bench_hca_main(int argc, char **argv);

#endif
