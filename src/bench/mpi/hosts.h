/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of MPI between two hosts, which are network namespaces here. mpirun starts its part on
 * another host by ssh; in its place stands a script that enters the namespace of that address.
 */
#ifndef BENCH_MPI_HOSTS_H
#define BENCH_MPI_HOSTS_H

#include <jansson.h>
#include <stdbool.h>

#include "bench/kind/process.h"

struct mpi_hosts {
	bool between;       /* else all is on this host */
	char names[2][64];  /* of the namespaces */
	char addresses[2][16];
	char *agent;        /* the script; owned */
};

/* Of the parameter `between`. 0, or -EINVAL, logged. */
int mpi_hosts_read(const json_t *parameters, struct mpi_hosts *h);
/* Writes the script into `dir`. 0 or a negative errno, logged. */
int mpi_hosts_write_agent(struct mpi_hosts *h, const char *dir);
void mpi_hosts_free(struct mpi_hosts *h);

/* What stands before the command, and behind mpirun. */
void mpi_hosts_enter(const struct mpi_hosts *h, struct process_words *w);
void mpi_hosts_options(const struct mpi_hosts *h, const char *library, unsigned processes,
		       struct process_words *w);

#endif
