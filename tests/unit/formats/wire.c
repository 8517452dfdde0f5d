/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the formats of other programs look like byte by byte, and what is read
 * when those programs wrote it. The bytes are written out here by hand.
 */
#include "samples.h"

#include <ctype.h>
#include <math.h>

struct setup {
	struct pool pool;
	struct signal_list *signals;
	struct sample *s, *out[3];
};

/* Types of the signals as letters: f, i, b, c; names a, b, c ... */
static void set_up(struct setup *t, const char *types)
{
	unsigned count = (unsigned)strlen(types);

	assert_int_equal(pool_init(&t->pool, 4, 8, &memory_heap), 0);
	t->signals = signal_list_new(count, SIGNAL_FLOAT);
	for (unsigned i = 0; i < count; i++) {
		t->signals->signals[i].type = types[i] == 'i' ? SIGNAL_INTEGER :
					      types[i] == 'b' ? SIGNAL_BOOLEAN :
					      types[i] == 'c' ? SIGNAL_COMPLEX :
								SIGNAL_FLOAT;
		t->signals->signals[i].name[0] = (char)('a' + i);
		t->signals->signals[i].name[1] = '\0';
	}
	t->s = make_sample(&t->pool);
	for (unsigned i = 0; i < 3; i++)
		t->out[i] = make_sample(&t->pool);
	t->s->signals = t->signals;
	t->s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	t->s->sequence = 0x01020304;
	t->s->origin = (struct timespec){ 0x11223344, 0x0a0b0c0d };
	t->s->length = count;
}

static void tear_down(struct setup *t)
{
	sample_put(t->s);
	sample_put_many(t->out, 3);
	assert_int_equal(pool_destroy(&t->pool), 0);
	signal_list_put(t->signals);
}

static size_t from_hex(const char *hex, char *bytes)
{
	size_t n = 0;
	unsigned v;

	for (; *hex; hex++) {
		if (isspace((unsigned char)*hex))
			continue;
		assert_int_equal(sscanf(hex, "%2x", &v), 1);
		bytes[n++] = (char)v;
		hex++;
	}
	return n;
}

static struct made_format make_message(const char *text, struct setup *t)
{
	struct made_format m = make_format(text, t->signals);

	m.format->message = true;
	return m;
}

/* The sample as a message is these bytes, and reads back from them. */
static void assert_bytes(const char *format, struct setup *t, const char *hex)
{
	struct made_format m = make_message(format, t);
	char want[500], buf[500], got[1001];
	size_t size = from_hex(hex, want), used;

	assert_int_equal(m.format->type->print(m.format, buf, sizeof(buf), &used,
					       &t->s, 1), 1);
	for (size_t i = 0; i < used; i++)
		sprintf(got + 2 * i, "%02x", (unsigned char)buf[i]);
	if (used != size || memcmp(buf, want, size))
		fail_msg("%s printed %s", format, got);
	assert_int_equal(m.format->type->scan(m.format, want, size, &used, t->out,
					      3), 1);
	assert_int_equal(used, size);
	assert_int_equal(t->out[0]->length, t->s->length);
	drop_format(&m);
}

/* The same of text. */
static void assert_text(const char *format, bool message, struct setup *t,
			const char *want)
{
	struct made_format m = make_format(format, t->signals);
	char buf[2000];
	size_t used;

	m.format->message = message;
	assert_int_equal(m.format->type->print(m.format, buf, sizeof(buf) - 1,
					       &used, &t->s, 1), 1);
	buf[used] = '\0';
	assert_string_equal(buf, want);
	assert_int_equal(m.format->type->scan(m.format, buf, used, &used, t->out,
					      3), 1);
	for (unsigned i = 0; i < t->s->length; i++)
		assert_true(t->out[0]->data[i].bits == t->s->data[i].bits);
	drop_format(&m);
}

