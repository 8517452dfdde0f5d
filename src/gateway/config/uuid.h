/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers (UUIDs) of gateways, nodes and paths for control requests. The configuration
 * may set them; otherwise they are made from the name, so that they are the same in
 * every run. Form: RFC 9562, version 8.
 */
#ifndef GATEWAY_CONFIG_UUID_H
#define GATEWAY_CONFIG_UUID_H

#include "gateway/config/config.h"

#define UUID_SIZE 37 /* with the final zero */

/* Makes an identifier from `kind` and `text`; the same texts give the same identifier. */
void uuid_from_text(char uuid[UUID_SIZE], const char *kind, const char *text);

/* 32 hexadecimal digits in the usual groups. */
bool uuid_is_valid(const char *text);

/* `given` in lower case, checked (reported for key "uuid" of `cfg`), or, when it
 * is NULL, made from `kind` and `text`. 0 or -EINVAL. */
int uuid_set(char uuid[UUID_SIZE], struct config *c, const json_t *cfg,
	     const char *given, const char *kind, const char *text);

#endif
