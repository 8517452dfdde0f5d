/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading other processes' names and segments, for inspect.c and ask.c. */
#ifndef HCA_INSPECT_READ_H
#define HCA_INSPECT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/share/process.h"
#include "hca/view/inspect.h"

/* A control socket that a process listens on. */
struct inspect_name {
	uint32_t block;
	uint64_t inode; /* different if another process takes the name later */
};

/* All of this network namespace; the caller frees *out. 0 or a negative errno, logged. */
int inspect_names_read(struct inspect_name **out, size_t *out_count);

/*
 * Is it a segment of this layout? Fills in uuid; otherwise `problem` says why not. The
 * segment is read and not mapped: reading a memory file neither faults nor blocks.
 */
bool inspect_segment_check(int fd, uint8_t uuid[16], char *problem, size_t size);
/* Fills in everything but pid, user and command. False: it cannot be read any more. */
bool inspect_process_read(int fd, struct hca_process_view *p);
/* The command line of a process, made printable. */
void inspect_command_read(uint32_t pid, char *text, size_t size);

#endif
