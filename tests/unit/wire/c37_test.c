/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of C37.118: known bytes, the reader of a stream, every format of values. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "c37_random.h"
#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/grid/c37_parts.h"

/* The polynomial, bit by bit. */
static uint16_t crc_by_bits(const uint8_t *data, size_t len)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= (uint16_t)(data[i] << 8);
		for (unsigned bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
	}
	return crc;
}

static void the_check_is_that_of_the_polynomial(void **state)
{
	struct prng p = prng_from(1);
	uint8_t data[64];

	/* The usual test vector of CRC-16/CCITT-FALSE. */
	assert_int_equal(c37_crc((const uint8_t *)"123456789", 9), 0x29b1);
	for (unsigned round = 0; round < 500; round++) {
		for (unsigned i = 0; i < sizeof(data); i++)
			data[i] = (uint8_t)prng_next(&p);
		assert_int_equal(c37_crc(data, round % 64), crc_by_bits(data, round % 64));
	}
}

static void a_command_has_the_bytes_of_the_standard(void **state)
{
	const struct c37_frame head = { .version = 1, .idcode = 7, .soc = 0x44855c30,
					.quality = 15, .fraction = 770000 };
	const uint8_t want[] = { 0xaa, 0x41, 0, 18, 0, 7, 0x44, 0x85, 0x5c, 0x30,
				 0x0f, 0x0b, 0xbf, 0xd0, 0, 2 };
	uint8_t got[32];
	struct c37_frame f;
	size_t skip;
	const char *why;

	assert_int_equal(c37_encode_command(got, sizeof(got), &head, C37_DATA_ON), 18);
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(got[16] << 8 | got[17], crc_by_bits(want, 16));
	assert_int_equal(c37_next(got, 18, &f, &skip, &why), 18);
	assert_int_equal(f.type, C37_COMMAND);
	assert_int_equal(c37_command_of(&f), C37_DATA_ON);
	assert_int_equal(f.idcode, 7);
	assert_int_equal(f.quality, 15);
	assert_int_equal(f.fraction, 770000);
	assert_true(c37_time_ns(&f, 1000000) == INT64_C(1149590576770000000));
	assert_true(c37_time_ns(&f, 769999) == -1);
	/* No room for the last byte. */
	assert_int_equal(c37_encode_command(got, 17, &head, C37_DATA_ON), 0);
}

/* Each byte of a frame that is cut, each that is wrong. */
static void a_reader_waits_for_the_rest_and_refuses_what_is_wrong(void **state)
{
	const struct c37_frame head = { .version = 2, .idcode = 7 };
	uint8_t bytes[64];
	struct c37_frame f;
	size_t skip, len = c37_encode_command(bytes, sizeof(bytes), &head, C37_SEND_CFG2);
	const char *why;

	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(c37_next(bytes, cut, &f, &skip, &why), 0);
	for (size_t at = 0; at < len; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			int ret;

			bytes[at] ^= (uint8_t)(1u << bit);
			ret = c37_next(bytes, len, &f, &skip, &why);
			/* A longer length is waited for. */
			assert_true(ret == -EPROTO || (at / 2 == 1 && ret == 0));
			assert_true(ret == 0 || (skip >= 1 && skip <= len && why));
			bytes[at] ^= (uint8_t)(1u << bit);
		}
	/* The next frame is found behind what is none. */
	memmove(bytes + 5, bytes, len);
	memcpy(bytes, "\xaa\xff\x00\x01\x02", 5);
	assert_int_equal(c37_next(bytes, len + 5, &f, &skip, &why), -EPROTO);
	assert_int_equal(skip, 5);
	assert_int_equal(c37_next(bytes + 5, len, &f, &skip, &why), (int)len);
}

/* Each second byte begins a frame which is as long as most of the bytes, and is none. */
static void bytes_that_begin_many_long_frames_are_passed_over_soon(void **state)
{
	static uint8_t bytes[65536];
	size_t at = 0, checked = 0, skip;
	struct c37_frame f;
	const char *why;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 2 ? 0x41 : 0xaa;
	while (c37_next(bytes + at, sizeof(bytes) - at, &f, &skip, &why) < 0) {
		checked += 0xaa41;
		at += skip;
	}
	assert_true(checked < 16 * sizeof(bytes));
}

