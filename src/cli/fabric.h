/* SPDX-License-Identifier: BSD-2-Clause */
/* Sub-commands of `busbar fabric`. */
#ifndef CLI_FABRIC_H
#define CLI_FABRIC_H


#define FABRIC_NAME_DEFAULT "fabric"

int cli_fabric_run(int argc, char **argv);
int cli_fabric_show(int argc, char **argv);
int cli_fabric_simulate(int argc, char **argv);

/* Asks the fabric's process and prints its answer. The exit status; why it was refused, or that
 * nobody answers, is logged. */
int fabric_ask_and_print(const char *name, const char *question);

#endif
