/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of busbar.binary as its manual page gives it: values can be used
 * where they lie, the stream describes itself, damage is noticed and passed over.
 */
#include "samples.h"

#define COUNT 3

struct setup {
	struct pool pool;
	struct signal_list *signals;
	struct made_format m;
	struct sample *in[COUNT], *out[COUNT];
	/* As a mapped file: aligned. */
	_Alignas(8) char buf[4096];
	size_t head, size;
};

static void set_up(struct setup *t)
{
	static const enum signal_type types[] = { SIGNAL_FLOAT, SIGNAL_INTEGER,
						  SIGNAL_BOOLEAN, SIGNAL_COMPLEX };
	size_t used;

	t->signals = signal_list_new(4, SIGNAL_FLOAT);
	for (unsigned i = 0; i < 4; i++)
		t->signals->signals[i].type = types[i];
	t->signals->signals[1].unit = strdup("kV");
	assert_int_equal(pool_init(&t->pool, 2 * COUNT, 4, &memory_heap), 0);
	t->m = make_format("{ \"type\": \"busbar.binary\" }", t->signals);
	for (unsigned i = 0; i < COUNT; i++) {
		t->in[i] = make_sample(&t->pool);
		t->out[i] = make_sample(&t->pool);
		randomise(t->in[i], 4, t->signals);
		t->in[i]->flags |= SAMPLE_HAS_SEQUENCE; /* to tell them apart */
	}
	t->head = t->m.format->type->header(t->m.format, t->buf, sizeof(t->buf),
					    t->signals);
	assert_int_equal(t->m.format->type->print(t->m.format, t->buf + t->head,
			sizeof(t->buf) - t->head, &used, t->in, COUNT), COUNT);
	t->size = t->head + used;
}

static void tear_down(struct setup *t)
{
	sample_put_many(t->in, COUNT);
	sample_put_many(t->out, COUNT);
	assert_int_equal(pool_destroy(&t->pool), 0);
	drop_format(&t->m);
	signal_list_put(t->signals);
}

