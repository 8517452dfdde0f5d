/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file that remembers what was changed on this host, so that it can be taken back by
 * another process, also after one that ended in the middle. It is JSON:
 *
 *   {"busbar tune": 1, "root": "", "changes": [
 *   {"setting": "swap", "progress": "done", "kind": "value", "path": "/proc/sys/vm/swappiness", "former": "60\n", "now": "10\n"}
 *   ]}
 *
 * Undoing writes as root what this file says to where it says. So the file must belong to
 * the user or to root and nobody else may write it, paths lead to /proc/sys, /proc/irq or
 * /sys, and a file that is not exactly of this form is refused as a whole.
 *
 * All functions return 0 or a negative errno after having logged the cause.
 */
#ifndef BENCH_TUNE_STATE_H
#define BENCH_TUNE_STATE_H

#include <stdio.h>

#include "bench/tune/change.h"

/* Makes the file with all changes of the plan; -EEXIST: there is one. Makes the last
 * two directories of its path if they are missing. */
int tune_state_create(const char *file, const char *root, const struct tune_plan *p);
/* Replaces it atomically. */
int tune_state_replace(const char *file, const char *root, const struct tune_plan *p);
/* -ENOENT: there is none; -EBADMSG: it is damaged, the log names file and line; -EPERM: others
 * may write it; -EINVAL: it belongs to another root. The caller frees the plan. */
int tune_state_read(const char *file, const char *root, struct tune_plan *p);
int tune_state_remove(const char *file);

#endif
