/* SPDX-License-Identifier: BSD-2-Clause */
/* Sub-commands of `busbar fabric`. */
#ifndef CLI_FABRIC_H
#define CLI_FABRIC_H

#include <stddef.h>

#define FABRIC_NAME_DEFAULT "fabric"

int cli_fabric_run(int argc, char **argv);
int cli_fabric_show(int argc, char **argv);
int cli_fabric_simulate(int argc, char **argv);

/* Asks the fabric's process; the text of its answer, with a zero behind its end, which the caller frees.
 * NULL: it was refused, or nobody answers, which is logged. */
char *fabric_ask(const char *name, const char *question, size_t *bytes);
/* The same, and prints the text. The exit status. */
int fabric_ask_and_print(const char *name, const char *question);

#endif
