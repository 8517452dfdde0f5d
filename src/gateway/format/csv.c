/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * csv and tsv: columns with a separator. Two layouts:
 *
 *   villas  seconds, nanoseconds, offset (received - origin), sequence, values;
 *           what is missing is "nan"
 *   plain   recordings of other programs: a header line that names the columns,
 *           at most one of them the time, all others values
 *
 * Nothing is lost: values print so that they read back to the same bits. Empty
 * values and "nan" are NaN. Fields may stand in double quotes, in which a separator
 * is kept and two quotes are one (RFC 4180). Names are written so where they need
 * it; in the header of a plain recording they may even break the line.
 */
#include "gateway/format/part/text.h"
#include "gateway/format/part/time_column.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"

/* Time, offset, sequence and separators. */
#define HEAD_MAX 128
/* A header line whose quotes are not closed within so many bytes is none. */
#define HEADER_MAX (1u << 20)
/* A character that occurs in numbers cannot separate them. */
#define NUMBER_CHARS "0123456789.+-einfaEINFA\""

enum csv_layout {
	CSV_VILLAS,
	CSV_PLAIN,
};

struct csv {
	struct text_state text;
	int layout;
	const char *time_column, *time_format;
	/* Of the plain layout. */
	bool header_done;
	long time_index;  /* -1: none */
	struct time_column time;
	long names;       /* columns that the header line names; 0: not known */
	unsigned columns; /* values of each row that is written; 0: not known yet */
	size_t left;      /* bytes of a message that are still to be scanned */
};

static const char *const layout_names[] = { "villas", "plain", NULL };

static const struct config_key csv_keys[] = {
	{ "columns", CONFIG_ENUM, offsetof(struct csv, layout), "villas",
	  .names = layout_names,
	  .help = "villas: seconds, nanoseconds, offset, sequence, values; "
		  "plain: a recording with a header line of column names" },
	{ "time_column", CONFIG_STRING, offsetof(struct csv, time_column),
	  "auto",
	  .help = "Column of the time in a plain recording: its name, its "
		  "number counted from 0, none, or auto for the first one named "
		  "time, time_s, timestamp, seconds or t, also with a unit of time "
		  "in brackets" },
	{ "time_format", CONFIG_STRING, offsetof(struct csv, time_format),
	  .help = "Date and time in the time column, as strptime() reads it (UTC "
		  "unless %z says more, seconds with a fraction); without it the "
		  "column holds seconds, or the unit that its name says" },
};

static char *print_head(const struct format *f, char *at, const struct sample *s)
{
	const struct timespec zero = { 0, 0 };
	bool has_origin = f->ts_origin && (s->flags & SAMPLE_HAS_ORIGIN);

	if (has_origin) {
		at = num_print_i64(at, s->origin.tv_sec);
		*at++ = f->separator;
		at = num_print_nsec(at, sample_time_nsec(s->origin));
	} else {
		memcpy(at, "nan", 3);
		at[3] = f->separator;
		memcpy(at + 4, "nan", 3);
		at += 7;
	}
	*at++ = f->separator;
	if (f->ts_received && f->offset && (s->flags & SAMPLE_HAS_RECEIVED)) {
		char *sign = at;

		at = text_print_offset(at, has_origin ? s->origin : zero,
				       s->received);
		if (*sign == '+') {
			memmove(sign, sign + 1, (size_t)(at - sign - 1));
			at--;
		}
	} else {
		memcpy(at, "nan", 3);
		at += 3;
	}
	*at++ = f->separator;
	if (f->sequence && (s->flags & SAMPLE_HAS_SEQUENCE))
		return num_print_u64(at, s->sequence);
	memcpy(at, "nan", 3);
	return at + 3;
}

/*
 * A row of a plain recording has as many columns as its header, also where a sample has
 * fewer values: those of a path whose second source has not sent yet. NULL when they
 * might not fit.
 */
