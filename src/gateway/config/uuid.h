/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers of nodes and paths for those who control a gateway: as the
 * configuration says, else made of what is identified, so that they stay the
 * same from run to run. Form: RFC 9562, version 8.
 */
#ifndef GATEWAY_CONFIG_UUID_H
#define GATEWAY_CONFIG_UUID_H

#include "gateway/config/config.h"

#define UUID_SIZE 37 /* with the final zero */

/* From `text`; the same text gives the same identifier. */
void uuid_from_text(char uuid[UUID_SIZE], const char *kind, const char *text);

/* `given` in lower case, checked (reported for key "uuid" of `cfg`), or, when it
 * is NULL, made from `kind` and `text`. 0 or -EINVAL. */
int uuid_set(char uuid[UUID_SIZE], struct config *c, const json_t *cfg,
	     const char *given, const char *kind, const char *text);

#endif