static void villas_binary_is_what_its_readers_expect(void **state)
{
	struct setup t;

	set_up(&t, "fi");
	t.s->data[0].f = 1.5;
	t.s->data[1].i = -2;
	assert_bytes("{ \"type\": \"villas.binary\", \"source_index\": 7 }", &t,
		     "20 07 0002 01020304 11223344 0a0b0c0d 3fc00000 fffffffe");
	assert_bytes("{ \"type\": \"villas.web\" }", &t,
		     "20 00 0200 04030201 44332211 0d0c0b0a 0000c03f feffffff");
	assert_true(t.out[0]->data[0].f == 1.5 && t.out[0]->data[1].i == -2);
	assert_int_equal(t.out[0]->sequence, 0x01020304);
	assert_same_time(t.out[0]->origin, t.s->origin);
	/* What does not fit is cut, not refused. */
	t.s->sequence = UINT64_C(0x9900000005);
	t.s->data[1].i = INT64_C(0x100000007);
	assert_bytes("{ \"type\": \"villas.binary\" }", &t,
		     "20 00 0002 00000005 11223344 0a0b0c0d 3fc00000 00000007");
	tear_down(&t);
}

static void villas_binary_refuses_what_is_none(void **state)
{
	static const struct {
		const char *format, *hex, *reason;
	} cases[] = {
		{ "villas.binary", "30 00 0000 00000001 00000001 00000001", "version 2" },
		{ "villas.binary", "21 00 0000 00000001 00000001 00000001", "version 2" },
		{ "villas.binary", "20 00 0001 00000001 00000001 00000001 ff", "ends within" },
		{ "villas.binary", "20 00 0000 00000001 00000001 3b9aca00", "version 2" },
		{ "villas.binary", "20 00 0009 00000001 00000001 00000001 0000000000000000 0000000000000000"
		  "0000000000000000 0000000000000000 00000000", "9 values" },
		{ "{ \"type\": \"villas.binary\", \"source_index\": 3, \"validate_source_index\": true }",
		  "20 02 0000 00000001 00000001 00000001", "source_index is 2" },
		{ "protobuf", "0a 05 08", "ends within" },
		{ "protobuf", "17 02 08 01", "no sample begins" },
		{ "protobuf", "0b 08 01 14", "no sample begins" },
		{ "protobuf", "02 00", "no sample begins" },
		{ "protobuf", "0a 06 08 01 1a 02 08 ff", "malformed" },
		{ "protobuf", "0a 09 08 01 a2 06 04 22 02 0d 00", "value 0 is malformed" },
		{ "opal.asyncip", "0000 01000000 0500 0000000000", "5 bytes" },
		{ "{ \"type\": \"raw\", \"bits\": 32 }", "00 00 00 00 00", "no sample" },
		{ "{ \"type\": \"gtnet\", \"fake\": true }", "00000001 00000002", "no sample" },
		{ "{ \"type\": \"gtnet\", \"fake\": true }", "00000001 00000002 ffffffff", "nanoseconds" },
		{ "busbar.binary", "00000000 00000000 00000000 00000000", "no record" },
	};
	struct setup t;

	set_up(&t, "ff");
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_format m;
		char text[200], bytes[200];
		size_t size = from_hex(cases[i].hex, bytes), used;

		snprintf(text, sizeof(text), cases[i].format[0] == '{' ? "%s" :
			 "{ \"type\": \"%s\" }", cases[i].format);
		m = make_message(text, &t);
		if (m.format->type->scan(m.format, bytes, size, &used, t.out, 3) != -EBADMSG)
			fail_msg("accepted: %s", cases[i].hex);
		assert_true(used > 0 && used <= size);
		if (!strstr(format_error(m.format), cases[i].reason))
			fail_msg("'%s' does not say '%s'", format_error(m.format),
				 cases[i].reason);
		drop_format(&m);
	}
	tear_down(&t);
}

static void messages_of_other_kinds_are_passed_over(void **state)
{
	struct setup t;
	struct made_format m;
	char bytes[100];
	size_t size, used;

	set_up(&t, "f");
	m = make_message("{ \"type\": \"villas.binary\" }", &t);
	size = from_hex("24 00 0000 00000001 00000001 00000001" /* start */
			"20 00 0001 00000002 00000001 00000001 40000000"
			"28 00 0000 00000003 00000001 00000001" /* stop */
			/* As early releases had it. */
			"12 00 0000 00000003 00000001 00000001"
			"02 00 0001 00000004 00000001 00000001 40400000", bytes);
	assert_int_equal(m.format->type->scan(m.format, bytes, size, &used, t.out, 3), 2);
	assert_int_equal(used, size);
	assert_int_equal(t.out[0]->sequence, 2);
	assert_true(t.out[0]->data[0].f == 2.0);
	assert_int_equal(t.out[1]->sequence, 4);
	assert_true(t.out[1]->data[0].f == 3.0);
	drop_format(&m);
	tear_down(&t);
}

