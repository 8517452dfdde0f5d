/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds busbar processes by their control sockets in this network namespace. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "hca/host/names.h"
#include "hca/view/inspect_read.h"

struct names {
	struct inspect_name *at;
	size_t count, room;
	int error; /* 0 or a negative errno */
};

static bool name_add(struct names *names, struct inspect_name n)
{
	if (names->count == names->room) {
		size_t room = MAX(2 * names->room, (size_t)16);
		struct inspect_name *grown = realloc(names->at, room * sizeof(*grown));

		if (!grown)
			return false;
		names->at = grown;
		names->room = room;
	}
	names->at[names->count++] = n;
	return true;
}

static void seen(const struct hca_name_seen *name, void *arg)
{
	struct names *names = arg;
	uint32_t block;
	int end = 0;

	if (!name->listens || sscanf(name->rest, "%u%n", &block, &end) != 1 ||
	    name->rest[end] || block == 0 || block >= HCA_QPN_BLOCKS || names->error)
		return;
	if (!name_add(names, (struct inspect_name){ block, name->inode }))
		names->error = -ENOMEM;
}

int inspect_names_read(struct inspect_name **out, size_t *out_count)
{
	struct names names = { .at = NULL };
	int ret = hca_names_each(HCA_NAME_OF_BLOCKS, seen, &names);

	if (!ret)
		ret = names.error;
	if (ret) {
		free(names.at);
		return ret;
	}
	*out = names.at;
	*out_count = names.count;
	return 0;
}
