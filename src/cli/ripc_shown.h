/* SPDX-License-Identifier: BSD-2-Clause */
/* The instances of this host and user, as they show themselves (busbar/ripc_show.h). */
#ifndef CLI_RIPC_SHOWN_H
#define CLI_RIPC_SHOWN_H

#include "cli/json_out.h"
#include <busbar/ripc_show.h>

struct shown {
	struct ripc_show_head head;
	struct ripc_show_service services[RIPC_SHOW_SERVICES_MAX];
};

/* Calls `each` for every instance that answers, in the order of processes and numbers. A
 * negative errno: they cannot be listed; logged. */
int ripc_shown_each(void (*each)(const struct shown *s, void *arg), void *arg);
/* An answer of so many bytes. True: it is whole, and its texts end and have no
 * control characters, which this sees to. */
bool ripc_shown_check(struct shown *s, size_t bytes);
/* A service as members of `j`. */
void ripc_shown_service_json(const struct ripc_show_service *v, struct cli_json *j);

#endif
