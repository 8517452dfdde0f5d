/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tuned on this host: installs and removes the profile "busbar" and switches between profiles by
 * tuned-adm(8). All paths are below the root of the tree; with a root other than the host's,
 * ROOT/usr/sbin/tuned-adm is run and never that of the host.
 *
 * The folder of the profile also has the file "former", which says what was active before:
 * "manual NAMES", "auto" or "off". A folder without it was not made here and is left alone.
 *
 * Functions return 0 or a negative errno after having logged the cause.
 */
#ifndef BENCH_TUNE_TUNED_H
#define BENCH_TUNE_TUNED_H

#include <stdbool.h>

#include "bench/tune/profile.h"
#include "bench/tune/tree.h"

#define TUNED_PROFILE "busbar"
#define TUNED_FORMER_MAX 512

/* -ENOENT: tuned is not installed. */
int tuned_find(const struct tune_tree *t);
/* Is the profile active, alone or merged with others? */
bool tuned_is_active(const struct tune_tree *t);
/* The folder of the profile, for this version of tuned, below the root. */
const char *tuned_folder(const struct tune_tree *t);
/* Installs the profile, or replaces that of an earlier apply. -EEXIST: somebody else's folder. */
int tuned_install(const struct tune_tree *t, const struct tune_profile *p);
/* What was active before. -ENOENT: nothing is installed by us. */
int tuned_read_former(const struct tune_tree *t, char former[TUNED_FORMER_MAX]);
/* Switches to what such a text names. -EIO: tuned-adm failed. */
int tuned_switch(const struct tune_tree *t, const char *to);
int tuned_uninstall(const struct tune_tree *t);

#endif
