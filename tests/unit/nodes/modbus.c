/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of the node-type modbus: each plan of requests is compared with what a plan has to be,
 * for all places of a few signals and for random places of many; values go to registers and back;
 * what clients of a server may read and write is compared with a look at each signal.
 * Argument: a seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/modbus/store.h"
#include "util/container_of.h"

#define MANY 200

static uint64_t seed = 1, state;

static unsigned draw(unsigned below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % below;
}

/* ---- plans ---- */

/* Registers of [first, end) of `maps` from the address of the first one on: how many there are
 * and how many of these belong to a signal. */
static unsigned measure(const struct modbus_map maps[], unsigned first, unsigned end, unsigned *used)
{
	static uint8_t mark[65536 + MODBUS_VALUE_MAX];
	unsigned begin = maps[first].address, last = begin;

	for (unsigned i = first; i < end; i++)
		last = MAX(last, maps[i].address + maps[i].count);
	memset(mark, 0, last - begin);
	for (unsigned i = first; i < end; i++)
		memset(mark + maps[i].address - begin, 1, maps[i].count);
	*used = 0;
	for (unsigned i = 0; i < last - begin; i++)
		*used += mark[i];
	return last - begin;
}

static bool may_share(const struct modbus_map *a, const struct modbus_map *b, bool writes)
{
	bool bits = a->kind == MODBUS_BIT || b->kind == MODBUS_BIT;

	if (a->table != b->table)
		return false;
	return !writes || !bits || (a->kind == b->kind && a->address == b->address);
}

/* May the signals [first, end) be in one block? */
static bool may_be_one(const struct modbus_map maps[], unsigned first, unsigned end, unsigned max,
		       double usage, bool writes)
{
	unsigned used, count;

	for (unsigned i = first; i < end; i++)
		if (!may_share(&maps[first], &maps[i], writes))
			return false;
	count = measure(maps, first, end, &used);
	return count <= max && used >= usage * count;
}

static void check_plan(struct modbus_map maps[], unsigned count, unsigned max, double usage,
		       bool writes)
{
	static struct modbus_block blocks[MANY];
	unsigned n = writes ? modbus_plan_writes(maps, count, max, blocks) :
			      modbus_plan_reads(maps, count, max, usage, blocks);
	unsigned next = 0, used;
	uint8_t seen[MANY] = { 0 };

	if (writes)
		usage = 1;
	for (unsigned i = 0; i < count; i++) {
		assert_true(maps[i].signal < count && !seen[maps[i].signal]);
		seen[maps[i].signal] = 1;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct modbus_block *b = &blocks[i];

		/* Each signal is in one block, and its registers are. */
		assert_int_equal(b->first, next);
		assert_true(b->maps);
		next += b->maps;
		assert_true(next <= count);
		assert_int_equal(b->address, maps[b->first].address);
		assert_int_equal(b->count, measure(maps, b->first, next, &used));
		assert_int_equal(b->table, maps[b->first].table);
		assert_int_equal(b->bits, writes && maps[b->first].kind == MODBUS_BIT);
		assert_true(may_be_one(maps, b->first, next, max, usage, writes));
		/* And no more of them than needed. */
		if (next < count)
			assert_false(may_be_one(maps, b->first, next + 1, max, usage, writes));
	}
	assert_int_equal(next, count);
}

static void a_few_signals_anywhere_are_planned(void **unused)
{
	static const double usages[] = { 0, 0.25, 0.5, 0.75, 1 };
	const unsigned places = 10 * MODBUS_VALUE_MAX;

	for (unsigned all = 0; all < places * places * places; all++) {
		unsigned max = 4 + all % 7;
		struct modbus_map maps[3];

		for (unsigned i = 0, left = all; i < 3; i++, left /= places)
			maps[i] = (struct modbus_map){ .signal = i, .kind = MODBUS_SCALED,
						       .address = (uint16_t)(left % places / MODBUS_VALUE_MAX),
						       .count = 1 + left % MODBUS_VALUE_MAX };
		for (unsigned k = 0; k < ARRAY_SIZE(usages); k++)
			check_plan(maps, 3, max, usages[k], false);
	}
}

