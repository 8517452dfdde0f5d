/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hints for keys and node-types of VILLASnode that busbar names differently or does not
 * have. Error messages use them to name the replacement; no key is accepted because of
 * them.
 */
#ifndef GATEWAY_CONFIG_FORMER_H
#define GATEWAY_CONFIG_FORMER_H

#include <jansson.h>
#include <stddef.h>

/* The hint for an unknown key; NULL when there is none. */
const char *former_key_hint(const char *key);

/* The hint for an unknown node-type; NULL when VILLASnode has no such type. */
const char *former_node_hint(const char *type);

#endif
