/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of a gateway for people. */
#ifndef CLI_CTL_PRINT_H
#define CLI_CTL_PRINT_H

#include <jansson.h>
#include <stdbool.h>

/* Prints the answer to the request for `path`; errors to standard error. 0, or
 * the status of a request that was refused. */
int ctl_print(const char *path, const json_t *answer, bool json);

#endif
