/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of frames; see c37.h. Each length and number of a peer is compared with what is there. */
#include "wire/grid/c37.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "wire/bytes.h"

#define NSEC INT64_C(1000000000)
/* How many checks that fail may begin within the length of the first one. */
#define RECHECKS 8

uint16_t c37_crc(const uint8_t *data, size_t len)
{
	uint16_t crc = 0xffff;

	/* The steps of the polynomial for one byte in closed form: no table. */
	for (size_t i = 0; i < len; i++) {
		uint16_t x = (uint16_t)((crc >> 8) ^ data[i]);

		x ^= (uint16_t)(x >> 4);
		crc = (uint16_t)(crc << 8 ^ x << 12 ^ x << 5 ^ x);
	}
	return crc;
}

/* The next byte that may begin a frame. */
static int refuse(const uint8_t *data, size_t len, size_t from, size_t *skip, const char **why,
		  const char *text)
{
	const uint8_t *next = from < len ? memchr(data + from, C37_SYNC, len - from) : NULL;

	*skip = next ? (size_t)(next - data) : len;
	*why = text;
	return -EPROTO;
}

int c37_next(const uint8_t *data, size_t len, struct c37_frame *f, size_t *skip,
	     const char **why)
{
	size_t size;

	if (len && data[0] != C37_SYNC)
		return refuse(data, len, 1, skip, why, "no frame begins with these bytes");
	if (len < 2)
		return 0;
	if (data[1] & 0x80 || data[1] >> 4 >= C37_TYPES)
		return refuse(data, len, 1, skip, why, "there is no such type of frame");
	if ((data[1] & 15) != C37_VERSION_2005 && (data[1] & 15) != C37_VERSION_2011)
		return refuse(data, len, 1, skip, why, "its version is not 1 (2005) or 2 (2011)");
	if (len < 4)
		return 0;
	size = get_16(data + 2);
	if (size < C37_FRAME_MIN)
		return refuse(data, len, 1, skip, why, "its length is less than that of a frame");
	if (len < size)
		return 0;
	if (c37_crc(data, size - 2) != get_16(data + size - 2))
		/* Either a byte of it is wrong, or its length. A part of the length is skipped even
		 * then: each byte is checked a few times at most, whatever a peer sends. */
		return refuse(data, len,
			      len == size || data[size] == C37_SYNC ? size : size / RECHECKS, skip,
			      why, "its check (CRC) is wrong");
	*f = (struct c37_frame){
		.type = (enum c37_type)(data[1] >> 4),
		.version = data[1] & 15,
		.idcode = get_16(data + 4),
		.soc = get_32(data + 6),
		.quality = data[10],
		.fraction = get_32(data + 10) & 0xffffff,
		.body = { data + C37_HEADER_SIZE, size - C37_FRAME_MIN },
	};
	return (int)size;
}

uint16_t c37_command_of(const struct c37_frame *f)
{
	return f->type == C37_COMMAND && f->body.len >= 2 ? get_16(f->body.at) : 0;
}

int64_t c37_time_ns(const struct c37_frame *f, uint32_t time_base)
{
	if (f->fraction > time_base)
		return -1;
	return f->soc * NSEC + (f->fraction * NSEC + time_base / 2) / time_base;
}

/* ---- configurations ---- */

/* Takes `len` bytes off `from`; NULL: there are fewer. */
static const uint8_t *take(struct c37_bytes *from, size_t len)
{
	const uint8_t *at = from->at;

	if (from->len < len)
		return NULL;
	from->at += len;
	from->len -= len;
	return at;
}

