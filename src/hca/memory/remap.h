/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered application memory that peers can map (BUSBAR_MAP_MEMORY): its
 * pages are moved into a memory file that is mapped in their place, and moved
 * back with the last registration.
 */
#ifndef HCA_REMAP_H
#define HCA_REMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_mr;

/* ---- remap.c ---- */
/* For a new registration, before the key is published: moves its memory and sets
 * mr->region, if the setting asks for it and it is possible; otherwise does nothing. */
void hca_remap_attach(struct hca_mr *mr);
/* Undoes it; no peer copies with the key any more. */
void hca_remap_detach(struct hca_mr *mr);
/* In a forked child, before the regions are forgotten. */
void hca_remap_forked(void);

/* ---- remap_move.c ---- */
void hca_remap_move_forked(void);
/*
 * Exchanges the pages [at, at + length) between private anonymous memory and the file
 * `fd` at `offset`, in place; no write of another thread is lost. 0; -EPERM: other
 * threads run and cannot be stopped; or another negative errno. After an error the pages
 * are unchanged.
 */
int hca_remap_move_in(uint8_t *at, size_t length, int fd, uint64_t offset);
int hca_remap_move_out(uint8_t *at, size_t length, int fd, uint64_t offset);

#endif
