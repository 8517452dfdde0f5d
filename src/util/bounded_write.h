/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing to somebody who may have stopped reading: standard output and standard
 * error of a program that must go on. Not for data, which waits for its reader.
 */
#ifndef UTIL_BOUNDED_WRITE_H
#define UTIL_BOUNDED_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Writes what fits, and waits at most `patience_ms` each time nothing does.
 * Returns the bytes that are written, or `len` where an error says that nobody
 * will ever read them. The descriptor's flags, which other processes share, stay
 * as they are.
 */
size_t bounded_write(int fd, const char *buf, size_t len, unsigned patience_ms);

/*
 * One write of what fits, at most `timeout_ms` after the call. Bytes, -EAGAIN when
 * nothing did, or another negative errno.
 */
ssize_t bounded_write_once(int fd, const char *buf, size_t len, int timeout_ms);

/* Would it take anything now? */
bool bounded_write_has_room(int fd);

#endif
