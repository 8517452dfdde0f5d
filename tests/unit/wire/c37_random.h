/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random configurations of C37.118 and data frames for them, written by the encoder, and frames
 * written again from what the decoder says of them.
 */
#ifndef TESTS_UNIT_WIRE_C37_RANDOM_H
#define TESTS_UNIT_WIRE_C37_RANDOM_H

#include <math.h>
#include <string.h>

#include "util/prng.h"
#include "wire/grid/c37.h"

/* What a frame of Ethernet holds beside the headers of IP and UDP. */
#define C37_RANDOM_MAX 1400

static inline struct c37_bytes c37_random_name(struct prng *p, char to[C37_NAME_MAX], bool cfg3)
{
	size_t len = prng_below(p, cfg3 ? 24 : C37_NAME_SIZE + 1);

	for (size_t i = 0; i < len; i++)
		to[i] = (char)('a' + prng_below(p, 26));
	return (struct c37_bytes){ (const uint8_t *)to, len };
}

static inline void c37_random_station(struct prng *p, struct c37_out *out, bool cfg3)
{
	char text[C37_NAME_MAX];
	struct c37_station s = {
		.cfg3 = cfg3,
		.idcode = (uint16_t)prng_next(p),
		.block = { .format = (uint16_t)prng_below(p, 16),
			   .phasors = (uint16_t)prng_below(p, 5),
			   .analogs = (uint16_t)prng_below(p, 4),
			   .digitals = (uint16_t)prng_below(p, 2),
			   .nominal_hz = prng_below(p, 2) ? 50 : 60 },
		.changes = (uint16_t)prng_next(p),
		.latitude = (float)prng_below(p, 90), .longitude = INFINITY, .elevation_m = INFINITY,
		.service_class = prng_below(p, 2) ? 'M' : 'P',
		.window_us = (int32_t)prng_below(p, 100000), .delay_us = (int32_t)prng_below(p, 1000),
	};
	unsigned names = s.block.phasors + s.block.analogs + 16u * s.block.digitals;

	s.name = c37_random_name(p, text, cfg3);
	for (unsigned i = 0; i < C37_GUID_SIZE; i++)
		s.guid[i] = (uint8_t)prng_next(p);
	c37_put_station(out, &s);
	for (unsigned i = 0; i < names; i++)
		c37_put_name(out, cfg3, c37_random_name(p, text, cfg3));
	for (unsigned i = 0; i < s.block.phasors; i++) {
		struct c37_phasor_unit u = { .current = prng_below(p, 2),
			.component = cfg3 ? (uint8_t)prng_below(p, 3) : 0,
			.scale = (double)(1 + prng_below(p, 100000)) * (cfg3 ? 0x1p-10 : 1e-5),
			.angle = cfg3 ? (double)prng_below(p, 3) * 0.5 : 0 };

		c37_put_phasor_unit(out, cfg3, &u);
	}
	for (unsigned i = 0; i < s.block.analogs; i++) {
		struct c37_analog_unit u = { .kind = cfg3 ? 0 : (uint8_t)prng_below(p, 3),
			.scale = 1 + (double)prng_below(p, 1000),
			.offset = cfg3 ? (double)prng_below(p, 10) : 0 };

		c37_put_analog_unit(out, cfg3, &u);
	}
	for (unsigned i = 0; i < s.block.digitals; i++) {
		struct c37_digital_unit u = { (uint16_t)prng_next(p), (uint16_t)prng_next(p) };

		c37_put_digital_unit(out, &u);
	}
	c37_put_station_end(out, &s);
}

static inline struct c37_frame c37_random_head(struct prng *p, enum c37_type type)
{
	return (struct c37_frame){ .type = type,
		.version = type == C37_CFG3 ? C37_VERSION_2011 : (uint8_t)(1 + prng_below(p, 2)),
		.idcode = (uint16_t)prng_next(p),
		.soc = 1700000000 + (uint32_t)prng_below(p, 1000000),
		.quality = (uint8_t)prng_below(p, 128), .fraction = (uint32_t)prng_below(p, 1000000) };
}

