/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the file that a command was asked for. */
#ifndef UTIL_REPLACE_FILE_H
#define UTIL_REPLACE_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The whole text or none: it is written beside the file as PATH.part.XXXXXX, a name that nobody has,
 * which is then renamed. The file keeps its mode. A symbolic link keeps its place, devices and FIFOs
 * are written to, and "-" is standard output.
 * `stopped`, asked after each write and when a signal has interrupted one, ends it: -EINTR. 0 or
 * a negative errno; then nothing is left beside it, and the file is as before.
 */
int replace_file(const char *path, const char *text, size_t size, bool (*stopped)(void));

#endif
