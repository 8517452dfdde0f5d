/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of other people's libraries that have ways of their own between processes
 * of one host, and take them before any RDMA adapter.
 */
#ifndef CLI_EXEC_OTHERS_H
#define CLI_EXEC_OTHERS_H

/* Sets those that the user has not set; 0 or a negative errno. */
int exec_others_set(void);

#endif
