/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a configuration file. What decides about values must be right; what only
 * describes may be missing.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/comtrade/fields.h"
#include "util/clock.h"
#include "util/num.h"

#define FIELDS_MAX 16
/* Bytes that the line of a channel has at least. */
#define ANALOG_BYTES_MIN 8
#define DIGITAL_BYTES_MIN 2

struct cfg_reader {
	struct comtrade_cfg *c;
	struct comtrade_error *err;
	const char *at, *end;
	unsigned line;          /* number of the last line taken */
	struct piece fields[FIELDS_MAX];
	unsigned count;         /* fields of that line, may be more than stored */
	struct piece whole;
	bool month_first;
	unsigned revision;      /* asked for; 0: as written */
};

static int fail_field(struct cfg_reader *r, unsigned field, const char *name,
		      const char *problem)
{
	return comtrade_fail_field(r->err, r->line, field + 1, name,
				   field < r->count ? r->fields[field] : r->whole,
				   problem);
}

/* Takes a line; `what` is missing when there is none. */
static int take_line(struct cfg_reader *r, const char *what)
{
	if (!piece_next_line(&r->at, r->end, &r->whole))
		return comtrade_fail(r->err, r->line,
				     "the configuration ends before %s", what);
	r->line++;
	r->whole = piece_trim(r->whole);
	r->count = piece_split(r->whole, r->fields, FIELDS_MAX);
	return 0;
}

/* The same of a line that old revisions do not have. */
static bool take_optional_line(struct cfg_reader *r)
{
	const char *before = r->at;

	if (!piece_next_line(&r->at, r->end, &r->whole))
		return false;
	r->whole = piece_trim(r->whole);
	/* Of a single file the next part begins here. */
	if (piece_len(r->whole) > 1 && !memcmp(r->whole.at, "--", 2)) {
		r->at = before;
		return false;
	}
	r->line++;
	r->count = piece_split(r->whole, r->fields, FIELDS_MAX);
	return true;
}

/* An optional number; absent and empty leave what is there. */
static int get_double(struct cfg_reader *r, unsigned field, const char *name,
		      double *v)
{
	if (field >= r->count || field >= FIELDS_MAX ||
	    piece_len(r->fields[field]) == 0 ||
	    piece_to_double(r->fields[field], v))
		return 0;
	return fail_field(r, field, name, "is not a number");
}

static int get_text(struct cfg_reader *r, unsigned field, char **text)
{
	struct piece none = { "", "" };

	*text = piece_dup(field < r->count && field < FIELDS_MAX ?
				  r->fields[field] : none);
	return *text ? 0 : -ENOMEM;
}

/* Parses a year of four or two digits. False: it is no year; some simulators write 0, others a
 * word. */
static bool parse_revision(struct piece p, unsigned *revision)
{
	uint64_t v;

	if (!piece_to_u64(p, &v) || (v >= 100 && v < 1900) || v > 9999 || v == 0)
		return false;
	*revision = (unsigned)(v >= 100 ? v : v < 70 ? 2000 + v : 1900 + v);
	return true;
}

static int parse_station(struct cfg_reader *r)
{
	unsigned last;
	int ret = take_line(r, "its first line");

	if (ret)
		return ret;
	last = (r->count < FIELDS_MAX ? r->count : FIELDS_MAX) - 1;
	r->c->revision = 1991;
	/* A comma in a name: the revision still is the last field. */
	if (last >= 2 && !parse_revision(r->fields[last], &r->c->revision)) {
		r->c->revision_unread = piece_dup(r->fields[last]);
		if (!r->c->revision_unread)
			return -ENOMEM;
	}
	r->month_first = (r->revision ? r->revision : r->c->revision) <= 1991;
	ret = get_text(r, 0, &r->c->station);
	return ret ? ret : get_text(r, 1, &r->c->device);
}