static void raw_is_bare_numbers_of_any_width_and_order(void **state)
{
	struct setup t;

	set_up(&t, "fibc");
	t.s->data[0].f = 1.5;
	t.s->data[1].i = -2;
	t.s->data[2].i = 1;
	t.s->data[3].z.re = 2.0f;
	t.s->data[3].z.im = -0.5f;
	assert_bytes("{ \"type\": \"raw\" }", &t,
		     "0000c03f feffffff 01000000 00000040 000000bf");
	assert_bytes("{ \"type\": \"raw\", \"bits\": 64, \"endianess\": \"big\" }", &t,
		     "3ff8000000000000 fffffffffffffffe 0000000000000001"
		     "4000000000000000 bfe0000000000000");
	assert_bytes("{ \"type\": \"raw\", \"endianness\": \"big\", \"fake\": true }", &t,
		     "01020304 11223344 0a0b0c0d 3fc00000 fffffffe 00000001 40000000 bf000000");
	assert_same_time(t.out[0]->origin, t.s->origin);
	assert_int_equal(t.out[0]->sequence, t.s->sequence);
	assert_true(t.out[0]->data[1].i == -2 && t.out[0]->data[3].z.im == -0.5f);
	assert_bytes("{ \"type\": \"gtnet\" }", &t,
		     "3fc00000 fffffffe 00000001 40000000 bf000000");
	tear_down(&t);
	set_up(&t, "ib");
	t.s->data[0].i = -2;
	t.s->data[1].i = 1;
	assert_bytes("{ \"type\": \"raw\", \"bits\": 8 }", &t, "fe 01");
	assert_bytes("{ \"type\": \"raw\", \"bits\": 16, \"endianess\": \"big\" }", &t,
		     "fffe 0001");
	assert_true(t.out[0]->data[0].i == -2 && t.out[0]->data[1].i == 1);
	tear_down(&t);
}

static void raw_refuses_options_that_make_no_sense(void **state)
{
	static const char *const cases[] = {
		"{ \"type\": \"raw\", \"bits\": 24 }",
		"{ \"type\": \"raw\", \"bits\": 128 }",
		"{ \"type\": \"raw\", \"endianess\": \"middle\" }",
		"{ \"type\": \"raw\", \"endianess\": \"big\", \"endianness\": \"little\" }",
		"{ \"type\": \"raw\", \"bits\": 16 }", /* the signal is a real */
		"{ \"type\": \"villas.binary\", \"source_index\": 256 }",
		"{ \"type\": \"json\", \"indent\": 32 }",
		"{ \"type\": \"json.kafka\", \"schema\": \"struct\" }",
		"{ \"type\": \"json\", \"compat\": true }",
	};
	struct setup t;

	set_up(&t, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct config *c;
		struct format *f;

		assert_int_equal(config_load_text("test", cases[i],
						  strlen(cases[i]), &c), 0);
		if (!format_new(&f, c, config_root(c), NULL, t.signals))
			fail_msg("accepted: %s", cases[i]);
		config_destroy(c);
	}
	tear_down(&t);
}

static void opal_packets_carry_doubles(void **state)
{
	struct setup t;

	set_up(&t, "fib");
	t.s->data[0].f = 1.5;
	t.s->data[1].i = -2;
	t.s->data[2].i = 1;
	assert_bytes("{ \"type\": \"opal.asyncip\", \"dev_id\": 258 }", &t,
		     "0201 04030201 1800 000000000000f83f 00000000000000c0 000000000000f03f");
	assert_true(t.out[0]->data[1].i == -2 && t.out[0]->data[2].i == 1);
	assert_int_equal(t.out[0]->sequence, t.s->sequence);
	/* A double has no such number; the nearest integer is taken for it. */
	t.s->data[1].i = INT64_MAX;
	assert_bytes("{ \"type\": \"opal.asyncip\" }", &t,
		     "0000 04030201 1800 000000000000f83f 000000000000e043 000000000000f03f");
	assert_true(t.out[0]->data[1].i == INT64_MAX);
	tear_down(&t);
}

