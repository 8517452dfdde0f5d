/* SPDX-License-Identifier: BSD-2-Clause */
/* Printing of configurations; see config_text.h. */
#include "gateway/control/config_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_value(FILE *f, const json_t *v, int depth);

static void indent(FILE *f, int depth)
{
	for (int i = 0; i < depth; i++)
		fputc('\t', f);
}

static void print_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		switch (*s) {
		case '"':
		case '\\':
			fprintf(f, "\\%c", *s);
			break;
		case '\n':
			fputs("\\n", f);
			break;
		case '\r':
			fputs("\\r", f);
			break;
		case '\t':
			fputs("\\t", f);
			break;
		default:
			if (iscntrl((unsigned char)*s))
				fprintf(f, "\\x%02x", (unsigned char)*s);
			else
				fputc(*s, f);
		}
	}
	fputc('"', f);
}

/* A letter or '*', then letters, digits, '-', '_' and '*'. */
static bool is_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '*')
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-_*", *s))
			return false;
	return true;
}

static void print_members(FILE *f, const json_t *o, int depth)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v) {
		if (!is_name(key) || json_is_null(v))
			continue;
		indent(f, depth);
		fprintf(f, "%s = ", key);
		print_value(f, v, depth);
		fputs(";\n", f);
	}
}

static void print_list(FILE *f, const json_t *list, int depth)
{
	bool first = true;
	json_t *v;
	size_t i;

	fputc('(', f);
	json_array_foreach(list, i, v) {
		if (json_is_null(v))
			continue;
		fputs(first ? " " : ", ", f);
		first = false;
		print_value(f, v, depth);
	}
	fputs(" )", f);
}

/* 1.0 and not 1, which would be an integer. */
static void print_real(FILE *f, double v)
{
	char text[40];

	snprintf(text, sizeof(text), "%.17g", v);
	fputs(text, f);
	if (!strpbrk(text, ".eE"))
		fputs(".0", f);
}

static void print_value(FILE *f, const json_t *v, int depth)
{
	json_int_t n;

	switch (json_typeof(v)) {
	case JSON_OBJECT:
		fputs("{\n", f);
		print_members(f, v, depth + 1);
		indent(f, depth);
		fputc('}', f);
		break;
	case JSON_ARRAY:
		print_list(f, v, depth);
		break;
	case JSON_STRING:
		print_string(f, json_string_value(v));
		break;
	case JSON_INTEGER:
		n = json_integer_value(v);
		fprintf(f, "%" JSON_INTEGER_FORMAT "%s", n,
			n > INT32_MAX || n < INT32_MIN ? "L" : "");
		break;
	case JSON_REAL:
		print_real(f, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		fputs(json_is_true(v) ? "true" : "false", f);
		break;
	case JSON_NULL:
		break;
	}
}

char *config_text(const json_t *config)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	print_members(f, config, 0);
	return fclose(f) ? (free(text), NULL) : text;
}
