/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The group `multicast` of a node's configuration, and the options of a UDP or raw IP socket
 * that it stands for.
 */
#ifndef GATEWAY_PART_MULTICAST_H
#define GATEWAY_PART_MULTICAST_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/config/config.h"

struct multicast {
	bool present; /* the group stands in the configuration */
	bool enabled, loop;
	const char *group, *interface;
	int64_t ttl;
};

/* Unpacks the group `cfg` (NULL: there is none). 0, or -EINVAL after config_fail(). */
int multicast_parse(struct multicast *m, struct config *c, json_t *cfg);

/*
 * Of a node with the groups in.multicast and out.multicast, which have been parsed: what
 * stands in one holds for both. `in_cfg`, `out_cfg`: the groups, for messages; `must_join`:
 * the node only receives, and so needs a group. 0, or -EINVAL after config_fail().
 */
int multicast_merge(struct multicast *in, json_t *in_cfg, struct multicast *out,
		    json_t *out_cfg, bool must_join, struct config *c);

/* Lets the socket receive from the group; nothing where none is enabled. `node` is the
 * name of the node for the log. 0 or a negative errno; logs the cause. */
int multicast_join(int fd, const struct multicast *m, const char *node);

/* Sets how the socket of `family` sends to groups; likewise. */
int multicast_set_out(int fd, const struct multicast *m, int family, const char *node);

#endif
