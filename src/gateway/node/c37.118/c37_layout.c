/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_layout.h. */
#include "gateway/node/c37.118/c37_layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "gateway/ws/utf8.h"

#define TEXT_MAX (2 * C37_NAME_MAX + 8)

struct c37_part {
	struct c37_block block;
	const struct c37_phasor_unit *phasors;
	const struct c37_analog_unit *analogs;
};

/* ---- names ---- */

/* A peer's name as text that logs and formats can take. */
static void name_text(char *to, struct c37_bytes name, const char *otherwise)
{
	struct ws_utf8 utf8 = { 0 };
	bool valid = ws_utf8_take(&utf8, name.at, name.len) && ws_utf8_is_whole(&utf8);
	size_t len = name.len;

	while (len && name.at[len - 1] == ' ')
		len--;
	if (!len) {
		strcpy(to, otherwise);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		uint8_t c = name.at[i];

		to[i] = (char)(c < ' ' || c == 0x7f || c == '"' || c == '\\' ||
					       (c >= 0x80 && !valid) ? '_' : c);
	}
	to[len] = '\0';
}

struct naming {
	struct signal_list *list;
	unsigned next;
	char prefix[C37_NAME_MAX + 2]; /* of the station, where there are several */
};

static int add_signal(struct naming *n, const char *name, const char *unit, enum signal_type type)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "%s%s", n->prefix, name);
	return signal_set(&n->list->signals[n->next++], text, unit, type);
}

static int add_named(struct naming *n, struct c37_station *s, const char *kind, unsigned i,
		     const char *unit, enum signal_type type)
{
	char otherwise[32], name[C37_NAME_MAX + 1];
	struct c37_bytes bytes = { 0 };

	snprintf(otherwise, sizeof(otherwise), "%s%u", kind, i);
	c37_name_next(s, &bytes);
	name_text(name, bytes, otherwise);
	return add_signal(n, name, unit, type);
}

static int name_station(struct naming *n, struct c37_station *s, bool status)
{
	int ret = status ? add_signal(n, "STAT", NULL, SIGNAL_INTEGER) : 0;

	for (unsigned i = 0; i < s->block.phasors && !ret; i++)
		ret = add_named(n, s, "phasor", i, c37_phasor_unit(s, i).current ? "A" : "V",
				SIGNAL_COMPLEX);
	if (!ret)
		ret = add_signal(n, "FREQ", "Hz", SIGNAL_FLOAT) ?:
		      add_signal(n, "DFREQ", "Hz/s", SIGNAL_FLOAT);
	for (unsigned i = 0; i < s->block.analogs && !ret; i++)
		ret = add_named(n, s, "analog", i, NULL, SIGNAL_FLOAT);
	for (unsigned i = 0; i < 16u * s->block.digitals && !ret; i++)
		ret = add_named(n, s, "digital", i, NULL, SIGNAL_BOOLEAN);
	return ret;
}

static int name_all(struct c37_layout *l, unsigned values)
{
	struct naming n = { .list = signal_list_alloc(values) };
	struct c37_config walk = l->config;
	struct c37_station s;
	int ret = n.list ? 0 : -ENOMEM;

	if (!ret && l->status)
		ret = add_signal(&n, "TIME_QUALITY", NULL, SIGNAL_INTEGER);
	for (unsigned i = 0; !ret && c37_station_next(&walk, &s); i++) {
		char otherwise[32];

		snprintf(otherwise, sizeof(otherwise), "station%u", i);
		if (l->config.stations > 1) {
			name_text(n.prefix, s.name, otherwise);
			strcat(n.prefix, ":");
		}
		ret = name_station(&n, &s, l->status);
	}
	if (ret) {
		signal_list_put(n.list);
		return ret;
	}
	l->signals = signal_list_intern_told(n.list);
	return 0;
}

/* ---- life ---- */

struct sums {
	unsigned phasors, analogs, values;
};

static struct sums sum_up(struct c37_layout *l)
{
	struct c37_config walk = l->config;
	struct sums sum = { .values = l->status };
	struct c37_station s;

	while (c37_station_next(&walk, &s)) {
		const struct c37_block *b = &s.block;

		l->data_len += c37_block_size(b);
		l->changes = (uint16_t)(l->changes + s.changes);
		sum.phasors += b->phasors;
		sum.analogs += b->analogs;
		sum.values += l->status + b->phasors + 2u + b->analogs + 16u * b->digitals;
	}
	return sum;
}

static void fill_parts(struct c37_layout *l)
{
	struct c37_config walk = l->config;
	struct c37_phasor_unit *phasor = l->phasors;
	struct c37_analog_unit *analog = l->analogs;
	struct c37_part *part = l->parts;
	struct c37_station s;

	for (; c37_station_next(&walk, &s); part++) {
		*part = (struct c37_part){ s.block, phasor, analog };
		for (unsigned i = 0; i < s.block.phasors; i++)
			*phasor++ = c37_phasor_unit(&s, i);
		for (unsigned i = 0; i < s.block.analogs; i++)
			*analog++ = c37_analog_unit(&s, i);
	}
}

