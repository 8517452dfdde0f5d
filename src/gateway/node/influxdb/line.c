/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples as lines of InfluxDB's line protocol. */
#define LOG_ROOM "gateway/influxdb"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/influxdb/influxdb.h"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/num.h"

/* Text of a datagram that passes every network in one packet. */
#define DATAGRAM 1400
/* Of the longest number with its mark. */
#define NUMBER_MAX 40

struct line {
	char *at, *end;
	bool full;
	unsigned left_out;  /* values of the sample */
};

static void put_bytes(struct line *l, const char *bytes, size_t len)
{
	if ((size_t)(l->end - l->at) < len) {
		l->full = true;
		return;
	}
	memcpy(l->at, bytes, len);
	l->at += len;
}

static void put(struct line *l, const char *text)
{
	put_bytes(l, text, strlen(text));
}

static bool is_special(char c)
{
	return c == ',' || c == '=' || c == ' ';
}

/* Names and values of tags, and names of fields. */
static void put_name(struct line *l, const char *name)
{
	for (; *name; name++) {
		if (is_special(*name))
			put_bytes(l, "\\", 1);
		put_bytes(l, name, 1);
	}
}

/* A backslash cannot be escaped: at the end or before a character with a meaning it would
 * take that meaning away. */
bool influx_name_is_good(const char *name)
{
	if (!*name)
		return false;
	for (; *name; name++)
		if (iscntrl((unsigned char)*name) ||
		    (*name == '\\' && (!name[1] || is_special(name[1]) || name[1] == '"')))
			return false;
	return true;
}

/* ---- what all lines begin with ---- */

/* The key is text of the protocol: "measurement,tag=value", escaped by who wrote it. */
static const char *fault_of_key(const char *key)
{
	char last = 0;

	if (!*key || *key == ',' || *key == '#')
		return "expected a measurement, and tags with commas between";
	for (const char *p = key; *p; p++) {
		if (iscntrl((unsigned char)*p))
			return "it holds a control character";
		if (*p == '\\' && p[1]) {
			last = *p++;
			continue;
		}
		if (*p == ' ')
			return "a space in it needs a backslash before it";
		last = *p;
	}
	if (key[strlen(key) - 1] == '\\' || last == ',')
		return "it ends too early";
	return NULL;
}

int influx_series_make(struct influx_node *x, struct config *c, json_t *cfg)
{
	const char *fault = fault_of_key(x->key), *name;
	size_t size = strlen(x->key) + 1;
	struct line l;
	json_t *value;

	if (fault) {
		config_fail(c, cfg, "key", "%s", fault);
		return -EINVAL;
	}
	if (x->tags && !json_is_null(x->tags) && !json_is_object(x->tags)) {
		config_fail(c, cfg, "tags", "expected a group of texts");
		return -EINVAL;
	}
	json_object_foreach(x->tags, name, value) {
		const char *text = json_string_value(value);

		if (!text || !influx_name_is_good(name) || !influx_name_is_good(text)) {
			config_fail(c, x->tags, name,
				    "a tag is a text that is not empty, without control characters, and without a backslash before a comma, space, equals sign or its end");
			return -EINVAL;
		}
		size += 2 * (strlen(name) + strlen(text)) + 2;
	}
	x->series = malloc(size);
	if (!x->series)
		return -ENOMEM;
	l = (struct line){ x->series, x->series + size, false, 0 };
	put(&l, x->key);
	json_object_foreach(x->tags, name, value) {
		put(&l, ",");
		put_name(&l, name);
		put(&l, "=");
		put_name(&l, json_string_value(value));
	}
	put_bytes(&l, "", 1);
	return l.full ? -ENOMEM : 0;
}

/* ---- samples ---- */

static void put_separator(struct line *l, unsigned *fields)
{
	put(l, (*fields)++ ? "," : " ");
}

/* A real number, or nothing: the database has no NaN and no infinity. */
static void put_real(struct line *l, unsigned *fields, const char *name, const char *part,
		     double value)
{
	char text[NUM_DOUBLE_MAX];

	if (!isfinite(value)) {
		l->left_out++;
		return;
	}
	put_separator(l, fields);
	put_name(l, name);
	put(l, part);
	put(l, "=");
	put_bytes(l, text, (size_t)(num_print_double(text, value) - text));
}

