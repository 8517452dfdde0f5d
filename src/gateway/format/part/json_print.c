/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON into a buffer; see json_common.h. */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_room(struct json_out *o, size_t len)
{
	if (likely(!o->full && (size_t)(o->end - o->at) >= len))
		return true;
	o->full = true;
	return false;
}

static void new_line(struct json_out *o)
{
	size_t blanks = (size_t)o->style->indent * o->depth;

	if (!has_room(o, 1 + blanks))
		return;
	*o->at++ = '\n';
	memset(o->at, ' ', blanks);
	o->at += blanks;
}

void json_out_item(struct json_out *o)
{
	if (!has_room(o, 2))
		return;
	if (!o->empty)
		*o->at++ = ',';
	if (o->style->indent)
		new_line(o);
	else if (!o->empty && !o->style->compact)
		*o->at++ = ' ';
	o->empty = false;
}

void json_out_open(struct json_out *o, char bracket)
{
	if (!has_room(o, 1))
		return;
	*o->at++ = bracket;
	o->depth++;
	o->empty = true;
}

void json_out_close(struct json_out *o, char bracket)
{
	o->depth--;
	if (o->style->indent && !o->empty)
		new_line(o);
	if (!has_room(o, 1))
		return;
	*o->at++ = bracket;
	o->empty = false;
}

void json_out_raw(struct json_out *o, const char *text, size_t len)
{
	if (!has_room(o, len))
		return;
	memcpy(o->at, text, len);
	o->at += len;
}

void json_out_key(struct json_out *o, const char *quoted, size_t len)
{
	json_out_item(o);
	json_out_raw(o, quoted, len);
	json_out_raw(o, ": ", o->style->compact ? 1 : 2);
}

void json_out_u64(struct json_out *o, uint64_t v)
{
	if (has_room(o, NUM_INT_MAX))
		o->at = num_print_u64(o->at, v);
}

void json_out_i64(struct json_out *o, int64_t v)
{
	if (has_room(o, NUM_INT_MAX))
		o->at = num_print_i64(o->at, v);
}

/*
 * JSON has no words for what is no number: they are strings. A point or an
 * exponent is always there, for readers that tell reals from integers by it.
 */
static void put_real(struct json_out *o, double v)
{
	int digits = (int)o->f->real_precision;
	char *begin = o->at;

	if (!has_room(o, NUM_DOUBLE_MAX + 32))
		return;
	if (!isfinite(v)) {
		*o->at++ = '"';
		o->at = num_print_double(o->at, v);
		*o->at++ = '"';
	} else if (digits == 0 || digits == 17) {
		o->at = num_print_double(o->at, v);
	} else {
		o->at += snprintf(o->at, 64, "%.*g", digits, v);
		if (!memchr(begin, '.', (size_t)(o->at - begin)) &&
		    !memchr(begin, 'e', (size_t)(o->at - begin))) {
			memcpy(o->at, ".0", 2);
			o->at += 2;
		}
	}
}

void json_out_value(struct json_out *o, enum signal_type type,
		    const union signal_data *v)
{
	switch (type) {
	case SIGNAL_FLOAT:
		put_real(o, v->f);
		break;
	case SIGNAL_INTEGER:
		json_out_i64(o, v->i);
		break;
	case SIGNAL_BOOLEAN:
		if (v->i)
			JSON_OUT_RAW(o, "true");
		else
			JSON_OUT_RAW(o, "false");
		break;
	case SIGNAL_COMPLEX:
		json_out_open(o, '{');
		if (o->style->sort_keys) {
			JSON_OUT_KEY(o, "imag");
			put_real(o, (double)v->z.im);
		}
		JSON_OUT_KEY(o, "real");
		put_real(o, (double)v->z.re);
		if (!o->style->sort_keys) {
			JSON_OUT_KEY(o, "imag");
			put_real(o, (double)v->z.im);
		}
		json_out_close(o, '}');
		break;
	}
}

/* Names. */

