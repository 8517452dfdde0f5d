/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the kernel (/proc, /sys, /dev), read below a root folder: that of the host, or a
 * folder with a copy that a test or somebody curious has made.
 *
 * All functions return 0 or a negative errno and log nothing.
 */
#ifndef BENCH_TUNE_TREE_H
#define BENCH_TUNE_TREE_H

#include <stdbool.h>
#include <stddef.h>

struct tune_tree {
	const char *root; /* "" is the host, else a folder without a slash at its end */
};

/* The host's own files. */
static const struct tune_tree tune_here __attribute__((unused)) = { .root = "" };

/* The path below the root, malloc()ed; NULL: no memory. */
char *tune_tree_path(const struct tune_tree *t, const char *path);
bool tune_tree_exists(const struct tune_tree *t, const char *path);
/* The whole text of a file as it is, malloc()ed; at most 4 MiB (-EFBIG). A directory that is
 * there has the text "". */
int tune_tree_read(const struct tune_tree *t, const char *path, char **text);
/* The first line without white space at its ends; "" on an error. Longer ones are cut. */
int tune_tree_line(const struct tune_tree *t, const char *path, char *to, size_t size);
/* What stands behind "NAME" and blanks, ':' or '=' in the first line that begins so, without white
 * space and quotation marks at its ends; "" and -ENOENT: there is no such line. */
int tune_tree_value(const struct tune_tree *t, const char *path, const char *name, char *to,
		    size_t size);
/* A file with one whole number. */
int tune_tree_number(const struct tune_tree *t, const char *path, long long *value);
/* The number behind "NAME:", such as "123 kB"; -1: there is none. */
long long tune_tree_amount(const struct tune_tree *t, const char *path, const char *name);
/* Time of all processors since the machine started, in the kernel's ticks, from the first line of
 * /proc/stat; false: it is not that. Older kernels end before `stolen`. Time of guests is a part of
 * `busy`. */
struct tune_ticks {
	unsigned long long all, busy, stolen;
};
bool tune_ticks_parse(const char *line, struct tune_ticks *out);
/* Writes a file that is there, in one call of write(2). */
int tune_tree_put(const struct tune_tree *t, const char *path, const char *text);
/* The numbers N of all entries PREFIX + N of a directory, ascending, malloc()ed. None, and
 * 0, if there is no such directory. */
int tune_tree_numbers(const struct tune_tree *t, const char *dir, const char *prefix,
		      int **numbers, size_t *count);
/* The word in brackets, or the first line if there are none. */
void tune_chosen(const char *text, char *to, size_t size);
/* Is `word` one of the words of `text`, which have characters of `between` around them? */
bool tune_has_word(const char *text, const char *word, const char *between);
#define TUNE_BLANKS " \t\n[]" /* and brackets */
/* Removes white space at both ends, in place; returns `text`. */
char *tune_trim(char *text);

#endif