/* One station with everything. */
static size_t make_config(uint8_t *buffer, size_t size, bool cfg3, uint16_t format)
{
	const struct c37_frame head = { .type = cfg3 ? C37_CFG3 : C37_CFG2, .version = 2,
					.idcode = 7734, .soc = 1000 };
	const struct c37_config c = { .cfg3 = cfg3, .time_base = 1000000, .stations = 1 };
	const struct c37_phasor_unit volt = { .scale = 9.15527, .component = C37_PHASE_B };
	const struct c37_phasor_unit ampere = { .current = true, .scale = 0.45776 };
	const struct c37_analog_unit rms = { .kind = C37_RMS, .scale = 2 };
	const struct c37_digital_unit bits = { 0x8000, 0xffff };
	const struct c37_station s = { .cfg3 = cfg3, .name = { (const uint8_t *)"Station A", 9 },
		.idcode = 7734, .block = { format, 2, 1, 1, 60 }, .changes = 22,
		.latitude = 50.5f, .service_class = 'M', .window_us = -1 };
	struct c37_out out;
	char text[20];

	c37_begin(&out, buffer, size, &head);
	c37_put_config(&out, &c);
	c37_put_station(&out, &s);
	for (unsigned i = 0; i < 19; i++)
		c37_put_name(&out, cfg3, (struct c37_bytes){ (const uint8_t *)text,
			(size_t)snprintf(text, sizeof(text), "CH%u", i) });
	c37_put_phasor_unit(&out, cfg3, &volt);
	c37_put_phasor_unit(&out, cfg3, &ampere);
	c37_put_analog_unit(&out, cfg3, &rms);
	c37_put_digital_unit(&out, &bits);
	c37_put_station_end(&out, &s);
	c37_put_rate(&out, 30);
	return c37_end(&out);
}

static void read_frame(const uint8_t *data, size_t len, struct c37_frame *f)
{
	const char *why = "";
	size_t skip;

	assert_int_equal(c37_next(data, len, f, &skip, &why), (int)len);
}

/* All sixteen formats, in both configurations: what was written is read, as precisely as the
 * format can. */
static void every_format_keeps_its_values(void **state)
{
	uint8_t config[2048], data[256];

	for (unsigned format = 0; format < 16; format++)
		for (int cfg3 = 0; cfg3 < 2; cfg3++) {
			const double volts[2] = { 1000.5, -70000.25 }, amperes[2] = { -100, 50 };
			size_t len = make_config(config, sizeof(config), cfg3, (uint16_t)format);
			struct c37_phasor_unit volt, ampere;
			struct c37_analog_unit rms;
			struct c37_bytes name, rest;
			struct c37_values v;
			struct c37_station s;
			struct c37_config c;
			struct c37_frame f;
			struct c37_out out;
			double z[2];

			assert_true(len);
			read_frame(config, len, &f);
			assert_null(c37_config_decode(&f, &c));
			assert_int_equal(c.rate, 30);
			assert_true(c37_station_next(&c, &s));
			assert_int_equal(s.name.len, 9);
			assert_int_equal(s.block.format, format);
			assert_int_equal(s.block.nominal_hz, 60);
			assert_int_equal(s.changes, 22);
			assert_true(!cfg3 || (s.latitude == 50.5f && s.service_class == 'M' && s.window_us == -1));
			for (unsigned i = 0; i < 19; i++)
				assert_true(c37_name_next(&s, &name) &&
					    (unsigned)atoi((const char *)name.at + 2) == i);
			assert_false(c37_name_next(&s, &name));
			volt = c37_phasor_unit(&s, 0);
			ampere = c37_phasor_unit(&s, 1);
			rms = c37_analog_unit(&s, 0);
			assert_true(!volt.current && ampere.current && fabs(volt.scale - 9.15527) < 1e-5);
			assert_true(!cfg3 || volt.component == C37_PHASE_B);
			assert_true(cfg3 || rms.kind == C37_RMS);
			assert_int_equal(c37_digital_unit(&s, 0).normal, 0x8000);
			assert_false(c37_station_next(&c, &s));

			f.type = C37_DATA;
			c37_begin(&out, data, sizeof(data), &f);
			c37_put_16(&out, 0x21f0);
			c37_put_phasor(&out, &s.block, &volt, volts);
			c37_put_phasor(&out, &s.block, &ampere, amperes);
			c37_put_frequency(&out, &s.block, 59.75, -1.25);
			c37_put_analog(&out, &s.block, &rms, 100);
			c37_put_16(&out, 0x3c12);
			len = c37_end(&out);
			assert_int_equal(len, C37_FRAME_MIN + c37_block_size(&s.block));
			read_frame(data, len, &f);
			rest = f.body;
			assert_int_equal(c37_data_next(&rest, &s.block, &v), 0);
			assert_int_equal(rest.len, 0);
			assert_int_equal(v.stat, 0x21f0);
			c37_phasor(&s.block, &v, 0, &volt, z);
			assert_true(hypot(z[0] - volts[0], z[1] - volts[1]) <
				    (format & C37_FLOAT_PHASORS ? 0.02 : 14));
			c37_phasor(&s.block, &v, 1, &ampere, z);
			assert_true(hypot(z[0] - amperes[0], z[1] - amperes[1]) <
				    (format & C37_FLOAT_PHASORS ? 1e-4 : 0.5));
			assert_true(fabs(v.frequency_hz - 59.75) < 1e-6 && fabs(v.rocof_hz_s + 1.25) < 1e-6);
			assert_true(c37_analog(&s.block, &v, 0, &rms) == 100);
			assert_int_equal(c37_digital(&v, 0), 0x3c12);
			rest = (struct c37_bytes){ f.body.at, f.body.len - 1 };
			assert_int_equal(c37_data_next(&rest, &s.block, &v), -EPROTO);
		}
}

