/* SPDX-License-Identifier: BSD-2-Clause */
/* Information about a gateway and its host, as JSON; each function returns a new
 * reference. */
#ifndef GATEWAY_CONTROL_STATUS_H
#define GATEWAY_CONTROL_STATUS_H

#include <jansson.h>
#include <stdint.h>

struct super_node;

/* Node-types, hooks, formats, and the names of requests `apis`, whose reference is
 * used up: control_request_names(). */
json_t *control_capabilities(json_t *apis);
json_t *control_status(struct super_node *sn);
/* Lines of the log behind number `after`, as many as are kept. */
json_t *control_log(uint64_t after);
/* The answer to a request for a restart. */
json_t *control_restart_json(struct super_node *sn, const json_t *config);

#endif
