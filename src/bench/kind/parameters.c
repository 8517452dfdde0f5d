/* SPDX-License-Identifier: BSD-2-Clause */
/* See parameters.h. */
#define LOG_ROOM "bench/suite"
#include "bench/kind/parameters.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/tree.h"
#include "util/container_of.h"
#include "util/nearest.h"
#include "util/num.h"

static int fail(char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int fail(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, PARAMETER_WHY_SIZE, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Options are written with '-' where keys have '_'. */
static bool same_name(const char *a, const char *b)
{
	while (*a && (*a == *b || (*a == '-' && *b == '_') || (*a == '_' && *b == '-')))
		a++, b++;
	return *a == *b;
}

const struct bench_parameter *parameter_find(const struct bench_kind *kind,
					     const char *name, char *why)
{
	struct nearest near = NEAREST(name);
	char hint[100];

	for (const struct bench_parameter *p = kind->parameters; p->name; p++) {
		if (same_name(name, p->name))
			return p;
		nearest_try(&near, p->name);
	}
	nearest_hint(&near, hint, sizeof(hint));
	fail(why, "the kind '%s' has no such parameter%s%s%s", kind->name, hint,
	     *hint ? "" : "; see busbar bench ", *hint ? "" : kind->name);
	return NULL;
}

bool duration_parse(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "µs", 1e3 }, { "ms", 1e6 },
		      { "s", 1e9 }, { "min", 60e9 }, { "h", 3600e9 } };
	const char *end = text + strlen(text), *unit;
	double value;

	unit = num_parse_double(text, end, &value);
	if (!unit || !(value >= 0))
		return false;
	unit += *unit == ' ';
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i].unit))
			continue;
		if (value * units[i].ns > 9e18)
			return false;
		*ns = llround(value * units[i].ns);
		return true;
	}
	return false;
}

/* A number in the unit of the parameter, to compare it with the ends of a range. */
static bool bound(const struct bench_parameter *p, const char *text, size_t len,
		  double *value)
{
	char copy[40];
	int64_t ns;

	if (!len || len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (p->type != 'd')
		return num_parse_double(copy, copy + len, value) == copy + len;
	if (!duration_parse(copy, &ns))
		return false;
	*value = (double)ns;
	return true;
}

/* "8..32768"; an end that is missing is no limit. */
static bool in_range(const struct bench_parameter *p, double value)
{
	const char *dots = strstr(p->values, "..");
	double low, high;

	if (bound(p, p->values, (size_t)(dots - p->values), &low) && value < low)
		return false;
	return !bound(p, dots + 2, strlen(dots + 2), &high) || value <= high;
}

static int check_number(const struct bench_parameter *p, double value, const char *shown,
			char *why)
{
	char text[40];

	if (!p->values)
		return 0;
	snprintf(text, sizeof(text), "%.15g", value);
	if (strstr(p->values, "..") ? in_range(p, value) : tune_has_word(p->values, text, "|"))
		return 0;
	return fail(why, "%s is not usable, expected %s", shown, p->values);
}

static const char *type_name(char type)
{
	switch (type) {
	case 'i': return "a whole number";
	case 'f': return "a number";
	case 'b': return "true or false";
	case 'd': return "a duration such as 5us, 1.5ms or a number of ns";
	default: return "a text";
	}
}

static int wrong_type(const struct bench_parameter *p, const json_t *given, char *why)
{
	char *text = json_dumps(given, JSON_ENCODE_ANY | JSON_COMPACT);

	fail(why, "%.60s is not usable, expected %s%s%s", text ? text : "?",
	     type_name(p->type), p->values ? ": " : "", p->values ? p->values : "");
	free(text);
	return -EINVAL;
}

static int number_value(const struct bench_parameter *p, const json_t *given, json_t **out,
			char *why)
{
	const char *text = json_string_value(given), *end = text ? text + strlen(text) : NULL;
	bool duration = p->type == 'd', whole = duration || p->type == 'i', usable;
	int64_t value = json_integer_value(given);
	double real = json_number_value(given);
	char shown[40];

	if (!text)
		usable = whole ? json_is_integer(given) : json_is_number(given);
	else if (duration)
		usable = duration_parse(text, &value);
	else
		usable = (whole ? num_parse_i64(text, end, &value) :
				  num_parse_double(text, end, &real)) == end;
	if (!usable || (duration && value < 0) || (!whole && !isfinite(real)))
		return wrong_type(p, given, why);
	if (whole)
		snprintf(shown, sizeof(shown), "%lld%s", (long long)value, duration ? " ns" : "");
	else
		snprintf(shown, sizeof(shown), "%g", real);
	if (check_number(p, whole ? (double)value : real, shown, why))
		return -EINVAL;
	*out = whole ? json_integer(value) : json_real(real);
	return *out ? 0 : -ENOMEM;
}

static int boolean_value(const struct bench_parameter *p, const json_t *given,
			 json_t **out, char *why)
{
	const char *text = json_string_value(given);
	bool is_true = json_is_true(given);

	if (text)
		is_true = tune_has_word("true|yes|on|1", text, "|");
	if (text ? !is_true && !tune_has_word("false|no|off|0", text, "|") :
		   !json_is_boolean(given))
		return wrong_type(p, given, why);
	*out = json_boolean(is_true);
	return 0;
}

/* A number stands for its text: cpus = 1. */
static int text_value(const struct bench_parameter *p, const json_t *given, json_t **out,
		      char *why)
{
	char text[30];

	if (json_is_integer(given)) {
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(given));
		*out = json_string(text);
	} else if (json_is_string(given)) {
		*out = json_string(json_string_value(given));
	} else {
		return wrong_type(p, given, why);
	}
	if (!*out)
		return -ENOMEM;
	if (!p->values || tune_has_word(p->values, json_string_value(*out), "|"))
		return 0;
	json_decref(*out);
	return wrong_type(p, given, why);
}

