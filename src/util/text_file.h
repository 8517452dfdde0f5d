/* SPDX-License-Identifier: BSD-2-Clause */
/* A short file of text that a setting names, as a whole. */
#ifndef UTIL_TEXT_FILE_H
#define UTIL_TEXT_FILE_H

#include <stddef.h>

/*
 * The content of a regular file of at most `most` bytes, with a NUL byte behind it; the caller frees
 * it. `*bytes`: its length. NULL: `why` says why. Other files than regular ones are refused, and
 * opening one does not block. A set-user-id program reads none.
 */
char *text_file_read(const char *path, size_t most, size_t *bytes, char *why, size_t why_bytes);

#endif
