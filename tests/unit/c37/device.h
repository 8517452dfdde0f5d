/* SPDX-License-Identifier: BSD-2-Clause */
/* A server's stations from a configuration, and samples for it. */
#ifndef TESTS_UNIT_C37_DEVICE_H
#define TESTS_UNIT_C37_DEVICE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/config.h"
#include "gateway/node/c37.118/c37_source.h"
#include "gateway/sample/signals.h"

#define DEVICE_UUID "00112233-4455-6677-8899-aabbccddeeff"
/* The signals n (a number), f, df, u (complex) and b (a bit). */
enum { DEVICE_N, DEVICE_F, DEVICE_DF, DEVICE_U, DEVICE_B, DEVICE_VALUES };

struct device {
	struct config *config;
	struct c37_source source;
	struct signal_list *signals;
	char memory[sizeof(struct sample) + DEVICE_VALUES * sizeof(union signal_data)];
};

static inline struct sample *device_sample(struct device *d, uint64_t n)
{
	struct sample *s = (struct sample *)(void *)d->memory;

	s->length = s->capacity = DEVICE_VALUES;
	s->data[DEVICE_N].i = (int64_t)n;
	s->data[DEVICE_F].f = 50 + (double)(n % 100) / 100;
	s->data[DEVICE_DF].f = (double)(n % 7) - 3;
	s->data[DEVICE_U].z.re = (float)(n % 1000);
	s->data[DEVICE_U].z.im = -(float)(n % 77);
	s->data[DEVICE_B].i = (int64_t)(n & 1);
	return s;
}

static inline void device_open(struct device *d, const char *pmus, int16_t rate)
{
	static const struct {
		const char *name;
		enum signal_type type;
	} signals[DEVICE_VALUES] = {
		{ "n", SIGNAL_INTEGER }, { "f", SIGNAL_FLOAT }, { "df", SIGNAL_FLOAT },
		{ "u", SIGNAL_COMPLEX }, { "b", SIGNAL_BOOLEAN },
	};
	const char *missing;
	char text[4000];
	int len = snprintf(text, sizeof(text), "out = { pmus = ( %s ); };", pmus);
	json_t *out;

	*d = (struct device){ .source = { .idcode = 7, .time_base = 1000000, .rate = rate,
		.period_ns = rate > 0 ? 1e9 / rate : -1e9 * rate, .header = "a device" } };
	assert_int_equal(config_load_text("device", text, (size_t)len, &d->config), 0);
	out = json_object_get(config_root(d->config), "out");
	assert_int_equal(c37_source_parse(&d->source, d->config, out, json_object_get(out, "pmus"),
					  DEVICE_UUID), 0);
	d->signals = signal_list_alloc(DEVICE_VALUES);
	for (unsigned i = 0; i < DEVICE_VALUES; i++)
		signal_set(&d->signals->signals[i], signals[i].name, NULL, signals[i].type);
	assert_true(c37_source_bind(&d->source, d->signals, &missing));
}

static inline void device_close(struct device *d)
{
	c37_source_destroy(&d->source);
	signal_list_put(d->signals);
	config_destroy(d->config);
}

#endif
