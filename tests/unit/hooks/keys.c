/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every key of every hook does something: with another value than in a plain
 * configuration other samples come out, other signals, other lines in the log or in
 * a file, or the value is refused. A new key of a hook has to get a row here.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "util/log.h"

#define KEYS_MAX 20
#define SAMPLES 3000

/* As JSON. The signals u, i, p, q are reals; %s in a value is a folder. */
struct row {
	const char *hook, *plain;
	enum hook_place place;
	unsigned rate_hz; /* of the samples; 0: 1000 */
	struct { const char *key, *value; } changes[KEYS_MAX];
};

#define R HOOK_NODE_READ
#define P HOOK_PATH
#define U "\"signals\": [\"u\"]"
#define SELECT { "signal", "\"i\"" }, { "signals", "[\"i\", \"q\"]" }
#define PHASORS U ", \"sample_rate\": 1000, \"dft_rate\": 10"
#define PHASOR_CHANGES                                                        \
	SELECT, { "sample_rate", "500" }, { "dft_rate", "20" },               \
	{ "window_type", "\"hann\"" }, { "angle_unit", "\"degree\"" },        \
	{ "add_channel_name", "false" }, { "timestamp_align", "\"left\"" },   \
	{ "phase_offset", "1" }, { "amplitude_offset", "1" },                 \
	{ "frequency_offset", "1" }, { "rocof_offset", "1" }

static const struct row rows[] = {
	{ "average", "\"signals\": [\"u\", \"i\"], \"offset\": 0", R, 0,
	  { SELECT, { "offset", "2" } } },
	{ "cast", U ", \"new_type\": \"integer\"", R, 0,
	  { SELECT, { "new_type", "\"boolean\"" }, { "new_name", "\"x\"" },
	    { "new_unit", "\"V\"" } } },
	{ "decimate", "\"ratio\": 3", R, 0,
	  { { "ratio", "4" }, { "renumber", "true" } } },
	{ "digest", "\"uri\": \"%s/out\"", P, 0,
	  { { "uri", "\"%s/other\"" }, { "algorithm", "\"md5\"" } } },
	{ "dp", "\"signal\": \"u\", \"f0\": 50, \"rate\": 1000, \"harmonics\": [0, 1]", R, 0,
	  { SELECT, { "f0", "40" }, { "dt", "0.002" }, { "rate", "2000" },
	    { "harmonics", "[0, 2]" }, { "inverse", "true" } } },
	{ "ebm", "\"phases\": [[\"u\", \"i\"]]", R, 0,
	  { { "phases", "[[\"u\", \"q\"]]" }, { "add_signal", "true" } } },
	{ "frame", "\"interval\": 100", P, 0,
	  { { "trigger", "\"sequence\"" }, { "interval", "\"2s\"" },
	    { "unit", "\"seconds\"" }, { "offset", "30" } } },
	{ "gate", "\"signal\": \"u\"", R, 0,
	  { SELECT, { "mode", "\"above\"" }, { "threshold", "0.9" },
	    { "duration", "0.004" }, { "samples", "5" } } },
	{ "ip-dft-pmu", PHASORS ", \"window_type\": \"hamming\", \"estimation_range\": 5", R, 0,
	  { PHASOR_CHANGES, { "nominal_freq", "60" }, { "number_plc", "4" },
	    { "estimation_range", "2" } } },
	{ "limit_rate", "\"rate\": 100, \"mode\": \"origin\"", R, 0,
	  { { "rate", "50" }, { "mode", "\"received\"" } } },
	{ "limit_value", U ", \"min\": -0.5, \"max\": 0.5", R, 0,
	  { SELECT, { "min", "-0.1" }, { "max", "0.2" } } },
	{ "lua", "\"signals\": [{ \"name\": \"x\", \"expression\": \"smp.data.i\" }]", R, 0,
	  { { "signals", "[{ \"name\": \"x\", \"expression\": \"smp.data.u\" }]" },
	    { "use_names", "false" }, { "script", "\"%s/script\"" } } },
	{ "ma", U ", \"window_size\": 5", R, 0,
	  { SELECT, { "window_size", "6" } } },
	{ "pmu", PHASORS, R, 0,
	  { PHASOR_CHANGES, { "nominal_freq", "60" }, { "number_plc", "4" } } },
	{ "pmu_dft", PHASORS ", \"start_frequency\": 40, \"end_frequency\": 60, \"frequency_resolution\": 1", R, 0,
	  { PHASOR_CHANGES, { "start_frequency", "52" }, { "start_freqency", "52" },
	    { "end_frequency", "45" }, { "end_freqency", "45" },
	    { "frequency_resolution", "3" }, { "window_size_factor", "2" },
	    { "padding_type", "\"signal_repeat\"" }, { "pps_index", "1" } } },
	/* The rest of it; a row has room for so many. */
	{ "pmu_dft", PHASORS ", \"start_frequency\": 40, \"end_frequency\": 60, \"frequency_resolution\": 1", R, 0,
	  { { "estimate_type", "\"quadratic\"" },
	    { "frequency_estimate_type", "\"quadratic\"" } } },
	{ "power", "\"window_size\": 20, \"pairings\": [{ \"voltage\": \"u\", \"current\": \"i\" }]", R, 0,
	  /* These two are only looked up: the signals are those of the pairs. */
	  { { "signal", "\"nobody\"" }, { "signals", "[\"nobody\"]" },
	    { "window_size", "40" },
	    { "pairings", "[{ \"voltage\": \"u\", \"current\": \"q\" }]" },
	    { "active_power", "false" }, { "reactive_power", "false" },
	    { "apparent_power", "false" }, { "cos_phi", "false" },
	    { "add_channel_name", "true" }, { "timestamp_align", "\"left\"" },
	    { "angle_unit", "\"degree\"" } } },
	{ "pps_ts", "\"signal\": \"p\"", R, 100,
	  { SELECT, { "threshold", "3" }, { "mode", "\"horizon\"" } } },
	{ "pps_ts", "\"signal\": \"p\", \"mode\": \"horizon\", \"expected_smp_rate\": 100", R, 100,
	  { { "expected_smp_rate", "110" }, { "horizon_estimation", "3" },
	    { "horizon_compensation", "3" } } },
	{ "print", "\"output\": \"%s/out\"", R, 0,
	  { { "output", "\"%s/other\"" }, { "format", "\"csv\"" },
	    { "prefix", "\"x\"" } } },
	{ "reorder_ts", "\"window_size\": 4", R, 0,
	  { { "window_size", "5" }, { "flush", "true" } } },
	{ "rms", U ", \"window_size\": 5", R, 0,
	  { SELECT, { "window_size", "6" } } },
	{ "round", U, R, 0, { SELECT, { "precision", "2" } } },
	{ "scale", U ", \"offset\": 1", R, 0,
	  { SELECT, { "scale", "3" }, { "gain", "3" }, { "offset", "2" } } },
	{ "shift_seq", "\"offset\": 1", R, 0, { { "offset", "2" } } },
	{ "shift_ts", "\"offset\": 1", R, 0,
	  { { "offset", "2" }, { "mode", "\"received\"" } } },
	{ "skip_first", "\"seconds\": 0.1", R, 0,
	  { { "seconds", "0.5" }, { "samples", "7" } } },
	{ "stats", "\"output\": \"%s/out\", \"verbose\": true, \"warmup\": 50", R, 0,
	  { { "output", "\"%s/other\"" }, { "format", "\"json\"" },
	    { "verbose", "false" }, { "warmup", "1000" }, { "buckets", "7" } } },
};

