/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that a program can import by their handle (ibv_import_pd(3), ibv_import_dm(3); import.h):
 * lists to find them in, and reference counts. Each import is a user, and each object made with the
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


#endif