/* "12A": the number before a letter. */
static int parse_count(struct cfg_reader *r, unsigned field, char letter,
		       unsigned *count)
{
	struct piece p = field < r->count ? r->fields[field] :
					    (struct piece){ "", "" };
	const char *rest = num_parse_u64(p.at, p.end, &(uint64_t){ 0 });
	uint64_t v = 0;

	if (rest)
		num_parse_u64(p.at, p.end, &v);
	p.at = rest ? rest : p.at;
	p = piece_trim(p);
	if (!rest || piece_len(p) != 1 || toupper((unsigned char)*p.at) != letter)
		return comtrade_fail(r->err, r->line,
				     "field %u (##%c) is not a number of channels such as 4%c",
				     field + 1, letter, letter);
	if (v > COMTRADE_CHANNELS_MAX)
		return comtrade_fail(r->err, r->line,
				     "field %u (##%c): more than %u channels",
				     field + 1, letter, COMTRADE_CHANNELS_MAX);
	*count = (unsigned)v;
	return 0;
}

static int parse_counts(struct cfg_reader *r)
{
	struct comtrade_cfg *c = r->c;
	unsigned analog = 0, digital = 0;
	size_t left;
	int ret = take_line(r, "the numbers of channels");

	if (!ret)
		ret = parse_count(r, 1, 'A', &analog);
	if (!ret)
		ret = parse_count(r, 2, 'D', &digital);
	if (ret)
		return ret;
	left = (size_t)(r->end - r->at);
	if (analog + digital == 0 || analog + digital > COMTRADE_CHANNELS_MAX)
		return comtrade_fail(r->err, r->line,
				     "%u channels; 1 to %u are possible",
				     analog + digital, COMTRADE_CHANNELS_MAX);
	if ((size_t)analog * ANALOG_BYTES_MIN +
		    (size_t)digital * DIGITAL_BYTES_MIN > left)
		return comtrade_fail(r->err, r->line,
				     "%u analog and %u digital channels are told, more than the file has lines for",
				     analog, digital);
	c->analog = calloc(analog + 1, sizeof(*c->analog));
	c->digital = calloc(digital + 1, sizeof(*c->digital));
	if (!c->analog || !c->digital)
		return -ENOMEM;
	c->analog_count = analog;
	c->digital_count = digital;
	return 0;
}

static int parse_side(struct cfg_reader *r, struct comtrade_analog *a)
{
	char side = 0;

	if (r->count > 12 && piece_len(r->fields[12]) == 1)
		side = (char)toupper((unsigned char)*r->fields[12].at);
	a->side = side == 'P' || side == 'S' ? side : 0;
	return 0;
}

/* An, ch_id, ph, ccbm, uu, a, b, skew, min, max, primary, secondary, PS */
static int parse_analog(struct cfg_reader *r, struct comtrade_analog *a)
{
	int ret = take_line(r, "its last analog channel");

	if (ret)
		return ret;
	*a = (struct comtrade_analog){ .primary = 1, .secondary = 1 };
	if (r->count < 7)
		return comtrade_fail(r->err, r->line,
				     "%u fields; the line of an analog channel has 13 (10 in 1991), at least up to b",
				     r->count);
	if (piece_len(r->fields[5]) == 0)
		return fail_field(r, 5, "a", "is missing");
	ret = get_text(r, 1, &a->name);
	if (!ret)
		ret = get_text(r, 2, &a->phase);
	if (!ret)
		ret = get_text(r, 3, &a->component);
	if (!ret)
		ret = get_text(r, 4, &a->unit);
	if (!ret)
		ret = get_double(r, 5, "a", &a->a);
	if (!ret)
		ret = get_double(r, 6, "b", &a->b);
	if (!ret)
		ret = get_double(r, 7, "skew", &a->skew_us);
	if (!ret)
		ret = get_double(r, 8, "min", &a->min);
	if (!ret)
		ret = get_double(r, 9, "max", &a->max);
	if (!ret)
		ret = get_double(r, 10, "primary", &a->primary);
	if (!ret)
		ret = get_double(r, 11, "secondary", &a->secondary);
	return ret ? ret : parse_side(r, a);
}

