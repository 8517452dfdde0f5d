/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Survives a peer that makes a shared memory object smaller: the next access is
 * a SIGBUS, and objects with a name have no seals against that. A program that
 * asks for it gets a handler which puts empty memory in the place of the object;
 * the ring then looks as if its peer had left it. Not for libraries to switch on
 * by themselves: signal handlers are the program's.
 */
#ifndef SHMEM_GUARD_H
#define SHMEM_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Installs the handler, unless it is there. */
void shmem_guard_start(void);

/* Of all mappings, with or without the handler. */
void shmem_guard_add(void *start, size_t bytes);
void shmem_guard_remove(const void *start);

/* Whether the object behind this mapping was cut off. */
bool shmem_guard_hit(const void *start);

#endif
