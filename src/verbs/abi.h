/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the exported functions share: visibility, return conventions, and the
 * answers of the stubs that gen-abi.sh makes. Not for other rooms.
 *
 * The adapter answers 0 or a negative errno; the manual pages know three
 * conventions, and all of them leave the cause in errno as well.
 */
#ifndef VERBS_ABI_H
#define VERBS_ABI_H

#include <errno.h>
#include <stddef.h>

/* Exported if symbols.list names it, too: the version script has the last word. */
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

/* "0, or a negative errno", of the few that are so */
#define verbs_raw(ret) (ret)
/* "1 for yes, 0 for no", where nobody can be asked */
#define verbs_no(ret) 0

/* A provider calls its core: no such core here. EOPNOTSUPP, in errno too. */
int verbs_missing(const char *name);
/* A program of the 1.0 interface: one line per process. ENOSYS, in errno too. */
int verbs_refuse(const char *name);

#endif