static char *fill_row(const struct format *f, char *at, const char *end,
		      const struct signal_list *signals, unsigned length)
{
	struct csv *csv = f->private_data;

	if (csv->layout != CSV_PLAIN || !f->data || f->message)
		return at;
	if (unlikely(!csv->columns)) /* a recording that is appended to */
		csv->columns = signal_list_columns(signals, length);
	for (unsigned i = length; i < csv->columns; i++) {
		if (end - at < 8)
			return NULL;
		if (i > 0 || csv->time_index >= 0)
			*at++ = f->separator;
		if (text_type(signals, i) == SIGNAL_FLOAT)
			at = mempcpy(at, "nan", 3);
	}
	return at;
}

static char *print_line(const struct format *f, char *at, const char *end,
			size_t real_max, const struct sample *s)
{
	const struct signal_list *signals = s->signals ? s->signals : f->signals;
	const struct csv *csv = f->private_data;
	bool separate = true;

	if (end - at < HEAD_MAX)
		return NULL;
	if (csv->layout == CSV_VILLAS)
		at = print_head(f, at, s);
	else if (csv->time_index < 0)
		separate = false;
	else
		at = text_print_time(at, s->flags & SAMPLE_HAS_ORIGIN ?
						 s->origin :
						 (struct timespec){ 0, 0 });
	for (unsigned i = 0; f->data && i < s->length; i++) {
		enum signal_type type = text_type(signals, i);

		if ((size_t)(end - at) < text_value_max(real_max, type))
			return NULL;
		if (separate || i > 0)
			*at++ = f->separator;
		at = text_print_value(f, at, type, &s->data[i]);
	}
	at = fill_row(f, at, end, signals, s->length);
	if (at)
		*at++ = f->delimiter;
	return at;
}

static int csv_print(struct format *f, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt)
{
	return text_print_lines(f, print_line, buf, size, used, smps, cnt);
}

/* A header in the making; counts what would not fit. */
struct header {
	char *buf;
	size_t size, used;
};

static void put_char(struct header *h, char c)
{
	if (h->used < h->size)
		h->buf[h->used] = c;
	h->used++;
}

static void put_text(struct header *h, const char *text)
{
	while (*text)
		put_char(h, *text++);
}

/* Within quotes; a comment cannot go on in the next line, so that the end of a line
 * is a blank there. */
static void put_quoted(struct header *h, const struct format *f, const char *text,
		       bool comment)
{
	for (; *text; text++) {
		bool ends = *text == f->delimiter || *text == '\n' || *text == '\r';

		if (*text == '"')
			put_char(h, '"');
		put_char(h, comment && ends ? ' ' : *text);
	}
}

static bool needs_quotes(const struct format *f, const char *text)
{
	const char special[] = { f->separator, f->delimiter, '"', '\r', '\n', '\0' };

	return strpbrk(text, special) != NULL;
}

static void put_name(struct header *h, const struct format *f,
		     const struct signal *s, bool first)
{
	const struct csv *csv = f->private_data;
	bool comment = csv->layout == CSV_VILLAS;
	size_t len = strlen(s->name);
	/* Also a first one that would be taken for a comment or an empty line. */
	bool quoted = needs_quotes(f, s->name) ||
		      (s->unit && needs_quotes(f, s->unit)) ||
		      (first && (!len || *s->name == f->comment_prefix));

	if (quoted)
		put_char(h, '"');
	put_quoted(h, f, s->name, comment);
	if (s->unit) {
		put_char(h, '[');
		put_quoted(h, f, s->unit, comment);
		put_char(h, ']');
	} else if (!comment && len && s->name[len - 1] == ']') {
		/* So that its end is not read as a unit. */
		put_text(h, "[]");
	}
	if (quoted)
		put_char(h, '"');
}

static size_t csv_header(struct format *f, char *buf, size_t size,
			 const struct signal_list *signals)
{
	struct csv *csv = f->private_data;
	struct header h = { buf, size, 0 };
	bool first = csv->layout == CSV_PLAIN && csv->time_index < 0;
	bool data = csv->layout == CSV_PLAIN || f->data;

	if (csv->layout == CSV_VILLAS) {
		static const char *const names[] = { " secs", "nsecs", "offset",
						     "sequence" };

		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			put_char(&h, i ? f->separator : f->comment_prefix);
			put_text(&h, names[i]);
		}
	} else if (!first) {
		put_text(&h, "time");
	}
	for (unsigned i = 0; data && signals && i < signals->count; i++) {
		bool begins = first && i == 0;

		if (!begins)
			put_char(&h, f->separator);
		put_name(&h, f, &signals->signals[i], begins);
	}
	put_char(&h, f->delimiter);
	csv->columns = signals ? signals->count : 0;
	return h.used;
}