static char folder[64];
static unsigned failures;

/* ---- what a configuration does ---- */

static uint64_t mix(uint64_t sum, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
	return sum;
}

static uint64_t mix_text(uint64_t sum, const char *text)
{
	return mix(sum, text ? text : "(none)", text ? strlen(text) + 1 : 7);
}

/* Lines without the time that they begin with. */
static uint64_t mix_log(uint64_t sum, const char *log)
{
	for (const char *line = log; *line;) {
		const char *end = strchrnul(line, '\n');
		const char *text = memchr(line, ' ', (size_t)(end - line));

		text = text ? text : line;
		sum = mix(sum, text, (size_t)(end - text));
		line = *end ? end + 1 : end;
	}
	return sum;
}

static uint64_t mix_sample(uint64_t sum, const struct sample *s)
{
	sum = mix(sum, &s->sequence, sizeof(s->sequence));
	sum = mix(sum, &s->origin, sizeof(s->origin));
	sum = mix(sum, &s->received, sizeof(s->received));
	sum = mix(sum, &s->flags, sizeof(s->flags));
	return mix(sum, s->data, s->length * sizeof(s->data[0]));
}

static uint64_t mix_file(uint64_t sum, const char *name)
{
	char path[100], buffer[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "r");
	while (f && (n = fread(buffer, 1, sizeof(buffer), f)))
		sum = mix(sum, buffer, n);
	if (f)
		fclose(f);
	unlink(path);
	return sum;
}

/* A grid of 50 Hz with a pulse each second, a mark each hundred samples, and
 * delays that differ. */
static struct sample *make(struct harness *t, unsigned i, unsigned rate_hz)
{
	double at = (double)i / rate_hz;
	struct sample *s = harness_sample(
		t, i, 1700000000250000000 + (uint64_t)i * 1000000000 / rate_hz);

	s->received.tv_nsec = s->origin.tv_nsec / 2 + i % 7 * 300000;
	if (i % 100 == 0)
		s->flags |= SAMPLE_NEW_FRAME;
	put_real(s, sin(2 * M_PI * 50.4 * at) + 0.3 * sin(2 * M_PI * 100 * at));
	put_real(s, cos(2 * M_PI * 50.2 * at + 0.3));
	put_real(s, i % (rate_hz + i / 500) < 3 ? 2 : 0);
	put_real(s, 5 * sin(2 * M_PI * 49 * at));
	return s;
}

