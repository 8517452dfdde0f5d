/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a gateway's answers as text or JSON. */
#ifndef CLI_CTL_PRINT_H
#define CLI_CTL_PRINT_H

#include <jansson.h>
#include <stdbool.h>

/* Prints the answer to the request for `path`; errors go to standard error. 0, or the
 * HTTP status of a request that was refused. */
int ctl_print(const char *path, const json_t *answer, bool json);

#endif
