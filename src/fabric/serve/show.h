/* SPDX-License-Identifier: BSD-2-Clause */
/* All that can be seen of a running fabric, as JSON for `busbar fabric show`. */
#ifndef FABRIC_SERVE_SHOW_H
#define FABRIC_SERVE_SHOW_H

#include "fabric/serve/state.h"

/* 0 with a text that the caller frees, or -ENOMEM. */
int serve_show(struct serve *s, char **text, size_t *bytes);

#endif
