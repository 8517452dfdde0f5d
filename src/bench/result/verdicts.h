/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a run says, as far as it says anything: what disturbed it, which of the source's shapes it
 * shows, and which of its values cannot be. DIR/verdicts.json, which `bench run` writes at its
 * end and `bench shapes --json` prints:
 *
 *   { "layout": 1, "disturbance": { ... } or null, "shapes": [ ... ], "below_floor": [ ... ] }
 *
 * docs/benchmarks.md describes the members.
 */
#ifndef BENCH_RESULT_VERDICTS_H
#define BENCH_RESULT_VERDICTS_H

#include <jansson.h>

#define VERDICTS_FILE "verdicts.json"

struct result_folder;

/* Of a run that was read. NULL without memory. */
json_t *verdicts_of(const struct result_folder *f);

/* The same of a folder. 0 or a negative errno, logged. */
int verdicts_read(const char *dir, json_t **verdicts);

/* Prints the lines of values that cannot be, and whether the machine was busy; nothing where
 * there is nothing to say. */
void verdicts_print_doubts(FILE *f, const json_t *verdicts);

#endif
