/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A suite: the cases of a file, in which lists of values are swept.
 *
 *	title = "Adapter, one way";
 *	question = "...";
 *	source = "Where the reference figures come from";
 *	limit = "10us";
 *	scale_ci = 0.01;
 *	common = { kind = "hca"; burst = 8000; };
 *	cases = ( {
 *		scenario = "A1"; question = "...";
 *		type = [ "RC", "UC", "UD" ]; size = 32;
 *		except = ( { type = "UD"; op = "write"; } );
 *		together = ( { size = 8; burst = 8000; }, { size = 64; burst = 6552; } );
 *		reference = ( { type = "RC"; median_ns = 3608; } );
 *	} );
 *
 * What is not a key of the suite itself is a parameter of the case's kind. `common` is put
 * under each case. The combinations of all lists become one case each, with an id made of the
 * scenario and the values of the lists: "A1_RC". Of a combination of `except` no case is made.
 * Each group of `together` gives several parameters at once. The figures of all elements of
 * `reference` that fit the case become its reference; a key that is no parameter is a
 * figure, a median of a latency as NAME_median_ns. In a short run (--ci) the keys of
 * the group `ci` take the place of the case's own.
 */
#ifndef BENCH_SUITE_SUITE_H
#define BENCH_SUITE_SUITE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench/kind/kind.h"

#define SUITE_WHY_SIZE 200

/*
 * Parameters that the command line of `busbar bench run` sets for all cases of a suite, so that a
 * suite runs on other hardware without being copied. They take the place of values and of lists
 * of values; an option applies to the cases whose kind has the parameter.
 */
#define SUITE_OVERRIDES_MAX 32

struct suite_override {
	char *key, *value; /* owned */
	bool used;         /* a case has such a parameter */
	bool wrong;        /* that does not take this value; logged */
};

struct suite_overrides {
	struct suite_override list[SUITE_OVERRIDES_MAX];
	size_t count;
};

/* "KEY=VALUE"; the last one of a key counts. 0, or -EINVAL, logged, or -ENOMEM. */
int suite_overrides_parse(struct suite_overrides *o, const char *text);
int suite_overrides_add(struct suite_overrides *o, const char *key, const char *value);
void suite_overrides_free(struct suite_overrides *o);

/* Once a suite was read: is each of use, and its value right? Logs the first one that no case
 * has. */
bool suite_overrides_are_right(const struct suite_overrides *o);

struct suite_case {
	char *id;
	const char *scenario;          /* borrowed from the description */
	const char *kind_name;         /* likewise */
	const struct bench_kind *kind; /* NULL: not to be had, why[] says why */
	char why[SUITE_WHY_SIZE];
	json_t *parameters;            /* complete if there is a kind */
	json_t *description;           /* of case.json; parameters and command too */
	double scale_ci;
};

struct suite {
	char *name, *file;
	char *title, *question;
	struct suite_case *cases;
	size_t count;
};

/*
 * Reads the suite of this name, from the folder of suites of this build or installation; or,
 * if there is a '/' or a '.' in it, the file. All its errors
 * are logged with file, line and key. `ci`: for a short run. `overrides`: of the command line, or
 * NULL. 0, or a negative errno. Free with suite_free().
 */
int suite_load(const char *name, bool ci, struct suite_overrides *overrides,
	       struct suite **out);
void suite_free(struct suite *s);

/* Calls `show` for each suite that can be run by its name. */
void suite_list(void (*show)(const char *name, const char *title, const char *path));

/* ---- the kinds of benchmarks by name (kinds.c) ---- */

/* Whether it is in this build or not, for its name and summary; NULL behind the last. */
const struct bench_kind *bench_kind_at(size_t index);
bool bench_kind_is_known(const char *name);

/* NULL: unknown, or not in this build, which why[size] says. A kind that needs verbs must be
 * there without them: it loads a module when it runs, for `busbar` is not linked with them. */
const struct bench_kind *bench_kind_find(const char *name, char *why, size_t size);

#endif
