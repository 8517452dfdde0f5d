/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what the programs of examples/mpi write: a table of results, and a file of times. Files
 * are named in errors: -EBADMSG when they are not what they have to be. And counts the packets of
 * RDMA in captures of `busbar exec --capture` by what they do.
 */
#ifndef BENCH_MPI_OUTPUT_H
#define BENCH_MPI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/result/result.h"

#define MPI_COLUMNS_MAX 4
#define MPI_NAME_MAX 32
#define MPI_MEANING_MAX 120

struct mpi_row {
	char name[MPI_NAME_MAX], unit[12], meaning[MPI_MEANING_MAX];
	double value;
};

struct mpi_times {
	size_t columns, rows, room;
	char names[MPI_COLUMNS_MAX][RESULT_NAME_MAX];
	int64_t *values[MPI_COLUMNS_MAX];
};

/* "message_rate  1/s  3.5e6  messages a second"; a unit "-" becomes "". False: no row. */
bool mpi_row_parse(const char *line, struct mpi_row *row);

/* 0, -EBADMSG or -ENOMEM, not logged. Free with mpi_times_free(), also after an error. */
int mpi_times_parse(FILE *f, struct mpi_times *t);
void mpi_times_free(struct mpi_times *t);

/* Has the program written its whole table of results, which it does when all was measured? */
bool mpi_table_is_whole(const char *path);
/* The table's rows become figures; *counted is what stands between the marks, 0 if it is not
 * said. */
int mpi_read_table(const char *path, struct result_case *c, double *counted);
/* Its rows become the case's. */
int mpi_read_times(const char *path, struct result_case *c);

struct mpi_packets {
	uint64_t sends, writes, read_requests, read_responses, acks, others;
	uint64_t bytes;    /* on the wire, from the Ethernet header on */
	uint64_t dropped;  /* that the capture lacks */
};

/* Adds the packets that were sent from `from_ns` to `to_ns` (of CLOCK_REALTIME) to *out. 0, or
 * -EBADMSG: it is no such file; what stands before the fault was added. */
int mpi_packets_parse(const void *file, size_t size, uint64_t from_ns, uint64_t to_ns,
		      struct mpi_packets *out);
/* All files "packets-*.pcapng" of a folder, which are removed. 0 or a negative errno, logged;
 * -ENOENT: there is none. */
int mpi_packets_read(const char *dir, uint64_t from_ns, uint64_t to_ns,
		     struct mpi_packets *out);

#endif
