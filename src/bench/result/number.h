/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of JSON that may be missing: numbers are NAN here and null there, texts are "". */
#ifndef BENCH_RESULT_NUMBER_H
#define BENCH_RESULT_NUMBER_H

#include <jansson.h>
#include <math.h>

static inline double number_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static inline const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static inline json_t *number_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

#endif
