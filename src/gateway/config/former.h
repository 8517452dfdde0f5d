/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What configurations written for VILLASnode say and busbar calls otherwise, or does
 * not have: the words of its older versions, and its other node-types. Messages use
 * it to say what there is instead. Nothing is accepted here.
 */
#ifndef GATEWAY_CONFIG_FORMER_H
#define GATEWAY_CONFIG_FORMER_H

#include <jansson.h>
#include <stddef.h>

/* What to write instead of an unknown key; NULL when nothing is known of it. */
const char *former_key_hint(const char *key);

/* What to use instead of a node-type; NULL when VILLASnode has no such type. */
const char *former_node_hint(const char *type);

#endif