int parameter_value(const struct bench_parameter *p, const json_t *given, json_t **out,
		    char *why)
{
	switch (p->type) {
	case 'b': return boolean_value(p, given, out, why);
	case 's': return text_value(p, given, out, why);
	default: return number_value(p, given, out, why);
	}
}

int parameter_from_text(const struct bench_parameter *p, const char *text, json_t **out,
			char *why)
{
	json_t *given = json_string(text);
	int ret;

	if (!given)
		return fail(why, "the value is not valid UTF-8");
	ret = parameter_value(p, given, out, why);
	json_decref(given);
	return ret;
}

int parameters_complete(const struct bench_kind *kind, json_t *parameters, char *why)
{
	for (const struct bench_parameter *p = kind->parameters; p->name; p++) {
		json_t *value;
		int ret;

		if (json_object_get(parameters, p->name))
			continue;
		if (!p->standard)
			return fail(why, "'%s' is missing (%s)", p->name, p->help);
		ret = parameter_from_text(p, p->standard, &value, why);
		if (ret)
			return ret;
		json_object_set_new(parameters, p->name, value);
	}
	return 0;
}

void parameters_print_word(FILE *f, const char *text)
{
	if (*text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789-_.,:/@%+=")]) {
		fputs(text, f);
		return;
	}
	fputc('\'', f);
	for (; *text; text++)
		fputs(*text == '\'' ? "'\\''" : (char[]){ *text, 0 }, f);
	fputc('\'', f);
}

int parameters_print_name(FILE *f, const char *name)
{
	int length = 0;

	for (; name[length]; length++)
		fputc(name[length] == '_' ? '-' : name[length], f);
	return length;
}

/* A value as the option has it. */
static void print_value(FILE *f, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text)
		parameters_print_word(f, text);
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "true" : "false", f);
	else if (json_is_integer(value))
		fprintf(f, "%lld", (long long)json_integer_value(value));
	else
		fprintf(f, "%.15g", json_number_value(value));
}

char *parameters_command(const struct bench_kind *kind, const json_t *parameters)
{
	char *text = NULL, why[PARAMETER_WHY_SIZE];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "busbar bench %s", kind->name);
	for (const struct bench_parameter *p = kind->parameters; p->name; p++) {
		json_t *value = json_object_get(parameters, p->name), *standard = NULL;

		if (p->standard)
			parameter_from_text(p, p->standard, &standard, why);
		if (value && !(standard && json_equal(value, standard))) {
			fputs(" --", f);
			parameters_print_name(f, p->name);
			fputc(' ', f);
			print_value(f, value);
		}
		json_decref(standard);
	}
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
