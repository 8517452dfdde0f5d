/* SPDX-License-Identifier: BSD-2-Clause */
/* What inspect.c and fail_ask.c find out about other processes. */
#ifndef HCA_INSPECT_READ_H
#define HCA_INSPECT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/inspect.h"
#include "hca/process.h"

/* A control socket that somebody listens on. */
struct inspect_name {
	uint32_t block;
	uint64_t inode; /* tells a process from its successor */
};

/* All of this network namespace, to be freed; 0 or a negative errno (logged). */
int inspect_names_read(struct inspect_name **out, size_t *out_count);

/*
 * Is that a segment of our kind? Fills uuid; else writes into `problem` why not.
 * Nothing is mapped: a read of a memory file can neither fault nor block.
 */
bool inspect_segment_check(int fd, uint8_t uuid[16], char *problem, size_t size);
/* All but who the process is. False: it cannot be read (any more). */
bool inspect_process_read(int fd, struct hca_process_view *p);
/* Its command line, made printable. */
void inspect_command_read(uint32_t pid, char *text, size_t size);

#endif
