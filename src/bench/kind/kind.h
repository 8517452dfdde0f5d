/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kinds of benchmarks that a suite can name. A kind measures one case: parameters in, rows
 * and figures out. `busbar bench KIND --OPTION VALUE ...` runs one case from options, and
 * `busbar bench run SUITE` runs the cases of a file; both end here.
 */
#ifndef BENCH_KIND_KIND_H
#define BENCH_KIND_KIND_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bench/result/result.h"
#include "util/container_of.h"

struct bench_parameter {
	const char *name;    /* key of the suite and long option: "poll-recv" is poll_recv */
	char type;           /* 'i' integer, 'f' number, 's' string, 'b' boolean, 'd' duration
				in ns as an integer, or with a unit: "5us" */
	const char *values;  /* "RC|UC|UD", "8..32768" or NULL: anything */
	const char *standard;/* default as text; NULL: must be given */
	const char *help;
};

/* What a case in work asks its surroundings. */
struct bench_context {
	struct result_case *result;
	double scale;                /* of sample counts: 1 is the source's, CI less */
	const atomic_bool *stop;     /* Ctrl-C: leave soon, return -EINTR; never NULL */
	/* Share of the case that is done, 0 to 1; may be called often, from one thread. */
	void (*progress)(const struct bench_context *context, double share);
};

struct bench_kind {
	const char *name, *summary;
	const struct bench_parameter *parameters; /* ends with name NULL */
	/* Is this combination possible? Logs which parameter is wrong and why. `parameters` has
	 * every key, defaults filled in, types and ranges checked. 0 or -EINVAL. */
	int (*check)(const json_t *parameters);
	/* Debian's packages without which the case is left out, "openmpi-bin libopenmpi-dev"; NULL:
	 * it lacks none. The function may be NULL. */
	const char *(*lacks)(const json_t *parameters);
	/* Seconds that the case will take, for the time left. */
	double (*seconds)(const json_t *parameters, double scale);
	/* Measures; fills context->result with rows and figures. 0; -EINTR; -EOPNOTSUPP: not on
	 * this machine (logged why; the case is shown as left out); or another negative errno. */
	int (*run)(const json_t *parameters, const struct bench_context *context);
};

/* All kinds, each in the room of its name; floor and program in suite, start and reconnect in node.
 * Those of hca and ripc need verbs, which a build may lack. */
extern const struct bench_kind
	bench_kind_fabric, bench_kind_floor, bench_kind_hca, bench_kind_mpi, bench_kind_node,
	bench_kind_odp, bench_kind_program, bench_kind_reconnect, bench_kind_ripc, bench_kind_start;

/* A parameter of a case, which are complete: text, is it this one, integer or duration, boolean,
 * number. */
static inline const char *bench_text(const json_t *parameters, const char *name)
{
	return json_string_value(json_object_get(parameters, name));
}

static inline bool bench_is(const json_t *parameters, const char *name, const char *text)
{
	return !strcmp(bench_text(parameters, name), text);
}

static inline bool bench_flag(const json_t *parameters, const char *name)
{
	return json_is_true(json_object_get(parameters, name));
}

static inline double bench_real(const json_t *parameters, const char *name)
{
	return json_number_value(json_object_get(parameters, name));
}

static inline long long bench_number(const json_t *parameters, const char *name)
{
	return json_integer_value(json_object_get(parameters, name));
}

/* A number of samples times the scale: at least `least`, but no more than without it. */
static inline uint64_t bench_scaled(const json_t *parameters, const char *name, double scale,
				    uint64_t least)
{
	uint64_t all = (uint64_t)bench_number(parameters, name);

	return MIN(MAX((uint64_t)((double)all * scale), least), all);
}

#endif
