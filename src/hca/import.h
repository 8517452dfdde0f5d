/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor of a context, and what is imported with it. For the hca only. */
#ifndef HCA_IMPORT_H
#define HCA_IMPORT_H

#include <infiniband/verbs.h>

#include "hca/context.h"
#include "hca/mr.h"

/* A descriptor that stands for a context that is being opened; or a negative errno. */
int hca_cmd_fd_create(void);
/* device.c: a context that has this descriptor, and closes it in the end. */
int hca_context_make(struct hca_device *device, int cmd_fd,
		     struct ibv_context **out);
/* A handle of ibv_import_mr(3) is given back. */
void hca_mr_end_import(struct hca_mr *mr);

#endif