int c37_layout_new(struct c37_layout **out, const struct c37_frame *f, bool status,
		   const char **why)
{
	struct c37_layout *l = calloc(1, sizeof(*l));
	struct c37_frame own = *f;
	struct sums sum;
	int ret = -ENOMEM;

	if (!l)
		return -ENOMEM;
	l->bytes = malloc(f->body.len + 1);
	if (!l->bytes)
		goto err;
	memcpy(l->bytes, f->body.at, f->body.len);
	own.body.at = l->bytes;
	l->len = f->body.len;
	l->type = f->type;
	l->idcode = f->idcode;
	l->status = status;
	*why = c37_config_decode(&own, &l->config);
	ret = *why ? -EPROTO : 0;
	if (ret)
		goto err;
	sum = sum_up(l);
	l->parts = calloc(l->config.stations, sizeof(*l->parts));
	l->phasors = calloc(sum.phasors + 1u, sizeof(*l->phasors));
	l->analogs = calloc(sum.analogs + 1u, sizeof(*l->analogs));
	ret = l->parts && l->phasors && l->analogs ? name_all(l, sum.values) : -ENOMEM;
	if (ret)
		goto err;
	fill_parts(l);
	*out = l;
	return 0;
err:
	c37_layout_free(l);
	return ret;
}

void c37_layout_free(struct c37_layout *l)
{
	if (!l)
		return;
	signal_list_put(l->signals);
	free(l->parts);
	free(l->phasors);
	free(l->analogs);
	free(l->bytes);
	free(l);
}

bool c37_layout_is(const struct c37_layout *l, const struct c37_frame *f)
{
	return l->type == f->type && l->idcode == f->idcode && l->len == f->body.len &&
	       !memcmp(l->bytes, f->body.at, l->len);
}

/* ---- samples ---- */

struct filling {
	const struct c37_room *to;
	unsigned next, left_out;
};

/* The place of the next value and the type that it shall have; NULL: there is no room. */
static union signal_data *place(struct filling *f, enum signal_type *type)
{
	const struct c37_room *to = f->to;

	if (f->next >= to->capacity || (to->want && f->next >= to->want_count)) {
		f->left_out += f->next >= to->capacity;
		f->next++;
		return NULL;
	}
	if (to->want)
		*type = to->want[f->next].type;
	return &to->data[f->next++];
}

static void put_complex(struct filling *f, const double z[2])
{
	enum signal_type type = SIGNAL_COMPLEX;
	union signal_data *d = place(f, &type);

	if (!d)
		return;
	d->bits = 0;
	if (type == SIGNAL_COMPLEX) {
		d->z.re = (float)z[0];
		d->z.im = (float)z[1];
	} else if (type == SIGNAL_FLOAT) {
		d->f = hypot(z[0], z[1]);
	} else {
		d->i = type == SIGNAL_BOOLEAN ? z[0] != 0 || z[1] != 0 :
						 signal_type_to_integer(hypot(z[0], z[1]));
	}
}

static void put_real(struct filling *f, double v, enum signal_type type)
{
	union signal_data *d = place(f, &type);

	if (!d)
		return;
	d->bits = 0;
	if (type == SIGNAL_COMPLEX)
		d->z.re = (float)v;
	else if (type == SIGNAL_FLOAT)
		d->f = v;
	else
		d->i = type == SIGNAL_BOOLEAN ? v != 0 : signal_type_to_integer(v);
}

static void put_part(struct filling *f, const struct c37_part *p, const struct c37_values *v,
		     bool status)
{
	if (status)
		put_real(f, v->stat, SIGNAL_INTEGER);
	for (unsigned i = 0; i < p->block.phasors; i++) {
		double z[2];

		c37_phasor(&p->block, v, i, &p->phasors[i], z);
		put_complex(f, z);
	}
	put_real(f, v->frequency_hz, SIGNAL_FLOAT);
	put_real(f, v->rocof_hz_s, SIGNAL_FLOAT);
	for (unsigned i = 0; i < p->block.analogs; i++)
		put_real(f, c37_analog(&p->block, v, i, &p->analogs[i]), SIGNAL_FLOAT);
	for (unsigned i = 0; i < 16u * p->block.digitals; i++)
		put_real(f, c37_digital(v, i / 16) >> i % 16 & 1, SIGNAL_BOOLEAN);
}

unsigned c37_layout_values(const struct c37_layout *l, const struct c37_frame *f,
			   struct c37_room *to)
{
	struct filling fill = { .to = to };
	struct c37_bytes rest = f->body;
	struct c37_values v;

	if (l->status)
		put_real(&fill, f->quality, SIGNAL_INTEGER);
	for (unsigned i = 0; i < l->config.stations; i++)
		if (!c37_data_next(&rest, &l->parts[i].block, &v))
			put_part(&fill, &l->parts[i], &v, l->status);
	to->count = fill.next - fill.left_out;
	if (to->want && to->count > to->want_count)
		to->count = to->want_count;
	return fill.left_out;
}

unsigned c37_layout_read(const struct c37_layout *l, const struct c37_frame *f,
			 const struct signal_list *want, struct sample *s)
{
	struct c37_room to = { .data = s->data, .capacity = s->capacity,
			       .want = want ? want->signals : NULL,
			       .want_count = want ? want->count : 0 };
	unsigned left_out = c37_layout_values(l, f, &to);

	s->length = to.count;
	return left_out;
}

struct c37_verdict c37_layout_judge(const struct c37_layout *l, const struct c37_frame *f)
{
	struct c37_bytes rest = f->body;
	struct c37_verdict verdict = { 0 };
	struct c37_values v;

	for (unsigned i = 0; i < l->config.stations; i++)
		if (!c37_data_next(&rest, &l->parts[i].block, &v)) {
			verdict.any |= v.stat;
			verdict.invalid |= v.stat & C37_STAT_ERROR;
		}
	return verdict;
}
