/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a verdict, as text for people or as one line of JSON. */
#ifndef VERDICT_SAY_H
#define VERDICT_SAY_H

#include <stdio.h>

#include "verdict/judge.h"

void verdict_say_text(FILE *out, const struct verdict_case *c, const struct verdict *v);
void verdict_say_json(FILE *out, const struct verdict_case *c, const struct verdict *v);

#endif