static void what_has_no_value_stays_without_one(void **state)
{
	const double none[2] = { NAN, NAN };

	for (unsigned format = 0; format < 16; format++) {
		const struct c37_block b = { (uint16_t)format, 1, 1, 0, 50 };
		const struct c37_phasor_unit u = { .scale = 2 };
		const struct c37_analog_unit a = { .scale = 3 };
		const struct c37_frame head = { .version = 2 };
		struct c37_bytes rest;
		struct c37_values v;
		struct c37_out out;
		uint8_t data[128];
		double z[2];

		c37_begin(&out, data, sizeof(data), &head);
		c37_put_16(&out, 0);
		c37_put_phasor(&out, &b, &u, none);
		c37_put_frequency(&out, &b, NAN, NAN);
		c37_put_analog(&out, &b, &a, NAN);
		assert_true(c37_end(&out));
		rest = (struct c37_bytes){ data + C37_HEADER_SIZE, out.used - C37_FRAME_MIN };
		assert_int_equal(c37_data_next(&rest, &b, &v), 0);
		c37_phasor(&b, &v, 0, &u, z);
		assert_true(isnan(z[0]) && isnan(z[1]) && isnan(v.frequency_hz) && isnan(v.rocof_hz_s));
		assert_true(isnan(c37_analog(&b, &v, 0, &a)));
	}
}

static void integers_that_are_too_large_become_the_largest(void **state)
{
	const struct c37_block b = { 0, 1, 1, 0, 50 };
	const struct c37_phasor_unit u = { .scale = 1 };
	const struct c37_analog_unit a = { .scale = 1 };
	const struct c37_frame head = { .version = 2 };
	const double large[2] = { 1e9, -INFINITY };
	struct c37_bytes rest;
	struct c37_values v;
	struct c37_out out;
	uint8_t data[128];
	double z[2];

	c37_begin(&out, data, sizeof(data), &head);
	c37_put_16(&out, 0);
	c37_put_phasor(&out, &b, &u, large);
	c37_put_frequency(&out, &b, 1000, -1e9);
	c37_put_analog(&out, &b, &a, -1e30);
	rest = (struct c37_bytes){ data + C37_HEADER_SIZE, c37_end(&out) - C37_FRAME_MIN };
	assert_int_equal(c37_data_next(&rest, &b, &v), 0);
	c37_phasor(&b, &v, 0, &u, z);
	assert_true(z[0] == 32767 && z[1] == -32767);
	assert_true(fabs(v.frequency_hz - 82.767) < 1e-9 && fabs(v.rocof_hz_s + 327.67) < 1e-9);
	assert_true(c37_analog(&b, &v, 0, &a) == -32767);
}