static float get_float(const uint8_t *at)
{
	uint32_t bits = get_32(at);
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static bool take_name(struct c37_bytes *from, bool cfg3, struct c37_bytes *name)
{
	const uint8_t *at;
	size_t len = C37_NAME_SIZE;

	if (cfg3) {
		at = take(from, 1);
		if (!at)
			return false;
		len = *at;
	}
	at = take(from, len);
	if (!at)
		return false;
	while (!cfg3 && len && (at[len - 1] == ' ' || !at[len - 1]))
		len--;
	*name = (struct c37_bytes){ at, len };
	return true;
}

/* What CFG-3 says of a station behind the units. */
static bool take_place(struct c37_bytes *rest, struct c37_station *s)
{
	const uint8_t *at = take(rest, 3 * 4 + 1 + 2 * 4);

	if (!at)
		return false;
	s->latitude = get_float(at);
	s->longitude = get_float(at + 4);
	s->elevation_m = get_float(at + 8);
	s->service_class = (char)at[12];
	s->window_us = (int32_t)get_32(at + 13);
	s->delay_us = (int32_t)get_32(at + 17);
	return true;
}

static bool take_channels(struct c37_bytes *rest, struct c37_station *s)
{
	const struct c37_block *b = &s->block;
	size_t count = (size_t)b->phasors + b->analogs + 16u * b->digitals;
	struct c37_bytes name;

	s->names.at = rest->at;
	for (size_t i = 0; i < count; i++)
		if (!take_name(rest, s->cfg3, &name))
			return false;
	s->names.len = (size_t)(rest->at - s->names.at);
	s->phasor_units = take(rest, (s->cfg3 ? 12u : 4u) * b->phasors);
	s->analog_units = s->phasor_units ? take(rest, (s->cfg3 ? 8u : 4u) * b->analogs) : NULL;
	s->digital_units = s->analog_units ? take(rest, 4u * b->digitals) : NULL;
	return s->digital_units;
}

static const char *take_station(struct c37_bytes *rest, bool cfg3, struct c37_station *s)
{
	static const char shorter[] = "the frame ends within a station";
	struct c37_block *b = &s->block;
	const uint8_t *at;

	*s = (struct c37_station){ .cfg3 = cfg3 };
	if (!take_name(rest, cfg3, &s->name))
		return shorter;
	at = take(rest, cfg3 ? 10 + C37_GUID_SIZE : 10);
	if (!at)
		return shorter;
	s->idcode = get_16(at);
	if (cfg3)
		memcpy(s->guid, at + 2, C37_GUID_SIZE);
	at += cfg3 ? 2 + C37_GUID_SIZE : 2;
	b->format = get_16(at);
	b->phasors = get_16(at + 2);
	b->analogs = get_16(at + 4);
	b->digitals = get_16(at + 6);
	if (!take_channels(rest, s))
		return "a station has more channels than the frame";
	if (cfg3 && !take_place(rest, s))
		return shorter;
	at = take(rest, 4);
	if (!at)
		return shorter;
	b->nominal_hz = get_16(at) & 1 ? 50 : 60;
	s->changes = get_16(at + 2);
	return NULL;
}

const char *c37_config_decode(const struct c37_frame *f, struct c37_config *c)
{
	struct c37_bytes rest = f->body;
	struct c37_station s;
	const uint8_t *at;
	const char *why;
	size_t size = 0;

	*c = (struct c37_config){ .cfg3 = f->type == C37_CFG3 };
	at = take(&rest, c->cfg3 ? 8 : 6);
	if (!at || (f->type != C37_CFG1 && f->type != C37_CFG2 && f->type != C37_CFG3))
		return "there is no configuration in the frame";
	if (c->cfg3) {
		if (get_16(at))
			return "it is one of several frames that make a configuration (CONT_IDX)";
		at += 2;
	}
	c->time_base = get_32(at) & C37_TIME_BASE_MAX;
	c->stations = get_16(at + 4);
	if (!c->time_base)
		return "its TIME_BASE is 0";
	if (!c->stations)
		return "it has no station";
	c->rest = rest;
	for (unsigned i = 0; i < c->stations; i++) {
		why = take_station(&rest, c->cfg3, &s);
		if (why)
			return why;
		size += c37_block_size(&s.block);
	}
	c->rest.len -= rest.len;
	at = take(&rest, 2);
	if (!at)
		return "the frame ends before the data rate";
	c->rate = (int16_t)get_16(at);
	if (rest.len)
		return "there are bytes behind the data rate";
	return size > C37_FRAME_MAX - C37_FRAME_MIN ? "no data frame is as long as its values" : NULL;
}

bool c37_station_next(struct c37_config *c, struct c37_station *s)
{
	return c->rest.len && !take_station(&c->rest, c->cfg3, s);
}

bool c37_name_next(struct c37_station *s, struct c37_bytes *name)
{
	return s->names.len && take_name(&s->names, s->cfg3, name);
}

struct c37_phasor_unit c37_phasor_unit(const struct c37_station *s, unsigned i)
{
	const uint8_t *at = s->phasor_units + (s->cfg3 ? 12u : 4u) * i;

	if (!s->cfg3)
		return (struct c37_phasor_unit){
			.current = at[0],
			.scale = (get_32(at) & 0xffffff) * 1e-5,
		};
	return (struct c37_phasor_unit){
		.current = at[2] & 8,
		.component = at[2] & 7,
		.modified = get_16(at),
		.scale = get_float(at + 4),
		.angle = get_float(at + 8),
	};
}

struct c37_analog_unit c37_analog_unit(const struct c37_station *s, unsigned i)
{
	const uint8_t *at = s->analog_units + (s->cfg3 ? 8u : 4u) * i;
	int32_t scale;

	if (s->cfg3)
		return (struct c37_analog_unit){
			.scale = get_float(at),
			.offset = get_float(at + 4),
		};
	scale = (int32_t)(get_32(at) << 8) >> 8;
	return (struct c37_analog_unit){ .kind = at[0], .scale = scale ? scale : 1 };
}

struct c37_digital_unit c37_digital_unit(const struct c37_station *s, unsigned i)
{
	return (struct c37_digital_unit){ get_16(s->digital_units + 4u * i),
					  get_16(s->digital_units + 4u * i + 2) };
}

/* ---- data ---- */

static size_t phasor_size(const struct c37_block *b)
{
	return b->format & C37_FLOAT_PHASORS ? 8 : 4;
}

static size_t analog_size(const struct c37_block *b)
{
	return b->format & C37_FLOAT_ANALOGS ? 4 : 2;
}

static size_t frequency_size(const struct c37_block *b)
{
	return b->format & C37_FLOAT_FREQUENCY ? 8 : 4;
}

size_t c37_block_size(const struct c37_block *b)
{
	return 2 + phasor_size(b) * b->phasors + frequency_size(b) + analog_size(b) * b->analogs +
	       2u * b->digitals;
}

/* An integer that says that there is no value is the smallest one. */
static double get_integer(const uint8_t *at)
{
	int16_t v = (int16_t)get_16(at);

	return v == INT16_MIN ? (double)NAN : v;
}

int c37_data_next(struct c37_bytes *rest, const struct c37_block *b, struct c37_values *v)
{
	const uint8_t *at = take(rest, c37_block_size(b)), *frequency;

	if (!at)
		return -EPROTO;
	v->stat = get_16(at);
	v->phasors = at + 2;
	frequency = v->phasors + phasor_size(b) * b->phasors;
	v->analogs = frequency + frequency_size(b);
	v->digitals = v->analogs + analog_size(b) * b->analogs;
	if (b->format & C37_FLOAT_FREQUENCY) {
		v->frequency_hz = get_float(frequency);
		v->rocof_hz_s = get_float(frequency + 4);
	} else {
		v->frequency_hz = b->nominal_hz + get_integer(frequency) / 1000;
		v->rocof_hz_s = get_integer(frequency + 2) / 100;
	}
	return 0;
}

void c37_phasor(const struct c37_block *b, const struct c37_values *v, unsigned i,
		const struct c37_phasor_unit *u, double out[2])
{
	const uint8_t *at = v->phasors + phasor_size(b) * i;
	bool floats = b->format & C37_FLOAT_PHASORS, polar = b->format & C37_POLAR;
	double x, y, scale = floats ? 1 : u->scale, turn = floats ? 0 : u->angle;

	if (floats) {
		x = get_float(at);
		y = get_float(at + 4);
	} else {
		/* A magnitude has no sign. */
		x = polar ? get_16(at) : get_integer(at);
		y = get_integer(at + 2) / (polar ? 1e4 : 1);
	}
	if (polar) {
		double magnitude = x, angle = y;

		x = magnitude * cos(angle);
		y = magnitude * sin(angle);
	}
	x *= scale;
	y *= scale;
	if (turn != 0) {
		double c = cos(turn), s = sin(turn), re = x * c + y * s;

		y = y * c - x * s;
		x = re;
	}
	out[0] = x;
	out[1] = y;
}

double c37_analog(const struct c37_block *b, const struct c37_values *v, unsigned i,
		  const struct c37_analog_unit *u)
{
	const uint8_t *at = v->analogs + analog_size(b) * i;

	if (b->format & C37_FLOAT_ANALOGS)
		return get_float(at);
	return get_integer(at) * u->scale + u->offset;
}

uint16_t c37_digital(const struct c37_values *v, unsigned i)
{
	return get_16(v->digitals + 2u * i);
}