/* The length; 0: it became too long. */
static inline size_t c37_random_config(struct prng *p, uint8_t *buffer, size_t size,
				       const struct c37_frame *head, unsigned stations_max)
{
	struct c37_config c = { .cfg3 = head->type == C37_CFG3,
		.time_base = 1000000,
		.stations = 1 + (unsigned)prng_below(p, stations_max),
		.rate = (int16_t)(1 + prng_below(p, 100)) };
	struct c37_out out;

	if (!prng_below(p, 4))
		c.rate = (int16_t)-c.rate;
	c37_begin(&out, buffer, size, head);
	c37_put_config(&out, &c);
	for (unsigned i = 0; i < c.stations; i++)
		c37_random_station(p, &out, c.cfg3);
	c37_put_rate(&out, c.rate);
	return c37_end(&out);
}

/* A data frame for the configuration `c`. */
static inline size_t c37_random_data(struct prng *p, uint8_t *buffer, size_t size,
				     const struct c37_frame *head, struct c37_config c)
{
	struct c37_station s;
	struct c37_out out;

	c37_begin(&out, buffer, size, head);
	while (c37_station_next(&c, &s)) {
		/* Without the bits of which tshark complains. */
		c37_put_16(&out, prng_next(p) & 0x1fff);
		for (unsigned i = 0; i < s.block.phasors; i++) {
			struct c37_phasor_unit u = c37_phasor_unit(&s, i);
			double range = 30000 * (s.block.format & C37_FLOAT_PHASORS ? 1 : u.scale);
			double v[2] = { range * ((double)prng_below(p, 2000) / 1000 - 1) * 0.7,
					range * ((double)prng_below(p, 2000) / 1000 - 1) * 0.7 };

			c37_put_phasor(&out, &s.block, &u, v);
		}
		c37_put_frequency(&out, &s.block,
				  s.block.nominal_hz + (double)prng_below(p, 4000) / 1000 - 2,
				  (double)prng_below(p, 400) / 100 - 2);
		for (unsigned i = 0; i < s.block.analogs; i++) {
			struct c37_analog_unit u = c37_analog_unit(&s, i);

			c37_put_analog(&out, &s.block, &u, (double)prng_below(p, 1000));
		}
		for (unsigned i = 0; i < s.block.digitals; i++)
			c37_put_16(&out, (uint16_t)prng_next(p));
	}
	return c37_end(&out);
}

/* Writes a frame of configuration again from what the decoder says. */
static inline size_t c37_config_again(uint8_t *buffer, size_t size, const struct c37_frame *f,
				      struct c37_config c)
{
	struct c37_station s;
	struct c37_out out;

	c37_begin(&out, buffer, size, f);
	c37_put_config(&out, &c);
	while (c37_station_next(&c, &s)) {
		struct c37_bytes name;

		c37_put_station(&out, &s);
		while (c37_name_next(&s, &name))
			c37_put_name(&out, s.cfg3, name);
		for (unsigned i = 0; i < s.block.phasors; i++) {
			struct c37_phasor_unit u = c37_phasor_unit(&s, i);

			c37_put_phasor_unit(&out, s.cfg3, &u);
		}
		for (unsigned i = 0; i < s.block.analogs; i++) {
			struct c37_analog_unit u = c37_analog_unit(&s, i);

			c37_put_analog_unit(&out, s.cfg3, &u);
		}
		for (unsigned i = 0; i < s.block.digitals; i++) {
			struct c37_digital_unit u = c37_digital_unit(&s, i);

			c37_put_digital_unit(&out, &u);
		}
		c37_put_station_end(&out, &s);
	}
	c37_put_rate(&out, c.rate);
	return c37_end(&out);
}

#endif
