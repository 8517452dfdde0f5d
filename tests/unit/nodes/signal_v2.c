/* SPDX-License-Identifier: BSD-2-Clause */
/* signal.v2: each signal as its entry says, the shapes those of `signal`. */
#include "fixture.h"

#include "gateway/part/signal_source.h"

#include <math.h>

static struct pool pool;
static struct sample *smp, *other;

static int set_up(void **state)
{
	if (pool_init(&pool, 64, 64, &memory_heap))
		return -1;
	smp = sample_alloc(&pool);
	other = sample_alloc(&pool);
	return 0;
}

static int tear_down(void **state)
{
	sample_put(smp);
	sample_put(other);
	return (int)pool_destroy(&pool);
}

#define VIRTUAL "\"realtime\": false, \"rate\": 1000, "

static void each_signal_is_what_its_entry_says(void **state)
{
	struct made_node m;

	make_node(&m, &node_signal_v2, "{ " VIRTUAL "\"in\": { \"signals\": ["
		  "{ \"name\": \"u\", \"unit\": \"V\", \"signal\": \"sine\", \"frequency\": 50, \"amplitude\": 2, \"phase\": 0.5, \"offset\": 3 },"
		  "{ \"name\": \"n\", \"type\": \"integer\", \"signal\": \"counter\", \"offset\": 100 },"
		  "{ \"name\": \"p\", \"type\": \"boolean\", \"signal\": \"pulse\", \"frequency\": 100, \"pulse_width\": 3, \"pulse_low\": -1, \"pulse_high\": 7 },"
		  "{ \"name\": \"k\", \"count\": 2, \"signal\": \"constant\", \"amplitude\": 4.5 },"
		  "{ \"signal\": \"ramp\", \"frequency\": 0.25 } ] } }");
	assert_int_equal(m.node.in.signals->count, 6);
	assert_string_equal(m.node.in.signals->signals[0].name, "u");
	assert_string_equal(m.node.in.signals->signals[0].unit, "V");
	assert_string_equal(m.node.in.signals->signals[4].name, "k1");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned step = 0; step < 1000; step++) {
		double t = step / 1000.0;

		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->length, 6);
		assert_true(fabs(smp->data[0].f - 3 - 2 * sin(100 * M_PI * t + 0.5)) < 1e-9);
		assert_int_equal(smp->data[1].i, 100 + step);
		assert_int_equal(smp->data[2].i, step % 10 < 3);
		assert_true(smp->data[3].f == 4.5 && smp->data[4].f == 4.5);
		assert_true(fabs(smp->data[5].f - fmod(t, 0.25)) < 1e-9);
	}
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void it_generates_the_same_as_signal(void **state)
{
	struct made_node v1, v2;

	make_node(&v1, &node_signal, "{ " VIRTUAL "\"values\": 9, \"seed\": 5 }");
	make_node(&v2, &node_signal_v2, "{ " VIRTUAL "\"seed\": 5, \"in\": { \"signals\": \"9f\" } }");
	assert_int_equal(v1.node.type->start(&v1.node), 0);
	assert_int_equal(v2.node.type->start(&v2.node), 0);
	for (unsigned step = 0; step < 500; step++) {
		assert_int_equal(node_read_one(&v1, smp), 1);
		assert_int_equal(node_read_one(&v2, other), 1);
		assert_int_equal(smp->length, 9);
		assert_int_equal(other->length, 9);
		assert_memory_equal(smp->data, other->data, 72);
	}
	v1.node.type->stop(&v1.node);
	v2.node.type->stop(&v2.node);
	drop_node(&v1);
	drop_node(&v2);
}

static void mixed_goes_through_the_shapes_by_the_entries_that_are_mixed(void **state)
{
	static const enum waveform shapes[] = { WAVEFORM_COUNTER, WAVEFORM_RANDOM,
						WAVEFORM_CONSTANT, WAVEFORM_SINE };
	const struct signal_source *source;
	struct made_node m;

	make_node(&m, &node_signal_v2, "{ \"in\": { \"signals\": [ { \"signal\": \"counter\" }, "
		  "{ \"signal\": \"mixed\" }, { \"signal\": \"constant\" }, "
		  "{ \"signal\": \"mixed\" } ] } }");
	source = m.node.private_data;
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++)
		assert_int_equal(source->generator.values[i].waveform, shapes[i]);
	drop_node(&m);
}

static void one_entry_stands_for_many_until_the_limit(void **state)
{
	struct sample *smps[8];
	unsigned release = 8;
	struct made_node m;

	make_node(&m, &node_signal_v2, "{ " VIRTUAL "\"limit\": 5, \"in\": { \"signals\": { \"count\": 3, \"name\": \"x\", \"signal\": \"counter\" } } }");
	assert_string_equal(m.node.in.signals->signals[2].name, "x2");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(sample_alloc_many(&pool, smps, 8), 8);
	assert_int_equal(node_read(&m.node, smps, 8, &release), 5);
	assert_true(smps[4]->data[2].f == 4);
	assert_int_equal(node_read(&m.node, smps, 8, &release), -ENODATA);
	sample_put_many(smps, 8);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void wrong_settings_are_refused(void **state)
{
	static const char *const texts[] = {
		"{ }",
		"{ \"in\": { } }",
		"{ \"in\": { \"signals\": [ { \"signal\": \"sinus\" } ] } }",
		"{ \"in\": { \"signals\": [ { \"frequncy\": 5 } ] } }",
		"{ \"in\": { \"signals\": [ { \"frequency\": 0 } ] } }",
		"{ \"in\": { \"signals\": [ { \"amplitude\": \"much\" } ] } }",
		"{ \"in\": { \"signals\": [ { \"amplitude\": [ 1, 2 ] } ] } }",
		"{ \"in\": { \"signals\": [ { \"type\": \"real\" } ] } }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct made_node m;

		if (try_node(&m, &node_signal_v2, texts[i]) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_true(config_errors(m.config) > 0);
		drop_node(&m);
	}
}

static void keys_of_the_generator_are_refused_elsewhere(void **state)
{
	struct made_node m;

	assert_int_equal(try_node(&m, &node_signal, "{ \"in\": { \"signals\": [ { \"name\": \"a\", \"frequency\": 5 } ] } }"),
			 -EINVAL);
	drop_node(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_signal_is_what_its_entry_says),
		cmocka_unit_test(it_generates_the_same_as_signal),
		cmocka_unit_test(mixed_goes_through_the_shapes_by_the_entries_that_are_mixed),
		cmocka_unit_test(one_entry_stands_for_many_until_the_limit),
		cmocka_unit_test(wrong_settings_are_refused),
		cmocka_unit_test(keys_of_the_generator_are_refused_elsewhere),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
