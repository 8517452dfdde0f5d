/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the line formats; see text.h. */
#define LOG_ROOM "gateway/format"
#include "gateway/format/part/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

#define PRECISION_MAX 60
/* printf("%.*f") of the largest double. */
#define FIXED_MAX (1 + 309 + 1 + PRECISION_MAX)

const char *text_line_end(const struct format *f, const char *at, const char *end)
{
	const char *stop = memchr(at, f->delimiter, (size_t)(end - at)), *lone;

	if (f->delimiter != '\n')
		return stop;
	lone = memchr(at, '\r', (size_t)((stop ? stop : end) - at));
	/* After a CR at the end of the buffer a newline may still come. */
	return lone && lone + 1 != (stop ? stop : end) ? lone : stop;
}

bool text_next_line(struct format *f, const char *buf, size_t len, size_t *pos,
		    struct text *line)
{
	struct text_state *state = f->private_data;
	const char *at, *stop, *end = buf + len;

	for (;;) {
		at = buf + *pos;
		stop = text_line_end(f, at, end);
		if (!stop && (!f->message || at == end))
			return false;
		/* A message ends its last line. */
		*pos = stop ? (size_t)(stop - buf) + 1 : len;
		if (!stop)
			stop = end;
		if (f->skip_first_line && !state->first_line_done) {
			state->first_line_done = true;
			continue;
		}
		if (stop > at && stop[-1] == '\r')
			stop--;
		/* A byte-order mark, also where files were put behind each other. */
		if (unlikely(stop - at >= 3 && !memcmp(at, "\xef\xbb\xbf", 3)))
			at += 3;
		if (at == stop || *at == f->comment_prefix)
			continue;
		*line = (struct text){ at, stop };
		return true;
	}
}

