/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A configuration of C37.118 as the signals of a sample. Of each station there are its phasors,
 * the frequency, its rate of change, the analogs and each bit of the digital words, in the order of
 * the data frame.
 */
#ifndef GATEWAY_NODE_C37_LAYOUT_H
#define GATEWAY_NODE_C37_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/sample/sample.h"
#include "wire/grid/c37.h"

struct c37_part;

struct c37_layout {
	uint16_t idcode;            /* of the stream */
	struct c37_config config;   /* its stations are in `bytes` */
	enum c37_type type;
	bool status;                /* STAT and time quality are signals, too */
	uint8_t *bytes;             /* body of the configuration frame */
	size_t len;
	struct c37_part *parts;
	struct c37_phasor_unit *phasors;
	struct c37_analog_unit *analogs;
	size_t data_len;            /* body of a data frame */
	struct signal_list *signals;
	uint16_t changes;           /* sum of CFGCNT of all stations */
};

/* What the stations of a data frame say of themselves. */
struct c37_verdict {
	uint16_t any;      /* bits of STAT that any of them has */
	bool invalid;      /* one has an error in its data */
};

/* 0, -ENOMEM, or -EPROTO with *why: the frame has no configuration. */
int c37_layout_new(struct c37_layout **out, const struct c37_frame *f, bool status,
		   const char **why);
void c37_layout_free(struct c37_layout *l); /* NULL allowed */

/* Does the frame have the same configuration? */
bool c37_layout_is(const struct c37_layout *l, const struct c37_frame *f);

static inline bool c37_layout_fits(const struct c37_layout *l, const struct c37_frame *f)
{
	return f->body.len == l->data_len;
}

/* Where the values of a frame go. */
struct c37_room {
	union signal_data *data;
	unsigned capacity;
	const struct signal *want; /* to whose types values are converted; NULL: those of the layout */
	unsigned want_count;       /* values beyond them are not wanted */
	unsigned count;            /* of values that were written */
};

/* Of a data frame that fits. Values beyond the capacity are left out; how many. */
unsigned c37_layout_values(const struct c37_layout *l, const struct c37_frame *f,
			   struct c37_room *to);
/*
 * Fills the values and length of a sample from a data frame that fits. `want`: the signals that the
 * node was configured with, to whose types values are converted; NULL: those of the layout. Values
 * beyond the capacity are left out; how many.
 */
unsigned c37_layout_read(const struct c37_layout *l, const struct c37_frame *f,
			 const struct signal_list *want, struct sample *s);
/* Likewise, without a sample. */
struct c37_verdict c37_layout_judge(const struct c37_layout *l, const struct c37_frame *f);

#endif
