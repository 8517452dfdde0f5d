/* SPDX-License-Identifier: BSD-2-Clause */
/* Data sets of sampled values: types by configuration, and values in the bytes of a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/iec61850-9-2/values.h"
#include "util/container_of.h"
#include "util/log.h"

#define VALUES 8

static struct config *config;

/* The data set of a text of a configuration, and its signals in *l. */
static int parse(const char *text, bool read, struct data_set **d, struct signal_list **l)
{
	int ret;

	*l = NULL;
	*d = NULL;
	config_destroy(config);
	assert_int_equal(config_load_text("test", text, strlen(text), &config), 0);
	assert_int_equal(signal_list_parse(l, config, config_root(config), "signals"), 0);
	ret = data_set_new(d, config, config_root(config), *l, read);
	if (ret)
		signal_list_put(*l);
	return ret;
}

static struct sample *new_sample(void)
{
	struct sample *s = calloc(1, sizeof(*s) + VALUES * sizeof(s->data[0]));

	assert_non_null(s);
	s->capacity = VALUES;
	return s;
}

/* One value of each type, and a sample that holds it. */
static const struct {
	const char *type;
	enum signal_type signal;
	union signal_data value;
	size_t size;
	uint8_t bytes[8];
} kinds[] = {
	{ "boolean", SIGNAL_BOOLEAN, { .i = 1 }, 1, { 1 } },
	{ "bool", SIGNAL_BOOLEAN, { .i = 0 }, 1, { 0 } },
	{ "int8", SIGNAL_INTEGER, { .i = -2 }, 1, { 0xfe } },
	{ "int16", SIGNAL_INTEGER, { .i = -2 }, 2, { 0xff, 0xfe } },
	{ "int32", SIGNAL_INTEGER, { .i = INT32_MIN }, 4, { 0x80, 0, 0, 0 } },
	{ "int64", SIGNAL_INTEGER, { .i = -2 }, 8, { 255, 255, 255, 255, 255, 255, 255, 254 } },
	{ "int8u", SIGNAL_INTEGER, { .i = 200 }, 1, { 200 } },
	{ "uint16", SIGNAL_INTEGER, { .i = 65535 }, 2, { 255, 255 } },
	{ "int32u", SIGNAL_INTEGER, { .i = 4000000000 }, 4, { 0xee, 0x6b, 0x28, 0 } },
	{ "uint64", SIGNAL_INTEGER, { .i = 258 }, 8, { 0, 0, 0, 0, 0, 0, 1, 2 } },
	{ "float32", SIGNAL_FLOAT, { .f = -1.5 }, 4, { 0xbf, 0xc0, 0, 0 } },
	{ "float64", SIGNAL_FLOAT, { .f = 0.1 }, 8, { 0x3f, 0xb9, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a } },
	{ "enumerated", SIGNAL_INTEGER, { .i = -1 }, 4, { 255, 255, 255, 255 } },
	{ "coded_enum", SIGNAL_INTEGER, { .i = 2 }, 4, { 0, 0, 0, 2 } },
	{ "bitstring", SIGNAL_INTEGER, { .i = 0x80000001 }, 4, { 0x80, 0, 0, 1 } },
	{ "quality", SIGNAL_INTEGER, { .i = 0x803 }, 4, { 0, 0, 8, 3 } },
	{ "timestamp", SIGNAL_INTEGER, { .i = 1500000000 }, 8, { 0, 0, 0, 1, 0x80, 0, 0, 31 } },
};

static void each_type_is_written_and_read(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct sample *s = new_sample();
		struct signal_list *l;
		struct data_set *d;
		uint8_t bytes[8];
		char text[80];

		snprintf(text, sizeof(text), "signals = ( { iec_type = \"%s\"; } );", kinds[i].type);
		assert_int_equal(parse(text, true, &d, &l), 0);
		assert_int_equal(d->count, 1);
		assert_int_equal(d->size, kinds[i].size);
		assert_int_equal(l->signals[0].type, kinds[i].signal);
		s->data[0] = kinds[i].value;
		s->length = 1;
		assert_int_equal(data_set_put(d, s, l, bytes), 0);
		assert_memory_equal(bytes, kinds[i].bytes, kinds[i].size);
		s->data[0].bits = 0x5555;
		assert_int_equal(data_set_take(d, bytes, s), 0);
		assert_int_equal(s->length, 1);
		assert_int_equal(s->data[0].bits, kinds[i].value.bits);
		free(d);
		free(s);
		signal_list_put(l);
	}
}