/* A sum over all that can be seen of it. */
static uint64_t effect(const char *hook, const struct row *row)
{
	struct sample *rest[8];
	struct harness t;
	uint64_t sum = 0xcbf29ce484222325;
	char text[1000];
	unsigned n;
	int ret;

	snprintf(text, sizeof(text),
		 "{ \"signals\": [{ \"name\": \"u\" }, { \"name\": \"i\" }, { \"name\": \"p\" }, { \"name\": \"q\" }], "
		 "\"hooks\": [%s] }", hook);
	ret = harness_open(&t, row->place, text);
	sum = mix(sum, &ret, sizeof(ret));
	for (unsigned i = 0; !ret && t.out && i < t.out->count; i++) {
		const struct signal *s = &t.out->signals[i];

		sum = mix_text(mix_text(sum, s->name), s->unit);
		sum = mix(sum, &s->type, sizeof(s->type));
	}
	for (unsigned i = 0; !ret && i < SAMPLES; i++) {
		const struct sample *s = harness_run(
			&t, make(&t, i, row->rate_hz ? row->rate_hz : 1000));

		if (s)
			sum = mix_sample(sum, s);
		if (i == SAMPLES / 2)
			hook_list_periodic(t.hooks);
	}
	while (!ret && (n = hook_list_flush(t.hooks, rest, 8))) {
		for (unsigned i = 0; i < n; i++)
			sum = mix_sample(sum, rest[i]);
		sample_put_many(rest, n);
	}
	harness_end(&t);
	sum = mix_log(sum, fake_log());
	return mix_file(sum, "out");
}

/* Builds the hook with one key changed; `key` NULL: as it is plain. */
static void build(char *out, size_t size, const struct row *row, const char *key,
		  const char *value)
{
	char plain[500], part[300];
	json_t *o, *v;
	char *text;

	snprintf(part, sizeof(part), "%s", row->plain);
	snprintf(plain, sizeof(plain), "{ \"type\": \"%s\", ", row->hook);
	text = strstr(part, "%s");
	if (text)
		*text = '\0';
	snprintf(plain + strlen(plain), sizeof(plain) - strlen(plain), "%s%s%s }",
		 part, text ? folder : "", text ? text + 2 : "");
	o = json_loads(plain, 0, NULL);
	assert_non_null(o);
	if (key) {
		snprintf(part, sizeof(part), "%s", value);
		text = strstr(part, "%s");
		if (text)
			*text = '\0';
		snprintf(plain, sizeof(plain), "%s%s%s", part, text ? folder : "",
			 text ? text + 2 : "");
		v = json_loads(plain, JSON_DECODE_ANY, NULL);
		assert_non_null(v);
		/* Two ways to say one thing contradict each other. */
		if (!strcmp(key, "signal"))
			json_object_del(o, "signals");
		if (!strcmp(key, "signals") && strcmp(row->hook, "lua"))
			json_object_del(o, "signal");
		if (!strcmp(key, "dt"))
			json_object_del(o, "rate");
		json_object_set_new(o, key, v);
	}
	text = json_dumps(o, 0);
	snprintf(out, size, "%s", text);
	free(text);
	json_decref(o);
}

static void check_row(const struct row *row)
{
	char hook[600];
	uint64_t plain;

	build(hook, sizeof(hook), row, NULL, NULL);
	plain = effect(hook, row);
	if (fake_log_errors()) {
		print_error("%s: the plain configuration is refused:\n%s",
			    row->hook, fake_log());
		failures++;
		return;
	}
	if (effect(hook, row) != plain) {
		print_error("%s: twice the same differs\n", row->hook);
		failures++;
	}
	for (unsigned k = 0; k < KEYS_MAX && row->changes[k].key; k++) {
		build(hook, sizeof(hook), row, row->changes[k].key,
		      row->changes[k].value);
		if (effect(hook, row) != plain)
			continue;
		print_error("%s: key %s = %s has no effect\n", row->hook,
			    row->changes[k].key, row->changes[k].value);
		failures++;
	}
}

static void make_script(void)
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "%s/script", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("function process(smp) smp.data.i = 5 end\n", f);
	fclose(f);
}

static void every_key_of_a_hook_has_an_effect(void **state)
{
	char path[100];

	snprintf(folder, sizeof(folder), "/tmp/busbar-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	make_script();
	log_set_level(LOG_INFO);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (hook_type_find(rows[i].hook))
			check_row(&rows[i]);
	snprintf(path, sizeof(path), "%s/script", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/other", folder);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(failures, 0);
}

static bool has_row(const char *hook, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (unsigned k = 0; k < KEYS_MAX && rows[i].changes[k].key; k++)
			if (!strcmp(rows[i].hook, hook) &&
			    !strcmp(rows[i].changes[k].key, key))
				return true;
	return false;
}

/* `enabled` and `priority`, which every hook has, are tested with the lists. */
static void every_key_of_a_hook_is_tested(void **state)
{
	for (const struct plugin *p = hook_plugins; p->name; p++) {
		const struct hook_type *type = hook_type_find(p->name);

		for (size_t k = 0; type && k < type->key_count; k++)
			if (!has_row(p->name, type->keys[k].name))
				fail_msg("hook %s: key %s is not in the table above",
					 p->name, type->keys[k].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_a_hook_has_an_effect),
		cmocka_unit_test(every_key_of_a_hook_is_tested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
