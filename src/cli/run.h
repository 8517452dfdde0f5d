/* SPDX-License-Identifier: BSD-2-Clause */
/* Running a gateway, for commands that make its configuration. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include <jansson.h>

/* As `busbar run --idle-stop`, for `seconds` at most (< 0: without a limit). Takes the
 * configuration over. The exit status. */
int cli_run_config(json_t *config, double seconds);

#endif
