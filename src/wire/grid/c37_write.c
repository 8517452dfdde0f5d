/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing of frames; see c37.h. */
#include "wire/grid/c37.h"

#include <math.h>
#include <string.h>

#include "wire/bytes.h"

static uint8_t *room(struct c37_out *out, size_t len)
{
	uint8_t *at = out->at + out->used;

	if (out->full || out->size - out->used < len) {
		out->full = true;
		return NULL;
	}
	out->used += len;
	return at;
}

void c37_put_bytes(struct c37_out *out, const void *data, size_t len)
{
	uint8_t *at = room(out, len);

	if (at && len)
		memcpy(at, data, len);
}

void c37_put_16(struct c37_out *out, uint16_t v)
{
	uint8_t *at = room(out, 2);

	if (at)
		put_16(at, v);
}

void c37_put_32(struct c37_out *out, uint32_t v)
{
	uint8_t *at = room(out, 4);

	if (at)
		put_32(at, v);
}

static void put_float(struct c37_out *out, double value)
{
	float v = (float)value;
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	c37_put_32(out, bits);
}

/* What has no value is the smallest integer. */
static void put_integer(struct c37_out *out, double v)
{
	int16_t to = INT16_MIN;

	if (!isnan(v))
		to = (int16_t)lrint(fmin(fmax(v, -INT16_MAX), INT16_MAX));
	c37_put_16(out, (uint16_t)to);
}

void c37_begin(struct c37_out *out, uint8_t *buffer, size_t size, const struct c37_frame *f)
{
	*out = (struct c37_out){ .at = buffer, .size = size };
	c37_put_16(out, (uint16_t)(C37_SYNC << 8 | f->type << 4 | f->version));
	c37_put_16(out, 0);
	c37_put_16(out, f->idcode);
	c37_put_32(out, f->soc);
	c37_put_32(out, (uint32_t)f->quality << 24 | (f->fraction & 0xffffff));
}

size_t c37_end(struct c37_out *out)
{
	if (out->full || out->used + 2 > out->size || out->used + 2 > C37_FRAME_MAX)
		return 0;
	put_16(out->at + 2, (uint16_t)(out->used + 2));
	c37_put_16(out, c37_crc(out->at, out->used));
	return out->used;
}

size_t c37_encode_command(uint8_t *buffer, size_t size, const struct c37_frame *f,
			  uint16_t command)
{
	struct c37_frame head = *f;
	struct c37_out out;

	head.type = C37_COMMAND;
	c37_begin(&out, buffer, size, &head);
	c37_put_16(&out, command);
	return c37_end(&out);
}

/* ---- configurations ---- */

void c37_put_config(struct c37_out *out, const struct c37_config *c)
{
	if (c->cfg3)
		c37_put_16(out, 0);
	c37_put_32(out, c->time_base);
	c37_put_16(out, (uint16_t)c->stations);
}

void c37_put_name(struct c37_out *out, bool cfg3, struct c37_bytes name)
{
	uint8_t text[C37_NAME_SIZE], len = (uint8_t)(name.len < C37_NAME_MAX ? name.len : C37_NAME_MAX);

	if (cfg3) {
		c37_put_bytes(out, &len, 1);
		c37_put_bytes(out, name.at, len);
		return;
	}
	memset(text, ' ', sizeof(text));
	if (name.len)
		memcpy(text, name.at, name.len < sizeof(text) ? name.len : sizeof(text));
	c37_put_bytes(out, text, sizeof(text));
}

void c37_put_station(struct c37_out *out, const struct c37_station *s)
{
	c37_put_name(out, s->cfg3, s->name);
	c37_put_16(out, s->idcode);
	if (s->cfg3)
		c37_put_bytes(out, s->guid, C37_GUID_SIZE);
	c37_put_16(out, s->block.format);
	c37_put_16(out, s->block.phasors);
	c37_put_16(out, s->block.analogs);
	c37_put_16(out, s->block.digitals);
}

/* 24 bits of the scale of an integer. */
static uint32_t integer_scale(double v, double min, double max)
{
	return isnan(v) ? 0 : (uint32_t)lrint(fmin(fmax(v, min), max)) & 0xffffff;
}

void c37_put_phasor_unit(struct c37_out *out, bool cfg3, const struct c37_phasor_unit *u)
{
	if (!cfg3) {
		c37_put_32(out, (uint32_t)u->current << 24 |
					integer_scale(u->scale * 1e5, 0, 0xffffff));
		return;
	}
	c37_put_16(out, u->modified);
	c37_put_16(out, (uint16_t)(((u->current ? 8 : 0) | (u->component & 7)) << 8));
	put_float(out, u->scale);
	put_float(out, u->angle);
}

void c37_put_analog_unit(struct c37_out *out, bool cfg3, const struct c37_analog_unit *u)
{
	if (!cfg3) {
		c37_put_32(out, (uint32_t)u->kind << 24 |
					integer_scale(u->scale, -0x800000, 0x7fffff));
		return;
	}
	put_float(out, u->scale);
	put_float(out, u->offset);
}

void c37_put_digital_unit(struct c37_out *out, const struct c37_digital_unit *u)
{
	c37_put_16(out, u->normal);
	c37_put_16(out, u->valid);
}

void c37_put_station_end(struct c37_out *out, const struct c37_station *s)
{
	if (s->cfg3) {
		put_float(out, s->latitude);
		put_float(out, s->longitude);
		put_float(out, s->elevation_m);
		c37_put_bytes(out, &s->service_class, 1);
		c37_put_32(out, (uint32_t)s->window_us);
		c37_put_32(out, (uint32_t)s->delay_us);
	}
	c37_put_16(out, s->block.nominal_hz == 50);
	c37_put_16(out, s->changes);
}

void c37_put_rate(struct c37_out *out, int16_t rate)
{
	c37_put_16(out, (uint16_t)rate);
}

/* ---- data ---- */

void c37_put_phasor(struct c37_out *out, const struct c37_block *b,
		    const struct c37_phasor_unit *u, const double v[2])
{
	bool floats = b->format & C37_FLOAT_PHASORS, polar = b->format & C37_POLAR;
	double scale = floats || !(u->scale > 0) ? 1 : u->scale;
	double x = v[0] / scale, y = v[1] / scale;

	if (!floats && u->angle != 0) {
		double c = cos(u->angle), s = sin(u->angle), re = x * c - y * s;

		y = x * s + y * c;
		x = re;
	}
	if (polar) {
		double magnitude = hypot(x, y), angle = atan2(y, x);

		x = magnitude;
		y = floats ? angle : angle * 1e4;
	}
	if (floats) {
		put_float(out, x);
		put_float(out, y);
	} else if (polar && !isnan(x)) {
		c37_put_16(out, (uint16_t)lrint(fmin(x, UINT16_MAX)));
		put_integer(out, y);
	} else {
		put_integer(out, x);
		put_integer(out, y);
	}
}

void c37_put_frequency(struct c37_out *out, const struct c37_block *b, double frequency_hz,
		       double rocof_hz_s)
{
	if (b->format & C37_FLOAT_FREQUENCY) {
		put_float(out, frequency_hz);
		put_float(out, rocof_hz_s);
	} else {
		put_integer(out, (frequency_hz - b->nominal_hz) * 1000);
		put_integer(out, rocof_hz_s * 100);
	}
}

void c37_put_analog(struct c37_out *out, const struct c37_block *b,
		    const struct c37_analog_unit *u, double v)
{
	if (b->format & C37_FLOAT_ANALOGS)
		put_float(out, v);
	else
		put_integer(out, (v - u->offset) / (u->scale != 0 ? u->scale : 1));
}
