/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Used by all exported functions: visibility, return conventions, and the results of
 * the stubs that gen-abi.sh makes. For this room only.
 *
 * The adapter's functions return 0 or a negative errno. The manual pages have three
 * conventions; errno is set in all three.
 */
#ifndef VERBS_ABI_H
#define VERBS_ABI_H

#include <errno.h>
#include <stddef.h>

/* Exported only if symbols.list names the function, too (version script). */
#define EXPORT __attribute__((visibility("default")))

/* "0, or the value of errno" */
static inline int verbs_errno(int ret)
{
	if (ret >= 0)
		return 0;
	errno = -ret;
	return -ret;
}

/* "0, or -1 with errno" */
static inline int verbs_minus1(int ret)
{
	if (ret >= 0)
		return 0;
	errno = -ret;
	return -1;
}

/* "a pointer, or NULL with errno" */
static inline void *verbs_null(int ret)
{
	errno = -ret;
	return NULL;
}

/* "0, or a negative errno", of the few functions that return that */
#define verbs_raw(ret) (ret)
/* "1 for yes, 0 for no", when the system's library lacks the function */
#define verbs_no(ret) 0
/* For a provider's call of a private function when the system's library is not open:
 * EOPNOTSUPP, in errno as well. */
int verbs_missing(const char *name);
/* For a program of the 1.0 interface: logs once per process; ENOSYS, in errno as well. */
int verbs_refuse(const char *name);

#endif
