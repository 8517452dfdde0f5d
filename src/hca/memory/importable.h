/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that a program can import by their handle (ibv_import_pd(3), ibv_import_dm(3)): lists to
 * find them in, and reference counts. Each import is a user, and each object made with the
 * original.
 */
#ifndef HCA_IMPORTABLE_H
#define HCA_IMPORTABLE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* A member of such objects. `users` 0: the object may be destroyed. */
struct hca_importable {
	struct list entry;
	struct ibv_context *context;
	uint32_t handle;
	atomic_int users;
};

/* Adds the object to `all`, the list of its kind. */
void hca_importable_add(struct list *all, struct hca_importable *object,
			struct ibv_context *context, uint32_t handle);
/* The object with that handle, with `users` incremented. NULL: the device of `context` has none,
 * or it was made by a parent process before fork(). */
struct hca_importable *hca_importable_get(struct list *all,
					  const struct ibv_context *context,
					  uint32_t handle);
/* Removes the object from its list if it has no user. False: it has one, nothing was done. */
bool hca_importable_remove(struct hca_importable *object);

#endif
