/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that must not be done on the progress thread, because it may wait for a file
 * system that a peer has chosen: a descriptor that a peer passed can belong to a FUSE
 * file system, whose answers to fstatfs(), read() and even close() the peer controls. A
 * separate thread does this work, one item after the other; the thread exists only
 * while there is work.
 */
#ifndef HCA_ASIDE_H
#define HCA_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

struct hca_aside {
	void (*fn)(struct hca_aside *a); /* closes `fd` */
	int fd;
	unsigned place;
	uint64_t addr;
	uint8_t uuid[16];
};

/* Queues a copy of `a` for the thread. False: the queue is full; `fd` stays open,
 * because no thread could close it safely. */
bool hca_aside_run(const struct hca_aside *a);
/* Is the queue full? Then no descriptors should be accepted from peers. */
bool hca_aside_is_full(void);
/* Closes a descriptor of a peer that is of no use; on the thread if close() may block. */
void hca_fd_drop(int fd);
/* Does the descriptor belong to memory that cannot shrink, or to an eventfd? Neither
 * the question nor the use of these can block. */
bool hca_fd_is_memory(int fd);
bool hca_fd_is_eventfd(int fd);
/* At the adapter's end: waits, with a limit of time, until the queue is empty. */
void hca_aside_settle(void);
/* In a forked child. */
void hca_aside_forked(void);

#endif
