/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams of C37.118 frames from outside: the reader finds a frame or says how many bytes are none;
 * a configuration is refused with a reason, or all its stations, names, units and data frames are
 * read within their bounds, and it can be written again with the same bytes or, where a name or a
 * number has several forms, with the same meaning.
 *
 * usage: fuzz_c37 [RUNS [SEED]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/wire/c37_random.h"
#include "wire/bytes.h"
#include "wire/grid/c37_parts.h"

#define MUTATE_BYTES "\x00\x01\x02\x0f\x10\x11\x12\x22\x31\x32\x41\x42\x52\x7f\x80\xaa\xff"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static bool same(double a, double b)
{
	return a == b || (a != a && b != b);
}

static void compare(struct c37_config a, struct c37_config b)
{
	struct c37_bytes na, nb;
	struct c37_station x, y;

	must(a.cfg3 == b.cfg3 && a.time_base == b.time_base && a.stations == b.stations &&
	     a.rate == b.rate);
	while (c37_station_next(&a, &x)) {
		must(c37_station_next(&b, &y));
		must(x.idcode == y.idcode && x.changes == y.changes &&
		     !memcmp(&x.block.format, &y.block.format, 8) &&
		     x.block.nominal_hz == y.block.nominal_hz && x.window_us == y.window_us &&
		     x.service_class == y.service_class && same(x.latitude, y.latitude));
		while (c37_name_next(&x, &na))
			must(c37_name_next(&y, &nb) && na.len == nb.len &&
			     (!na.len || !memcmp(na.at, nb.at, na.len)));
		must(!c37_name_next(&y, &nb));
		for (unsigned i = 0; i < x.block.phasors; i++) {
			struct c37_phasor_unit u = c37_phasor_unit(&x, i), v = c37_phasor_unit(&y, i);

			must(u.current == v.current && u.component == v.component &&
			     u.modified == v.modified && same(u.scale, v.scale) && same(u.angle, v.angle));
		}
		for (unsigned i = 0; i < x.block.analogs; i++) {
			struct c37_analog_unit u = c37_analog_unit(&x, i), v = c37_analog_unit(&y, i);

			must(u.kind == v.kind && same(u.scale, v.scale) && same(u.offset, v.offset));
		}
	}
	must(!c37_station_next(&b, &y));
}

static void read_data(struct c37_config c, struct c37_bytes rest)
{
	struct c37_station s;
	struct c37_values v;

	while (c37_station_next(&c, &s) && !c37_data_next(&rest, &s.block, &v)) {
		double z[2];

		for (unsigned i = 0; i < s.block.phasors; i++) {
			struct c37_phasor_unit u = c37_phasor_unit(&s, i);

			c37_phasor(&s.block, &v, i, &u, z);
		}
		for (unsigned i = 0; i < s.block.analogs; i++) {
			struct c37_analog_unit u = c37_analog_unit(&s, i);

			c37_analog(&s.block, &v, i, &u);
		}
		for (unsigned i = 0; i < s.block.digitals; i++)
			c37_digital(&v, i);
	}
}

static void read_config(const struct c37_frame *f, const uint8_t *data, size_t size)
{
	static uint8_t bytes[2 * C37_FRAME_MAX];
	struct c37_config c, again;
	const char *why = c37_config_decode(f, &c);
	struct c37_frame g;
	size_t len, skip;

	must(!why || *why);
	if (why)
		return;
	len = c37_config_again(bytes, sizeof(bytes), f, c);
	must(len >= C37_FRAME_MIN);
	must(c37_next(bytes, len, &g, &skip, &why) == (int)len);
	must(!c37_config_decode(&g, &again));
	compare(c, again);
	/* Whatever comes is data of it. */
	read_data(c, (struct c37_bytes){ data, size });
}

/* CFG-3 in parts that may be missing or wrong: each is refused, or belongs to a whole. */
static void read_part(struct c37_parts *parts, const struct c37_frame *f)
{
	struct c37_frame whole;
	const char *why = NULL;
	int ret = c37_parts_take(parts, f, &whole, &why);

	must(ret == 1 || !ret || (ret == -EPROTO && why && !parts->bytes));
	must(parts->len <= C37_CONFIG_MAX);
	if (ret == 1)
		read_config(&whole, f->body.at, f->body.len);
}

/* `mend`: the checks are made right first, so that what is behind them is reached. */
static void read_stream(uint8_t *data, size_t size, bool mend)
{
	struct c37_parts parts = { 0 };
	size_t at = 0;

	while (at < size) {
		struct c37_frame f;
		const char *why = NULL;
		size_t skip = 0, len = size - at >= 4 ? get_16(data + at + 2) : 0;
		int n;

		if (mend && len >= C37_FRAME_MIN && len <= size - at)
			put_16(data + at + len - 2, c37_crc(data + at, len - 2));
		n = c37_next(data + at, size - at, &f, &skip, &why);
		must(n >= 0 || (n == -EPROTO && why && skip >= 1 && skip <= size - at));
		if (!n)
			break;
		if (n > 0) {
			must(n >= C37_FRAME_MIN && (size_t)n <= size - at &&
			     f.body.at >= data && f.body.at + f.body.len + 2 == data + at + n);
			c37_command_of(&f);
			must(c37_time_ns(&f, 1 + f.fraction / 2) >= -1);
			if (f.type == C37_CFG3)
				read_part(&parts, &f);
			else
				read_config(&f, data, size);
		}
		at += n > 0 ? (size_t)n : skip;
	}
	c37_parts_free(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	must(copy);
	for (int mend = 0; mend < 2; mend++) {
		memcpy(copy, data, size);
		read_stream(copy, size, mend);
	}
	free(copy);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 2048

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const enum c37_type types[] = { C37_CFG1, C37_CFG2, C37_CFG3 };
	struct prng p = prng_from(random_below(UINT64_MAX));
	struct c37_frame head = c37_random_head(&p, types[random_below(3)]);
	size_t size = c37_random_config(&p, bytes, capacity, &head, 3);

	if (size && head.type == C37_CFG3 && random_below(2)) {
		static uint8_t whole[SIZE_MAX_BYTES];
		struct c37_bytes body = { whole + C37_HEADER_SIZE, size - C37_FRAME_MIN };

		memcpy(whole, bytes, size);
		size = c37_parts_write(&head, body, C37_PART_MIN + random_below(size), bytes, capacity);
	}
	if (size && random_below(2))
		size += c37_encode_command(bytes + size, capacity - size, &head, C37_DATA_ON);
	/* A number of the configuration that is more than there is, or anything else. */
	if (size && random_below(2)) {
		size_t place = C37_HEADER_SIZE + random_below(size - C37_FRAME_MIN);

		bytes[place] = (uint8_t)random_below(256);
		return size;
	}
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 60000, SIZE_MAX_BYTES, make);
}
#endif
