/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of a broker become samples; see entity.h. */
#include "gateway/node/ngsi/entity.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/sample/time.h"
#include "util/num.h"

static int fail(char why[NGSI_WHY], int ret, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(char why[NGSI_WHY], int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, NGSI_WHY, fmt, ap);
	va_end(ap);
	return ret;
}

const char *ngsi_attribute_name(const struct ngsi_attributes *a, unsigned index,
				const struct signal_list *signals)
{
	if (index < a->count && a->list[index].name)
		return a->list[index].name;
	return signals && index < signals->count ? signals->signals[index].name : NULL;
}

/* ---- times ---- */

/* Exactly `digits` digits. */
static bool take_number(const char **at, int digits, int *value)
{
	*value = 0;
	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		*value = *value * 10 + (**at - '0');
	}
	return true;
}

static bool take(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

/* "Z", "+hh:mm", "-hhmm", "+hh" or nothing: seconds to take away. */
static bool take_zone(const char **at, int *seconds)
{
	int sign = **at == '-' ? -1 : 1, hours, minutes = 0;

	*seconds = 0;
	if (!**at || take(at, 'Z'))
		return true;
	if (!take(at, '+') && !take(at, '-'))
		return false;
	if (!take_number(at, 2, &hours))
		return false;
	if ((take(at, ':') || **at) && !take_number(at, 2, &minutes))
		return false;
	*seconds = sign * (hours * 3600 + minutes * 60);
	return hours < 24 && minutes < 60;
}

/* "2026-01-31T12:00:00.123Z" */
static bool parse_time(const char *at, struct timespec *t)
{
	struct tm tm = { 0 };
	uint32_t nsec = 0;
	int zone = 0;

	if (!take_number(&at, 4, &tm.tm_year) || !take(&at, '-') ||
	    !take_number(&at, 2, &tm.tm_mon) || !take(&at, '-') ||
	    !take_number(&at, 2, &tm.tm_mday) || !take(&at, 'T') ||
	    !take_number(&at, 2, &tm.tm_hour) || !take(&at, ':') ||
	    !take_number(&at, 2, &tm.tm_min) || !take(&at, ':') ||
	    !take_number(&at, 2, &tm.tm_sec))
		return false;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	if (*at == '.') {
		at = num_parse_fraction(at + 1, at + strlen(at), &nsec);
		if (!at)
			return false;
	}
	if (!take_zone(&at, &zone) || *at)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*t = (struct timespec){ .tv_sec = timegm(&tm) - zone, .tv_nsec = nsec };
	return true;
}

/* ---- values ---- */

/* Also of a text, such as brokers keep for attributes of type Text. */
static bool number_of(const json_t *v, double *number)
{
	const char *text = json_string_value(v), *end;

	if (json_is_number(v) || json_is_boolean(v)) {
		*number = json_is_boolean(v) ? json_is_true(v) : json_number_value(v);
		return true;
	}
	if (!text)
		return false;
	end = num_parse_double(text, text + strlen(text), number);
	return end && !*end;
}

static bool integer_of(const json_t *v, int64_t *number)
{
	const char *text = json_string_value(v), *end;
	double real;

	if (json_is_integer(v)) {
		*number = json_integer_value(v);
		return true;
	}
	if (text) {
		end = num_parse_i64(text, text + strlen(text), number);
		if (end && !*end)
			return true;
	}
	/* Many brokers keep all numbers as reals. */
	if (!number_of(v, &real) || !(fabs(real) < 9.2e18) || floor(real) != real)
		return false;
	*number = (int64_t)real;
	return true;
}

static bool value_of(const json_t *v, enum signal_type type, union signal_data *d)
{
	const char *text = json_string_value(v);
	double re, im;

	switch (type) {
	case SIGNAL_INTEGER:
		return integer_of(v, &d->i);
	case SIGNAL_BOOLEAN:
		if (text && (!strcmp(text, "true") || !strcmp(text, "false"))) {
			d->i = *text == 't';
			return true;
		}
		return integer_of(v, &d->i) && (d->i == 0 || d->i == 1);
	case SIGNAL_COMPLEX:
		if (!number_of(json_object_get(v, "real"), &re) ||
		    !number_of(json_object_get(v, "imag"), &im))
			return false;
		d->z.re = (float)re;
		d->z.im = (float)im;
		return true;
	default:
		return number_of(v, &d->f);
	}
}

/* ---- entities ---- */

static int take_sequence(const json_t *number, struct sample *s, char why[NGSI_WHY])
{
	int64_t sequence;

	if (!number)
		return 0;
	if (!integer_of(number, &sequence))
		return fail(why, -EBADMSG, "a sequence number is no integer");
	s->sequence = (uint64_t)sequence;
	s->flags |= SAMPLE_HAS_SEQUENCE;
	return 0;
}

/* What an attribute says of the sample. The attributes may be of several updates: the latest
 * one counts, or the first if they have no times. */
static int take_about(const struct ngsi_entity *e, const json_t *attribute, struct sample *s,
		      char why[NGSI_WHY])
{
	const json_t *about = e->ld ? attribute : json_object_get(attribute, "metadata");
	const json_t *time = e->ld ? json_object_get(about, "observedAt") :
				     json_object_get(json_object_get(about, "timestamp"), "value");
	const json_t *number = json_object_get(json_object_get(about, "sequence"), "value");
	struct timespec t;

	if (json_is_string(time)) {
		if (!parse_time(json_string_value(time), &t))
			return fail(why, -EBADMSG, "'%.40s' is no time", json_string_value(time));
		if (s->flags & SAMPLE_HAS_ORIGIN && !sample_time_is_later(t, s->origin))
			return 0;
		s->origin = t;
		s->flags |= SAMPLE_HAS_ORIGIN;
	} else if (s->flags & (SAMPLE_HAS_ORIGIN | SAMPLE_HAS_SEQUENCE)) {
		return 0;
	}
	return take_sequence(number, s, why);
}

static int scan_attributes(const struct ngsi_entity *e, struct signal_list *signals,
			   const json_t *o, struct sample *s, char why[NGSI_WHY])
{
	const char *missing = NULL;
	unsigned found = 0;

	for (unsigned i = 0; i < s->length; i++) {
		const char *name = ngsi_attribute_name(&e->in, i, signals);
		const json_t *a = json_object_get(o, name), *v = json_object_get(a, "value");

		if (!v || json_is_null(v)) {
			missing = name;
			continue;
		}
		found++;
		if (!value_of(v, signals->signals[i].type, &s->data[i]))
			return fail(why, -EBADMSG, "the attribute '%.60s' is no %s", name,
				    signal_type_name(signals->signals[i].type));
		if (take_about(e, a, s, why))
			return -EBADMSG;
	}
	if (!found)
		return 0;
	if (missing)
		return fail(why, -EBADMSG, "the entity has no value of the attribute '%.60s'", missing);
	return 1;
}

int ngsi_entity_scan(const struct ngsi_entity *e, struct signal_list *signals,
		     const char *text, size_t len, struct sample *s, char why[NGSI_WHY])
{
	json_error_t error;
	json_t *o = json_loadb(text, len, 0, &error);
	const char *id = json_string_value(json_object_get(o, "id"));
	int ret;

	s->length = signals->count < s->capacity ? signals->count : s->capacity;
	s->flags = SAMPLE_HAS_DATA;
	sample_set_signals(s, signals);
	if (!o)
		ret = fail(why, -EPROTO, "the answer is no JSON: %.100s", error.text);
	else if (!id || strcmp(id, e->id))
		ret = fail(why, -EPROTO, "the answer is not the entity");
	else
		ret = scan_attributes(e, signals, o, s, why);
	json_decref(o);
	return ret;
}
