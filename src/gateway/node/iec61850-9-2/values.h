/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data sets of sampled values: which basic type of IEC 61850 stands for each signal, and the
 * values in the bytes of a message, which have no tags (IEC 61850-9-2, 8.6).
 */
#ifndef GATEWAY_NODE_IEC61850_9_2_VALUES_H
#define GATEWAY_NODE_IEC61850_9_2_VALUES_H

#include "gateway/sample/signals.h"
#include "gateway/scl/scl.h"

/* Keys of an entry of `signals`, beside those of every signal. */
#define VALUES_KEYS 2
extern const struct config_key values_keys[VALUES_KEYS];

struct iec_type;

struct data_value {
	const struct iec_type *iec;
	enum signal_type type; /* of the signal that is read */
	bool quality;          /* a quality word stands behind it */
};

struct data_set {
	unsigned count;
	size_t size;           /* bytes in a message */
	struct data_value values[];
};

/*
 * The data set of the signals `l` that `signals` of `at` describes; NULL: nothing is said of them
 * but what `l` says. With `read`, signals for which no `type` is given get in `l` the one that
 * suits their `iec_type`; their types are checked. 0; -EINVAL after config_fail(); -ENOMEM. Free
 * it by free().
 */
int data_set_new(struct data_set **out, struct config *c, const json_t *at,
		 struct signal_list *l, bool read);

/* The same for the signals `l`, one for each value of an engineering file. 0 or -ENOMEM. */
int data_set_from_scl(struct data_set **out, const struct scl_sampled values[],
		      struct signal_list *l);

/* Takes the values of `s` from d->size bytes; s->capacity is enough. Returns how many of the
 * quality words say that a value is not good. */
unsigned data_set_take(const struct data_set *d, const uint8_t *from, struct sample *s);

/* Writes the values of `s`, which has d->count at least, to d->size bytes; `types`: the signals
 * of `s`, or NULL: all are numbers with a fraction. Returns how many values did not fit into
 * their type, and became the nearest one that does. */
unsigned data_set_put(const struct data_set *d, const struct sample *s,
		      const struct signal_list *types, uint8_t *to);

#endif
