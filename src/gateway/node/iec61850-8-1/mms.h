/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of values in messages of GOOSE (`mms_type`), and values of signals. Pure. */
#ifndef GATEWAY_NODE_IEC61850_8_1_MMS_H
#define GATEWAY_NODE_IEC61850_8_1_MMS_H

#include <stdbool.h>

#include "gateway/sample/sample.h"
#include "wire/grid/goose.h"

struct mms_type {
	const char *name;
	enum goose_type tag;
	enum signal_type signal; /* of a signal that holds such values */
	unsigned bits;           /* of a bit string: where the configuration does not say */
};

#define MMS_BITS_MAX 64
/* For messages. */
#define MMS_NAMES \
	"boolean, int8, int16, int32, int64, int8u, int16u, int32u, bitstring, float32, float64, timestamp"
#define MMS_TEXT_NAMES "visible_string, mms_string, octet_string, binary_time"

/* NULL: there is none with this name. */
const struct mms_type *mms_type_find(const char *name);

/* A text or bytes: constants of data sets that are written, which no signal can hold. */
bool mms_is_text(const struct mms_type *t);

/* The value of a signal of type `from` as one of a message; `bits`: of a bit string, whose first
 * bit is the lowest one of the number. False: it is out of range. */
bool mms_from_signal(const struct mms_type *t, unsigned bits, union signal_data d,
		     enum signal_type from, struct goose_value *out);
/* The other way round, for a signal of type t->signal. False: the value is of another type, or
 * out of range. */
bool mms_to_signal(const struct mms_type *t, const struct goose_value *v, union signal_data *out);
/* Of two values that mms_from_signal() has made for the same entry of a data set. */
bool mms_equal(const struct goose_value *a, const struct goose_value *b);
/* The value that takes most bytes in a message. */
struct goose_value mms_longest(const struct mms_type *t, unsigned bits);

#endif
