/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of a voltage and a current, which the hooks power and ebm work on. */
#ifndef GATEWAY_HOOK_PART_PAIR_H
#define GATEWAY_HOOK_PART_PAIR_H

#include "gateway/plugin/hook.h"
#include "gateway/hook/part/select.h"
#include "gateway/hook/part/window.h"

struct pair {
	json_t *at;               /* the list or group it was given by; borrowed */
	json_t *voltage, *current; /* name or index; borrowed */
	unsigned voltage_index, current_index;
};

/*
 * From a list (voltage, current) or a group { voltage, current } that `at`
 * holds under `key` as entry `entry`. 0, or -EINVAL after config_fail().
 */
int pair_parse(struct pair *p, struct config *c, json_t *at, const char *key,
	       size_t entry);
/* Looks both up in the signals that come in (NULL: unknown) and checks that
 * they are real numbers. 0, or -EINVAL after config_fail(). */
int pair_resolve(struct pair *p, struct hook *h, const struct signal_list *in);

/* Both values; false when the sample is too short. */
static inline bool pair_values(const struct pair *p, const struct hook *h,
			       const struct sample *s, double *u, double *i)
{
	unsigned v = p->voltage_index, c = p->current_index;

	if (unlikely(v >= s->length || c >= s->length))
		return false;
	*u = window_value(s->data[v], hook_value_type(h, s, v));
	*i = window_value(s->data[c], hook_value_type(h, s, c));
	return true;
}

#endif
