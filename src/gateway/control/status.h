/* SPDX-License-Identifier: BSD-2-Clause */
/* Information about a gateway and its host, as JSON; each function returns a new
 * reference. */
#ifndef GATEWAY_CONTROL_STATUS_H
#define GATEWAY_CONTROL_STATUS_H

#include <jansson.h>

struct super_node;

/* Node-types, hooks, formats and requests. */
json_t *control_capabilities(void);
json_t *control_status(struct super_node *sn);
/* The answer to a request for a restart. */
json_t *control_restart_json(struct super_node *sn, const json_t *config);
/* api.c: names of the requests, such as "node/start"; a new reference. */
json_t *control_request_names(void);

#endif
