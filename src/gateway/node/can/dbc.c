/* SPDX-License-Identifier: BSD-2-Clause */
/* See dbc.h. */
#include "gateway/node/can/dbc.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/can/places.h"
#include "util/container_of.h"

/* Bits of an identifier and the mark of an extended one. */
#define ID_MAX (CAN_EFF_FLAG | CAN_EFF_MASK)
/* Of the message of signals that belong to none; its bits 31 and 30 are set. */
#define NO_MESSAGE 0xc0000000u
/* Longest number. */
#define NUMBER_MAX 64

/* ---- tokens ---- */

struct reader {
	struct dbc *out;
	const char *at, *end;
	unsigned line;
	char *why;
	int ret;                /* a negative errno: reading has ended */
	bool list;              /* names of nodes may go on in the next line */
	unsigned message_room, signal_room;
};

static int fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct reader *r, const char *fmt, ...)
{
	va_list ap;

	if (r->ret)
		return r->ret;
	va_start(ap, fmt);
	vsnprintf(r->why, DBC_WHY_MAX, fmt, ap);
	va_end(ap);
	/* So that the line stays that of the fault. */
	r->at = r->end;
	return r->ret = -EINVAL;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether there is more than space before the end, which is passed. */
static bool more(struct reader *r)
{
	for (; r->at < r->end && is_space(*r->at); r->at++)
		r->line += *r->at == '\n';
	return r->at < r->end && !r->ret;
}

static bool take(struct reader *r, char c)
{
	if (!more(r) || *r->at != c)
		return false;
	r->at++;
	return true;
}

static void expect(struct reader *r, char c)
{
	if (!take(r, c))
		fail(r, "expected '%c'", c);
}

static struct dbc_text word(struct reader *r)
{
	struct dbc_text t = { r->at, 0 };

	if (!more(r))
		return t;
	for (t.at = r->at; r->at < r->end && is_word(*r->at);)
		r->at++;
	t.len = (size_t)(r->at - t.at);
	return t;
}

static bool is(struct dbc_text t, const char *text)
{
	return t.len == strlen(text) && !memcmp(t.at, text, t.len);
}

static struct dbc_text name(struct reader *r, const char *of)
{
	struct dbc_text t = word(r);

	if (!t.len || (*t.at >= '0' && *t.at <= '9'))
		fail(r, "expected the name of %s", of);
	return t;
}

/* The bytes of a number as C has them, without spaces, copied for strtod() and its like. */
static bool number_text(struct reader *r, char buf[NUMBER_MAX])
{
	size_t len = 0;

	if (!more(r))
		return false;
	while (r->at + len < r->end && len < NUMBER_MAX - 1 && (is_word(r->at[len]) || strchr("+-.", r->at[len])) &&
	       r->at[len]) {
		buf[len] = r->at[len];
		len++;
	}
	buf[len] = '\0';
	r->at += len;
	return len > 0;
}

static double real(struct reader *r, const char *what)
{
	char buf[NUMBER_MAX], *end = buf;
	double v = 0;

	/* No hexadecimal ones, no names. */
	if (number_text(r, buf) && !strpbrk(buf, "xXnNiI"))
		v = strtod(buf, &end);
	if (end == buf || *end || !isfinite(v))
		fail(r, "expected a number, %s", what);
	return v;
}

static uint64_t whole(struct reader *r, uint64_t max, const char *what)
{
	struct dbc_text t = word(r);
	uint64_t v = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (t.at[i] < '0' || t.at[i] > '9' || v > max) {
			t.len = 0;
			break;
		}
		v = 10 * v + (uint64_t)(t.at[i] - '0');
	}
	if (!t.len || v > max)
		fail(r, "expected %s, a number up to %llu", what, (unsigned long long)max);
	return r->ret ? 0 : v;
}

/* From its quotation mark on. */
static void skip_string(struct reader *r)
{
	unsigned line = r->line;

	expect(r, '"');
	for (; r->at < r->end && *r->at != '"'; r->at++) {
		if (*r->at == '\\' && r->at + 1 < r->end)
			r->at++;
		r->line += *r->at == '\n';
	}
	if (r->at < r->end) {
		r->at++;
		return;
	}
	r->line = line;
	fail(r, "a text has no end");
}

static void skip_line(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n')
		r->at++;
}

static bool begins_message(const struct reader *r)
{
	return r->at[-1] == '\n' && r->end - r->at > 4 && !memcmp(r->at, "BO_ ", 4);
}

/* A section that ends with a semicolon. */
static void skip_section(struct reader *r)
{
	unsigned line = r->line;

	while (more(r) && *r->at != ';' && !begins_message(r)) {
		if (*r->at == '"')
			skip_string(r);
		else
			r->at++;
	}
	if (take(r, ';') || r->ret)
		return;
	r->line = line;
	fail(r, "a section has no end (;)");
}

