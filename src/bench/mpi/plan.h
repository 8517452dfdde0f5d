/* SPDX-License-Identifier: BSD-2-Clause */
/* From parameters to what is run: program, command line of mpirun, environment, files. */
#ifndef BENCH_MPI_PLAN_H
#define BENCH_MPI_PLAN_H

#include <limits.h>
#include <stdbool.h>

#include "bench/kind/kind.h"
#include "bench/kind/process.h"

#define MPI_VARIABLES_MAX 24
#define MPI_PROCESSES_MAX 64

/*
 * Programs of MPI between two hosts, which are network namespaces here. mpirun starts its part on
 * another host by ssh; in its place stands a script that enters the namespace of that address.
 */
struct mpi_hosts {
	bool between;       /* else all is on this host */
	char names[2][64];  /* of the namespaces */
	char addresses[2][16];
	char *agent;        /* the script; owned */
};

/* Of the parameter `between`. 0, or -EINVAL, logged. */
int mpi_hosts_read(const json_t *parameters, struct mpi_hosts *h);
struct mpi_plan {
	struct process_words words;
	struct spawn_variable variables[MPI_VARIABLES_MAX + 1];
	char *assignments;             /* holds the texts of the parameter `environment` */
	char limit[24];                /* holds the value of the limit of eager messages */
	char *output, *errors, *times, *counters;
	char *marks;                   /* NULL: the program does not stop at any */
	char *capture;                 /* an option of `busbar exec`; NULL: no packets are kept */
	struct mpi_hosts hosts;
	char devices[80];              /* holds a name of an adapter with its port */
	unsigned processes;
};

long long mpi_messages(const json_t *parameters, double scale);

/* Debian's packages that are missing for the program of these parameters; NULL: none. */
const char *mpi_lacks(const json_t *parameters);

/* The files go below `dir`. 0; -EOPNOTSUPP: this MPI or the program for it is not here, logged;
 * -ENOMEM. Free with mpi_plan_free(), also after an error. */
int mpi_plan_make(struct mpi_plan *plan, const json_t *parameters, double scale,
		  const char *dir);
void mpi_plan_free(struct mpi_plan *plan);

#endif
