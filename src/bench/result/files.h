/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and JSON files of a run's folder. Logs what fails, with the file. */
#ifndef BENCH_RESULT_FILES_H
#define BENCH_RESULT_FILES_H

#include <jansson.h>
#include <stdbool.h>

/* DIR/NAME, malloc()ed; NULL without memory. */
char *files_path(const char *dir, const char *name);
bool files_is_dir(const char *path);
/* Makes a folder and those above it. 0 or a negative errno. */
int files_make_dir(const char *path);
/* Makes an empty folder below TMPDIR; its absolute path, malloc()ed. 0 or a negative errno. */
int files_make_temporary(char **path);
/* Removes a folder with all in it; not being there is no error. */
int files_remove_dir(const char *path);

/* Writes DIR/NAME in one step: a reader sees the old text or the new one. */
int files_write_json(const char *dir, const char *name, const json_t *value);
/* Reads DIR/NAME, which has to be an object. -ENOENT (not logged), -EBADMSG or another
 * negative errno. */
int files_read_json(const char *dir, const char *name, json_t **value);

#endif
