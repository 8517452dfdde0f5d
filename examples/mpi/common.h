/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of this folder share: options, data that tells when it was changed on its
 * way, marks at which somebody else may look at the adapter, and the table of results. They
 * use MPI and the C library, and all their processes run on one host.
 */
#ifndef EXAMPLES_MPI_COMMON_H
#define EXAMPLES_MPI_COMMON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMNS_MAX 4

/* What a program is and understands; `words` are those of --call or --operation. */
struct program {
	const char *name, *summary;
	const char *option;             /* "call", "operation" or NULL */
	const char *const *words;       /* NULL behind the last; the first is the default */
	bool has_window;
	int processes;                  /* so many are needed; 0: any number from 2 on */
};

struct run {
	const struct program *program;
	int word;                       /* index of program->words */
	size_t size;                    /* bytes of a message */
	long messages, warmup, window;
	const char *times, *marks;      /* files, or NULL */
	int rank, ranks;
	uint64_t damaged;               /* messages that this process found changed */
};

/* Measured times: rows of columns, one behind the other, in ns of CLOCK_MONOTONIC. */
struct times {
	size_t columns, rows;
	const char *names[COLUMNS_MAX];
	int64_t *at;
};

/* MPI_Init and the options. What is wrong there is said once, and the program ends with 2. */
void run_begin(struct run *r, const struct program *program, int argc, char **argv);
/* Prints how many messages of all processes were damaged, and MPI_Finalize. The exit status. */
int run_end(struct run *r);
/* Ends all processes: "NAME: what happened". */
_Noreturn void run_fail(const struct run *r, const char *what);

uint64_t now_ns(void);
/* Pages of memory that have been touched; ends the program when there is none. Never NULL. */
void *new_memory(const struct run *r, size_t size);

/* Bytes that depend on where they stand and on `seed`, and whether they still are those. */
void pattern_fill(void *to, size_t size, uint64_t seed);
bool pattern_is(const void *at, size_t size, uint64_t seed);
/* A seed of its own for message `number` between two processes. */
uint64_t pattern_seed(int from, int to, uint64_t number);

/*
 * With --marks FILE, all processes stop twice: each appends its process id to FILE.begin (or
 * FILE.end), and goes on when that file has been removed. So somebody can read the adapter's
 * counters while no process is in MPI. Without --marks nothing happens. Both are collective.
 */
void mark_begin(const struct run *r);
void mark_end(const struct run *r);

/* The table, on the standard output of rank 0: NAME UNIT VALUE MEANING; UNIT "-": none. */
void table_begin(const struct run *r);
void table_row(const struct run *r, const char *name, const char *unit, double value,
	       const char *meaning);

/* One row for each element that is measured, of rank 0 alone. */
void times_new(struct times *t, const struct run *r, size_t columns, const char *const *names,
	       size_t rows);
static inline int64_t *times_row(const struct times *t, size_t row)
{
	return t->at + row * t->columns;
}
/* --times FILE: all of them there; else the percentiles of `column` minus the first one or
 * `from` as rows of the table. */
void times_write(const struct times *t, const struct run *r);
void times_table(const struct times *t, const struct run *r, const char *name, size_t from,
		 size_t to, const char *meaning);
void times_free(struct times *t);

#endif