static void put_integer(struct line *l, unsigned *fields, const char *name, int64_t value)
{
	char text[NUM_INT_MAX];

	put_separator(l, fields);
	put_name(l, name);
	put(l, "=");
	put_bytes(l, text, (size_t)(num_print_i64(text, value) - text));
	put(l, "i");
}

static int put_value(struct influx_node *x, struct line *l, unsigned *fields, const char *name,
		     enum signal_type type, const union signal_data *v)
{
	if (!influx_name_is_good(name))
		return outside_unprintable(&x->outside, -EBADMSG,
				    "the line protocol cannot hold the name '%.60s'", name);
	switch (type) {
	case SIGNAL_INTEGER:
		put_integer(l, fields, name, v->i);
		break;
	case SIGNAL_BOOLEAN:
		put_separator(l, fields);
		put_name(l, name);
		put(l, v->i ? "=true" : "=false");
		break;
	case SIGNAL_COMPLEX:
		put_real(l, fields, name, "_re", (double)v->z.re);
		put_real(l, fields, name, "_im", (double)v->z.im);
		break;
	default:
		put_real(l, fields, name, "", v->f);
		break;
	}
	return 0;
}

/* Each sample has a time of its own: the server would give the same to many. */
static int put_time(struct influx_node *x, struct line *l, const struct sample *s)
{
	static const int64_t units[] = { 1, 1000, 1000000, 1000000000 };
	struct timespec t = s->flags & SAMPLE_HAS_ORIGIN ? s->origin :
			    s->flags & SAMPLE_HAS_RECEIVED ? s->received : clock_realtime();
	int64_t ns = sample_time_to_ns(t), unit = units[x->precision];
	char text[NUM_INT_MAX];

	/* The limits mean something else to the database. */
	if (ns > INT64_MAX - 2 || ns < INT64_MIN + 3)
		return outside_unprintable(&x->outside, -EBADMSG,
				    "the database has no such time: %lld s", (long long)t.tv_sec);
	ns = ns / unit - (ns % unit < 0);
	put(l, " ");
	put_bytes(l, text, (size_t)(num_print_i64(text, ns) - text));
	put(l, "\n");
	return 0;
}

static int put_sample(struct influx_node *x, struct line *l, const struct sample *s)
{
	const struct signal_list *signals = s->signals;
	unsigned fields = 0;
	char name[24];
	int ret = 0;

	put(l, x->series);
	for (unsigned i = 0; i < s->length && !ret && !l->full; i++) {
		bool known = signals && i < signals->count;

		if (!known)
			snprintf(name, sizeof(name), "signal%u", i);
		ret = put_value(x, l, &fields, known ? signals->signals[i].name : name,
				known ? signals->signals[i].type : SIGNAL_FLOAT, &s->data[i]);
	}
	if (ret)
		return ret;
	if (!fields && !l->full)
		return outside_unprintable(&x->outside, -EBADMSG, "a sample has no value that is a number");
	/* A number beyond the range keeps its bits. */
	if (x->sequence && s->flags & SAMPLE_HAS_SEQUENCE)
		put_integer(l, &fields, x->sequence, (int64_t)s->sequence);
	return put_time(x, l, s);
}

int influx_print(struct outside *o, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt)
{
	struct influx_node *x = influx_of(o);
	struct line l = { buf, buf + size, false, 0 };
	unsigned n;

	/* By HTTP, requests hold many messages; a line that the server refuses is then found, and
	 * lost alone. */
	for (n = 0; n < (x->transport == INFLUX_HTTP ? 1 : cnt); n++) {
		int ret;

		l.left_out = 0;
		ret = put_sample(x, &l, smps[n]);
		if (ret && !n)
			return ret;
		if (ret || l.full || (n && l.at - buf > DATAGRAM))
			break;
		node_figure_add(o->node, INFLUX_LEFT_OUT, l.left_out);
		*used = (size_t)(l.at - buf);
	}
	return (int)n;
}
