/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory files, for sharing. */
#ifndef HCA_MEMORY_FILE_H
#define HCA_MEMORY_FILE_H

#include <stdint.h>

/* memfd_create(2) with `flags` and MFD_CLOEXEC, of `size` bytes; or a negative errno.
 * The log says once why it failed and what would help. */
int hca_memory_file(const char *name, uint64_t size, unsigned flags);

#endif
