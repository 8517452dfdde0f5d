/* SPDX-License-Identifier: BSD-2-Clause */
/* A copy of /proc and /sys of a host with four processors that nobody has tuned. */
#ifndef TESTS_TUNE_TREE_H
#define TESTS_TUNE_TREE_H

/* Makes the tree in a folder of its own; the name is freed by tree_remove(). */
char *tree_make(void);
void tree_remove(char *root);
/* Sets one file, and makes the directories above it. */
void tree_put(const char *root, const char *path, const char *text);
/* One file's text, malloc()ed; NULL: it is not there. */
char *tree_get(const char *root, const char *path);
/* All names and texts in one, malloc()ed: two trees are the same if these are. */
char *tree_snapshot(const char *root);

#endif