static uint32_t word(const char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static void values_lie_aligned_where_the_manual_says(void **state)
{
	struct setup t;
	size_t at;

	set_up(&t);
	assert_memory_equal(t.buf, "BBh\1", 4);
	assert_int_equal(word(t.buf + 4), t.head);
	for (unsigned i = 0; i < COUNT; i++) {
		const struct sample *s = t.in[i];

		at = t.head + i * (56 + 4 * 8);
		assert_int_equal(at % 8, 0);
		assert_memory_equal(t.buf + at, "BBs\1", 4);
		assert_int_equal(word(t.buf + at + 4), 56 + 4 * 8);
		assert_int_equal(word(t.buf + at + 12), s->flags);
		if (s->flags & SAMPLE_HAS_SEQUENCE)
			assert_memory_equal(t.buf + at + 16, &s->sequence, 8);
		if (s->flags & SAMPLE_HAS_ORIGIN)
			assert_memory_equal(t.buf + at + 24, &s->origin.tv_sec, 8);
		assert_int_equal(word(t.buf + at + 48), 4);
		/* In place. */
		assert_memory_equal(t.buf + at + 56, s->data, 4 * 8);
	}
	tear_down(&t);
}

static void a_stream_tells_names_types_and_units(void **state)
{
	struct setup t;
	struct made_format plain;
	struct signal_list *l;
	size_t used;

	set_up(&t);
	/* A reader that knows nothing. */
	plain = make_format("{ \"type\": \"busbar.binary\" }", NULL);
	l = plain.format->type->names(plain.format, t.buf, t.size);
	assert_non_null(l);
	assert_int_equal(l->count, 4);
	signal_list_put(l);
	assert_int_equal(plain.format->type->scan(plain.format, t.buf, t.size,
						  &used, t.out, COUNT), COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_same(t.in[i], t.out[i], ~0u);
		assert_int_equal(t.out[i]->signals->signals[3].type, SIGNAL_COMPLEX);
		assert_string_equal(t.out[i]->signals->signals[1].unit, "kV");
		assert_null(t.out[i]->signals->signals[0].unit);
	}
	/* The beginning is cut off: nothing tells what the bits mean. */
	plain.format->type->reset(plain.format);
	assert_int_equal(plain.format->type->scan(plain.format, t.buf + t.head,
			t.size - t.head, &used, t.out, COUNT), -EBADMSG);
	assert_non_null(strstr(format_error(plain.format), "types"));
	drop_format(&plain);
	tear_down(&t);
}

/* Any one bit of the stream turned over: it is noticed, all else is read. */
static void a_turned_bit_costs_one_record(void **state)
{
	struct setup t;

	set_up(&t);
	for (size_t bit = t.head * 8; bit < t.size * 8; bit++) {
		unsigned good = 0, bad = 0;
		size_t pos = 0, used;

		t.buf[bit / 8] ^= (char)(1 << bit % 8);
		t.m.format->type->reset(t.m.format);
		while (pos < t.size) {
			int ret = t.m.format->type->scan(t.m.format, t.buf + pos,
					t.size - pos, &used, t.out, COUNT);

			for (int i = 0; i < ret; i++)
				for (unsigned k = 0; k < COUNT; k++)
					good += t.out[i]->sequence == t.in[k]->sequence &&
						!memcmp(t.out[i]->data, t.in[k]->data, 32);
			bad += ret < 0;
			assert_true(used > 0 || !ret);
			if (!ret)
				break;
			pos += used;
		}
		t.buf[bit / 8] ^= (char)(1 << bit % 8);
		/* The last bytes might begin a mark that is still to come. */
		if (good != COUNT - 1 || !bad || pos + 3 < t.size)
			fail_msg("bit %zu: %u samples, %u errors", bit, good, bad);
	}
	tear_down(&t);
}

static void bytes_that_come_or_go_cost_one_record(void **state)
{
	struct setup t;

	set_up(&t);
	for (size_t cut = 1; cut < 60; cut++) {
		char *less = malloc(t.size);
		size_t at = t.head + 20, size = t.size - cut, pos = 0, used;
		unsigned good = 0;

		memcpy(less, t.buf, at);
		memcpy(less + at, t.buf + at + cut, size - at);
		while (pos < size) {
			int ret = t.m.format->type->scan(t.m.format, less + pos,
					size - pos, &used, t.out, COUNT);

			if (ret > 0)
				good += (unsigned)ret;
			if (!ret)
				break;
			pos += used;
		}
		free(less);
		assert_int_equal(good, COUNT - 1);
	}
	tear_down(&t);
}

static void another_description_takes_effect_where_it_stands(void **state)
{
	struct setup t;
	struct made_format plain = make_format("{ \"type\": \"busbar.binary\" }", NULL);
	struct signal_list *other = signal_list_new(4, SIGNAL_INTEGER);
	struct sample *s;
	size_t at, used;

	set_up(&t);
	s = t.in[0];
	s->signals = other;
	at = t.size;
	at += t.m.format->type->header(t.m.format, t.buf + at, sizeof(t.buf) - at, other);
	assert_int_equal(t.m.format->type->print(t.m.format, t.buf + at,
			sizeof(t.buf) - at, &used, &s, 1), 1);
	assert_int_equal(plain.format->type->scan(plain.format, t.buf, at + used,
						  &used, t.out, COUNT), COUNT);
	assert_int_equal(t.out[0]->signals->signals[0].type, SIGNAL_FLOAT);
	assert_int_equal(plain.format->type->scan(plain.format, t.buf + used,
			at + 200 - used, &used, t.out, 1), 1);
	assert_int_equal(t.out[0]->signals->signals[0].type, SIGNAL_INTEGER);
	drop_format(&plain);
	tear_down(&t);
	signal_list_put(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_lie_aligned_where_the_manual_says),
		cmocka_unit_test(a_stream_tells_names_types_and_units),
		cmocka_unit_test(a_turned_bit_costs_one_record),
		cmocka_unit_test(bytes_that_come_or_go_cost_one_record),
		cmocka_unit_test(another_description_takes_effect_where_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