static void protobuf_follows_the_schema(void **state)
{
	struct setup t;
	struct made_format m;
	char bytes[100];
	size_t size, used;

	set_up(&t, "fibc");
	t.s->flags |= SAMPLE_HAS_RECEIVED | SAMPLE_NEW_FRAME;
	t.s->sequence = 300;
	t.s->origin = (struct timespec){ 1, 2 };
	t.s->received = (struct timespec){ 200, 3 };
	t.s->data[0].f = 1.5;
	t.s->data[1].i = -1;
	t.s->data[2].i = 1;
	t.s->data[3].z.re = 2.0f;
	t.s->data[3].z.im = -0.5f;
	assert_bytes("{ \"type\": \"protobuf\" }", &t,
		     "0a 42"
		     "08 01" "10 ac02" "1a 04 08 01 10 02" "22 05 08 c801 10 03" "28 01"
		     "a206 09 09 000000000000f83f"
		     "a206 0b 10 ffffffffffffffffff01"
		     "a206 02 18 01"
		     "a206 0c 22 0a 0d 00000040 15 000000bf");
	assert_same(t.s, t.out[0], ~0u);
	/* Any order, unknown fields, and integers for a real signal. */
	m = make_message("{ \"type\": \"protobuf\" }", &t);
	size = from_hex("0a 0f a206 02 10 07 f801 05 10 09 08 01 38 00", bytes);
	bytes[1] = (char)(size - 2);
	if (m.format->type->scan(m.format, bytes, size, &used, t.out, 3) != 1)
		fail_msg("%s", format_error(m.format));
	assert_true(t.out[0]->data[0].f == 7.0);
	assert_int_equal(t.out[0]->sequence, 9);
	drop_format(&m);
	tear_down(&t);
}

/* Fields that the schema does not have: each wire type, with small and large numbers. */
static const char *const unknown[] = {
	"", "f801 05", "f801 ffffffffffffffffff01", "11 0000000000000840", "f901 0001020304050607",
	"12 00", "fa01 03 0a0108", "3d 00000000", "fd01 01020304", "13 14", "13 0805 0a00 14",
	"fb01 0b 0c 1100000000000000f0 fc01", "8880808008 00", "78 01 7a 01 00 7d 00000000",
};

struct bytes {
	char at[3000];
	size_t n;
};

static void add(struct bytes *b, const char *hex)
{
	b->n += from_hex(hex, b->at + b->n);
}

/* A tag, the length, and the message. */
static void add_message(struct bytes *b, const char *tag, const struct bytes *inner)
{
	size_t n = inner->n;

	add(b, tag);
	for (; n >= 0x80; n >>= 7)
		b->at[b->n++] = (char)(n | 0x80);
	b->at[b->n++] = (char)n;
	memcpy(b->at + b->n, inner->at, inner->n);
	b->n += inner->n;
}

/* Two samples with two values each, with `u` at every place of every message. */
static size_t with_unknown(const char *u, char *to)
{
	struct bytes part = { .n = 0 }, value = { .n = 0 }, sample = { .n = 0 }, all = { .n = 0 };

	add(&sample, u);
	add(&sample, "08 01");
	add(&sample, u);
	add(&sample, "10 07");
	add(&part, u);
	add(&part, "08 05");
	add(&part, u);
	add(&part, "10 06");
	add(&part, u);
	add_message(&sample, "1a", &part);
	add(&sample, u);
	add(&value, u);
	add(&value, "09 000000000000f83f");
	add(&value, u);
	add_message(&sample, "a206", &value);
	add(&sample, u);
	part.n = value.n = 0;
	add(&part, u);
	add(&part, "0d 00000040");
	add(&part, u);
	add(&part, "15 000000bf");
	add(&part, u);
	add(&value, u);
	add_message(&value, "22", &part);
	add(&value, u);
	add_message(&sample, "a206", &value);
	add(&sample, u);
	add(&all, u);
	add_message(&all, "0a", &sample);
	add(&all, u);
	add_message(&all, "0a", &sample);
	add(&all, u);
	memcpy(to, all.at, all.n);
	return all.n;
}

static void assert_two_samples(struct setup *t, const char *bytes)
{
	for (int i = 0; i < 2; i++) {
		const struct sample *s = t->out[i];

		if (s->length != 2 || s->data[0].f != 1.5 || s->data[1].z.re != 2.0f ||
		    s->data[1].z.im != -0.5f || s->sequence != 7 || s->origin.tv_sec != 5 ||
		    s->origin.tv_nsec != 6)
			fail_msg("sample %d with unknown fields is another", i);
	}
}