/* Of any kind; overlaps only if they are asked for. */
static unsigned draw_maps(struct modbus_map maps[], bool overlaps, bool writes)
{
	unsigned count = 1 + draw(MANY), gap = 1 + draw(12), address = draw(2) ? 0 : draw(60000);

	for (unsigned i = 0; i < count; i++) {
		bool bit = !draw(4), coil = !draw(4);

		maps[i] = (struct modbus_map){ .signal = i, .kind = bit ? MODBUS_BIT : MODBUS_INTEGER,
					       .address = (uint16_t)address,
					       .count = bit || coil ? 1 : 1 + draw(MODBUS_VALUE_MAX),
					       .bit = bit && !coil ? draw(16) : 0,
					       .table = coil ? MODBUS_COILS : MODBUS_HOLDING_REGISTERS };
		if (coil)
			maps[i].kind = MODBUS_COIL;
		else if (!writes && !draw(3))
			maps[i].table = MODBUS_INPUT_REGISTERS;
		address += overlaps ? draw(gap) : maps[i].count + draw(gap);
	}
	for (unsigned i = count; i > 1; i--) {
		unsigned k = draw(i);
		struct modbus_map other = maps[k];

		maps[k] = maps[i - 1];
		maps[i - 1] = other;
	}
	return count;
}

static void many_signals_are_planned(void **unused)
{
	static struct modbus_map maps[MANY];

	for (unsigned i = 0; i < 3000; i++) {
		bool writes = draw(2);
		unsigned count = draw_maps(maps, !writes && draw(2), writes);

		check_plan(maps, count, 4 + draw(120), draw(101) / 100.0, writes);
	}
}

static void overlaps_are_found(void **unused)
{
	static struct modbus_map maps[MANY];
	static struct modbus_block blocks[MANY];
	unsigned found = 0;

	for (unsigned i = 0; i < 3000; i++) {
		unsigned count = MIN(draw_maps(maps, draw(2), true), 1 + draw(12)), shared = 0;

		for (unsigned k = 0; k < count; k++)
			maps[k].signal = k;
		for (unsigned a = 0; a < count; a++)
			for (unsigned b = 0; b < a; b++) {
				bool bits = maps[a].kind == MODBUS_BIT && maps[b].kind == MODBUS_BIT;

				shared += maps[a].table == maps[b].table && maps[a].address < maps[b].address + maps[b].count &&
					  maps[b].address < maps[a].address + maps[a].count &&
					  !(bits && maps[a].bit != maps[b].bit);
			}
		modbus_plan_writes(maps, count, 32, blocks);
		assert_int_equal(modbus_find_overlap(maps, count) != NULL, shared != 0);
		found += shared != 0;
	}
	assert_true(found > 100 && found < 2900);
}

/* ---- values ---- */

static void known_registers_have_known_values(void **unused)
{
	/* 1.0 as a float is 0x3f800000; the number is 0x0102030405060708. */
	static const struct {
		enum modbus_kind kind;
		unsigned count;
		bool high_first, swapped, is_signed;
		uint16_t regs[4];
		double f;
		int64_t i;
	} rows[] = {
		{ MODBUS_FLOAT, 2, true, false, false, { 0x3f80, 0 }, 1.0, 0 },
		{ MODBUS_FLOAT, 2, false, false, false, { 0, 0x3f80 }, 1.0, 0 },
		{ MODBUS_FLOAT, 2, true, true, false, { 0x803f, 0 }, 1.0, 0 },
		{ MODBUS_FLOAT, 2, false, true, false, { 0, 0x803f }, 1.0, 0 },
		{ MODBUS_INTEGER, 1, true, false, false, { 0xfffe }, 0, 65534 },
		{ MODBUS_INTEGER, 1, true, false, true, { 0xfffe }, 0, -2 },
		{ MODBUS_INTEGER, 1, true, true, false, { 0x0102 }, 0, 0x0201 },
		{ MODBUS_INTEGER, 2, true, false, false, { 0x0102, 0x0304 }, 0, 0x01020304 },
		{ MODBUS_INTEGER, 2, false, false, false, { 0x0304, 0x0102 }, 0, 0x01020304 },
		{ MODBUS_INTEGER, 3, true, false, true, { 0xffff, 0xffff, 0xfff0 }, 0, -16 },
		{ MODBUS_INTEGER, 4, true, false, false, { 0x0102, 0x0304, 0x0506, 0x0708 }, 0,
		  INT64_C(0x0102030405060708) },
		{ MODBUS_INTEGER, 4, false, true, false, { 0x0807, 0x0605, 0x0403, 0x0201 }, 0,
		  INT64_C(0x0102030405060708) },
		{ MODBUS_SCALED, 1, true, false, true, { 0xff9c }, -100, 0 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct modbus_map m = { .kind = rows[i].kind, .count = rows[i].count,
					.high_first = rows[i].high_first, .swapped = rows[i].swapped,
					.is_signed = rows[i].is_signed, .scale = 1 };
		enum signal_type type = m.kind == MODBUS_INTEGER ? SIGNAL_INTEGER : SIGNAL_FLOAT;
		union signal_data v = { 0 };
		uint16_t regs[4] = { 0 };

		modbus_value_read(&m, rows[i].regs, &v);
		if (type == SIGNAL_INTEGER)
			assert_int_equal(v.i, rows[i].i);
		else
			assert_true(v.f == rows[i].f);
		assert_null(modbus_value_write(&m, type, &v, regs));
		assert_memory_equal(regs, rows[i].regs, sizeof(regs));
	}
}

static void scale_and_offset_are_those_of_the_register(void **unused)
{
	struct modbus_map m = { .kind = MODBUS_SCALED, .count = 1, .scale = 0.1, .offset = -40 };
	union signal_data v;
	uint16_t reg = 655;

	modbus_value_read(&m, &reg, &v);
	assert_true(fabs(v.f - 25.5) < 1e-9);
	reg = 0;
	assert_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, &reg));
	assert_int_equal(reg, 655);
	/* To the nearest one. */
	v.f = 25.46;
	assert_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, &reg));
	assert_int_equal(reg, 655);
	v.i = -40;
	assert_null(modbus_value_write(&m, SIGNAL_INTEGER, &v, &reg));
	assert_int_equal(reg, 0);
}