/* Behind the quote that closes the field that the one at `at` opens; NULL when none
 * does. */
static const char *closing_quote(const char *at, const char *end)
{
	while ((at = memchr(at + 1, '"', (size_t)(end - at - 1)))) {
		at++;
		if (at == end || *at != '"')
			return at;
	}
	return NULL;
}

/* The next field of a line; false at its end. *quoted: it stood in quotes, and two
 * in it are one. */
static bool next_quoted(const struct format *f, struct text *line, bool *more,
			struct text *field, bool *quoted)
{
	const char *at = line->at, *stop = NULL, *behind;

	*quoted = false;
	if (!*more)
		return false;
	if (unlikely(at < line->end && *at == '"') &&
	    (behind = closing_quote(at, line->end))) {
		for (stop = behind; stop < line->end && *stop == ' ';)
			stop++;
		/* Anything else behind it: no field in quotes. */
		*quoted = stop == line->end || *stop == f->separator;
		*field = (struct text){ at + 1, behind - 1 };
	}
	if (likely(!*quoted)) {
		stop = memchr(at, f->separator, (size_t)(line->end - at));
		*field = (struct text){ at, stop ? stop : line->end };
	}
	*more = stop && stop < line->end;
	line->at = *more ? stop + 1 : line->end;
	return true;
}

static inline bool next_field(const struct format *f, struct text *line, bool *more,
			      struct text *field)
{
	bool quoted;

	return next_quoted(f, line, more, field, &quoted);
}

/* A copy with one quote for two; NULL when there is no memory. */
static char *copy_field(struct text t, bool quoted)
{
	char *text = malloc((size_t)(t.end - t.at) + 1), *to = text;

	for (; to && t.at < t.end; t.at++) {
		*to++ = *t.at;
		t.at += quoted && *t.at == '"';
	}
	if (to)
		*to = '\0';
	return text;
}

static bool is_nan(struct text t)
{
	/* 32: the difference between a letter's two cases. */
	return t.end == t.at ||
	       (t.end - t.at == 3 && (t.at[0] | 32) == 'n' && (t.at[1] | 32) == 'a' &&
		(t.at[2] | 32) == 'n');
}

static int scan_value(struct format *f, struct text field, struct sample *s)
{
	enum signal_type type = text_type(f->signals, s->length);

	if (s->length == s->capacity)
		return text_fail(f, "the line has more than %u values, which "
				 "is all that a sample holds here", s->capacity);
	if (type == SIGNAL_FLOAT && is_nan(field))
		s->data[s->length].f = __builtin_nan("");
	else if (!text_scan_value(field, type, &s->data[s->length]))
		return text_fail_at(f, "value", field, text_value_problem(type));
	s->length++;
	s->flags |= SAMPLE_HAS_DATA;
	return 0;
}

static int scan_origin(struct format *f, struct text secs, struct text nsecs,
		       struct sample *s)
{
	uint64_t nsec;
	int64_t sec;

	s->origin = (struct timespec){ 0, 0 };
	if (is_nan(secs) && is_nan(nsecs))
		return 0;
	if (num_parse_i64(secs.at, secs.end, &sec) != secs.end)
		return text_fail_at(f, "seconds", secs, "is not an integer");
	if (num_parse_u64(nsecs.at, nsecs.end, &nsec) != nsecs.end ||
	    nsec >= 1000000000)
		return text_fail_at(f, "nanoseconds", nsecs,
				    "is not an integer below 1000000000");
	s->origin = (struct timespec){ .tv_sec = sec, .tv_nsec = (long)nsec };
	s->flags |= SAMPLE_HAS_ORIGIN;
	return 0;
}