/* Dn, ch_id, ph, ccbm, y; in 1991 without ph and ccbm */
static int parse_digital(struct cfg_reader *r, struct comtrade_digital *d)
{
	unsigned last;
	int ret = take_line(r, "its last digital channel");

	if (ret)
		return ret;
	if (r->count < 2)
		return comtrade_fail(r->err, r->line,
				     "one field; the line of a digital channel has 5 (3 in 1991)");
	last = r->count > 3 ? 4 : 2;
	ret = get_text(r, 1, &d->name);
	if (!ret)
		ret = get_text(r, r->count > 3 ? 2 : FIELDS_MAX, &d->phase);
	if (!ret)
		ret = get_text(r, r->count > 3 ? 3 : FIELDS_MAX, &d->component);
	d->normal = last < r->count && piece_len(r->fields[last]) == 1 &&
		    *r->fields[last].at == '1';
	return ret;
}

static int parse_rate(struct cfg_reader *r, struct comtrade_rate *rate)
{
	int ret = take_line(r, "its last sampling rate");

	if (!ret)
		ret = get_double(r, 0, "samp", &rate->hz);
	if (ret)
		return ret;
	if (!(rate->hz >= 0 && rate->hz <= 1e12))
		return fail_field(r, 0, "samp", "is not a rate in Hz");
	if (r->count < 2 || !piece_to_u64(r->fields[1], &rate->end)) {
		double v = 0;

		/* Some print 2399.0. */
		if (r->count < 2 || !piece_to_double(r->fields[1], &v) ||
		    !(v >= 0 && v < 1e15))
			return fail_field(r, 1, "endsamp",
					  "is not the number of a sample");
		rate->end = (uint64_t)v;
	}
	return 0;
}

static int parse_rates(struct cfg_reader *r)
{
	struct comtrade_cfg *c = r->c;
	uint64_t count;
	int ret = take_line(r, "the line frequency");

	if (!ret)
		ret = get_double(r, 0, "lf", &c->line_hz);
	if (!ret)
		ret = take_line(r, "the number of sampling rates");
	if (ret)
		return ret;
	if (!piece_to_u64(r->fields[0], &count))
		return fail_field(r, 0, "nrates", "is not a number of rates");
	/* With none there is one line still. */
	count += count == 0;
	if (count > COMTRADE_RATES_MAX || count * 2 > (uint64_t)(r->end - r->at))
		return fail_field(r, 0, "nrates",
				  "is more than the file has lines for");
	c->rates = calloc(count, sizeof(*c->rates));
	if (!c->rates)
		return -ENOMEM;
	c->rate_count = (unsigned)count;
	for (unsigned i = 0; !ret && i < c->rate_count; i++)
		ret = parse_rate(r, &c->rates[i]);
	return ret;
}

/* An empty field and all zeros mean that the time is unknown. */
static bool says_nothing(struct piece p)
{
	for (; p.at < p.end; p.at++)
		if (!strchr("0/:.,- ", *p.at))
			return false;
	return true;
}

/* Does the year of the date have more than two digits, as in revisions from 1999 on? In that of
 * 1991 it has two, and the month comes first. */
static bool has_long_year(struct piece line)
{
	const char *end = memchr(line.at, ',', piece_len(line));
	unsigned digits = 0;

	for (const char *p = line.at; p < (end ? end : line.end); p++)
		if (*p >= '0' && *p <= '9')
			digits++;
		else if (*p != ' ')
			digits = 0;
	return digits > 2;
}

static int parse_times(struct cfg_reader *r)
{
	struct comtrade_cfg *c = r->c;
	int ret = take_line(r, "the start time");

	if (ret)
		return ret;
	if (c->revision_unread && has_long_year(r->whole)) {
		c->revision = 1999;
		r->month_first = r->revision && r->revision <= 1991;
	}
	if (!comtrade_time_parse(r->whole.at, r->whole.end, r->month_first,
				 &c->start) && !says_nothing(r->whole))
		return comtrade_fail_field(r->err, r->line, 1, "start time",
			r->whole, r->month_first ?
			"is not a time such as 12/31/91,23:59:59.999999" :
			"is not a time such as 31/12/1999,23:59:59.999999");
	ret = take_line(r, "the trigger time");
	if (ret)
		return ret;
	/* Values and times do not depend on it: never an error. */
	comtrade_time_parse(r->whole.at, r->whole.end, r->month_first,
			    &c->trigger);
	return 0;
}