/* Numbers of a configuration that are more than the frame holds. */
static void a_configuration_that_contradicts_itself_is_refused(void **state)
{
	uint8_t bytes[2048];

	for (int cfg3 = 0; cfg3 < 2; cfg3++) {
		size_t len = make_config(bytes, sizeof(bytes), cfg3, 0), head = cfg3 ? 16 : 14;
		/* NUM_PMU, and PHNMR, ANNMR, DGNMR of the station. */
		size_t counts = head + 6 + (cfg3 ? 10 + 2 + 16 + 2 : 16 + 4);
		const size_t places[] = { head + 4, counts, counts + 2, counts + 4 };
		struct c37_config c;
		struct c37_frame f;

		read_frame(bytes, len, &f);
		assert_null(c37_config_decode(&f, &c));
		for (unsigned i = 0; i < ARRAY_SIZE(places); i++)
			for (unsigned v = 0; v < 0x10000; v += v < 300 ? 1 : 251) {
				uint8_t was[2] = { bytes[places[i]], bytes[places[i] + 1] };

				bytes[places[i]] = (uint8_t)(v >> 8);
				bytes[places[i] + 1] = (uint8_t)v;
				assert_true(!memcmp(was, bytes + places[i], 2) ||
					    c37_config_decode(&f, &c));
				memcpy(bytes + places[i], was, 2);
			}
		/* Cut anywhere, or longer. */
		for (size_t cut = 0; cut < len - C37_FRAME_MIN; cut++) {
			struct c37_frame part = f;

			part.body.len = cut;
			assert_non_null(c37_config_decode(&part, &c));
		}
		f.body.len++;
		assert_non_null(c37_config_decode(&f, &c));
		f.body.len--;
		memset(bytes + head, 0, 4);
		assert_non_null(c37_config_decode(&f, &c));
	}
}

/* Random configurations are read as they were written, and are written again as they were read. */
static void what_was_read_can_be_written_again(void **state)
{
	static const enum c37_type types[] = { C37_CFG1, C37_CFG2, C37_CFG3 };
	static uint8_t bytes[C37_FRAME_MAX], again[C37_FRAME_MAX], data[C37_FRAME_MAX];
	struct prng p = prng_from(5);

	for (unsigned round = 0; round < 3000; round++) {
		struct c37_frame head = c37_random_head(&p, types[round % 3]), f;
		size_t len = c37_random_config(&p, bytes, sizeof(bytes), &head, 20);
		struct c37_bytes rest;
		struct c37_values v;
		struct c37_config c, walk;
		struct c37_station s;

		assert_true(len);
		read_frame(bytes, len, &f);
		assert_null(c37_config_decode(&f, &c));
		assert_int_equal(c37_config_again(again, sizeof(again), &f, c), len);
		assert_memory_equal(again, bytes, len);
		head.type = C37_DATA;
		len = c37_random_data(&p, data, sizeof(data), &head, c);
		read_frame(data, len, &f);
		rest = f.body;
		for (walk = c; c37_station_next(&walk, &s);)
			assert_int_equal(c37_data_next(&rest, &s.block, &v), 0);
		assert_int_equal(rest.len, 0);
	}
}

/* A configuration in parts of every size; the frames of it, in `frames`. */
static unsigned cut(const struct c37_frame *f, size_t part, struct c37_frame frames[])
{
	static uint8_t bytes[8192];
	size_t len = c37_parts_write(f, f->body, part, bytes, sizeof(bytes)), at = 0, skip;
	unsigned count = 0;
	const char *why;

	assert_true(len > 0);
	while (at < len) {
		int n = c37_next(bytes + at, len - at, &frames[count], &skip, &why);

		assert_true(n > 0 && (size_t)n <= part);
		count++;
		at += (size_t)n;
	}
	return count;
}

#define PARTS 64

