/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the cases about forwarding. A case runs in a process of its own,
 * because the library under test looks at its environment once. It ends with
 * exit status 0 or 1.
 */
#ifndef FORWARD_H
#define FORWARD_H

#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#include "standin.h"

enum owner {
	OWNER_device,
	OWNER_context,
	OWNER_object,
	OWNER_event,
	OWNER_both,
	OWNER_here,
};

struct public_symbol {
	const char *name;
	const char *version;
	enum owner owner;
};

extern const struct public_symbol public_symbols[];
extern const size_t public_symbol_count;

#define CHECK(what)                                                       \
	do {                                                              \
		if (!(what)) {                                            \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, \
			       #what);                                    \
			exit(1);                                          \
		}                                                         \
	} while (0)

/* As CHECK, naming the symbol that the case is at. */
#define CHECK_FOR(name, what)                                              \
	do {                                                               \
		if (!(what)) {                                             \
			printf("%s:%d: %s: not so: %s\n", __FILE__,        \
			       __LINE__, name, #what);                     \
			exit(1);                                           \
		}                                                          \
	} while (0)

/* Of the stand-in that the library under test has opened; NULL when none is. */
struct standin_state *standin(void);

/* The device of that name, opened. */
struct ibv_context *open_named(const char *name);

/* ---- dispatch.c ---- */

void public_functions_of_stand0_are_the_stand_ins(void);
void private_functions_are_the_stand_ins(void);
void an_old_library_lacks_functions(void);
/* Every forwarded public function once, on soft0's objects. */
void public_functions_of_soft0_are_ours(void);

#endif