/* Returns the position behind "UTC", "GMT" or "Z", if the text begins with one. */
static const char *skip_zone_name(const char *at, const char *end)
{
	static const char *const names[] = { "UTC", "GMT", "Z" };

	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(names[i]);

		if ((size_t)(end - at) >= len && !strncasecmp(at, names[i], len))
			return at + len;
	}
	return at;
}

/* Parses the minutes, "h30", "h30m", ":30", or as a fraction, ".5"; returns the position behind
 * them, NULL when they are malformed. */
static const char *parse_zone_minutes(const char *at, const char *end, uint64_t *minutes)
{
	uint32_t fraction = 0;

	if (at < end && *at == '.') {
		at = num_parse_fraction(at + 1, end, &fraction);
		*minutes = (uint64_t)fraction * 60 / NSEC_PER_SEC;
	} else if (at < end && (*at == ':' || (*at | 0x20) == 'h')) {
		if (at + 1 == end && *at != ':')
			return end;
		at = num_parse_u64(at + 1, end, minutes);
		at += at && at < end && (*at | 0x20) == 'm';
	}
	return at;
}

/* False for "x" (none). */
bool comtrade_zone_parse(const char *start, const char *end, int32_t *seconds)
{
	const char *at = skip_zone_name(start, end), *digits;
	uint64_t hours = 0, minutes = 0;
	bool named = at > start, negative;

	negative = at < end && *at == '-';
	digits = at + (at < end && (*at == '-' || *at == '+'));
	if (!named || digits < end) {
		at = num_parse_u64(digits, end, &hours);
		if (at == end && end - digits == 4) { /* "+0530" */
			minutes = hours % 100;
			hours /= 100;
		} else if (at) {
			at = parse_zone_minutes(at, end, &minutes);
		}
	}
	if (at != end || hours > 24 || minutes > 59)
		return false;
	*seconds = (int32_t)(hours * 3600 + minutes * 60) * (negative ? -1 : 1);
	return true;
}

static void copy_mark(char mark[4], struct piece p)
{
	snprintf(mark, 4, "%.*s", (int)(piece_len(p) < 3 ? piece_len(p) : 3), p.at);
}

/* Fields that came after 1991: timemult, time_code and local_code, tmq and leapsec. */
static int parse_tail(struct cfg_reader *r)
{
	struct comtrade_cfg *c = r->c;
	struct piece zone;
	int ret;

	if (!take_optional_line(r))
		return 0;
	ret = get_double(r, 0, "timemult", &c->time_multiplier);
	if (ret)
		return ret;
	if (!(c->time_multiplier > 0 && c->time_multiplier < 1e12)) {
		if (c->time_multiplier != 0)
			return fail_field(r, 0, "timemult",
					  "is not a positive number");
		c->time_multiplier = 1; /* would stop the time */
	}
	if ((c->revision < 2013 && !c->revision_unread) || !take_optional_line(r))
		return 0;
	zone = r->fields[0];
	c->has_zone = comtrade_zone_parse(zone.at, zone.end, &c->zone_s);
	/* "x": there is none. */
	c->zone_unread = !c->has_zone && piece_len(zone) &&
			 !(piece_len(zone) == 1 && (*zone.at | 0x20) == 'x');
	if (!take_optional_line(r))
		return 0;
	copy_mark(c->quality, r->fields[0]);
	if (r->count > 1)
		copy_mark(c->leap, r->fields[1]);
	return 0;
}

