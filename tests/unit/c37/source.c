/* SPDX-License-Identifier: BSD-2-Clause */
/* What a server makes of its configuration, of samples and of commands. */
#include <stdio.h>

#include "device.h"
#include "gateway/node/c37.118/c37_layout.h"
#include "util/container_of.h"

#define NS INT64_C(1700000000999999700)

static const char *const everything =
	"{ name = \"A long name of a station\"; idcode = 3; nominal_frequency = 60; frequency = \"f\"; rocof = \"df\"; stat = \"n\";"
	"  phasor = ( { signal = \"u\"; unit = \"ampere\"; component = \"negative_sequence\"; modifications = ( \"other\" ); }, { signal = \"f\"; name = \"real\"; unit = \"volt\"; } );"
	"  analog = ( { signal = \"n\"; unit = \"rms\"; } ); digital = ( { signal = \"b\"; normal = true; } );"
	"  latitude = 50.5; service_class = \"protection\"; polar = true; },"
	"{ name = \"B\"; frequency = \"f\"; rocof = \"df\"; float_phasors = false; float_analogs = false; float_frequency = false;"
	"  phasors = ( { signal = \"u\"; unit = \"volt\"; scale = 0.5; } ); analogs = ( { signal = \"n\"; scale = 2; } ); }";

static struct c37_frame frame_of(const uint8_t *data, size_t len)
{
	struct c37_frame f;
	const char *why;
	size_t skip;

	assert_true(len);
	assert_int_equal(c37_next(data, len, &f, &skip, &why), (int)len);
	return f;
}

static void a_client_reads_what_the_server_writes(void **state)
{
	static const enum c37_type types[] = { C37_CFG1, C37_CFG2, C37_CFG3 };
	static uint8_t config[C37_FRAME_MAX], data[C37_FRAME_MAX];
	static struct device d;

	device_open(&d, everything, 50);
	for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
		struct c37_frame f = frame_of(config, c37_source_config(&d.source, types[t], 2, NS,
									 config, sizeof(config)));
		struct sample *got = calloc(1, sizeof(*got) + 64 * sizeof(union signal_data));
		const char *why = "";
		struct c37_layout *l;
		bool cfg3 = types[t] == C37_CFG3;

		/* Rounded to the next microsecond, which is in the next second. */
		assert_int_equal(f.soc, 1700000001);
		assert_int_equal(f.fraction, 0);
		assert_int_equal(c37_layout_new(&l, &f, true, &why), 0);
		assert_true(c37_layout_is(l, &f));
		assert_int_equal(l->config.rate, 50);
		/* TIME_QUALITY; STAT, 2 phasors, FREQ, DFREQ, 1 analog, 16 bits; 1 + 1 + 2 + 1. */
		assert_int_equal(l->signals->count, 1 + 22 + 5);
		assert_string_equal(l->signals->signals[0].name, "TIME_QUALITY");
		assert_string_equal(l->signals->signals[1].name,
				    cfg3 ? "A long name of a station:STAT" : "A long name of a:STAT");
		assert_string_equal(l->signals->signals[2].unit, "A");
		assert_string_equal(strchr(l->signals->signals[3].name, ':'), ":real");
		assert_string_equal(strchr(l->signals->signals[8].name, ':'), ":digital1");
		assert_string_equal(l->signals->signals[24].name, "B:u");
		for (uint64_t n = 0; n < 500; n++) {
			size_t len = c37_source_data(&d.source, device_sample(&d, n), NS, data,
						     sizeof(data));

			f = frame_of(data, len);
			assert_true(c37_layout_fits(l, &f));
			got->capacity = 64;
			assert_int_equal(c37_layout_read(l, &f, NULL, got), 0);
			assert_int_equal(got->length, 28);
			assert_int_equal(got->data[1].i, n);
			assert_true(fabs((double)got->data[2].z.re - (double)(n % 1000)) < 1e-3);
			assert_true(fabs((double)got->data[2].z.im + (double)(n % 77)) < 1e-3);
			assert_true(fabs(got->data[4].f - 50 - (double)(n % 100) / 100) < 1e-5);
			assert_true(got->data[5].f == (double)(n % 7) - 3);
			assert_true(got->data[6].f == (double)n);
			assert_int_equal(got->data[7].i, n & 1);
			assert_int_equal(got->data[8].i, 0);
			/* Integers: half units, even numbers. */
			assert_true(fabsf(got->data[24].z.re - (float)(n % 1000)) <= 0.25f);
			assert_true(fabs(got->data[25].f - 50 - (double)(n % 100) / 100) < 1e-5);
			assert_true(got->data[27].f == (double)n || got->data[27].f == (double)n + 1 ||
				    got->data[27].f == (double)n - 1);
			/* Less room, other types. */
			got->capacity = 5;
			assert_int_equal(c37_layout_read(l, &f, NULL, got), 23);
			assert_int_equal(got->length, 5);
		}
		c37_layout_free(l);
		free(got);
	}
	device_close(&d);
}

