/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kind "program": a stock program of perftest between two processes of this host, unmodified;
 * over busbar's adapter by `busbar exec`, over a real one directly. Its own figures and, of
 * the latency programs, each measured round trip halved become those of the case.
 */
#ifndef BENCH_SUITE_KIND_PROGRAM_H
#define BENCH_SUITE_KIND_PROGRAM_H

#include "bench/kind/kind.h"

extern const struct bench_kind bench_kind_program;

#endif
