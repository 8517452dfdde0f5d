/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which signals a hook works on: the keys `signal` (one) and `signals` (a list),
 * by name or by index counted from 0.
 *
 *	struct scale { struct hook_select select; ... };   first in the data
 *	static const struct config_key keys[] = { HOOK_SELECT_KEYS(struct scale, select), ... };
 *	.parse    hook_select_parse(&s->select, h, HOOK_SELECT_MANY)
 *	.signals  hook_select_resolve(&s->select, h, in)
 *	.destroy  hook_select_free(&s->select)
 *
 * Where nothing is known about the signals, names are those of the default list
 * (signal0, signal1 ...) and indices are taken as they are.
 */
#ifndef GATEWAY_HOOK_PART_SELECT_H
#define GATEWAY_HOOK_PART_SELECT_H

#include "gateway/plugin/hook.h"

enum hook_select_how {
	HOOK_SELECT_ONE,      /* exactly one, by either key */
	HOOK_SELECT_MANY,     /* at least one */
	HOOK_SELECT_OPTIONAL, /* none is possible, too */
};

struct hook_select {
	json_t *signal, *signals; /* what the keys say; borrowed */
	unsigned *index;          /* owned; in the order of the configuration */
	unsigned count;
};

#define HOOK_SELECT_KEYS(type, member)                                        \
	{ "signal", CONFIG_JSON, offsetof(type, member.signal),               \
	  .help = "Name or index of the signal to work on" },                 \
	{ "signals", CONFIG_JSON, offsetof(type, member.signals),             \
	  .help = "Names or indices of the signals to work on" }

/* Checks what stands there. 0, or -EINVAL after config_fail(). */
int hook_select_parse(struct hook_select *s, struct hook *h,
		      enum hook_select_how how);
/* Fills index[] and count from the signals that come in (NULL: unknown). 0, or
 * a negative errno after config_fail(). */
int hook_select_resolve(struct hook_select *s, struct hook *h,
			const struct signal_list *in);
void hook_select_free(struct hook_select *s);

/*
 * Refuses selected signals of a type that is not in `types` (1 << SIGNAL_FLOAT
 * ...). 0, or -EINVAL after config_fail().
 */
int hook_select_check_types(const struct hook_select *s, struct hook *h,
			    const struct signal_list *in, unsigned types);

/* Type of value `i` of a sample that comes into `h`. */
static inline enum signal_type hook_value_type(const struct hook *h,
					       const struct sample *s,
					       unsigned i)
{
	const struct signal_list *l = h->in_signals ? h->in_signals : s->signals;

	return l && i < l->count ? l->signals[i].type : SIGNAL_FLOAT;
}

/* A value as a real number; the real part of a complex one. */
static inline double hook_value_real(enum signal_type type,
				     const union signal_data *v)
{
	switch (type) {
	case SIGNAL_INTEGER:
		return (double)v->i;
	case SIGNAL_BOOLEAN:
		return v->i ? 1 : 0;
	case SIGNAL_COMPLEX:
		return (double)v->z.re;
	case SIGNAL_FLOAT:
		break;
	}
	return v->f;
}

/* The same value as another type: out of range becomes the nearest integer, of a
 * complex number an integer or real one takes what hook_value_real() gives. */
void hook_value_convert(union signal_data *v, enum signal_type from,
			enum signal_type to);

/*
 * signals() of hooks that change values but not their kind: resolves `s` and
 * hands the list on.
 */
int hook_select_signals(struct hook_select *s, struct hook *h,
			struct signal_list *in, struct signal_list **out);

/*
 * A new list: `in` (NULL: the default one) with room for `extra` more signals
 * from position `at` on, which the caller fills (their names are NULL). NULL on
 * no memory; signal_list_put() drops it also half filled.
 */
struct signal_list *hook_signals_insert(const struct signal_list *in,
					unsigned at, unsigned extra);
/* Sets name, unit (NULL: none) and type; false on no memory. */
bool hook_signal_set(struct signal *s, const char *name, const char *unit,
		     enum signal_type type);

#endif
