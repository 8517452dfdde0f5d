/* SPDX-License-Identifier: BSD-2-Clause */
/* The description of a subnet becomes nodes and links of an engine. */
#ifndef FABRIC_SERVE_BUILD_H
#define FABRIC_SERVE_BUILD_H

#include "fabric/serve/state.h"

/* Fills in s->fabric and s->hosts. 0 or a negative errno, logged. serve_build_free() in both cases. */
int serve_build(struct serve *s, const struct fabric_ops *ops);
void serve_build_free(struct serve *s);

#endif
