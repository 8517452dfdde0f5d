/* SPDX-License-Identifier: BSD-2-Clause */
/* See trials.h. */
#include "bench/odp/trials.h"

#include <stdlib.h>

#include "util/order.h"

double odp_trials_median(const json_t *trials, const char *name)
{
	size_t count = json_array_size(trials);
	double *v = calloc(count ? count : 1, sizeof(*v)), value;

	if (!v)
		return 0;
	for (size_t i = 0; i < count; i++)
		v[i] = json_number_value(json_object_get(json_array_get(trials, i), name));
	order_doubles(v, count);
	value = count ? (v[(count - 1) / 2] + v[count / 2]) / 2 : 0;
	free(v);
	return value;
}

double odp_trials_share(const json_t *trials, const char *name, double limit)
{
	size_t count = json_array_size(trials), above = 0;

	for (size_t i = 0; i < count; i++)
		above += json_number_value(json_object_get(json_array_get(trials, i), name)) > limit;
	return count ? (double)above / (double)count : 0;
}