/* NS_ names sections that may be there. */
static void skip_names(struct reader *r)
{
	while (more(r)) {
		const char *at = r->at;
		struct dbc_text t = word(r);

		if (is(t, "BS_") || is(t, "BU_") || is(t, "BO_") || is(t, "VERSION")) {
			r->at = at;
			return;
		}
		if (!t.len)
			r->at++;
	}
}

/* ---- messages and signals ---- */

static void *grow(struct reader *r, void *list, unsigned count, unsigned *room, size_t size)
{
	unsigned want = *room ? 2 * *room : 64;
	void *p;

	if (count < *room)
		return list;
	p = reallocarray(list, want, size);
	if (!p) {
		r->ret = -ENOMEM;
		return list;
	}
	*room = want;
	return p;
}

static void read_message(struct reader *r)
{
	struct dbc *d = r->out;
	struct dbc_message m = { .line = r->line, .first = d->signal_count };

	m.id = (uint32_t)whole(r, UINT32_MAX, "an identifier");
	m.name = name(r, "a message");
	expect(r, ':');
	m.length = (unsigned)whole(r, UINT32_MAX, "the number of bytes");
	name(r, "the sender");
	if (m.id != NO_MESSAGE && (m.id > ID_MAX || (!(m.id & CAN_EFF_FLAG) && m.id > CAN_SFF_MASK)))
		fail(r, "%u is no identifier: one of more than 11 bits has bit 31, and 29 bits at most", m.id);
	d->messages = grow(r, d->messages, d->message_count, &r->message_room, sizeof(m));
	if (!r->ret)
		d->messages[d->message_count++] = m;
}

/* M: the multiplexor; m7: with its value 7; m7M: both, which is extended multiplexing. */
static void read_multiplexing(struct reader *r, struct dbc_signal *s)
{
	struct dbc_text t = word(r);
	size_t i = 1;

	if (!t.len)
		return;
	if (is(t, "M")) {
		s->is_switch = true;
		return;
	}
	s->multiplexed = *t.at == 'm' && t.len > 1;
	for (; s->multiplexed && i < t.len && t.at[i] >= '0' && t.at[i] <= '9'; i++) {
		if (s->value > (UINT32_MAX - 9) / 10)
			fail(r, "the value of a multiplexor is too great");
		s->value = s->value * 10 + (uint32_t)(t.at[i] - '0');
	}
	s->nested = i > 1 && i + 1 == t.len && t.at[i] == 'M';
	if (!s->multiplexed || i == 1 || (i < t.len && !s->nested))
		fail(r, "expected ':', M or m and a number");
}

static void check_signal(struct reader *r, const struct dbc_signal *s)
{
	if (r->ret)
		return;
	if (!s->length)
		fail(r, "a signal has 1 to %d bits", CAN_VALUE_BITS);
	else if (can_bits_reach(s->start, s->length, s->big) > CANFD_MAX_DLEN)
		fail(r, "the signal reaches beyond the %d bytes that a frame can have", CANFD_MAX_DLEN);
	else if (s->factor == 0)
		fail(r, "the factor 0 leaves nothing of the value");
}

static void read_place(struct reader *r, struct dbc_signal *s)
{
	expect(r, ':');
	s->start = (unsigned)whole(r, 8 * CANFD_MAX_DLEN - 1, "the first bit");
	expect(r, '|');
	s->length = (unsigned)whole(r, CAN_VALUE_BITS, "the number of bits");
	expect(r, '@');
	s->big = !whole(r, 1, "the order of bytes");
	s->is_signed = take(r, '-');
	if (!s->is_signed)
		expect(r, '+');
}

static void read_signal(struct reader *r)
{
	struct dbc *d = r->out;
	struct dbc_signal s = { .line = r->line };

	if (!d->message_count)
		fail(r, "a signal before the first message");
	s.name = name(r, "a signal");
	if (more(r) && *r->at != ':')
		read_multiplexing(r, &s);
	read_place(r, &s);
	expect(r, '(');
	s.factor = real(r, "the factor");
	expect(r, ',');
	s.offset = real(r, "the offset");
	expect(r, ')');
	expect(r, '[');
	s.min = real(r, "the minimum");
	expect(r, '|');
	s.max = real(r, "the maximum");
	expect(r, ']');
	if (more(r) && *r->at != '"')
		fail(r, "expected the unit in quotation marks");
	skip_string(r);
	skip_line(r);
	check_signal(r, &s);
	d->signals = grow(r, d->signals, d->signal_count, &r->signal_room, sizeof(s));
	if (r->ret)
		return;
	d->signals[d->signal_count++] = s;
	d->messages[d->message_count - 1].count++;
}

/* ---- what later sections say about a signal ---- */

