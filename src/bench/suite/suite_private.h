/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that read a suite share. */
#ifndef BENCH_SUITE_SUITE_PRIVATE_H
#define BENCH_SUITE_SUITE_PRIVATE_H

#include "bench/kind/parameters.h"
#include "bench/suite/suite.h"
#include "gateway/config/config.h"

#define AXES_MAX 12
#define CASES_MAX 20000

/* A suite while it is read. */
struct suite_reader {
	struct config *config;
	const json_t *root, *common; /* common: an object or NULL */
	const char *source;
	int64_t limit_ns;
	double scale_ci;
	bool ci;               /* the groups `ci` count */
	struct suite_overrides *overrides; /* NULL: none */
	struct suite *suite;
};

/* A list of values that is swept. */
struct suite_axis {
	const char *key;       /* parameter; NULL: groups of `together` */
	const json_t *values;  /* array, of objects for `together` */
	size_t at;             /* the value of the combination in work */
};

/* An element of `cases` while its combinations are made. */
struct suite_element {
	struct suite_reader *r;
	const json_t *self;    /* the element as it stands there */
	json_t *merged;        /* with `common` under it; values borrowed from the file */
	const char *kind_name, *scenario;
	const struct bench_kind *kind; /* NULL: not to be had */
	char why[SUITE_WHY_SIZE];
	int64_t limit_ns;
	double scale_ci;
	struct suite_axis axes[AXES_MAX];
	size_t axes_count;
};

/* Adds the cases of an element of `cases`. 0 or -ENOMEM; what is wrong there is reported
 * by config_fail(). */
int suite_expand(struct suite_reader *r, const json_t *element);

/* Puts the parameters of the command line into `parameters`, and marks those that are used, or
 * wrong. 0 or -ENOMEM. */
int suite_override(const struct suite_element *e, json_t *parameters);

/* "A1_RC_size=32", malloc()ed: the scenario, the variant and the values of the axes. */
char *suite_case_id(const struct suite_element *e);
/* "RC, size = 32": short, for figures; malloc()ed. */
char *suite_case_label(const struct suite_element *e);

/* Do all parameters in `group` have the values of `parameters`, or one of a list of values?
 * Keys of `group` that are no parameters do not count. */
bool suite_fits(const struct suite_element *e, const json_t *group,
		const json_t *parameters);
/* { "source", "figures" } of what `reference` says of a case; NULL: nothing. */
json_t *suite_reference(const struct suite_element *e, const json_t *parameters);

#endif