static int parse_data(struct cfg_reader *r)
{
	int type, ret = take_line(r, "the type of the data file");

	if (ret)
		return ret;
	type = comtrade_data_parse(r->whole.at, r->whole.end);
	if (type < 0)
		return fail_field(r, 0, "ft",
				  "is none of ASCII, BINARY, BINARY32, FLOAT32");
	r->c->data = (enum comtrade_data)type;
	return 0;
}

static int parse_all(struct cfg_reader *r)
{
	int ret = parse_station(r);

	if (!ret)
		ret = parse_counts(r);
	for (unsigned i = 0; !ret && i < r->c->analog_count; i++)
		ret = parse_analog(r, &r->c->analog[i]);
	for (unsigned i = 0; !ret && i < r->c->digital_count; i++)
		ret = parse_digital(r, &r->c->digital[i]);
	if (!ret)
		ret = parse_rates(r);
	if (!ret)
		ret = parse_times(r);
	if (!ret)
		ret = parse_data(r);
	return ret ? ret : parse_tail(r);
}

int comtrade_cfg_parse(struct comtrade_cfg **out, const char *text, size_t len,
		       unsigned revision, struct comtrade_error *err)
{
	struct cfg_reader r = { .err = err, .revision = revision };
	char *copy = NULL;
	int ret = -ENOMEM;

	/* Byte order mark. */
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	if (!utf8_is_valid(text, len)) {
		copy = latin1_to_utf8(text, len, &len);
		if (!copy)
			return -ENOMEM;
		text = copy;
	}
	r.at = text;
	r.end = text + len;
	r.c = calloc(1, sizeof(*r.c));
	if (r.c) {
		r.c->time_multiplier = 1;
		ret = parse_all(&r);
	}
	free(copy);
	if (ret) {
		comtrade_cfg_free(r.c);
		return ret;
	}
	*out = r.c;
	return 0;
}

void comtrade_cfg_free(struct comtrade_cfg *c)
{
	if (!c)
		return;
	for (unsigned i = 0; c->analog && i < c->analog_count; i++) {
		free(c->analog[i].name);
		free(c->analog[i].phase);
		free(c->analog[i].component);
		free(c->analog[i].unit);
	}
	for (unsigned i = 0; c->digital && i < c->digital_count; i++) {
		free(c->digital[i].name);
		free(c->digital[i].phase);
		free(c->digital[i].component);
	}
	free(c->analog);
	free(c->digital);
	free(c->rates);
	free(c->station);
	free(c->revision_unread);
	free(c->device);
	free(c);
}

void comtrade_cfg_convert(struct comtrade_cfg *c, enum comtrade_side side)
{
	for (unsigned i = 0; i < c->analog_count; i++) {
		struct comtrade_analog *a = &c->analog[i];
		double ratio = a->primary / a->secondary;

		if (!(ratio > 0 && ratio < 1e12) || !a->side ||
		    side == COMTRADE_AS_RECORDED ||
		    (a->side == 'P') == (side == COMTRADE_PRIMARY))
			continue;
		if (side == COMTRADE_SECONDARY)
			ratio = 1 / ratio;
		a->a *= ratio;
		a->b *= ratio;
		a->side = side == COMTRADE_PRIMARY ? 'P' : 'S';
	}
}

static const char *const data_names[] = {
	[COMTRADE_ASCII] = "ASCII",
	[COMTRADE_BINARY] = "BINARY",
	[COMTRADE_BINARY32] = "BINARY32",
	[COMTRADE_FLOAT32] = "FLOAT32",
};

const char *comtrade_data_name(enum comtrade_data d)
{
	return data_names[d];
}

int comtrade_data_parse(const char *at, const char *end)
{
	struct piece p = piece_trim((struct piece){ at, end });

	for (int i = 0; i < 4; i++)
		if (piece_len(p) == strlen(data_names[i]) &&
		    !strncasecmp(p.at, data_names[i], piece_len(p)))
			return i;
	return piece_len(p) == 8 && !strncasecmp(p.at, "BINARY16", 8) ?
		       COMTRADE_BINARY : -1;
}