static void every_integer_that_fits_comes_back(void **unused)
{
	for (unsigned i = 0; i < 200000; i++) {
		struct modbus_map m = { .kind = MODBUS_INTEGER, .count = 1 + draw(4),
					.high_first = draw(2), .swapped = draw(2),
					.is_signed = draw(2), .scale = 1 };
		unsigned bits = 16 * m.count;
		int64_t v = (int64_t)((uint64_t)draw(1u << 31) << 33 ^ (uint64_t)draw(1u << 31) << 8 ^ draw(256)) >>
			    draw(64);
		bool fits = bits == 64 || (v >= -(INT64_C(1) << (bits - 1)) &&
					   v < INT64_C(1) << (m.is_signed ? bits - 1 : bits));
		uint16_t regs[4] = { 7, 7, 7, 7 }, same[4] = { 7, 7, 7, 7 };
		union signal_data a = { .i = v }, b;

		assert_int_equal(!modbus_value_write(&m, SIGNAL_INTEGER, &a, regs), fits);
		if (!fits) {
			assert_memory_equal(regs, same, sizeof(regs));
			continue;
		}
		modbus_value_read(&m, regs, &b);
		if (m.is_signed || v >= 0 || bits == 64)
			assert_int_equal(b.i, v);
		else
			assert_int_equal(b.i, v + (INT64_C(1) << bits));
	}
}

static void values_that_do_not_fit_are_refused(void **unused)
{
	static const double bad[] = { NAN, INFINITY, -INFINITY, 65536, -32769, 1e300, 0x1p63 };
	struct modbus_map m = { .kind = MODBUS_SCALED, .count = 1, .scale = 1 };
	union signal_data v;
	uint16_t regs[2] = { 5, 5 };

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		v.f = bad[i];
		assert_non_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, regs));
		m.kind = MODBUS_INTEGER;
		assert_non_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, regs));
		m.kind = MODBUS_SCALED;
	}
	m = (struct modbus_map){ .kind = MODBUS_FLOAT, .count = 2, .scale = 1 };
	v.f = 1e39;
	assert_non_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, regs));
	v.f = 1;
	assert_non_null(modbus_value_write(&m, SIGNAL_COMPLEX, &v, regs));
	assert_int_equal(regs[0], 5);
	/* A float has these. */
	v.f = INFINITY;
	assert_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, regs));
	modbus_value_read(&m, regs, &v);
	assert_true(isinf(v.f));
}

static void a_bit_leaves_the_others(void **unused)
{
	for (unsigned bit = 0; bit < 16; bit++)
		for (unsigned swapped = 0; swapped < 2; swapped++) {
			struct modbus_map m = { .kind = MODBUS_BIT, .count = 1, .bit = bit,
						.swapped = swapped };
			uint16_t mask = (uint16_t)(1u << (swapped ? bit ^ 8 : bit));
			uint16_t reg = 0xa5c3, before = reg;
			union signal_data v = { .i = 1 };

			assert_null(modbus_value_write(&m, SIGNAL_BOOLEAN, &v, &reg));
			assert_int_equal(reg, before | mask);
			modbus_value_read(&m, &reg, &v);
			assert_int_equal(v.i, 1);
			v.f = 0;
			assert_null(modbus_value_write(&m, SIGNAL_FLOAT, &v, &reg));
			assert_int_equal(reg, before & ~mask);
			modbus_value_read(&m, &reg, &v);
			assert_int_equal(v.i, 0);
		}
}

