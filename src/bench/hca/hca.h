/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar bench hca`: one-way latencies between two adapters or queue pairs of one host, with
 * one clock; round trips and throughput too, also between two hosts. Besides RDMA itself the
 * public verbs and the connection manager are used only, so real adapters are measured in the
 * same way.
 */
#ifndef BENCH_HCA_HCA_H
#define BENCH_HCA_HCA_H

/* `busbar bench hca --server ...`; exit statuses as in kind/command.h. */
int bench_hca_server_main(int argc, char **argv);

#endif
