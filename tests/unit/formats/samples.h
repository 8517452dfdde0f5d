/* SPDX-License-Identifier: BSD-2-Clause */
/* Random samples and formats by their configuration, for the tests here. */
#ifndef TESTS_FORMATS_SAMPLES_H
#define TESTS_FORMATS_SAMPLES_H

#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/plugin/format.h"
#include "gateway/base/memory.h"

static uint64_t random_state = 0x2545f4914f6cdd1d;

/* splitmix64 */
static inline uint64_t random_bits(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* A format with its configuration, which must outlive it. */
struct made_format {
	struct config *config;
	struct format *format;
};

/* `text` is a JSON object; the test fails when it is refused. */
static inline struct made_format make_format(const char *text,
					     struct signal_list *signals)
{
	struct made_format m;

	assert_int_equal(config_load_text("test", text, strlen(text), &m.config), 0);
	assert_int_equal(format_new(&m.format, m.config, config_root(m.config),
				    NULL, signals), 0);
	return m;
}

static inline void drop_format(struct made_format *m)
{
	format_destroy(m->format);
	config_destroy(m->config);
}

static inline struct sample *make_sample(struct pool *p)
{
	struct sample *s = sample_alloc(p);

	assert_non_null(s);
	return s;
}

static inline void randomise_value(union signal_data *d, enum signal_type type)
{
	static const double special[] = { 0.0, -0.0, 1.0, -1.0, 1e300, 5e-324,
					  0.1, 1e17, 123456.789 };
	uint32_t halves[2];

	d->bits = random_bits();
	switch (type) {
	case SIGNAL_FLOAT:
		if (d->bits % 8 == 0)
			d->f = special[d->bits / 8 % ARRAY_SIZE(special)];
		else if (d->bits % 8 == 1)
			d->f = d->bits & 256 ? __builtin_inf() : -__builtin_inf();
		/* A NaN reads back as the one quiet NaN: no payload here. */
		if (d->f != d->f)
			d->f = __builtin_nan("");
		break;
	case SIGNAL_INTEGER:
		break;
	case SIGNAL_BOOLEAN:
		d->i = d->bits & 1;
		break;
	case SIGNAL_COMPLEX:
		memcpy(halves, d, sizeof(halves));
		if (d->z.re != d->z.re)
			d->z.re = __builtin_nanf("");
		if (d->z.im != d->z.im)
			d->z.im = -0.0f;
		break;
	}
}

static inline struct timespec random_time(void)
{
	return (struct timespec){ .tv_sec = (time_t)(random_bits() >> 31),
				  .tv_nsec = (long)(random_bits() % 1000000000) };
}

static inline void randomise(struct sample *s, unsigned length,
			     struct signal_list *signals)
{
	uint64_t bits = random_bits();

	s->signals = signals;
	s->length = length;
	s->flags = bits & (SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			   SAMPLE_HAS_RECEIVED | SAMPLE_NEW_FRAME);
	if (length)
		s->flags |= SAMPLE_HAS_DATA;
	s->sequence = random_bits() >> (bits >> 8) % 64;
	s->origin = random_time();
	s->received = random_time();
	if (bits & 64) /* ordinary: a little later */
		s->received = (struct timespec){ s->origin.tv_sec,
						 (s->origin.tv_nsec + 5000) % 1000000000 };
	for (unsigned i = 0; i < length; i++)
		randomise_value(&s->data[i], i < signals->count ?
					signals->signals[i].type : SIGNAL_FLOAT);
}

static inline void assert_same_time(struct timespec a, struct timespec b)
{
	assert_int_equal(a.tv_sec, b.tv_sec);
	assert_int_equal(a.tv_nsec, b.tv_nsec);
}

/* Bit by bit, of what `flags` says is there. */
static inline void assert_same(const struct sample *a, const struct sample *b,
			       uint32_t flags_mask)
{
	assert_int_equal(a->flags & flags_mask, b->flags & flags_mask);
	if (a->flags & SAMPLE_HAS_SEQUENCE)
		assert_true(a->sequence == b->sequence);
	if (a->flags & SAMPLE_HAS_ORIGIN)
		assert_same_time(a->origin, b->origin);
	if (a->flags & SAMPLE_HAS_RECEIVED)
		assert_same_time(a->received, b->received);
	assert_int_equal(a->length, b->length);
	for (unsigned i = 0; i < a->length; i++)
		if (a->data[i].bits != b->data[i].bits)
			fail_msg("value %u: %#jx was %#jx", i,
				 (uintmax_t)b->data[i].bits,
				 (uintmax_t)a->data[i].bits);
}

/* One text through scan(); returns its answer. */
static inline int scan_text(struct format *f, const char *text, struct sample *s)
{
	/* Exactly as long as the text, so that a sanitizer sees any overrun. */
	size_t len = strlen(text), used;
	char *copy = malloc(len ? len : 1);
	int ret;

	memcpy(copy, text, len);
	ret = f->type->scan(f, copy, len, &used, &s, 1);
	free(copy);
	return ret;
}

#endif
