/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of libibverbs and librdmacm for which the wrappers of a preloaded library stand. */
#ifndef PRELOAD_REAL_H
#define PRELOAD_REAL_H

/* By the name and the version of the symbol; NULL: there is none. */
void *real_find(const char *name, const char *version);

#endif
