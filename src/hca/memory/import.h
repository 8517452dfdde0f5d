/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor of a context (cmd_fd), and handles imported by it. For src/hca only. */
#ifndef HCA_IMPORT_H
#define HCA_IMPORT_H

#include <infiniband/verbs.h>

#include "hca/device/context.h"
#include "hca/memory/mr.h"

/* A descriptor for a context that is being opened, or a negative errno. */
int hca_cmd_fd_create(void);
/* device.c: makes a context. It owns `cmd_fd` and closes it at its end. 0 or a negative errno. */
int hca_context_make(struct hca_device *device, int cmd_fd,
		     struct ibv_context **out);
/* Frees a handle that ibv_import_mr(3) returned. */
void hca_mr_end_import(struct hca_mr *mr);

#endif