/* Bytes that a character of UTF-8 takes and its code; 0 when it is none. */
static unsigned decode(const unsigned char *p, uint32_t *code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 :
		     *p >> 3 == 30 ? 4 : 0;

	*code = n == 1 ? *p : *p & (0x7fu >> n);
	for (unsigned i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	return n && *code >= smallest[n] && *code < 0x110000 &&
	       *code >> 11 != 0x1b ? n : 0;
}

static char *put_escape(char *at, uint32_t code)
{
	static const char short_from[] = "\b\f\n\r\t\"\\/", short_to[] = "bfnrt\"\\/";
	const char *p = code < 0x80 && code ? strchr(short_from, (int)code) : NULL;

	if (p) {
		*at++ = '\\';
		*at++ = short_to[p - short_from];
		return at;
	}
	if (code >= 0x10000) {
		at = put_escape(at, 0xd800 + ((code - 0x10000) >> 10));
		code = 0xdc00 + ((code - 0x10000) & 0x3ff);
	}
	return at + sprintf(at, "\\u%04X", code);
}

/* Escapes into `to` (6 bytes per byte of text and two quotes); returns the end. */
static char *quote(const struct json_style *style, char *to, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	*to++ = '"';
	while (*p) {
		uint32_t code;
		unsigned n = decode(p, &code);

		if (!n) { /* not UTF-8: nothing of it may go out */
			*to++ = '?';
			p++;
			continue;
		}
		if (code < 0x20 || code == '"' || code == '\\' ||
		    (code == '/' && style->escape_slash) ||
		    (n > 1 && style->ensure_ascii)) {
			to = put_escape(to, code);
		} else {
			memcpy(to, p, n);
			to += n;
		}
		p += n;
	}
	*to++ = '"';
	return to;
}

void json_out_string(struct json_out *o, const char *text)
{
	if (has_room(o, 6 * strlen(text) + 2))
		o->at = quote(o->style, o->at, text);
}

static void free_names(struct json_names *n)
{
	signal_list_put(n->held);
	free(n->order);
	free(n->at);
	free(n->text);
	memset(n, 0, sizeof(*n));
}

struct named {
	const char *name;
	unsigned index;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int sort_names(struct json_names *n, const struct signal_list *l)
{
	struct named *all = calloc(n->count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (unsigned i = 0; i < n->count; i++)
		all[i] = (struct named){ l->signals[i].name, i };
	qsort(all, n->count, sizeof(*all), by_name);
	for (unsigned i = 0; i < n->count; i++)
		n->order[i] = all[i].index;
	free(all);
	return 0;
}

/* Once for each list of signals, not for each sample. */
static int set_names(struct json_style *style, const struct signal_list *l)
{
	struct json_names *n = &style->names;
	size_t size = 1;
	char *to;

	free_names(n);
	if (!l)
		return 0;
	for (unsigned i = 0; i < l->count; i++)
		size += 6 * strlen(l->signals[i].name) + 2;
	n->order = calloc(l->count + 1, sizeof(n->order[0]));
	n->at = calloc(l->count + 1, sizeof(n->at[0]));
	n->text = malloc(size);
	if (!n->order || !n->at || !n->text)
		goto err;
	n->count = l->count;
	to = n->text;
	for (unsigned i = 0; i < l->count; i++) {
		to = quote(style, to, l->signals[i].name);
		n->at[i + 1] = (size_t)(to - n->text);
	}
	if (sort_names(n, l))
		goto err;
	n->signals = l;
	n->held = signal_list_get((struct signal_list *)l);
	return 0;

err:
	free_names(n);
	return -ENOMEM;
}

/* A name in quotes; of a signal that has none, made up in `buf`. */
static const char *signal_name(const struct json_out *o, unsigned i, size_t *len,
			       char buf[32])
{
	const struct json_names *n = &o->style->names;

	if (i < n->count) {
		*len = n->at[i + 1] - n->at[i];
		return n->text + n->at[i];
	}
	*len = (size_t)snprintf(buf, 32, "\"signal_%u\"", i);
	return buf;
}

void json_out_signal_key(struct json_out *o, unsigned i)
{
	char buf[32];
	size_t len;
	const char *name = signal_name(o, i, &len, buf);

	json_out_key(o, name, len);
}

void json_out_signal_name(struct json_out *o, unsigned i)
{
	char buf[32];
	size_t len;
	const char *name = signal_name(o, i, &len, buf);

	json_out_raw(o, name, len);
}

static void put_extras(struct json_out *o, const struct json_extra *extras,
		       unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		json_out_item(o);
		json_out_string(o, extras[i].name);
		json_out_raw(o, ": ", o->style->compact ? 1 : 2);
		if (extras[i].is_signed)
			json_out_i64(o, (int64_t)extras[i].value);
		else
			json_out_u64(o, extras[i].value);
	}
}

static void put_pair(struct json_out *o, const struct sample *s, unsigned i)
{
	const struct signal_list *signals = o->style->names.signals;

	json_out_signal_key(o, i);
	json_out_value(o, text_type(signals, i), &s->data[i]);
}

static void put_sorted(struct json_out *o, const struct sample *s,
		       const struct json_extra *extras, unsigned count)
{
	const struct json_names *n = &o->style->names;
	unsigned length = o->f->data ? s->length : 0, done = 0;

	for (unsigned k = 0; k < n->count && !o->full; k++) {
		unsigned i = n->order[k];

		while (done < count && strcmp(extras[done].name,
					      n->signals->signals[i].name) < 0)
			put_extras(o, &extras[done++], 1);
		if (i < length)
			put_pair(o, s, i);
	}
	put_extras(o, extras + done, count - done);
	for (unsigned i = n->count; i < length && !o->full; i++)
		put_pair(o, s, i);
}

void json_out_pairs(struct json_out *o, const struct sample *s,
		    const struct json_extra *extras, unsigned count,
		    bool extras_first)
{
	if (o->style->sort_keys) {
		put_sorted(o, s, extras, count);
		return;
	}
	if (extras_first)
		put_extras(o, extras, count);
	for (unsigned i = 0; o->f->data && i < s->length && !o->full; i++)
		put_pair(o, s, i);
	if (!extras_first)
		put_extras(o, extras, count);
}

int json_print_samples(struct format *f, json_print_fn print, char *buf,
		       size_t size, size_t *used, struct sample *const smps[],
		       unsigned cnt)
{
	struct json_style *style = f->private_data;
	struct json_out o = {
		.at = buf, .end = buf + size, .f = f, .style = style, .empty = true,
	};
	unsigned i;

	*used = 0;
	if (f->message) {
		size_t tail = 2 + (size_t)style->indent; /* for the end of it */

		if (size < tail + 1)
			return 0;
		o.end -= tail;
		json_out_open(&o, '[');
	}
	for (i = 0; i < cnt; i++) {
		const struct signal_list *signals =
			smps[i]->signals ? smps[i]->signals : f->signals;
		struct json_out before = o;

		if (unlikely(signals != style->names.signals &&
			     set_names(style, signals)))
			return -ENOMEM;
		if (f->message)
			json_out_item(&o);
		print(&o, smps[i]);
		if (!f->message)
			JSON_OUT_RAW(&o, "\n");
		if (o.full) {
			o = before;
			break;
		}
	}
	if (!i)
		return 0;
	if (f->message) {
		o.end = buf + size;
		json_out_close(&o, ']');
	}
	*used = (size_t)(o.at - buf);
	return (int)i;
}

void json_destroy(struct format *f)
{
	struct json_style *style = f->private_data;

	free_names(&style->names);
}
