/* SPDX-License-Identifier: BSD-2-Clause */
/* All hooks, one line each. */
#include <stddef.h>
#include <string.h>

#include "gateway/hook.h"

extern const struct hook_type hook_drop, hook_fix, hook_restart, hook_stats;

const struct hook_type *const hook_types[] = {
	&hook_drop,
	&hook_fix,
	&hook_restart,
	&hook_stats,
	NULL,
};

const struct hook_type *hook_type_find(const char *name)
{
	for (size_t i = 0; hook_types[i]; i++)
		if (!strcmp(hook_types[i]->name, name))
			return hook_types[i];
	return NULL;
}
