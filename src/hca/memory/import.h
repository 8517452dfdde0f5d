/* SPDX-License-Identifier: BSD-2-Clause */
/* Imported handles. For src/hca only. */
#ifndef HCA_IMPORT_H
#define HCA_IMPORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/importable.h"
#include "hca/object/mr.h"
#include "util/list.h"

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

/* Frees a handle that ibv_import_mr(3) returned. */
void hca_mr_end_import(struct hca_mr *mr);

#endif