/* STAT of the two stations of a data frame of `s`. */
static void read_stats(struct device *d, const struct c37_layout *l, const struct sample *s,
		       int64_t stats[2])
{
	static uint8_t data[C37_FRAME_MAX];
	struct sample *got = calloc(1, sizeof(*got) + 64 * sizeof(union signal_data));
	struct c37_frame f = frame_of(data, c37_source_data(&d->source, s, NS, data, sizeof(data)));

	got->capacity = 64;
	c37_layout_read(l, &f, NULL, got);
	stats[0] = got->data[1].i;
	stats[1] = got->data[23].i;
	free(got);
}

static void a_station_without_a_frequency_has_no_good_data(void **state)
{
	static uint8_t config[C37_FRAME_MAX];
	static struct device d;
	struct c37_layout *l;
	struct c37_frame f;
	struct sample *s;
	const char *why;
	int64_t stats[2];

	device_open(&d, everything, 50);
	f = frame_of(config, c37_source_config(&d.source, C37_CFG2, 2, NS, config, sizeof(config)));
	assert_int_equal(c37_layout_new(&l, &f, true, &why), 0);
	s = device_sample(&d, 5);
	read_stats(&d, l, s, stats);
	assert_int_equal(stats[0], 5);
	assert_int_equal(stats[1], 0);
	s->data[DEVICE_F].f = NAN;
	read_stats(&d, l, s, stats);
	assert_int_equal(stats[0], 5 | C37_STAT_ABSENT);
	assert_int_equal(stats[1], C37_STAT_ABSENT);
	/* An error that is given stays the one that it is. */
	s->data[DEVICE_N].i = 0x4000;
	read_stats(&d, l, s, stats);
	assert_int_equal(stats[0], 0x4000);
	c37_layout_free(l);
	device_close(&d);
}

static void values_become_the_types_of_the_node(void **state)
{
	static uint8_t config[4096], data[4096];
	static struct device d;
	struct sample *got = calloc(1, sizeof(*got) + 8 * sizeof(union signal_data));
	struct signal_list *want = signal_list_new(4, SIGNAL_FLOAT);
	struct c37_layout *l;
	struct c37_frame f;
	const char *why;

	device_open(&d, "{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; unit = \"volt\"; } ); analog = ( { signal = \"n\"; } ); }", 50);
	f = frame_of(config, c37_source_config(&d.source, C37_CFG2, 2, NS, config, sizeof(config)));
	assert_int_equal(c37_layout_new(&l, &f, false, &why), 0);
	assert_string_equal(l->signals->signals[0].name, "u");
	f = frame_of(data, c37_source_data(&d.source, device_sample(&d, 4), NS, data, sizeof(data)));
	want->signals[1].type = SIGNAL_INTEGER;
	want->signals[2].type = SIGNAL_BOOLEAN;
	want->signals[3].type = SIGNAL_COMPLEX;
	got->capacity = 8;
	assert_int_equal(c37_layout_read(l, &f, want, got), 0);
	assert_int_equal(got->length, 4);
	assert_true(fabs(got->data[0].f - hypot(4, 4)) < 1e-6);
	assert_int_equal(got->data[1].i, 50);
	assert_int_equal(got->data[2].i, 1);
	assert_true(got->data[3].z.re == 4 && got->data[3].z.im == 0);
	c37_layout_free(l);
	signal_list_put(want);
	free(got);
	device_close(&d);
}

