/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CUT "..."

__attribute__((format(printf, 2, 0)))
static void add(struct text *t, const char *format, va_list args)
{
	const size_t room = TEXT_MAX - t->length;
	int n = vsnprintf(t->at + t->length, room, format, args);

	if (n < 0)
		return;
	if ((size_t)n < room) {
		t->length += (size_t)n;
		return;
	}
	t->length = TEXT_MAX - 1;
	memcpy(t->at + t->length - (sizeof(CUT) - 1), CUT, sizeof(CUT));
}

void text_add(struct text *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(t, format, args);
	va_end(args);
}

void text_next(struct text *t, const char *between)
{
	if (t->item)
		text_add(t, "%s", between);
	t->item = true;
}

void text_item(struct text *t, const char *format, ...)
{
	va_list args;

	text_next(t, ", ");
	va_start(args, format);
	add(t, format, args);
	va_end(args);
}

void text_value(struct text *t, const struct text_name *names, size_t count,
		const char *prefix, uint64_t value)
{
	for (size_t i = 0; i < count; i++)
		if (names[i].value == value) {
			text_add(t, "%s", names[i].name);
			return;
		}
	text_add(t, "%s%" PRIu64, prefix, value);
}

void text_bits(struct text *t, const struct text_name *names, size_t count,
	       uint64_t bits)
{
	const char *between = "";

	if (!bits)
		text_add(t, "0");
	for (size_t i = 0; i < count; i++) {
		if (!(bits & names[i].value))
			continue;
		text_add(t, "%s%s", between, names[i].name);
		bits &= ~names[i].value;
		between = "|";
	}
	if (bits)
		text_add(t, "%s0x%" PRIx64, between, bits);
}