static void unknown_fields_of_protobuf_are_passed_over_on_every_level(void **state)
{
	struct setup t;

	set_up(&t, "fc");
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		struct made_format m = make_message("{ \"type\": \"protobuf\" }", &t);
		char bytes[4000];
		size_t size = with_unknown(unknown[i], bytes), used, more;

		if (m.format->type->scan(m.format, bytes, size, &used, t.out, 3) != 2 || used != size)
			fail_msg("%s: %s", unknown[i], format_error(m.format));
		assert_two_samples(&t, bytes);
		/* The same as a stream, whole, and cut anywhere. */
		m.format->message = false;
		for (size_t cut = 0; cut <= size; cut++) {
			int n = m.format->type->scan(m.format, bytes, cut, &used, t.out, 3), rest;

			assert_true(n >= 0 && used <= cut);
			rest = m.format->type->scan(m.format, bytes + used, size - used, &more,
						    t.out + n, (unsigned)(3 - n));
			if (n + rest != 2 || used + more != size)
				fail_msg("%s cut at %zu: %d and %d, %s", unknown[i], cut, n, rest,
					 format_error(m.format));
		}
		assert_two_samples(&t, bytes);
		drop_format(&m);
	}
	tear_down(&t);
}

/* In a stream what is no field is damage, which is told, and the samples behind it come. */
static void garbage_in_a_stream_of_protobuf_is_told(void **state)
{
	static const char *const garbage[] = { "00", "07", "ff", "0c", "68656c6c6f", "1200000000",
					       "13 14 00", "fa01 ffffff7f", "ffffffffffffffffffff" };
	struct setup t;

	set_up(&t, "fc");
	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct made_format m = make_message("{ \"type\": \"protobuf\" }", &t);
		char bytes[4000];
		size_t before = from_hex(garbage[i], bytes), pos = 0, used;
		size_t size = before + with_unknown("", bytes + before);
		int ret, samples = 0, told = 0;

		m.format->message = false;
		while (pos < size) {
			ret = m.format->type->scan(m.format, bytes + pos, size - pos, &used, t.out, 3);
			assert_true(ret == -EBADMSG || ret > 0);
			samples += ret > 0 ? ret : 0;
			told += ret < 0;
			pos += used;
		}
		if (samples != 2 || !told)
			fail_msg("%s: %d samples, told %d times", garbage[i], samples, told);
		drop_format(&m);
	}
	tear_down(&t);
}

static void json_looks_as_users_know_it(void **state)
{
	struct setup t;

	set_up(&t, "fibc");
	t.s->flags |= SAMPLE_NEW_FRAME;
	t.s->sequence = 5;
	t.s->origin = (struct timespec){ 1637846259, 201578969 };
	t.s->received = (struct timespec){ 1637846259, 201579076 };
	t.s->data[0].f = 1e20;
	t.s->data[1].i = -2;
	t.s->data[2].i = 1;
	t.s->data[3].z.re = 2.0f;
	t.s->data[3].z.im = -0.5f;
	assert_text("{ \"type\": \"json\" }", false, &t,
		"{\"ts\": {\"origin\": [1637846259, 201578969]}, \"flags\": [\"new_frame\"], "
		"\"sequence\": 5, \"data\": [1e20, -2, true, {\"real\": 2.0, \"imag\": -0.5}]}\n");
	t.s->flags = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	assert_text("{ \"type\": \"json\", \"compact\": true }", true, &t,
		"[{\"ts\":{\"origin\":[1637846259,201578969],\"received\":[1637846259,201579076]},"
		"\"data\":[1e20,-2,true,{\"real\":2.0,\"imag\":-0.5}]}]");
	t.s->length = 1;
	t.s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	t.s->data[0].f = INFINITY;
	assert_text("{ \"type\": \"json\", \"indent\": 2, \"sort_keys\": true }", true, &t,
		"[\n  {\n    \"data\": [\n      \"inf\"\n    ],\n    \"sequence\": 5,\n"
		"    \"ts\": {}\n  }\n]");
	t.s->data[0].f = 0.125;
	assert_text("{ \"type\": \"json\", \"real_precision\": 3, \"sequence\": false }", false, &t,
		"{\"ts\": {}, \"data\": [0.125]}\n");
	tear_down(&t);
}

