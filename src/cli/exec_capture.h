/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar exec --capture` adds to the environment. */
#ifndef CLI_EXEC_CAPTURE_H
#define CLI_EXEC_CAPTURE_H

/* Sets BUSBAR_CAPTURE and, from "FILE[,size=..][,files=..][,snap=..]", its companions; the
 * path becomes absolute. 0 or a negative errno, logged. */
int exec_capture_set(const char *option);

#endif
