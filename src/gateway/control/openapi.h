/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of the requests for other programs, OpenAPI 3.1, from the table of
 * requests. */
#ifndef GATEWAY_CONTROL_OPENAPI_H
#define GATEWAY_CONTROL_OPENAPI_H

#include <jansson.h>

/* A new reference; NULL without memory. */
json_t *control_openapi(void);

/* The schemas that the table of requests names: JSON with ' in place of ". */
extern const char control_openapi_schemas[];

#endif
