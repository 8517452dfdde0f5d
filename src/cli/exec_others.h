/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings for libraries that have other transports between processes of one host and
 * prefer these to an RDMA adapter.
 */
#ifndef CLI_EXEC_OTHERS_H
#define CLI_EXEC_OTHERS_H

/* Sets the variables that the user has not set; 0 or a negative errno. */
int exec_others_set(void);

#endif