static void json_of_other_writers_is_understood(void **state)
{
	/* Integers for reals, reals for integers, an array in a stream, blanks. */
	static const char text[] =
		"[ {\"data\": [3, 4.0, 1, 2.5], \"sequence\": 1},\n"
		"{\"ts\": {\"origin\": [1, 5]}, \"extra\": {\"a\": \"}\\\"{\"}, \"data\": [null]}\n]\n"
		"{\"data\": [\"-inf\"]}";
	struct setup t;
	struct made_format m;
	size_t used;

	set_up(&t, "fibc");
	m = make_format("{ \"type\": \"json\" }", t.signals);
	if (m.format->type->scan(m.format, text, sizeof(text) - 1, &used, t.out, 3) != 3)
		fail_msg("%s", format_error(m.format));
	assert_int_equal(used, sizeof(text) - 1);
	assert_true(t.out[0]->data[0].f == 3.0 && t.out[0]->data[1].i == 4 &&
		    t.out[0]->data[2].i == 1 && t.out[0]->data[3].z.re == 2.5f);
	assert_same_time(t.out[1]->origin, (struct timespec){ 1, 5 });
	assert_true(isnan(t.out[1]->data[0].f));
	assert_true(t.out[2]->data[0].f == -INFINITY);
	drop_format(&m);
	tear_down(&t);
}

/* One object, and the same with a key that only the full reader knows. */
static void assert_both_readers(struct format *f, struct setup *t,
				const char *object)
{
	char text[400];
	int ret, quick = scan_text(f, object, t->out[0]);

	snprintf(text, sizeof(text), "{\"\": 0,%s", object + 1);
	ret = scan_text(f, text, t->out[1]);
	if (ret != quick)
		fail_msg("%s: %d, and %d with another key", object, quick, ret);
	if (ret != 1)
		return;
	assert_int_equal(t->out[0]->flags, t->out[1]->flags);
	assert_int_equal(t->out[0]->length, t->out[1]->length);
	for (unsigned i = 0; i < t->out[0]->length; i++)
		if (t->out[0]->data[i].bits != t->out[1]->data[i].bits)
			fail_msg("%s: value %u differs", object, i);
}

static void the_quick_and_the_full_reader_agree(void **state)
{
	static const char *const objects[] = {
		"{\"data\": [%s]}", "{\"data\":[ %s ,-1,true]}",
		"{\"data\": [0, %s]}", "{\"data\": [0, 0, %s]}",
		"{\"data\": [0, 0, false, {\"real\": %s, \"imag\": 0.5}]}",
		"{\"data\": [0, 0, false, %s]}",
		"{\"sequence\": %s, \"data\": []}", "{\"sequence\": %s}",
		"{\"ts\": {\"origin\": [%s, 5]}, \"data\": [1]}",
		"{\"ts\": {\"received\": [5, %s]}}",
		"{\"data\": [1], \"data\": [%s]}", "{\"ts\": %s}", "{%s}",
		"{\"data\": %s}", "{\"data\": [1,%s]}", "{\"data\": [1 %s]}",
		"{\"ts\": {}, \"flags\": [\"new_frame\"], \"data\": [%s]}",
	};
	static const char *const values[] = {
		"1", "-1", "0", "-0", "0.5", "-0.0", "1e3", "1E+3", "1.5e-3", "01",
		"1.", ".5", "+1", "1e", "1e+", "0x10", "nan", "NaN", "inf", "- 1",
		"1e999", "-1e999", "1e-999", "9223372036854775807",
		"9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "0.1", "1.7976931348623157e308",
		"5e-324", "123456789012345678901234567890", "true", "false", "null",
		"\"nan\"", "\"1\"", "[]", "{}", "", ",", "1,2", "999999999",
		"1000000000", "tru", "\"real\": 1", "\"ts\": {}", "1e3 ", "1\n",
		"{\"imag\": 1, \"real\": 2}", "{\"real\": 2}",
	};
	struct setup t;
	struct made_format m;
	unsigned accepted = 0;

	set_up(&t, "fibc");
	m = make_format("{ \"type\": \"json\" }", t.signals);
	for (unsigned i = 0; i < ARRAY_SIZE(objects); i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(values); k++) {
			const char *at = strstr(objects[i], "%s");
			char text[300];

			snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - objects[i]),
				 objects[i], values[k], at + 2);
			/* Nothing may follow the key that is put in. */
			if (!strcmp(text, "{}"))
				continue;
			assert_both_readers(m.format, &t, text);
			accepted += scan_text(m.format, text, t.out[0]) == 1;
		}
	}
	assert_true(accepted > 100);
	drop_format(&m);
	tear_down(&t);
}

