/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the answers of RDMA netlink about soft0, for libbusbar-paths.so
 * (src/paths/netlink.c): files of netlink attributes below `root`/netlink, named by the index of
 * the device, a dot, and the number of the port, which is 0 for the device itself.
 */
#ifndef CLI_EXEC_NETLINK_H
#define CLI_EXEC_NETLINK_H

#include <infiniband/verbs.h>

/* 0 or a negative errno, which is logged. */
int cli_exec_netlink(const char *root, struct ibv_context *ctx);

#endif
