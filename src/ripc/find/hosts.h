/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that says where services are:
 *
 *	# comment
 *	ID-or-name  address  port
 *
 * ID from 1 up, decimal or 0x...; a name with blanks stands in double quotes, in which \"
 * and \\ mean themselves. The address in digits, IPv4 or IPv6. The port is of UDP: there the
 * instance of the service answers the questions of others, and it reads the same line to
 * know that it shall. The file is read again when it has changed; while it cannot be read or
 * has an error, what stood there before holds. Any thread.
 */
#ifndef RIPC_HOSTS_H
#define RIPC_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ripc/find/address.h"

#define HOSTS_LINES_MAX 65536
#define HOSTS_ASKED_MAX 64 /* questions at once */

struct hosts;

/* -ENOENT and others of open(), -EINVAL with file and line in `why`, -ENOMEM. */
int hosts_open(struct hosts **out, const char *file, char *why, size_t why_bytes);
void hosts_close(struct hosts *h);

/* Where to ask for a service, by `name` when id is 0; how many. All addresses of the file
 * when it has no line for it, unless `exactly`. Looks whether the file has changed. */
unsigned hosts_find(struct hosts *h, uint32_t id, const char *name, bool exactly,
		    union address *out, unsigned max);
/* Whether hosts_find() may have said `a`. */
bool hosts_has(struct hosts *h, uint32_t id, const char *name, const union address *a);

#endif
