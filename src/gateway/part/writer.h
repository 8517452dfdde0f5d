/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes samples to a file without delaying the calling thread: writer_put() copies them
 * to preallocated memory, and a thread of normal priority formats and writes them.
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
	bool append;        /* false: the old contents of the file are lost */
	bool flush;         /* write at once, not in large pieces */
	bool in_memory;     /* format and write only when closed */
	bool block;         /* wait when the buffer is full; false: refuse */
	size_t buffer_size; /* bytes of samples not yet written; a sample that is
			     * too long for it (writer_buffer_min()) is refused */
	struct node *node;  /* counts samples that are lost after writer_put() took
			     * them; NULL allowed */
	/* For files whose header or second file depends on the data written so
	 * far: called in the writer's thread after it has written bytes, about
	 * once a second, and at the end. 0 or a positive errno after logging the
	 * cause. NULL allowed. */
	int (*settle)(void *arg, int fd);
	void *settle_arg;
};

/* The smallest buffer, in bytes, for samples of `length` values. */
size_t writer_buffer_min(unsigned length);

/* Opens the file and starts the thread. `format` is borrowed. 0 or a negative errno; logs
 * the cause. */
int writer_open(struct writer **out, const struct writer_settings *settings,
		struct format *format);

/*
 * Copies samples; returns how many it took. If fewer than `cnt`, writer_why() says why. Any
 * thread.
 */
unsigned writer_put(struct writer *w, struct sample *const smps[], unsigned cnt);
/* Why writer_put() did not take `s`, the first sample that is left. For the thread that
 * called writer_put(). */
enum node_loss writer_why(struct writer *w, const struct sample *s, char *text,
			  size_t size);

/* Whether writer_put() may soon wait for the disk: half of the buffer is used. For the
 * thread that calls writer_put(). */
bool writer_may_wait(struct writer *w);

/*
 * Asks a blocked writer_put() to return. It goes on waiting for up to half a second,
 * because the thread still writes; after that no call waits, as long as
 * writer_interrupt() is called repeatedly.
 */
void writer_interrupt(struct writer *w);
/* Undoes writer_interrupt(): calls wait again. */
void writer_rearm(struct writer *w);

/*
 * Writes all samples that it took, closes the file and destroys the writer. `signals` name
 * the columns if there was no sample (NULL: no header then). Returns 0, or the negative
 * errno of the first failure, which was logged when it happened.
 */
int writer_close(struct writer *w, struct signal_list *signals);

#endif
