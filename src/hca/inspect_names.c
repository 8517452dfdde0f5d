/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is there: the control sockets of this network namespace. */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/inspect_read.h"
#include "util/log.h"

/* One line of /proc/net/unix: slot, references, protocol, flags, type, state,
 * inode, name. 0x10000 in the flags: it listens. */
static bool parse_line(const char *line, struct inspect_name *n)
{
	unsigned long long flags, inode;
	char path[64];
	uint32_t block;
	int end = 0;

	if (sscanf(line, "%*s %*s %*s %llx %*s %*s %llu %63s", &flags, &inode,
		   path) != 3 ||
	    !(flags & 0x10000) ||
	    sscanf(path, "@busbar.qpn.%u%n", &block, &end) != 1 || path[end] ||
	    block == 0 || block >= HCA_QPN_BLOCKS)
		return false;
	*n = (struct inspect_name){ block, inode };
	return true;
}

int inspect_names_read(struct inspect_name **out, size_t *out_count)
{
	struct inspect_name *names = NULL, n;
	size_t count = 0, room = 0;
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512];
	int ret;

	if (!f) {
		ret = -errno;
		log_error("/proc/net/unix: %s; processes are found there",
			  strerror(-ret));
		return ret;
	}
	while (fgets(line, sizeof(line), f)) {
		if (!parse_line(line, &n))
			continue;
		if (count == room) {
			struct inspect_name *grown;

			room = MAX(2 * room, (size_t)16);
			grown = realloc(names, room * sizeof(*names));
			if (!grown) {
				free(names);
				fclose(f);
				return -ENOMEM;
			}
			names = grown;
		}
		names[count++] = n;
	}
	fclose(f);
	*out = names;
	*out_count = count;
	return 0;
}
