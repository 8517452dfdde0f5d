/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the DBC format, which say where the signals of a CAN bus are: messages (BO_), signals (SG_),
 * coding as floats (SIG_VALTYPE_), and ranges of multiplexors (SG_MUL_VAL_) as far as they are one
 * value. All other sections, such as texts for values (VAL_), are skipped. Pure.
 */
#ifndef GATEWAY_NODE_CAN_DBC_H
#define GATEWAY_NODE_CAN_DBC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBC_BYTES_MAX (32u << 20)
#define DBC_WHY_MAX 200

enum dbc_coding { DBC_INTEGER, DBC_FLOAT, DBC_DOUBLE };

struct dbc_text {
	const char *at;         /* in the text of the file, without a NUL byte */
	size_t len;
};

struct dbc_message {
	struct dbc_text name;
	uint32_t id;            /* bit 31: an extended one */
	unsigned length;        /* bytes */
	unsigned first, count;  /* signals[first] ... */
	unsigned line;
};

struct dbc_signal {
	struct dbc_text name;
	unsigned line;
	unsigned start, length; /* as in places.h */
	bool big, is_signed;
	enum dbc_coding coding;
	double factor, offset;
	double min, max;        /* no limits if they are the same */
	bool is_switch;         /* the multiplexor of its message */
	bool multiplexed;       /* it is there only when the multiplexor has this value: */
	uint32_t value;
	bool nested;            /* extended multiplexing, which needs more than one value */
};

struct dbc {
	struct dbc_message *messages;
	struct dbc_signal *signals;
	unsigned message_count, signal_count;
};

/* Reads a file's text, which has to stay while `out` is used. 0; -EINVAL with the line and the reason in
 * why; -ENOMEM. dbc_free() in each case. */
int dbc_read(struct dbc *out, const char *text, size_t len, unsigned *line, char why[DBC_WHY_MAX]);
void dbc_free(struct dbc *d);

/* "MESSAGE.SIGNAL". How many there are of this name; the first one in *m and *s. */
unsigned dbc_find(const struct dbc *d, const char *name, const struct dbc_message **m,
		  const struct dbc_signal **s);
/* The multiplexor of a message; NULL: it has none. */
const struct dbc_signal *dbc_switch(const struct dbc *d, const struct dbc_message *m);

#endif