static void integers_become_numbers_and_back(void **state)
{
	struct sample *s = new_sample();
	struct signal_list *l;
	struct data_set *d;
	uint8_t bytes[40];

	assert_int_equal(parse("signals = ( { iec_type = \"int16\"; type = \"float\"; count = 2; },"
			       "{ iec_type = \"timestamp\"; type = \"float\"; },"
			       "{ iec_type = \"int64u\"; type = \"float\"; } );", true, &d, &l), 0);
	assert_int_equal(d->size, 20);
	s->data[0].f = -2.5;
	s->data[1].f = 99.7;
	s->data[2].f = 1700000000.25;
	s->data[3].f = 1e19;
	s->length = 4;
	assert_int_equal(data_set_put(d, s, NULL, bytes), 0);
	data_set_take(d, bytes, s);
	assert_true(s->data[0].f == -2 && s->data[1].f == 100 && s->data[2].f == 1700000000.25 &&
		    s->data[3].f == 1e19);
	free(d);
	free(s);
	signal_list_put(l);
}

/* What does not fit becomes the nearest value that does, is counted, and its quality says so. */
static void values_out_of_range_are_clipped(void **state)
{
	static const struct {
		const char *type;
		double value;
		unsigned clipped;
		uint8_t bytes[8];
		uint32_t quality;
	} cases[] = {
		{ "int8", 127.4, 0, { 127 }, 0 },
		{ "int8", 127.6, 1, { 127 }, 7 },
		{ "int8", -1e300, 1, { 128 }, 7 },
		{ "int16", NAN, 1, { 0, 0 }, 1 },
		{ "int64", 9.3e18, 1, { 127, 255, 255, 255, 255, 255, 255, 255 }, 7 },
		{ "int8u", -0.4, 0, { 0 }, 0 },
		{ "int8u", -0.6, 1, { 0 }, 7 },
		{ "int8u", 256, 1, { 255 }, 7 },
		{ "int64u", 1e300, 1, { 255, 255, 255, 255, 255, 255, 255, 255 }, 7 },
		{ "int64u", -INFINITY, 1, { 0 }, 7 },
		{ "int32u", NAN, 1, { 0 }, 1 },
		{ "float32", 1e300, 1, { 0x7f, 0x7f, 0xff, 0xff }, 7 },
		{ "float32", INFINITY, 0, { 0x7f, 0x80, 0, 0 }, 0 },
		{ "timestamp", -1, 1, { 0, 0, 0, 0, 0, 0, 0, 31 }, 7 },
		{ "timestamp", 1e10, 1, { 255, 255, 255, 255, 255, 255, 255, 31 }, 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sample *s = new_sample();
		struct signal_list *l;
		struct data_set *d;
		uint8_t bytes[16];
		char text[100];
		size_t size;

		snprintf(text, sizeof(text),
			 "signals = ( { iec_type = \"%s\"; quality = true; type = \"float\"; } );",
			 cases[i].type);
		assert_int_equal(parse(text, false, &d, &l), 0);
		size = d->size - 4;
		s->data[0].f = cases[i].value;
		s->length = 1;
		assert_int_equal(data_set_put(d, s, l, bytes), cases[i].clipped);
		assert_memory_equal(bytes, cases[i].bytes, size);
		assert_int_equal(bytes[size + 3], cases[i].quality);
		assert_int_equal(data_set_take(d, bytes, s), (cases[i].quality & 3) != 0);
		free(d);
		free(s);
		signal_list_put(l);
	}
}

static void lists_and_letters_are_understood(void **state)
{
	static const struct {
		const char *text;
		unsigned count;
		size_t size;
	} cases[] = {
		{ "signals = \"2f3ib\";", 6, 41 },
		{ "signals = { count = 8; iec_type = \"int32\"; quality = true; };", 8, 64 },
		{ "signals = ( { iec_type = \"float32\"; }, { }, { type = \"integer\"; count = 2; } );", 4, 28 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct signal_list *l;
		struct data_set *d;

		assert_int_equal(parse(cases[i].text, true, &d, &l), 0);
		assert_int_equal(d->count, cases[i].count);
		assert_int_equal(d->size, cases[i].size);
		free(d);
		signal_list_put(l);
	}
}

static void what_cannot_be_is_refused(void **state)
{
	static const char *const cases[] = {
		"signals = ( { iec_type = \"octet_string\"; } );",
		"signals = ( { iec_type = \"float32\"; type = \"integer\"; } );",
		"signals = ( { iec_type = \"int32\"; type = \"boolean\"; } );",
		"signals = ( { iec_type = \"int32\"; type = \"complex\"; } );",
		"signals = \"c\";",
		"signals = ( { quality = 7; } );",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct signal_list *l;
		struct data_set *d;

		assert_int_equal(parse(cases[i], true, &d, &l), -EINVAL);
		assert_null(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_is_written_and_read),
		cmocka_unit_test(integers_become_numbers_and_back),
		cmocka_unit_test(values_out_of_range_are_clipped),
		cmocka_unit_test(lists_and_letters_are_understood),
		cmocka_unit_test(what_cannot_be_is_refused),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	config_destroy(config);
	return ret;
}
