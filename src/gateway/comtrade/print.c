/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a configuration file. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/comtrade/fields.h"
#include "util/num.h"

struct output {
	char *buf;
	size_t size, used;
	bool latin1;
};

static void put_bytes(struct output *o, const char *text, size_t len)
{
	if (o->used < o->size) {
		size_t room = o->size - o->used;

		memcpy(o->buf + o->used, text, len < room ? len : room);
	}
	o->used += len;
}

static void __attribute__((format(printf, 2, 3)))
put(struct output *o, const char *fmt, ...)
{
	char text[128];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	put_bytes(o, text, (size_t)n < sizeof(text) ? (size_t)n :
						      sizeof(text) - 1);
}

static void put_real(struct output *o, double v)
{
	char text[NUM_DOUBLE_MAX];
	size_t len = (size_t)(num_print_double(text, v) - text);

	/* Whole numbers without a point: older readers want integers. */
	if (len > 2 && !memcmp(text + len - 2, ".0", 2))
		len -= 2;
	put_bytes(o, text, len);
}

/* A text of at most `most` bytes without what separates fields and lines. */
static void put_text(struct output *o, const char *text, size_t most)
{
	char copy[132];
	size_t len;

	snprintf(copy, sizeof(copy), "%s", text);
	/* Not in the middle of a letter. */
	len = strlen(copy);
	while (len > 0 && !utf8_is_valid(copy, len))
		copy[--len] = '\0';
	if (o->latin1)
		utf8_to_latin1(copy);
	len = strlen(copy);
	if (len > most)
		for (len = most; !o->latin1 && len > 0 &&
				 (copy[len] & 0xc0) == 0x80;)
			len--;
	for (size_t i = 0; i < len; i++)
		if (copy[i] == ',' || (unsigned char)copy[i] < 0x20)
			copy[i] = copy[i] == ',' ? ';' : ' ';
	put_bytes(o, copy, len);
}

static void put_analog(struct output *o, unsigned number,
		       const struct comtrade_analog *a)
{
	const double reals[] = { a->a, a->b, a->skew_us, a->min, a->max,
				 a->primary, a->secondary };

	put(o, "%u,", number);
	put_text(o, a->name, 128);
	put(o, ",");
	put_text(o, a->phase, 2);
	put(o, ",");
	put_text(o, a->component, 64);
	put(o, ",");
	put_text(o, a->unit, 32);
	for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++) {
		put(o, ",");
		put_real(o, reals[i]);
	}
	put(o, ",%c\r\n", a->side ? a->side : 'P');
}

static void put_digital(struct output *o, unsigned number,
			const struct comtrade_digital *d)
{
	put(o, "%u,", number);
	put_text(o, d->name, 128);
	put(o, ",");
	put_text(o, d->phase, 2);
	put(o, ",");
	put_text(o, d->component, 64);
	put(o, ",%d\r\n", d->normal);
}

static void put_rates(struct output *o, const struct comtrade_cfg *c)
{
	bool none = c->rate_count == 1 && c->rates[0].hz == 0;

	put_real(o, c->line_hz);
	put(o, "\r\n%u\r\n", none ? 0 : c->rate_count);
	for (unsigned i = 0; i < c->rate_count; i++) {
		put_real(o, c->rates[i].hz);
		put(o, ",%" PRIu64 "\r\n", c->rates[i].end);
	}
}

static void put_zone(struct output *o, const struct comtrade_cfg *c)
{
	int32_t minutes = abs(c->zone_s) / 60;

	if (!c->has_zone) {
		put(o, "x,x\r\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		put(o, "%s%d", c->zone_s < 0 ? "-" : c->zone_s > 0 ? "+" : "",
		    minutes / 60);
		if (minutes % 60)
			put(o, "h%02d", minutes % 60);
		put(o, i == 0 ? "," : "\r\n");
	}
}

size_t comtrade_cfg_print(const struct comtrade_cfg *c, char *buf, size_t size)
{
	struct output o = { buf, size, 0, c->revision < 2013 };
	char time[40];

	put_text(&o, c->station, 64);
	put(&o, ",");
	put_text(&o, c->device, 64);
	put(&o, ",%u\r\n%u,%uA,%uD\r\n", c->revision, comtrade_cfg_values(c),
	    c->analog_count, c->digital_count);
	for (unsigned i = 0; i < c->analog_count; i++)
		put_analog(&o, i + 1, &c->analog[i]);
	for (unsigned i = 0; i < c->digital_count; i++)
		put_digital(&o, i + 1, &c->digital[i]);
	put_rates(&o, c);
	comtrade_time_print(time, &c->start);
	put(&o, "%s\r\n", time);
	comtrade_time_print(time, &c->trigger);
	put(&o, "%s\r\n%s\r\n", time, comtrade_data_name(c->data));
	put_real(&o, c->time_multiplier);
	put(&o, "\r\n");
	if (c->revision >= 2013) {
		put_zone(&o, c);
		put(&o, "%s,%s\r\n", c->quality[0] ? c->quality : "F",
		    c->leap[0] ? c->leap : "3");
	}
	return o.used;
}