static void malformed_json_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *format, *text, *reason;
	} cases[] = {
		{ "json", "hello\n", "\"hello\" is no JSON object" },
		{ "json", "{\"data\": [1,]}\n", "not JSON" },
		{ "json", "{\"data\": {}}\n", "data is not an array" },
		{ "json", "{}\n", "none of ts, sequence and data" },
		{ "json", "{\"sequence\": -1}\n", "sequence is not" },
		{ "json", "{\"ts\": {\"origin\": [1]}, \"data\": []}\n", "ts.origin" },
		{ "json", "{\"ts\": {\"origin\": [1, 1000000000]}, \"data\": []}\n", "ts.origin" },
		{ "json", "{\"data\": [\"1\"]}\n", "value 0 is not a number" },
		{ "json", "{\"data\": [1, 1.5]}\n", "value 1 is not an integer" },
		{ "json", "{\"data\": [1, 2, 7]}\n", "value 2 is not true" },
		{ "json", "{\"data\": [1, 2, true, 4, 5, 6, 7, 8, 9]}\n", "holds 8" },
		{ "json", "{\"data\": [1\n{\"data\": [2]}\n", "does not end" },
		{ "json.kafka", "{\"schema\": {}}\n", "no payload" },
		{ "json.edgeflex", "{\"a\": 1, \"created\": \"now\"}\n", "milliseconds" },
		{ "json.reserve", "{\"measurements\": [{\"name\": \"a\"}]}\n", "measurement 0" },
		{ "value", "abc\n", "value \"abc\"" },
		{ "iotagent_ul", "a|x\n", "value \"x\"" },
		{ "iotagent_ul", "a|1|b\n", "name \"b\" has no value" },
	};
	struct setup t;

	set_up(&t, "fib");
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_format m;
		char text[100];

		snprintf(text, sizeof(text), "{ \"type\": \"%s\" }", cases[i].format);
		m = make_format(text, t.signals);
		if (scan_text(m.format, cases[i].text, t.out[0]) != -EBADMSG)
			fail_msg("accepted: %s", cases[i].text);
		if (!strstr(format_error(m.format), cases[i].reason))
			fail_msg("'%s' does not say '%s'", format_error(m.format),
				 cases[i].reason);
		drop_format(&m);
	}
	tear_down(&t);
}

static void named_json_formats_look_as_their_readers_expect(void **state)
{
	struct setup t;

	set_up(&t, "fib");
	t.signals->signals[0].unit = strdup("kV");
	free(t.signals->signals[1].name);
	t.signals->signals[1].name = strdup("i/\xc3\xa4\"");
	t.s->sequence = 5;
	t.s->origin = (struct timespec){ 1637846259, 201578969 };
	t.s->data[0].f = 1.5;
	t.s->data[1].i = -2;
	t.s->data[2].i = 0;
	assert_text("{ \"type\": \"json.edgeflex\" }", false, &t,
		"{\"a\": 1.5, \"i/\xc3\xa4\\\"\": -2, \"c\": false, \"created\": 1637846259201}\n");
	assert_text("{ \"type\": \"json.edgeflex\", \"sort_keys\": true, \"ensure_ascii\": true, "
		    "\"escape_slash\": true }", false, &t,
		"{\"a\": 1.5, \"c\": false, \"created\": 1637846259201, \"i\\/\\u00E4\\\"\": -2}\n");
	assert_same_time(t.out[0]->origin, (struct timespec){ 1637846259, 201000000 });
	assert_text("{ \"type\": \"json.reserve\" }", false, &t,
		"{\"measurements\": ["
		"{\"name\": \"a\", \"value\": 1.5, \"unit\": \"kV\", \"created\": 1637846259201, \"sequence\": 5}, "
		"{\"name\": \"i/\xc3\xa4\\\"\", \"value\": -2, \"created\": 1637846259201, \"sequence\": 5}, "
		"{\"name\": \"c\", \"value\": false, \"created\": 1637846259201, \"sequence\": 5}]}\n");
	t.s->length = 1;
	assert_text("{ \"type\": \"json.kafka\" }", true, &t,
		"[{\"schema\": {\"type\": \"struct\", \"name\": \"villas-node.Value\", \"fields\": ["
		"{\"type\": \"int64\", \"optional\": false, \"field\": \"timestamp\"}, "
		"{\"type\": \"int64\", \"optional\": false, \"field\": \"sequence\"}, "
		"{\"type\": \"double\", \"optional\": false, \"field\": \"a\"}]}, "
		"\"payload\": {\"timestamp\": 1637846259201, \"sequence\": 5, \"a\": 1.5}}]");
	assert_int_equal(t.out[0]->sequence, 5);
	tear_down(&t);
}

