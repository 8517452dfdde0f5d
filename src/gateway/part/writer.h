/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples into a file without ever delaying who delivers them: they are copied
 * into preallocated memory; a thread of normal priority formats and writes.
 */
#ifndef GATEWAY_PART_WRITER_H
#define GATEWAY_PART_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"

struct writer;

struct writer_settings {
	const char *path;
	bool append;        /* else what the file held is lost */
	bool flush;         /* write at once, not in large pieces */
	bool in_memory;     /* format and write only when closed */
	bool block;         /* wait when the buffer is full; else refuse */
	size_t buffer_size; /* bytes of samples under way; a sample that is too
			     * long for it (writer_buffer_min()) is refused */
	struct node *node;  /* what is lost after it was taken is counted there;
			     * NULL allowed */
	/* For files whose beginning, or whose companion, tells what only their
	 * end knows: called in the writer's thread after bytes have gone to the
	 * file, about once a second, and at the end. 0 or a positive errno,
	 * the cause is logged. NULL allowed. */
	int (*settle)(void *arg, int fd);
	void *settle_arg;
};

/* Bytes of a buffer that takes samples of `length` values. */
size_t writer_buffer_min(unsigned length);

/* `format` is borrowed. 0 or a negative errno; logs the cause. */
int writer_open(struct writer **out, const struct writer_settings *settings,
		struct format *format);

/*
 * Copies samples; returns how many were taken. Fewer: writer_why(). Any thread.
 */
unsigned writer_put(struct writer *w, struct sample *const smps[], unsigned cnt);
/* Why writer_put() did not take `s`, the first of those that are left; for who has
 * called it. */
enum node_loss writer_why(struct writer *w, const struct sample *s, char *text,
			  size_t size);

/* Whether writer_put() may have to wait soon, for a disk: half of the buffer is used.
 * The thread that puts. */
bool writer_may_wait(struct writer *w);

/*
 * A blocked writer_put() is to come to an end. It goes on waiting for half a second,
 * because the thread goes on writing; from then on none waits, as long as this is
 * called again and again.
 */
void writer_interrupt(struct writer *w);
/* They do again. */
void writer_rearm(struct writer *w);

/*
 * Writes everything that was taken, closes the file and destroys the writer.
 * `signals` name the columns when no sample has come (NULL: no header then).
 * Returns 0, or the negative errno of the first failure (logged when it
 * happened).
 */
int writer_close(struct writer *w, struct signal_list *signals);

#endif
