/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of a kind's parameters, from options and from suite files: types, ranges, units,
 * defaults. Messages are sentences without place, for the caller to put its own in front
 * ("quick.suite:12: ", "--size: ").
 */
#ifndef BENCH_KIND_PARAMETERS_H
#define BENCH_KIND_PARAMETERS_H

#include <stdio.h>

#include "bench/kind/kind.h"

#define PARAMETER_WHY_SIZE 300

/* The parameter of this name; '-' and '_' are the same. NULL, with why[PARAMETER_WHY_SIZE]:
 * there is none, perhaps another one is meant. */
const struct bench_parameter *parameter_find(const struct bench_kind *kind,
					     const char *name, char *why);

/* The value that `given` stands for: of the parameter's type (a duration as an integer in ns),
 * within its values. A text is taken for any type. 0, or -EINVAL with why[]. */
int parameter_value(const struct bench_parameter *p, const json_t *given, json_t **out,
		    char *why);
int parameter_from_text(const struct bench_parameter *p, const char *text, json_t **out,
			char *why);

/* Adds the defaults of what is not in `parameters`. 0, or -EINVAL with why[]: one that must be
 * given is not there. */
int parameters_complete(const struct bench_kind *kind, json_t *parameters, char *why);

/* "busbar bench KIND --OPTION VALUE ..." with the options that differ from their defaults,
 * quoted for a shell; malloc()ed. NULL without memory. */
char *parameters_command(const struct bench_kind *kind, const json_t *parameters);

/* One word of a command line, quoted for a shell where it has to be. */
void parameters_print_word(FILE *f, const char *text);

/* The name as options and labels have it, with '-' for '_'; returns its length. */
int parameters_print_name(FILE *f, const char *name);

/* "1.5ms" or "1500000" in ns. False: no duration. */
bool duration_parse(const char *text, int64_t *ns);

#endif