static bool is_same(struct dbc_text a, struct dbc_text b)
{
	return a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* An identifier and a name. NULL: there is no such signal, or the line is wrong. */
static struct dbc_signal *named_signal(struct reader *r)
{
	uint32_t id = (uint32_t)whole(r, UINT32_MAX, "an identifier");
	struct dbc_text t = name(r, "a signal");
	struct dbc *d = r->out;

	for (unsigned i = 0; i < d->message_count && !r->ret; i++)
		for (unsigned k = 0; d->messages[i].id == id && k < d->messages[i].count; k++)
			if (is_same(d->signals[d->messages[i].first + k].name, t))
				return &d->signals[d->messages[i].first + k];
	return NULL;
}

static void read_coding(struct reader *r)
{
	struct dbc_signal *s = named_signal(r);
	enum dbc_coding coding;

	take(r, ':');
	coding = (enum dbc_coding)whole(r, DBC_DOUBLE, "the coding of the value");
	if (s && coding && s->length != (coding == DBC_FLOAT ? 32 : 64))
		fail(r, "a float has 32 bits and a double 64, the signal has %u", s->length);
	if (s)
		s->coding = coding;
	skip_section(r);
}

/* The values of a multiplexor at which a signal is there. */
static void read_values(struct reader *r)
{
	struct dbc_signal *s = named_signal(r);
	struct dbc_text of = name(r, "a multiplexor");
	bool one = true;

	while (!r->ret && more(r) && *r->at != ';') {
		uint64_t low = whole(r, UINT32_MAX, "a value"), high;

		expect(r, '-');
		high = whole(r, UINT32_MAX, "a value");
		one = one && s && low == high && low == s->value;
		take(r, ',');
	}
	if (s && of.len)
		s->nested = s->nested || !one;
	skip_section(r);
}

/* ---- the file ---- */

/* True: it is of a list of nodes. */
static bool is_listed(struct reader *r, struct dbc_text t)
{
	if (r->list && (t.len ? t.at[t.len - 1] != '_' : take(r, ',')))
		return true;
	r->list = is(t, "BU_") || is(t, "SG_");
	return false;
}

static void read_section(struct reader *r)
{
	struct dbc_text t = word(r);

	if (is_listed(r, t))
		return;
	if (is(t, "BO_"))
		read_message(r);
	else if (is(t, "SG_"))
		read_signal(r);
	else if (is(t, "SIG_VALTYPE_"))
		read_coding(r);
	else if (is(t, "SG_MUL_VAL_"))
		read_values(r);
	else if (is(t, "VERSION"))
		skip_string(r);
	else if (is(t, "NS_"))
		skip_names(r);
	else if (is(t, "BS_") || is(t, "BU_"))
		skip_line(r);
	else if (t.len && t.at[t.len - 1] == '_')
		skip_section(r);
	else if (t.len)
		fail(r, "'%.*s' is no section", (int)MIN(t.len, 40), t.at);
	else if (!take(r, ';'))
		fail(r, "expected a section, such as BO_");
}

int dbc_read(struct dbc *out, const char *text, size_t len, unsigned *line, char why[DBC_WHY_MAX])
{
	static const char mark[] = "\xef\xbb\xbf";
	struct reader r = { .out = out, .at = text, .end = text + len, .line = 1, .why = why };

	*out = (struct dbc){ 0 };
	if (len >= sizeof(mark) - 1 && !memcmp(text, mark, sizeof(mark) - 1))
		r.at += sizeof(mark) - 1;
	while (more(&r))
		read_section(&r);
	*line = r.line;
	return r.ret;
}

void dbc_free(struct dbc *d)
{
	free(d->messages);
	free(d->signals);
	*d = (struct dbc){ 0 };
}

unsigned dbc_find(const struct dbc *d, const char *text, const struct dbc_message **m,
		  const struct dbc_signal **s)
{
	size_t len = strcspn(text, ".");
	struct dbc_text message = { text, len };
	struct dbc_text signal = { text + len + (text[len] != '\0'), 0 };
	unsigned found = 0;

	signal.len = strlen(signal.at);
	for (unsigned i = 0; i < d->message_count; i++) {
		const struct dbc_message *at = &d->messages[i];

		for (unsigned k = 0; at->id != NO_MESSAGE && is_same(at->name, message) && k < at->count; k++) {
			if (!is_same(d->signals[at->first + k].name, signal))
				continue;
			if (!found++) {
				*m = at;
				*s = &d->signals[at->first + k];
			}
		}
	}
	return found;
}

const struct dbc_signal *dbc_switch(const struct dbc *d, const struct dbc_message *m)
{
	for (unsigned i = 0; i < m->count; i++)
		if (d->signals[m->first + i].is_switch)
			return &d->signals[m->first + i];
	return NULL;
}