int text_fail(struct format *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->error, sizeof(f->error), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

int text_fail_at(struct format *f, const char *what, struct text piece,
		 const char *problem)
{
	char shown[41];
	size_t n = 0;

	while (piece.at + n < piece.end && n < sizeof(shown) - 1) {
		char c = piece.at[n];

		shown[n++] = isprint((unsigned char)c) ? c : '?';
	}
	shown[n] = '\0';
	return text_fail(f, "%s \"%s%s\" %s", what, shown,
			 piece.at + n < piece.end ? "..." : "", problem);
}

static bool is_exact(const struct format *f)
{
	return f->real_precision == 0 || f->real_precision == 17;
}

size_t text_real_max(const struct format *f)
{
	return is_exact(f) ? NUM_DOUBLE_MAX : FIXED_MAX;
}

static char *print_real(const struct format *f, char *at, double v)
{
	int digits;

	if (is_exact(f) || !isfinite(v))
		return num_print_double(at, v);
	digits = (int)MIN(f->real_precision, PRECISION_MAX);
	return at + snprintf(at, FIXED_MAX + 1, "%.*f", digits, v);
}

/* "signal7" and "signal_7": what others call a signal that has no name. */
static long numbered_signal(const char *name, size_t len)
{
	const char *end = name + len;
	uint64_t index;

	if (len < 7 || memcmp(name, "signal", 6))
		return -1;
	name += name[6] == '_' ? 7 : 6;
	return num_parse_u64(name, end, &index) == end && index < 65536 ?
		       (long)index : -1;
}

long text_find_signal(const struct signal_list *l, struct text name,
		      unsigned guess)
{
	size_t len = (size_t)(name.end - name.at);

	for (unsigned n = 0; l && n < l->count; n++) {
		/* Names mostly come in order: the guess is nearly always right. */
		unsigned i = (guess + n) % l->count;
		const char *have = l->signals[i].name;

		/* The name may hold any byte, even a zero. */
		if (strlen(have) == len && !memcmp(have, name.at, len))
			return (long)i;
	}
	return numbered_signal(name.at, len);
}

bool text_same_name(struct text t, bool quoted, const char *name)
{
	for (; t.at < t.end && *name; t.at++, name++) {
		if (tolower((unsigned char)*t.at) != tolower((unsigned char)*name))
			return false;
		t.at += quoted && *t.at == '"';
	}
	return t.at == t.end && !*name;
}

void text_tell_foreign(struct format *f, const struct sample *s)
{
	if (f->foreign && !s->length && !f->said_foreign) {
		f->said_foreign = true;
		log_warn("format '%s': none of the names in a message is a signal of the node, whose first is '%s'; such messages have no values here",
			 f->type->name, f->signals->signals[0].name);
	}
	f->foreign = false;
}

char *text_print_value(const struct format *f, char *at, enum signal_type type,
		       const union signal_data *value)
{
	char *imag;

	switch (type) {
	case SIGNAL_FLOAT:
		return print_real(f, at, value->f);
	case SIGNAL_INTEGER:
		return num_print_i64(at, value->i);
	case SIGNAL_BOOLEAN:
		*at = value->i ? '1' : '0';
		return at + 1;
	case SIGNAL_COMPLEX:
		at = print_real(f, at, (double)value->z.re);
		imag = at;
		at = print_real(f, at + 1, (double)value->z.im);
		/* A minus of the number itself serves as the sign. */
		if (imag[1] == '-') {
			memmove(imag, imag + 1, (size_t)(at - imag - 1));
			at--;
		} else {
			*imag = '+';
		}
		*at = 'i';
		return at + 1;
	}
	return at;
}

static bool scan_boolean(struct text piece, int64_t *value)
{
	size_t len = (size_t)(piece.end - piece.at);

	*value = (len == 1 && *piece.at == '1') ||
		 (len == 4 && !strncasecmp(piece.at, "true", 4));
	return *value || (len == 1 && *piece.at == '0') ||
	       (len == 5 && !strncasecmp(piece.at, "false", 5));
}

/* "1.5", "2.0i", "1.5+2.0i" */
static bool scan_complex(struct text piece, union signal_data *value)
{
	double first, second;
	const char *at = num_parse_double(piece.at, piece.end, &first);

	if (!at)
		return false;
	value->z.re = (float)first;
	value->z.im = 0.0f;
	if (at == piece.end)
		return true;
	if (*at == 'i') {
		value->z.re = 0.0f;
		value->z.im = (float)first;
		return at + 1 == piece.end;
	}
	if (*at != '+' && *at != '-')
		return false;
	at = num_parse_double(at, piece.end, &second);
	value->z.im = (float)second;
	return at && at + 1 == piece.end && *at == 'i';
}

bool text_scan_value(struct text piece, enum signal_type type,
		     union signal_data *value)
{
	while (piece.at < piece.end && *piece.at == ' ')
		piece.at++;
	while (piece.end > piece.at && piece.end[-1] == ' ')
		piece.end--;
	switch (type) {
	case SIGNAL_FLOAT:
		return num_parse_double(piece.at, piece.end, &value->f) ==
		       piece.end;
	case SIGNAL_INTEGER:
		return num_parse_i64(piece.at, piece.end, &value->i) ==
		       piece.end;
	case SIGNAL_BOOLEAN:
		return scan_boolean(piece, &value->i);
	case SIGNAL_COMPLEX:
		return scan_complex(piece, value);
	}
	return false;
}

const char *text_value_problem(enum signal_type type)
{
	switch (type) {
	case SIGNAL_FLOAT:
		return "is not a real number";
	case SIGNAL_INTEGER:
		return "is not an integer of 64 bits";
	case SIGNAL_BOOLEAN:
		return "is not 0, 1, false or true";
	case SIGNAL_COMPLEX:
		return "is not a complex number such as 1.5+2.0i";
	}
	return "has an unknown type";
}

char *text_print_time(char *at, struct timespec t)
{
	return num_print_seconds(at, t.tv_sec, sample_time_nsec(t));
}

char *text_print_offset(char *at, struct timespec from, struct timespec to)
{
	/* Seconds wrap like unsigned numbers, back again when they are read. */
	int64_t sec = (int64_t)((uint64_t)to.tv_sec - (uint64_t)from.tv_sec);
	int64_t nsec = (int64_t)sample_time_nsec(to) - sample_time_nsec(from);

	if (nsec < 0) {
		sec = (int64_t)((uint64_t)sec - 1);
		nsec += (int64_t)NSEC_PER_SEC;
	}
	if (sec >= 0)
		*at++ = '+';
	return num_print_seconds(at, sec, (uint32_t)nsec);
}

const char *text_scan_time(struct text piece, bool loose, int shift, struct timespec *t)
{
	struct num_seconds v;
	const char *at = num_parse_seconds(piece.at, piece.end, loose, shift, &v);
	/* -1.5 s is 0.5 s after second -2. */
	bool borrows = at && v.negative && v.nsec;

	if (!at || v.sec > (uint64_t)INT64_MAX + v.negative - borrows)
		return NULL;
	v.sec += borrows;
	*t = (struct timespec){
		.tv_sec = (time_t)(v.negative ? -v.sec : v.sec),
		.tv_nsec = (long)(borrows ? NSEC_PER_SEC - v.nsec : v.nsec),
	};
	return at;
}

/* Seconds wrap around, so that an offset that text_print_offset() has printed gives the same time
 * again. */
static struct timespec time_add(struct timespec t, const struct num_seconds *v)
{
	uint64_t sec = (uint64_t)t.tv_sec + (v->negative ? -v->sec : v->sec);
	int64_t nsec = (int64_t)sample_time_nsec(t) +
		       (v->negative ? -(int64_t)v->nsec : (int64_t)v->nsec);

	if (nsec < 0) {
		nsec += (int64_t)NSEC_PER_SEC;
		sec--;
	} else if (nsec >= (int64_t)NSEC_PER_SEC) {
		nsec -= (int64_t)NSEC_PER_SEC;
		sec++;
	}
	return (struct timespec){ .tv_sec = (time_t)sec, .tv_nsec = (long)nsec };
}

const char *text_scan_offset(struct text piece, struct timespec from,
			     struct timespec *to)
{
	struct num_seconds v;
	const char *at = num_parse_seconds(piece.at, piece.end, true, 0, &v);

	if (at)
		*to = time_add(from, &v);
	return at;
}

void text_append(char *buf, size_t size, size_t *used, const char *fmt, ...)
{
	size_t left = *used < size ? size - *used : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(left ? buf + *used : NULL, left, fmt, ap);
	va_end(ap);
	if (n > 0)
		*used += (size_t)n;
}

/* The header is a comment of one line: characters of names that would end it become blanks. */
static void append_name(char *buf, size_t size, size_t *used, const char *name)
{
	for (; *name; name++)
		text_append(buf, size, used, "%c",
			    *name == '\n' || *name == '\r' ? ' ' : *name);
}

void text_append_signals(char *buf, size_t size, size_t *used, char separator,
			 const struct signal_list *signals)
{
	for (unsigned i = 0; signals && i < signals->count; i++) {
		const struct signal *s = &signals->signals[i];

		text_append(buf, size, used, "%c", separator);
		append_name(buf, size, used, s->name);
		if (!s->unit)
			continue;
		text_append(buf, size, used, "[");
		append_name(buf, size, used, s->unit);
		text_append(buf, size, used, "]");
	}
}

int text_print_lines(const struct format *f, text_line_fn print_line, char *buf,
		     size_t size, size_t *used, struct sample *const smps[],
		     unsigned cnt)
{
	size_t real_max = text_real_max(f);
	char *at = buf;
	unsigned i;

	for (i = 0; i < cnt; i++) {
		char *next = print_line(f, at, buf + size, real_max, smps[i]);

		if (!next)
			break;
		at = next;
	}
	*used = (size_t)(at - buf);
	return (int)i;
}

int text_scan_lines(struct format *f, text_scan_fn scan_line, const char *buf,
		    size_t len, size_t *used, struct sample *smps[], unsigned cnt)
{
	struct text line;
	size_t pos = 0;
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt && text_next_line(f, buf, len, &pos, &line); i++) {
		int ret = scan_line(f, line, smps[i]);

		if (ret && i > 0)
			return (int)i; /* the next call meets it again */
		*used = pos;
		if (ret)
			return ret;
	}
	*used = pos;
	return (int)i;
}

void text_reset(struct format *f)
{
	struct text_state *state = f->private_data;

	state->first_line_done = false;
}

int text_reach_value(struct format *f, struct sample *s, unsigned i)
{
	if (unlikely(i >= s->capacity))
		return text_fail(f, "there is a value %u, a sample holds %u here",
				 i, s->capacity);
	for (; s->length <= i; s->length++)
		s->data[s->length].bits = 0;
	return 0;
}
