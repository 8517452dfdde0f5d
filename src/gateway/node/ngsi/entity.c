/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples become bodies of updates; see entity.h. */
#include "gateway/node/ngsi/entity.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gateway/sample/time.h"
#include "util/num.h"

#define TIME_MAX 64

struct text {
	char *at, *end;
	bool full;
};

static void put_bytes(struct text *t, const char *bytes, size_t len)
{
	if ((size_t)(t->end - t->at) < len) {
		t->full = true;
		return;
	}
	memcpy(t->at, bytes, len);
	t->at += len;
}

static void put(struct text *t, const char *text)
{
	put_bytes(t, text, strlen(text));
}

static void put_string(struct text *t, const char *text)
{
	char escape[8];

	put(t, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			put(t, "\\");
		if ((unsigned char)*text >= ' ') {
			put_bytes(t, text, 1);
			continue;
		}
		snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)*text);
		put(t, escape);
	}
	put(t, "\"");
}

static void put_real(struct text *t, double value)
{
	char text[NUM_DOUBLE_MAX];

	put_bytes(t, text, (size_t)(num_print_double(text, value) - text));
}

static void put_integer(struct text *t, int64_t value)
{
	char text[NUM_INT_MAX];

	put_bytes(t, text, (size_t)(num_print_i64(text, value) - text));
}

static bool is_number(enum signal_type type, const union signal_data *v)
{
	return type == SIGNAL_FLOAT	? isfinite(v->f) :
	       type == SIGNAL_COMPLEX ? isfinite(v->z.re) && isfinite(v->z.im) :
					true;
}

static void put_value(struct text *t, enum signal_type type, const union signal_data *v)
{
	switch (type) {
	case SIGNAL_INTEGER:
		put_integer(t, v->i);
		break;
	case SIGNAL_BOOLEAN:
		put(t, v->i ? "true" : "false");
		break;
	case SIGNAL_COMPLEX:
		put(t, "{\"real\":");
		put_real(t, (double)v->z.re);
		put(t, ",\"imag\":");
		put_real(t, (double)v->z.im);
		put(t, "}");
		break;
	default:
		put_real(t, v->f);
		break;
	}
}

static const char *type_name(enum signal_type type)
{
	static const char *const names[] = {
		[SIGNAL_FLOAT] = "Number", [SIGNAL_INTEGER] = "Integer",
		[SIGNAL_BOOLEAN] = "Boolean", [SIGNAL_COMPLEX] = "StructuredValue",
	};

	return names[type];
}

/* Brokers take microseconds, and some refuse more digits. */
static int print_time(const struct sample *s, char text[TIME_MAX], char why[NGSI_WHY])
{
	struct tm tm;
	size_t len;

	text[0] = '\0';
	if (!(s->flags & SAMPLE_HAS_ORIGIN))
		return 0;
	if (!gmtime_r(&s->origin.tv_sec, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
		snprintf(why, NGSI_WHY, "a time needs a year of four digits: %lld s",
			 (long long)s->origin.tv_sec);
		return -EBADMSG;
	}
	len = (size_t)snprintf(text, TIME_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900,
			       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
	snprintf(text + len, TIME_MAX - len, ".%06uZ", sample_time_nsec(s->origin) / 1000);
	return 0;
}

/* What goes with each attribute of NGSI-v2. */
static void put_metadata(struct text *t, const struct ngsi_entity *e, const struct sample *s,
			 const char *time, const char *more)
{
	const char *comma = "";

	put(t, ",\"metadata\":{");
	if (e->timestamp && *time) {
		put(t, "\"timestamp\":{\"type\":\"DateTime\",\"value\":");
		put_string(t, time);
		put(t, "}");
		comma = ",";
	}
	if (e->sequence && s->flags & SAMPLE_HAS_SEQUENCE) {
		put(t, comma);
		put(t, "\"sequence\":{\"type\":\"Integer\",\"value\":");
		put_integer(t, (int64_t)s->sequence);
		put(t, "}");
		comma = ",";
	}
	if (more)
		put(t, more + (*comma ? 0 : 1));
	put(t, "}");
}

/* The same of NGSI-LD. */
static void put_properties(struct text *t, const struct ngsi_entity *e, const struct sample *s,
			   const char *time, const char *more)
{
	if (e->timestamp && *time) {
		put(t, ",\"observedAt\":");
		put_string(t, time);
	}
	if (e->sequence && s->flags & SAMPLE_HAS_SEQUENCE) {
		put(t, ",\"sequence\":{\"type\":\"Property\",\"value\":");
		put_integer(t, (int64_t)s->sequence);
		put(t, "}");
	}
	if (more)
		put(t, more);
}

static void put_attribute(struct text *t, const struct ngsi_entity *e, const struct sample *s,
			  const char *time, unsigned i, enum signal_type type)
{
	const struct ngsi_attribute *a = i < e->out.count ? &e->out.list[i] : NULL;
	const char *name = a && a->type ? a->type : type_name(type);
	bool quoted = type != SIGNAL_COMPLEX && !e->ld && !strcmp(name, "Text");

	put(t, "{\"type\":");
	put_string(t, e->ld ? "Property" : name);
	put(t, quoted ? ",\"value\":\"" : ",\"value\":");
	put_value(t, type, &s->data[i]);
	put(t, quoted ? "\"" : "");
	if (e->ld)
		put_properties(t, e, s, time, a ? a->metadatas : NULL);
	else
		put_metadata(t, e, s, time, a ? a->metadatas : NULL);
	put(t, "}");
}

int ngsi_entity_print(const struct ngsi_entity *e, const struct signal_list *signals,
		      const struct sample *s, char *buf, size_t size, size_t *used,
		      unsigned *left_out, char why[NGSI_WHY])
{
	struct text t = { buf, buf + size, false };
	unsigned put_count = 0, left = 0;
	char name[24], time[TIME_MAX];

	if (print_time(s, time, why))
		return -EBADMSG;
	put(&t, "{");
	for (unsigned i = 0; i < s->length && !t.full; i++) {
		bool known = s->signals && i < s->signals->count;
		enum signal_type type = known ? s->signals->signals[i].type : SIGNAL_FLOAT;
		const char *given = ngsi_attribute_name(&e->out, i, signals ?: s->signals);

		if (!is_number(type, &s->data[i])) {
			left++;
			continue;
		}
		snprintf(name, sizeof(name), "signal%u", i);
		put(&t, put_count++ ? "," : "");
		put_string(&t, given ?: name);
		put(&t, ":");
		put_attribute(&t, e, s, time, i, type);
	}
	put(&t, "}");
	if (t.full)
		return 0;
	if (!put_count) {
		snprintf(why, NGSI_WHY, "a sample has no value that is a number");
		return -EBADMSG;
	}
	*left_out += left;
	*used = (size_t)(t.at - buf);
	return 1;
}

size_t ngsi_entity_create(const struct ngsi_entity *e, char *buf, size_t size)
{
	struct text t = { buf, buf + size, false };

	put(&t, "{\"id\":");
	put_string(&t, e->id);
	put(&t, ",\"type\":");
	put_string(&t, e->type);
	put(&t, "}");
	return t.full ? size : (size_t)(t.at - buf);
}
