/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing with a limit of time, to a reader that may have stopped: standard output and
 * standard error of a program that must go on. Bytes can be dropped, so not for data.
 */
#ifndef UTIL_BOUNDED_WRITE_H
#define UTIL_BOUNDED_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Writes until nothing can be written for `patience_ms`. Returns the number of bytes
 * written, or `len` after an error (nobody will ever read the rest). The descriptor's
 * flags, which other processes may share, are not changed.
 */
size_t bounded_write(int fd, const char *buf, size_t len, unsigned patience_ms);

/*
 * One write, within `timeout_ms`. Returns the number of bytes; -EAGAIN: there was no room;
 * or another negative errno.
 */
ssize_t bounded_write_once(int fd, const char *buf, size_t len, int timeout_ms);

/* Is there room for a write now? */
bool bounded_write_has_room(int fd);

#endif
