/* SPDX-License-Identifier: BSD-2-Clause */
/* A configuration in the language of libconfig. */
#ifndef GATEWAY_CONTROL_CONFIG_TEXT_H
#define GATEWAY_CONTROL_CONFIG_TEXT_H

#include <jansson.h>

#define CONFIG_TEXT_TYPE "text/x-libconfig"

/*
 * The text that is read as `config`; the caller frees it. NULL without memory. Keys that
 * libconfig cannot name and nulls, which it does not know, are left out: null means the same
 * as an absent key.
 */
char *config_text(const json_t *config);

#endif
