/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passwords in configurations, which nothing that a gateway tells about itself may contain:
 * the texts of keys with certain names, and the password in front of the host of a URL. A text
 * with ${NAME} says where the secret is, and is shown.
 */
#ifndef GATEWAY_CONFIG_SECRET_H
#define GATEWAY_CONFIG_SECRET_H

#include <jansson.h>
#include <stdbool.h>

/* What stands in place of a secret. */
#define SECRET_HIDDEN "(hidden)"

bool secret_is_key(const char *key);

/* A copy of `v` without secrets; NULL without memory. */
json_t *secret_copy(const json_t *v);

/* The text of a configuration (libconfig or JSON) without secrets, to be freed; NULL without
 * memory. */
char *secret_hide_text(const char *text);

#endif
