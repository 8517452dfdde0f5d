/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The column of a recording of another program that holds the time: which one it is by
 * its name, and the time in it, as a number of seconds or a smaller unit, or as a date.
 */
#ifndef GATEWAY_FORMAT_PART_TIME_COLUMN_H
#define GATEWAY_FORMAT_PART_TIME_COLUMN_H

#include "gateway/format/part/text.h"

struct time_column {
	const char *name;  /* as configured; "auto" for the usual ones; borrowed */
	int shift;         /* the column holds 10^shift seconds */
	/* For dates, owned: the format without a fraction, its part up to the seconds, and its
	 * part before the name of a zone. NULL: there is no such part; without `format` the
	 * column holds numbers. */
	char *format, *to_seconds, *to_zone;
};

/* `format` as for strptime(); false on no memory. */
bool time_column_set_format(struct time_column *c, const char *format);
void time_column_free(struct time_column *c);

/*
 * Whether a field of the header, as it stands or without a unit in brackets, is the name
 * of the time column. If so, its unit becomes that of the column. With "auto" the name has to
 * have a unit of time, or none.
 */
bool time_column_is_named(struct time_column *c, struct text field, bool quoted);

/* The time in a field; 0, or -EBADMSG after text_fail(). */
int time_column_scan(struct format *f, const struct time_column *c, struct text field,
		     struct timespec *t);

#endif
