/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must not be done on the progress thread because it may wait for a file system
 * that a peer has chosen: a descriptor that it passed can be one of a FUSE file
 * system, whose every answer, to fstatfs, to read and even to close, is up to the
 * peer. A thread of its own does that, one thing after the other; it exists only
 * while there is something to do.
 */
#ifndef HCA_ASIDE_H
#define HCA_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

struct hca_aside {
	void (*fn)(struct hca_aside *a); /* `fd` is its to close */
	int fd;
	unsigned place;
	uint64_t addr;
	uint8_t uuid[16];
};

/* Copies `a` and has it done. False: too much waits already; `fd` is left open, as
 * there is nobody who could close it safely. */
bool hca_aside_run(const struct hca_aside *a);
/* Is nothing more taken? Then no descriptors should be, either. */
bool hca_aside_is_full(void);
/* Closes a descriptor that a peer passed and that turned out to be of no use. */
void hca_fd_drop(int fd);
/* Of memory that cannot shrink, or of an eventfd: kinds that make nobody wait. Asked in
 * ways that do not go to a file system. */
bool hca_fd_is_memory(int fd);
bool hca_fd_is_eventfd(int fd);
/* At the adapter's end: waits until all is done, but not for ever. */
void hca_aside_settle(void);
/* In a forked child. */
void hca_aside_forked(void);

#endif
