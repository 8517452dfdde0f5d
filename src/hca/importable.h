/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that a program imports by their handle (ibv_import_pd(3), ibv_import_dm(3)):
 * where they are found, and who keeps them. An import is a user, and so is whatever is
 * made on the object.
 */
#ifndef HCA_IMPORTABLE_H
#define HCA_IMPORTABLE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"

/* In an object. What `users` counts is its own business; 0: it may go. */
struct hca_importable {
	struct list entry;
	struct ibv_context *context;
	uint32_t handle;
	atomic_int users;
};

/* From here on it is found in `all`, the list of its kind. */
void hca_importable_add(struct list *all, struct hca_importable *object,
			struct ibv_context *context, uint32_t handle);
/* The object with that handle, with one more user; NULL: there is none of the context's
 * device, or it is the parent's of a forked process. */
struct hca_importable *hca_importable_get(struct list *all,
					  const struct ibv_context *context,
					  uint32_t handle);
/* Not found any more, if it has no user; false: it has, and nothing was done. */
bool hca_importable_remove(struct hca_importable *object);

#endif
