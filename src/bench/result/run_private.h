/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this folder share that write and read runs. */
#ifndef BENCH_RESULT_RUN_PRIVATE_H
#define BENCH_RESULT_RUN_PRIVATE_H

#include "bench/result/disturbance.h"
#include "bench/result/result.h"

struct result_run {
	char *dir;
	int dir_fd;     /* locked: one process writes */
	json_t *run;    /* run.json */
	bool no_csv;
	bool checks;    /* the floor was measured, and is again */
	const atomic_bool *stop; /* NULL: none */
	struct disturbance_times begun;
};

/* Removes what the array `key` of run.json holds for `id`: an id, or an object with it. */
void result_run_forget(struct result_run *run, const char *key, const char *id);
/* Writes run.json. */
int result_run_write(const struct result_run *run);

/* raw.bin and raw.csv in `dir`. 0 or a negative errno. */
int raw_write_binary(const char *dir, const struct result_column *columns,
		     size_t columns_count, size_t rows);
int raw_write_csv(const char *dir, const struct result_column *columns,
		  size_t columns_count, size_t rows);

/* Stores to - from of the rows in which both are there, in their order, in values[rows]. A
 * difference that int64_t cannot hold (a damaged file) is left out. Returns their number. */
size_t latency_values(const int64_t *from, const int64_t *to, size_t rows,
		      int64_t *values);

#endif
