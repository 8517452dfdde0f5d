/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where hooks put text: standard output, which they share, or a file that is
 * appended to. A piece of text is put whole or left out whole.
 *
 * Whoever puts waits for a reader that is slow. One that has stopped is waited
 * for, too, until somebody wants the thread back (hook_output_interrupt()): then
 * no longer than two seconds without a byte taken, and from there on not at all,
 * until something is read again.
 */
#ifndef GATEWAY_HOOK_PART_OUTPUT_H
#define GATEWAY_HOOK_PART_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

struct hook_output;

/* `path` NULL: standard output. NULL with errno. */
struct hook_output *hook_output_open(const char *path);
/* The same for a file that begins anew. Neither waits for the reader of a FIFO, which
 * may come later. */
struct hook_output *hook_output_create(const char *path);
/*
 * `hurry`: does not wait for ever for what is still to be written. Returns the
 * bytes that nobody took, of all who shared it: it is the last one that is told.
 * *error (0 or positive errno) says that writing has failed.
 */
size_t hook_output_close(struct hook_output *o, bool hurry, int *error);

/* `text` behind `prefix`. 0, -EAGAIN when it was left out because nobody reads,
 * or another negative errno. */
int hook_output_put(struct hook_output *o, const char *prefix, const char *text,
		    size_t len);
/* Writes what is taken now; false: there is more, or somebody else is waiting. */
bool hook_output_flush(struct hook_output *o);
/* The same for standard output, whether it is open or not; `wait`: for its reader,
 * but not for one who has stopped. */
bool hook_output_flush_stdout(bool wait);
/* From any thread, while others are in the calls above; to be repeated until they
 * have left. */
void hook_output_interrupt(struct hook_output *o);
/* A file that holds nothing, or no regular one. */
bool hook_output_is_new(const struct hook_output *o);

#endif
