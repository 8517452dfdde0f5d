/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/self/maps without allocating memory, so also in a forked child. */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps_entry {
	uint64_t start, end, offset;
	ino_t inode;
	bool readable, writable;
	bool shared;
	bool ordinary;  /* private, anonymous, readable and writable, no stack */
	bool is_region; /* has the name of a file of region.c */
};

/* Calls fn for each mapping, in ascending order. 0 or a negative errno. */
int maps_walk(void (*fn)(const struct maps_entry *m, void *arg), void *arg);
/* Parses one line. False: it is no mapping. */
bool maps_parse(const char *line, struct maps_entry *m);

#endif
