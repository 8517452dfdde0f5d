/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which user a number of the kernel means. In a user namespace all users and groups of the
 * host that it does not map appear as one number, the overflow id (65534), and so does this
 * process where its own user is not mapped. Equal numbers are the same user only if they are
 * known.
 */
#ifndef UTIL_USER_H
#define UTIL_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* False: the number may stand for several users, or it is the invalid one, -1. */
bool user_is_known(uid_t uid);
bool user_group_is_known(gid_t gid);

/* Is it surely the effective user of this process? */
bool user_is_ours(uid_t uid);
/* Or the superuser? */
bool user_is_ours_or_root(uid_t uid);

#endif
