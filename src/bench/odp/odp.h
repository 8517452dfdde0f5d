/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kind "odp" of benchmark suites: memory on demand, by the model of an adapter (BUSBAR_PAGING
 * of busbar-adapter(7)) in virtual time. And the experiments that compare it with its source, T.
 * Fukuoka, "ODP performance pitfalls of InfiniBand", University of Tokyo 2021.
 */
#ifndef BENCH_ODP_ODP_H
#define BENCH_ODP_ODP_H

/* `busbar bench odp --experiment NAME|all`; returns an exit status of kind/command.h. */
int bench_odp_experiments_main(int argc, char **argv);

#endif
