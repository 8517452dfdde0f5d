/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the JSON formats share: a writer that goes straight into the buffer (no
 * tree, nothing allocated per sample) and lays text out as jansson does, and the
 * loop that takes objects out of a stream or message.
 */
#ifndef GATEWAY_FORMAT_PART_JSON_COMMON_H
#define GATEWAY_FORMAT_PART_JSON_COMMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/plugin/format.h"
#include "gateway/format/part/text.h"

/* Keys of signals, ready to be written: escaped, and in order. */
struct json_names {
	const struct signal_list *signals;
	struct signal_list *held; /* so that the address means one list only */
	unsigned count;
	unsigned *order;  /* of the signals' names, when keys are sorted */
	size_t *at;       /* begin of each name in `text`; count + 1 entries */
	char *text;       /* with their quotes */
};

/* Options; first member of a JSON format's private data. */
struct json_style {
	int64_t indent;
	bool compact, ensure_ascii, escape_slash, sort_keys;
	struct json_names names;
};

#define JSON_STYLE_KEYS                                                      \
	{ "indent", CONFIG_INT, offsetof(struct json_style, indent), "0",    \
	  .max = 31, .help = "Blanks per level; 0: everything on one line" },\
	{ "compact", CONFIG_BOOL, offsetof(struct json_style, compact),      \
	  "false", .help = "No blanks behind commas and colons" },           \
	{ "ensure_ascii", CONFIG_BOOL,                                       \
	  offsetof(struct json_style, ensure_ascii), "false",                \
	  .help = "Write characters beyond ASCII as \\\\u escapes" },         \
	{ "escape_slash", CONFIG_BOOL,                                       \
	  offsetof(struct json_style, escape_slash), "false",                \
	  .help = "Write / as \\\\/" },                                       \
	{ "sort_keys", CONFIG_BOOL, offsetof(struct json_style, sort_keys),  \
	  "false", .help = "Write keys in alphabetical order" }

/* Where the writer stands. */
struct json_out {
	char *at;
	const char *end;
	const struct format *f;
	const struct json_style *style;
	unsigned depth;
	bool empty; /* nothing in the innermost object or array yet */
	bool full;  /* the buffer has run out: nothing is written any more */
};

/* All do nothing once the buffer is full. */
void json_out_open(struct json_out *o, char bracket);
void json_out_close(struct json_out *o, char bracket);
void json_out_item(struct json_out *o);            /* before each array element */
void json_out_raw(struct json_out *o, const char *text, size_t len);
void json_out_key(struct json_out *o, const char *quoted, size_t len);
void json_out_u64(struct json_out *o, uint64_t v);
void json_out_i64(struct json_out *o, int64_t v);
void json_out_value(struct json_out *o, enum signal_type type,
		    const union signal_data *v);
/* Key of signal `i`; "signal_<i>" where the list ends. */
void json_out_signal_key(struct json_out *o, unsigned i);
/* The same as a value. */
void json_out_signal_name(struct json_out *o, unsigned i);
/* A string that must be escaped; a short one. */
void json_out_string(struct json_out *o, const char *text);

#define JSON_OUT_KEY(o, literal) \
	json_out_key(o, "\"" literal "\"", sizeof("\"" literal "\"") - 1)
#define JSON_OUT_RAW(o, literal) json_out_raw(o, literal, sizeof(literal) - 1)

/* A pair beside those of the signals. */
struct json_extra {
	const char *name; /* plain ASCII */
	uint64_t value;
	bool is_signed;
};

/*
 * Pairs of signals and values within an object, and the extras (in alphabetical
 * order) before or behind them, or where they belong when keys are sorted.
 */
void json_out_pairs(struct json_out *o, const struct sample *s,
		    const struct json_extra *extras, unsigned count,
		    bool extras_first);

/* As json_loadb(), but a number that is too large for jansson is no error: such numbers
 * are values that only the two functions below understand. */
json_t *json_large_load(const char *at, size_t len, json_error_t *err);
/* The nearest double, or infinity. */
bool json_large_real(const json_t *v, double *out);
bool json_large_u64(const json_t *v, uint64_t *out);

/* Writes one sample as an object. */
typedef void (*json_print_fn)(struct json_out *o, const struct sample *s);

/* format_type.print: an object per line, or an array when it is a message. */
int json_print_samples(struct format *f, json_print_fn print, char *buf,
		       size_t size, size_t *used, struct sample *const smps[],
		       unsigned cnt);

/* Fills a sample (flags and length are 0) from an object; 0 or -EBADMSG. */
typedef int (*json_take_fn)(struct format *f, json_t *object, struct sample *s);

/* The same from its text; false when another reader has to decide. */
typedef bool (*json_quick_fn)(struct format *f, struct text object,
			      struct sample *s);

/* format_type.scan: objects alone, one behind the other or in arrays. `quick`
 * is asked first; NULL allowed. */
int json_scan_samples(struct format *f, json_quick_fn quick, json_take_fn take,
		      const char *buf, size_t len, size_t *used,
		      struct sample *smps[], unsigned cnt);

/* format_type.may_end of the JSON formats. */
bool json_may_end(struct format *f, const char *buf, size_t len,
		  struct format_unfinished *u);

/* json_quick_fn of the format json. */
bool json_take_quick(struct format *f, struct text object, struct sample *s);

/* Value `i` of a sample from its JSON; 0 or -EBADMSG. */
int json_take_value(struct format *f, const json_t *v, unsigned i,
		    struct sample *s);

/* The same of the signal that is called `key`, the n-th pair of an object; a key
 * that no signal has is passed over. Without signals the pairs are in order. */
int json_take_pair(struct format *f, const char *key, const json_t *v,
		   unsigned n, struct sample *s);

/* An unsigned integer; -EBADMSG with the error about `what`. */
int json_take_u64(struct format *f, const json_t *v, const char *what,
		  uint64_t *out);

/* Milliseconds since 1970, whole or with a fraction. */
int json_take_ms(struct format *f, const json_t *v, const char *what,
		 struct timespec *t);
int64_t json_ms_of(struct timespec t);

/* format_type.destroy. */
void json_destroy(struct format *f);

#endif