static void a_coil_holds_a_boolean(void **unused)
{
	const struct modbus_map m = { .kind = MODBUS_COIL, .table = MODBUS_COILS, .count = 1 };

	for (unsigned on = 0; on < 2; on++) {
		const union signal_data value = { .i = on };
		union signal_data back = { .i = 5 };
		uint16_t word = 7;

		assert_null(modbus_value_write(&m, SIGNAL_BOOLEAN, &value, &word));
		assert_int_equal(word, on);
		modbus_value_read(&m, &word, &back);
		assert_int_equal(back.i, on);
	}
}

/* ---- the registers of a server ---- */

/* What a client may do with [address, address + count), looked up signal by signal?
 * `write`: write whole values; `gaps`: registers of nobody can be read. */
static bool may(const struct modbus_map in[], unsigned in_count, const struct modbus_map out[],
		unsigned out_count, unsigned address, unsigned count, bool write, bool gaps)
{
	unsigned last = 0;

	for (unsigned i = 0; i < in_count + out_count; i++) {
		const struct modbus_map *m = i < in_count ? &in[i] : &out[i - in_count];

		last = MAX(last, m->address + m->count);
	}
	if (address + count > last)
		return false;
	for (unsigned a = address; a < address + count; a++) {
		bool found = gaps && !write;

		for (unsigned i = 0; i < in_count + out_count; i++) {
			const struct modbus_map *m = i < in_count ? &in[i] : &out[i - in_count];
			bool here = a >= m->address && a < m->address + m->count;
			bool whole = m->address >= address && m->address + m->count <= address + count;

			found |= here && (!write || (i < in_count && whole));
		}
		if (!found)
			return false;
	}
	return true;
}

/* Three signals that clients write and two of the node, not over each other, in 24 registers. */
static void draw_sides(struct modbus_map in[3], struct modbus_map out[2])
{
	unsigned address = draw(3);

	for (unsigned i = 0; i < 5; i++) {
		struct modbus_map *m = i % 2 ? &out[i / 2] : &in[i / 2];

		*m = (struct modbus_map){ .kind = MODBUS_INTEGER, .table = MODBUS_HOLDING_REGISTERS,
					  .address = (uint16_t)address,
					  .count = 1 + draw(MODBUS_VALUE_MAX) };
		address += m->count + (draw(2) ? draw(3) : 0);
	}
}

static void clients_reach_the_registers_that_are_theirs(void **unused)
{
	for (unsigned run = 0; run < 200; run++) {
		struct modbus_store s = { .zero_gaps = draw(2) };
		enum modbus_table table = MODBUS_TABLES;
		struct modbus_map in[3], out[2];
		unsigned at;

		draw_sides(in, out);
		assert_int_equal(modbus_store_add(&s, in, 3, true, &table, &at), 0);
		assert_int_equal(modbus_store_add(&s, out, 2, false, &table, &at), 0);
		for (unsigned address = 0; address < 30; address++) {
			for (unsigned count = 1; count < 30; count++) {
				const struct modbus_range r = { (uint16_t)address, count };
				uint16_t words[30];
				bool of_node;

				assert_int_equal(!modbus_store_read(&s, MODBUS_HOLDING_REGISTERS, &r,
								    words, &of_node),
						 may(in, 3, out, 2, address, count, false, s.zero_gaps));
				assert_int_equal(!modbus_store_check(&s, MODBUS_HOLDING_REGISTERS, &r),
						 may(in, 3, out, 2, address, count, true, false));
				assert_int_equal(modbus_store_read(&s, MODBUS_COILS, &r, words, &of_node),
						 MODBUS_NO_ADDRESS);
			}
		}
		/* One side has what belongs to the other one. */
		assert_int_equal(modbus_store_add(&s, &out[1], 1, true, &table, &at), -EEXIST);
		assert_int_equal(at, out[1].address);
		assert_int_equal(table, MODBUS_HOLDING_REGISTERS);
		modbus_store_free(&s);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_few_signals_anywhere_are_planned),
		cmocka_unit_test(many_signals_are_planned),
		cmocka_unit_test(overlaps_are_found),
		cmocka_unit_test(known_registers_have_known_values),
		cmocka_unit_test(scale_and_offset_are_those_of_the_register),
		cmocka_unit_test(every_integer_that_fits_comes_back),
		cmocka_unit_test(values_that_do_not_fit_are_refused),
		cmocka_unit_test(a_bit_leaves_the_others),
		cmocka_unit_test(a_coil_holds_a_boolean),
		cmocka_unit_test(clients_reach_the_registers_that_are_theirs),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	state = seed;
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