static void commands_are_obeyed_or_not_known(void **state)
{
	static uint8_t answer[4096];
	static struct device d;
	uint8_t bytes[32];

	device_open(&d, "{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; }", 50);
	for (unsigned code = 0; code < 20; code++)
		for (unsigned id = 6; id < 8; id++)
			for (unsigned version = 1; version < 3; version++)
				for (int sends = 0; sends < 2; sends++) {
					const struct c37_frame head = { .version = (uint8_t)version, .idcode = (uint16_t)id };
					struct c37_frame f = frame_of(bytes, c37_encode_command(
						bytes, sizeof(bytes), &head, (uint16_t)code));
					struct c37_answer a = c37_source_answer(&d.source, &f, sends, NS,
										answer, sizeof(answer));

					assert_int_equal(a.known, id == 7 && code >= C37_DATA_OFF &&
								  code <= C37_SEND_CFG3);
					assert_int_equal(!!a.len, a.known && code >= C37_SEND_HEADER);
					assert_true(!a.known || a.sends == (code == C37_DATA_ON ||
									    (code != C37_DATA_OFF && sends)));
					if (!a.len)
						continue;
					f = frame_of(answer, a.len);
					assert_int_equal(f.idcode, 7);
					assert_int_equal(f.type, code == C37_SEND_HEADER ? C37_HEADER :
								 code == C37_SEND_CFG1 ? C37_CFG1 :
								 code == C37_SEND_CFG2 ? C37_CFG2 : C37_CFG3);
					assert_true(f.version == version || f.type == C37_CFG3);
				}
	device_close(&d);
}

/* Of samples that come faster than the rate there go as many as the rate says; of samples at the
 * rate go all, also if some are late. */
static void the_gate_keeps_the_rate(void **state)
{
	for (unsigned every = 1; every < 40; every++) {
		struct c37_gate g = { 0 };
		unsigned sent = 0;

		for (int64_t i = 0; i < 100000; i++)
			sent += c37_gate_admits(&g, 20e6, NS + i * 20000000 / every);
		assert_in_range(sent, 100000 / every, 100000 / every + 2);
	}
	for (unsigned seed = 1; seed < 50; seed++) {
		struct c37_gate g = { 0 };
		uint64_t x = seed;

		for (int64_t i = 0; i < 5000; i++) {
			x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
			/* Some are late by up to a period and a half, which is never the first. */
			assert_true(c37_gate_admits(&g, 20e6, NS + i * 20000000 +
				(int64_t)(i > 2 && i % 4 == 0 ? x >> 40 : 0)));
		}
	}
}

static void what_cannot_be_meant_is_refused(void **state)
{
	static const char *const wrong[] = {
		"{ name = \"A\"; frequency = \"f\"; }",
		"{ frequency = \"f\"; rocof = \"df\"; }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; nominal_frequency = 55; }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; guid = \"no\"; }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; guid = \"00112233-4455-6677-8899-aabbccddeeff00\"; }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { unit = \"volt\"; } ); }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; unit = \"ohm\"; } ); }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; modifications = ( \"none\" ); } ); }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; phasor = ( { signal = \"u\"; } ); phasors = ( { signal = \"u\"; } ); }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; analog = ( 3 ); }",
		"{ name = \"A\"; frequency = \"f\"; rocof = \"df\"; digital = \"b\"; }",
		"3", "",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct c37_source s = { .time_base = 1, .rate = 1, .header = "" };
		struct config *c;
		char text[600];
		int len = snprintf(text, sizeof(text), "out = { pmus = ( %s ); };", wrong[i]);
		json_t *out;

		assert_int_equal(config_load_text("wrong", text, (size_t)len, &c), 0);
		out = json_object_get(config_root(c), "out");
		assert_true(c37_source_parse(&s, c, out, json_object_get(out, "pmus"), DEVICE_UUID) < 0);
		assert_true(config_errors(c) > 0);
		c37_source_destroy(&s);
		config_destroy(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_reads_what_the_server_writes),
		cmocka_unit_test(a_station_without_a_frequency_has_no_good_data),
		cmocka_unit_test(values_become_the_types_of_the_node),
		cmocka_unit_test(commands_are_obeyed_or_not_known),
		cmocka_unit_test(the_gate_keeps_the_rate),
		cmocka_unit_test(what_cannot_be_meant_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