static void names_choose_the_signal(void **state)
{
	static const struct {
		const char *format, *text;
	} cases[] = {
		{ "json.edgeflex", "{\"c\": true, \"other\": 9, \"signal_0\": 7, \"created\": 1500.5}" },
		{ "json.reserve", "{\"setpoints\": [{\"name\": \"c\", \"value\": true}, {\"name\": \"a\", \"value\": 7}]}" },
		{ "json.kafka", "{\"payload\": {\"c\": 1, \"a\": 7.0}}" },
		{ "iotagent_ul", "c|1|other|9|a|7\n" },
	};
	struct setup t;

	set_up(&t, "fib");
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_format m;
		char text[100];

		snprintf(text, sizeof(text), "{ \"type\": \"%s\" }", cases[i].format);
		m = make_format(text, t.signals);
		if (scan_text(m.format, cases[i].text, t.out[0]) != 1)
			fail_msg("%s: %s", cases[i].format, format_error(m.format));
		assert_int_equal(t.out[0]->length, 3);
		assert_true(t.out[0]->data[0].f == 7.0 && t.out[0]->data[1].i == 0 &&
			    t.out[0]->data[2].i == 1);
		drop_format(&m);
	}
	tear_down(&t);
}

static void bare_values_and_pairs_are_text(void **state)
{
	struct setup t;

	set_up(&t, "fi");
	t.s->data[0].f = 0.1;
	t.s->data[1].i = 7;
	assert_text("{ \"type\": \"iotagent_ul\" }", true, &t, "a|0.1|b|7");
	assert_text("{ \"type\": \"iotagent_ul\" }", false, &t, "a|0.1|b|7\n");
	t.s->length = 1;
	assert_text("{ \"type\": \"value\" }", true, &t, "0.1\n");
	/* With or without an end of line. */
	assert_text("{ \"type\": \"value\", \"delimiter\": \";\" }", false, &t, "0.1;");
	tear_down(&t);
}

static void a_message_needs_no_end_of_line(void **state)
{
	struct setup t;
	struct made_format m;

	set_up(&t, "f");
	m = make_message("{ \"type\": \"value\" }", &t);
	assert_int_equal(scan_text(m.format, "2.5", t.out[0]), 1);
	assert_true(t.out[0]->data[0].f == 2.5);
	drop_format(&m);
	m = make_message("{ \"type\": \"villas.human\" }", &t);
	assert_int_equal(scan_text(m.format, "1.5(3)\t2.5", t.out[0]), 1);
	assert_int_equal(t.out[0]->sequence, 3);
	drop_format(&m);
	tear_down(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(villas_binary_is_what_its_readers_expect),
		cmocka_unit_test(villas_binary_refuses_what_is_none),
		cmocka_unit_test(messages_of_other_kinds_are_passed_over),
		cmocka_unit_test(raw_is_bare_numbers_of_any_width_and_order),
		cmocka_unit_test(raw_refuses_options_that_make_no_sense),
		cmocka_unit_test(opal_packets_carry_doubles),
		cmocka_unit_test(protobuf_follows_the_schema),
		cmocka_unit_test(unknown_fields_of_protobuf_are_passed_over_on_every_level),
		cmocka_unit_test(garbage_in_a_stream_of_protobuf_is_told),
		cmocka_unit_test(json_looks_as_users_know_it),
		cmocka_unit_test(json_of_other_writers_is_understood),
		cmocka_unit_test(the_quick_and_the_full_reader_agree),
		cmocka_unit_test(malformed_json_is_refused_with_a_reason),
		cmocka_unit_test(named_json_formats_look_as_their_readers_expect),
		cmocka_unit_test(names_choose_the_signal),
		cmocka_unit_test(bare_values_and_pairs_are_text),
		cmocka_unit_test(a_message_needs_no_end_of_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
