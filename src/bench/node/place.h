/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a case runs: its folder, its ports, and room for its recordings. */
#ifndef BENCH_NODE_PLACE_H
#define BENCH_NODE_PLACE_H

#include <limits.h>

#include "bench/node/settings.h"

/* Makes a folder below TMPDIR and chooses free ports. 0; -EOPNOTSUPP: memory or disk has no room
 * for the recordings; or another negative errno; logged. The folder is there unless dir[0] is
 * '\0'; files_remove_dir() removes it. */
int bench_node_place_make(struct bench_node_settings *s, char dir[PATH_MAX]);

#endif
