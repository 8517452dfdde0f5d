/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of a node's socket. `node` is the name of the node and `name` that of the option,
 * for the log. */
#ifndef GATEWAY_PART_SOCKET_OPTION_H
#define GATEWAY_PART_SOCKET_OPTION_H

#include <stddef.h>

/* 0 or a negative errno; logs the cause. */
int socket_option_set(int fd, int level, int option, const void *value, size_t size,
		      const char *node, const char *name);
/* An option that the node can do without. */
void socket_option_try(int fd, int level, int option, int value, const char *node,
		       const char *name);

#endif