static int scan_villas(struct format *f, struct text line, struct sample *s)
{
	struct text head[4], field;
	bool more = true;
	int ret;

	for (unsigned i = 0; i < 4; i++)
		if (!next_field(f, &line, &more, &head[i]))
			return text_fail(f, "only %u columns; seconds, "
					 "nanoseconds, offset and sequence are "
					 "needed (columns = \"plain\" reads "
					 "recordings without them)", i);
	ret = scan_origin(f, head[0], head[1], s);
	if (ret)
		return ret;
	if (!is_nan(head[2])) {
		if (text_scan_offset(head[2], s->origin, &s->received) !=
		    head[2].end)
			return text_fail_at(f, "offset", head[2],
					    "is not a number of seconds");
		s->flags |= SAMPLE_HAS_RECEIVED;
	}
	if (!is_nan(head[3])) {
		if (num_parse_u64(head[3].at, head[3].end, &s->sequence) !=
		    head[3].end)
			return text_fail_at(f, "sequence number", head[3],
					    "is not an integer");
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
	while (!ret && next_field(f, &line, &more, &field))
		ret = scan_value(f, field, s);
	return ret;
}

static unsigned count_fields(const struct format *f, struct text line)
{
	struct text field;
	bool more = true;
	unsigned count = 0;

	while (next_field(f, &line, &more, &field))
		count++;
	return count;
}

/* Is the field empty, of a signal that is no float, and are all fields after it empty or "nan"? Then
 * they fill up the row and are no values. */
static bool is_filler(const struct format *f, struct text field, struct text rest, bool more,
		      const struct sample *s)
{
	if (likely(field.at < field.end) ||
	    text_type(f->signals, s->length) == SIGNAL_FLOAT)
		return false;
	while (next_field(f, &rest, &more, &field))
		if (field.at < field.end && !is_nan(field))
			return false;
	return true;
}

/* The line has `count` columns, and an empty one behind them if it ends so. */
static int check_columns(struct format *f, long count, bool ends_empty)
{
	const struct csv *csv = f->private_data;

	if (likely(!csv->names || count == csv->names ||
		   (ends_empty && count == csv->names + 1)))
		return 0;
	return text_fail(f, "the line has %ld columns, the header line %ld", count,
			 csv->names);
}

static int scan_plain(struct format *f, struct text line, struct sample *s)
{
	const struct csv *csv = f->private_data;
	struct text field = { NULL, NULL }, whole = line;
	bool more = true, filler = false;
	long i = 0;
	int ret = 0;

	for (; !ret && !filler && next_field(f, &line, &more, &field); i++) {
		if (i == csv->time_index) {
			s->flags |= SAMPLE_HAS_ORIGIN;
			ret = time_column_scan(f, &csv->time, field, &s->origin);
		} else if (csv->names && i == csv->names && !more && field.at == field.end)
			continue; /* a separator at the end of the line */
		else if (is_filler(f, field, line, more, s))
			filler = true;
		else
			ret = scan_value(f, field, s);
	}
	/* A wrong number of columns is the better message: a value may be wrong only because it
	 * is in the wrong column. */
	if (ret || filler)
		i = count_fields(f, whole);
	ret = check_columns(f, i, field.at == field.end) ?: ret;
	if (!ret && csv->time_index >= 0 && !(s->flags & SAMPLE_HAS_ORIGIN))
		ret = text_fail(f, "the line ends before its time in column %ld",
				csv->time_index);
	return ret;
}

/* Finds the time column in the names of a plain recording. */
static int scan_names(struct format *f, struct text line)
{
	struct csv *csv = f->private_data;
	bool by_name = csv->time_index == -2 || !strcasecmp(csv->time_column, "auto");
	struct text whole = line, field;
	bool more = true, quoted;
	long found = -1;

	csv->header_done = true;
	csv->names = count_fields(f, line);
	if (csv->time_index == -1)
		return 0; /* none */
	for (long i = 0; found < 0 && next_quoted(f, &line, &more, &field, &quoted); i++) {
		bool named = time_column_is_named(&csv->time, field, quoted);

		if (by_name ? named : i == csv->time_index)
			found = i;
	}
	if (!by_name)
		return 0; /* given as a number */
	csv->time_index = found;
	if (found >= 0 || !strcasecmp(csv->time_column, "auto"))
		return 0;
	/* Without its time column no line is worth anything: fail with each. */
	csv->header_done = false;
	csv->time_index = -2;
	return text_fail_at(f, "header line", whole,
			    "does not name the column that time_column says");
}

/* The contents of a header line. */
static void forget_names(struct csv *csv)
{
	char *end;

	csv->header_done = false;
	csv->names = 0;
	csv->time.shift = 0;
	csv->time.name = csv->time_column;
	csv->time_index = -2; /* the header line tells */
	if (!strcasecmp(csv->time_column, "none"))
		csv->time_index = -1;
	else if (!strcasecmp(csv->time_column, "auto"))
		csv->time_index = 0; /* until a header line says otherwise */
	if (*csv->time_column >= '0' && *csv->time_column <= '9') {
		csv->time_index = strtol(csv->time_column, &end, 10);
		if (*end)
			csv->time_index = -2;
	}
}

static void csv_reset(struct format *f)
{
	struct csv *csv = f->private_data;

	csv->text.first_line_done = false;
	csv->left = 0;
	csv->columns = 0;
	forget_names(csv);
}

/* "name[unit]" */
static bool take_name(struct signal *s, struct text field, bool quoted)
{
	char *name = copy_field(field, quoted);
	size_t len = name ? strlen(name) : 0;
	char *bracket = len && name[len - 1] == ']' ? strrchr(name, '[') : NULL;

	if (!name)
		return false;
	if (bracket && bracket > name) {
		name[len - 1] = *bracket = '\0';
		s->unit = bracket[1] ? strdup(bracket + 1) : NULL;
	}
	free(s->name);
	s->name = name;
	return true;
}

/* Where the line of names that begins at `at` ends; NULL when its end has not come.
 * Unlike any other line it may go on in the next ones, within quotes. */
static const char *end_of_names(const struct format *f, const char *at,
				const char *stop)
{
	bool begins = true; /* a field */

	for (; at && at < stop; begins = at && at[-1] == f->separator) {
		if (begins && *at == '"')
			at = closing_quote(at, stop);
		else if (text_line_end(f, at, at + 2 < stop ? at + 2 : stop) == at)
			return at;
		else
			at++;
	}
	return NULL;
}

/* Makes `line`, the first line of the names, all of them; false when more is to
 * come. */
static bool whole_names(const struct format *f, const char *buf, size_t len,
			size_t *pos, struct text *line)
{
	const char *end;

	if (likely(!memchr(line->at, '"', (size_t)(line->end - line->at))))
		return true;
	end = end_of_names(f, line->at, buf + len);
	if (end) {
		*pos = (size_t)(end - buf) + 1;
		line->end = end - (end > line->at && end[-1] == '\r');
	}
	return end || f->message || len - (size_t)(line->at - buf) > HEADER_MAX;
}

/* Names, not the first sample: none of its columns is a number. */
static bool is_names(const struct format *f, struct text line)
{
	struct text field;
	bool more = true;
	double v;

	while (next_field(f, &line, &more, &field))
		if (is_nan(field) ||
		    num_parse_double(field.at, field.end, &v) == field.end)
			return false;
	return true;
}

static struct signal_list *csv_names(struct format *f, const char *buf,
				     size_t len)
{
	const struct csv *csv = f->private_data;
	struct signal_list *l = NULL;
	struct text line, field;
	unsigned count, k = 0;
	bool more = true, quoted;
	size_t pos = 0;

	if (csv->layout != CSV_PLAIN || !f->header ||
	    !text_next_line(f, buf, len, &pos, &line) ||
	    !whole_names(f, buf, len, &pos, &line) || scan_names(f, line))
		goto out;
	count = (unsigned)csv->names;
	count -= csv->time_index >= 0 && csv->time_index < (long)count;
	l = count ? signal_list_new(count, SIGNAL_FLOAT) : NULL;
	for (long i = 0; l && k < count &&
			 next_quoted(f, &line, &more, &field, &quoted); i++) {
		if (i == csv->time_index ||
		    take_name(&l->signals[k++], field, quoted))
			continue;
		signal_list_put(l);
		l = NULL;
	}
out:
	csv_reset(f);
	return l;
}

static int scan_line(struct format *f, struct text line, struct sample *s)
{
	const struct csv *csv = f->private_data;

	s->flags = 0;
	s->length = 0;
	s->signals = f->signals->count ? f->signals : NULL;
	return csv->layout == CSV_VILLAS ? scan_villas(f, line, s) :
					   scan_plain(f, line, s);
}

/*
 * Whether the line tells the columns. A file or stream begins with such a line. A
 * message may: what another one told, perhaps of another source, says nothing of
 * this one. -EBADMSG: it does not, but its time cannot be found without.
 */
static int expects_names(struct format *f, struct text line)
{
	struct csv *csv = f->private_data;

	if (likely(csv->layout != CSV_PLAIN || !f->header || csv->header_done))
		return false;
	if (!f->message || is_names(f, line))
		return true;
	if (csv->time_index == -2)
		return text_fail(f, "the message has no header line, which time_column = \"%.40s\" needs (its number does without)",
				 csv->time_column);
	csv->header_done = true;
	return false;
}

static int scan_lines(struct format *f, const char *buf, size_t len, size_t *used,
		      struct sample *smps[], unsigned cnt)
{
	struct text line;
	size_t pos = 0;
	unsigned i = 0;
	int ret, names;

	*used = 0;
	while (i < cnt && text_next_line(f, buf, len, &pos, &line)) {
		names = expects_names(f, line);
		if (names > 0 && !whole_names(f, buf, len, &pos, &line)) {
			*used = (size_t)(line.at - buf);
			return (int)i;
		}
		ret = names < 0 ? names : names ? scan_names(f, line) : scan_line(f, line, smps[i]);
		if (ret && i > 0)
			return (int)i; /* the next call meets it again */
		*used = pos;
		if (ret)
			return ret;
		i += !names;
	}
	*used = pos;
	return (int)i;
}

static int csv_scan(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *smps[], unsigned cnt)
{
	struct csv *csv = f->private_data;
	int ret;

	/* A message begins, unless this is the rest of the one before. */
	if (f->message && len != csv->left)
		forget_names(csv);
	ret = scan_lines(f, buf, len, used, smps, cnt);
	csv->left = f->message ? len - *used : 0;
	return ret;
}

static void csv_destroy(struct format *f)
{
	time_column_free(&((struct csv *)f->private_data)->time);
}

static int init_with(struct format *f, char separator)
{
	struct csv *csv = f->private_data;

	if (!f->separator)
		f->separator = separator;
	csv_reset(f);
	if (csv->time_format && !time_column_set_format(&csv->time, csv->time_format))
		return -ENOMEM;
	if (strchr(NUMBER_CHARS, f->separator) || f->separator == f->delimiter) {
		text_fail(f, "the separator is the delimiter, a quote, or a character that numbers are made of; take one such as ',', ';' or a tabulator");
		return -EINVAL;
	}
	if (csv->layout == CSV_PLAIN && !f->header && csv->time_index == -2) {
		text_fail(f, "time_column \"%.40s\" is a name, but header = false says that there are none; give its number",
			  csv->time_column);
		return -EINVAL;
	}
	return 0;
}

static int csv_init(struct format *f)
{
	return init_with(f, ',');
}

static int tsv_init(struct format *f)
{
	return init_with(f, '\t');
}

#define CARRIES                                                              \
	{                                                                    \
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |         \
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,        \
		.types = FORMAT_ALL_TYPES,                                   \
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |           \
			 SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA,              \
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,    \
		.seconds_bits = 63, .time_step_ns = 1,                       \
	}

const struct format_type format_csv = {
	.name = "csv",
	.description = "Text in columns, separated by commas",
	.lines = true,
	.carries = CARRIES,
	.size = sizeof(struct csv),
	.keys = csv_keys,
	.key_count = ARRAY_SIZE(csv_keys),
	.init = csv_init,
	.destroy = csv_destroy,
	.print = csv_print,
	.header = csv_header,
	.reset = csv_reset,
	.names = csv_names,
	.scan = csv_scan,
};

const struct format_type format_tsv = {
	.name = "tsv",
	.description = "Text in columns, separated by tabulators",
	.lines = true,
	.carries = CARRIES,
	.size = sizeof(struct csv),
	.keys = csv_keys,
	.key_count = ARRAY_SIZE(csv_keys),
	.init = tsv_init,
	.destroy = csv_destroy,
	.print = csv_print,
	.header = csv_header,
	.reset = csv_reset,
	.names = csv_names,
	.scan = csv_scan,
};