static void a_configuration_in_parts_becomes_whole(void **state)
{
	struct c37_frame f, frames[PARTS], whole;
	struct c37_parts p = { 0 };
	struct c37_config c;
	uint8_t bytes[2048];
	const char *why;
	size_t len = make_config(bytes, sizeof(bytes), true, 0);

	read_frame(bytes, len, &f);
	for (size_t part = C37_PART_MIN; part < len + 3; part++) {
		unsigned count = cut(&f, part, frames);

		assert_int_equal(count == 1, part >= len);
		for (unsigned i = 0; i + 1 < count; i++)
			assert_int_equal(c37_parts_take(&p, &frames[i], &whole, &why), 0);
		assert_int_equal(c37_parts_take(&p, &frames[count - 1], &whole, &why), 1);
		assert_int_equal(whole.body.len, f.body.len);
		assert_memory_equal(whole.body.at, f.body.at, f.body.len);
		assert_null(c37_config_decode(&whole, &c));
	}
	c37_parts_free(&p);
}

static void parts_that_are_missing_or_foreign_are_refused(void **state)
{
	struct c37_frame f, frames[PARTS], whole, other;
	struct c37_parts p = { 0 };
	uint8_t bytes[2048], empty[2] = { 0, 2 };
	struct c37_config c;
	const char *why = NULL;
	unsigned count;

	read_frame(bytes, make_config(bytes, sizeof(bytes), true, 0), &f);
	count = cut(&f, C37_PART_MIN, frames);
	assert_true(count > 3);
	for (unsigned missing = 0; missing < count; missing++) {
		int ret = 0;

		/* The last one is missing: nothing is whole, until the next one begins. */
		for (unsigned i = 0; i < count && !ret; i++)
			ret = i == missing ? 0 : c37_parts_take(&p, &frames[i], &whole, &why);
		/* The index of the last one does not tell that the one before it is missing. */
		assert_int_equal(ret, missing == count - 1 ? 0 : missing == count - 2 ? 1 : -EPROTO);
		assert_true(ret != 1 || c37_config_decode(&whole, &c));
		for (unsigned i = 0; i < count; i++)
			ret = c37_parts_take(&p, &frames[i], &whole, &why);
		assert_int_equal(ret, 1);
		assert_int_equal(whole.body.len, f.body.len);
	}
	/* Of another stream, without anything in it, and again without a first one. */
	assert_int_equal(c37_parts_take(&p, &frames[0], &whole, &why), 0);
	other = frames[1];
	other.idcode++;
	assert_int_equal(c37_parts_take(&p, &other, &whole, &why), -EPROTO);
	assert_int_equal(c37_parts_take(&p, &frames[0], &whole, &why), 0);
	other = frames[1];
	other.body = (struct c37_bytes){ empty, 2 };
	assert_int_equal(c37_parts_take(&p, &other, &whole, &why), -EPROTO);
	assert_int_equal(c37_parts_take(&p, &frames[1], &whole, &why), -EPROTO);
	assert_non_null(why);
	c37_parts_free(&p);
}

static void parts_without_end_find_no_room(void **state)
{
	static uint8_t body[60000];
	struct c37_frame f = { .type = C37_CFG3, .body = { body, sizeof(body) } }, whole;
	struct c37_parts p = { 0 };
	unsigned index = 1;
	const char *why;
	int ret = 0;

	while (!ret) {
		put_16(body, (uint16_t)index++);
		ret = c37_parts_take(&p, &f, &whole, &why);
	}
	assert_int_equal(ret, -EPROTO);
	assert_true(index > 10 && index < 30);
	assert_null(p.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_check_is_that_of_the_polynomial),
		cmocka_unit_test(a_command_has_the_bytes_of_the_standard),
		cmocka_unit_test(a_reader_waits_for_the_rest_and_refuses_what_is_wrong),
		cmocka_unit_test(bytes_that_begin_many_long_frames_are_passed_over_soon),
		cmocka_unit_test(every_format_keeps_its_values),
		cmocka_unit_test(what_has_no_value_stays_without_one),
		cmocka_unit_test(integers_that_are_too_large_become_the_largest),
		cmocka_unit_test(a_configuration_that_contradicts_itself_is_refused),
		cmocka_unit_test(what_was_read_can_be_written_again),
		cmocka_unit_test(a_configuration_in_parts_becomes_whole),
		cmocka_unit_test(parts_that_are_missing_or_foreign_are_refused),
		cmocka_unit_test(parts_without_end_find_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
