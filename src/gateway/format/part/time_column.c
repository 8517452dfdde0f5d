/* SPDX-License-Identifier: BSD-2-Clause */
/* The time of recordings of other programs; see time_column.h. */
#include "gateway/format/part/time_column.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/num.h"

static struct text trim(struct text t)
{
	while (t.at < t.end && (*t.at == ' ' || *t.at == '\t'))
		t.at++;
	while (t.end > t.at && (t.end[-1] == ' ' || t.end[-1] == '\t'))
		t.end--;
	return t;
}

static const struct tm no_date = { .tm_mday = 1, .tm_year = 70 };

/* Where the part of the text ends that `format` describes; NULL when there is none. */
static char *behind_part(char *text, const char *format)
{
	struct tm tm = no_date;

	return format ? strptime(text, format, &tm) : NULL;
}

/* strptime() knows no fractions of a second: takes out one behind the seconds. */
static uint32_t take_fraction(const struct time_column *c, char *text)
{
	char *point = behind_part(text, c->to_seconds);
	const char *next = NULL;
	uint32_t nsec = 0;

	if (point && (*point == '.' || *point == ',') &&
	    *point != c->format[strlen(c->to_seconds)])
		next = num_parse_fraction(point + 1, point + strlen(point), &nsec);
	if (next)
		memmove(point, next, strlen(next) + 1);
	return nsec;
}

/* strptime() passes over any name of a zone without applying it, which is right for UTC only. */
static bool has_foreign_zone(const struct time_column *c, char *text)
{
	static const char *const utc[] = { "UTC", "GMT", "Z", "UCT" };
	char *zone = behind_part(text, c->to_zone);
	size_t len;

	if (!zone)
		return false;
	zone += strspn(zone, " ");
	len = strcspn(zone, " ");
	for (size_t i = 0; i < ARRAY_SIZE(utc); i++)
		if (len == strlen(utc[i]) && !strncasecmp(zone, utc[i], len))
			return false;
	return true;
}

/* A date as time_format says. "%z" says how far the clock is from UTC. */
static int scan_date(struct format *f, const struct time_column *c, struct text field,
		     struct timespec *t)
{
	size_t len = (size_t)(field.end - field.at);
	struct tm tm = no_date;
	char text[128], *end;
	uint32_t nsec;
	long from_utc_s;

	if (len >= sizeof(text))
		return text_fail_at(f, "time", field, "is too long");
	memcpy(text, field.at, len);
	text[len] = '\0';
	nsec = take_fraction(c, text);
	if (has_foreign_zone(c, text))
		return text_fail_at(f, "time", field,
				    "has the name of a zone other than UTC; only offsets (%z) are understood");
	end = strptime(text, c->format, &tm);
	if (!end || *end)
		return text_fail_at(f, "time", field,
				    "does not look as time_format says");
	from_utc_s = tm.tm_gmtoff; /* timegm() changes it */
	*t = (struct timespec){ .tv_sec = timegm(&tm) - from_utc_s,
				.tv_nsec = (long)nsec };
	return 0;
}

int time_column_scan(struct format *f, const struct time_column *c, struct text field,
		     struct timespec *t)
{
	field = trim(field);
	if (c->format)
		return scan_date(f, c, field, t);
	if (text_scan_time(field, true, c->shift, t) == field.end)
		return 0;
	return text_fail_at(f, "time", field,
			    "is no number of seconds; set time_format, "
			    "or time_column = \"none\"");
}

static const struct {
	const char *name;
	int shift;
} time_units[] = {
	{ "", 0 }, { "s", 0 }, { "sec", 0 }, { "secs", 0 }, { "second", 0 }, { "seconds", 0 },
	{ "ms", -3 }, { "msec", -3 }, { "millisecond", -3 }, { "milliseconds", -3 },
	{ "us", -6 }, { "usec", -6 }, { "\xc2\xb5s", -6 }, { "\xce\xbcs", -6 },
	{ "microsecond", -6 }, { "microseconds", -6 },
	{ "ns", -9 }, { "nsec", -9 }, { "nanosecond", -9 }, { "nanoseconds", -9 },
};

/* Cuts "[unit]" or "(unit)" off a name; an empty unit where there is none. */
static struct text cut_unit(struct text *name)
{
	const char *open;
	struct text unit;

	*name = trim(*name);
	unit = (struct text){ name->end, name->end };
	if (name->at == name->end || (name->end[-1] != ']' && name->end[-1] != ')'))
		return unit;
	open = memrchr(name->at, name->end[-1] == ']' ? '[' : '(',
		       (size_t)(name->end - name->at));
	if (!open)
		return unit;
	unit = trim((struct text){ open + 1, name->end - 1 });
	*name = trim((struct text){ name->at, open });
	return unit;
}

/* Sets the power of ten of a unit of time; false when it is none. */
static bool take_unit(struct time_column *c, struct text unit)
{
	for (size_t i = 0; i < ARRAY_SIZE(time_units); i++)
		if (text_same_name(unit, false, time_units[i].name)) {
			c->shift = time_units[i].shift;
			return true;
		}
	return false;
}

bool time_column_is_named(struct time_column *c, struct text field, bool quoted)
{
	static const char *const usual[] = { "time", "time_s", "timestamp",
					     "seconds", "t" };
	struct text whole = trim(field), name = whole, unit = cut_unit(&name);

	c->shift = 0;
	if (strcasecmp(c->name, "auto")) {
		take_unit(c, unit);
		return text_same_name(whole, quoted, c->name) ||
		       text_same_name(name, quoted, c->name);
	}
	for (size_t k = 0; k < ARRAY_SIZE(usual); k++)
		if (text_same_name(name, quoted, usual[k]))
			return take_unit(c, unit) || c->format;
	return false;
}

/* Takes a sign of the fraction of a second off: ".%f" (as other programs write it), ".%N",
 * ".%3N". */
static void drop_fraction_sign(char *at)
{
	const char *sign = at + 2;

	if ((*at != '.' && *at != ',') || at[1] != '%')
		return;
	sign += strspn(sign, "0123456789");
	if (*sign == 'f' || *sign == 'N')
		memmove(at, sign + 1, strlen(sign + 1) + 1);
}

bool time_column_set_format(struct time_column *c, const char *format)
{
	char *at = c->format = strdup(format);

	while (at && (at = strchr(at, '%')) && at[1]) {
		char *begin = at, kind;

		at += 1 + strspn(at + 1, "-_0^#EO");
		kind = *at;
		at += kind != '\0';
		if (kind == 'Z' && !c->to_zone)
			c->to_zone = strndup(c->format, (size_t)(begin - c->format));
		if (!kind || !strchr("STs", kind) || c->to_seconds)
			continue;
		c->to_seconds = strndup(c->format, (size_t)(at - c->format));
		drop_fraction_sign(at);
	}
	return c->format;
}

void time_column_free(struct time_column *c)
{
	free(c->format);
	free(c->to_seconds);
	free(c->to_zone);
}
