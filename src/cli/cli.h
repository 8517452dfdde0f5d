/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sub-commands of `busbar`: one file, one function and one line in main.c each.
 *
 * A function gets its own name as argv[0] and the arguments after it; getopt() begins
 * anew. It returns the exit status of the process.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stddef.h>
#include <stdio.h>

enum cli_status {
	CLI_OK = 0,
	CLI_FAILED = 1, /* the command was understood but did not succeed */
	CLI_USAGE = 2,  /* the command line was wrong */
	CLI_LOST = 3,   /* run: samples were lost that the configuration does not allow */
	CLI_INCOMPLETE = 3, /* trace: the capture is damaged, or not enough of it is there */
	CLI_STUCK = 4,  /* run: asked to end, and a part of it did not end in time */
};

int cli_run(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_ctl(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_scl(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_exec(int argc, char **argv);
int cli_fabric(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_ripc(int argc, char **argv);
int cli_tune(int argc, char **argv);
int cli_delivery(int argc, char **argv);
int cli_simulate(int argc, char **argv);
int cli_sv(int argc, char **argv);
int cli_trace(int argc, char **argv);
int cli_version(int argc, char **argv);
/* These are also installed under the names villas-NAME. */
int cli_node(int argc, char **argv);
int cli_pipe(int argc, char **argv);
int cli_signal(int argc, char **argv);
int cli_hook(int argc, char **argv);
int cli_convert(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_test_config(int argc, char **argv);
int cli_conf2json(int argc, char **argv);
int cli_graph(int argc, char **argv);
int cli_relay(int argc, char **argv);
int cli_zmq_keygen(int argc, char **argv);

/* A sub-command; a table of them ends with a NULL name. */
struct cli_command {
	const char *name;
	const char *help; /* one line, no full stop */
	int (*fn)(int argc, char **argv); /* NULL: it is in a module */
	const char *module, *symbol;
};

/*
 * Runs the command that argv[1] names, or prints the help: for --help and -h, and as an
 * error where there is no name. An unknown name is reported with the nearest known one;
 * CLI_USAGE. `program` is the program's name in messages ("busbar", "busbar bench"); `about`
 * begins with what follows it in the synopsis, and has a line end behind each line.
 */
int cli_dispatch(const char *program, const struct cli_command *table, const char *about, int argc,
		 char **argv);

/*
 * Absolute path of the folder of the drop-in libraries that belong to this executable,
 * in the build folder or as installed. 0; -ENOENT: there is none; or -ENAMETOOLONG.
 */
int cli_drop_in_dir(char *buf, size_t size);

#endif
