/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of processors; see cpus.h. */
#include "bench/tune/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (TUNE_CPUS_MAX / 64)

unsigned tune_cpus_count(const struct tune_cpus *c)
{
	unsigned n = 0;

	for (int i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(c->word[i]);
	return n;
}

struct tune_cpus tune_cpus_minus(const struct tune_cpus *a, const struct tune_cpus *b)
{
	struct tune_cpus out;

	for (int i = 0; i < WORDS; i++)
		out.word[i] = a->word[i] & ~b->word[i];
	return out;
}

bool tune_cpus_meet(const struct tune_cpus *a, const struct tune_cpus *b)
{
	for (int i = 0; i < WORDS; i++)
		if (a->word[i] & b->word[i])
			return true;
	return false;
}

bool tune_cpus_equal(const struct tune_cpus *a, const struct tune_cpus *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* A number at *at, which is moved behind it. */
static int parse_number(const char **at, int *n)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	value = strtol(*at, &end, 10);
	if (value < 0 || value >= TUNE_CPUS_MAX)
		return -ERANGE;
	*at = end;
	*n = (int)value;
	return 0;
}

int tune_cpus_parse_list(const char *text, struct tune_cpus *c)
{
	struct tune_cpus out = { 0 };
	bool any = false;

	while (*text && !isspace((unsigned char)*text)) {
		int first, last, err;

		if (any && *text++ != ',')
			return -EINVAL;
		err = parse_number(&text, &first);
		last = first;
		if (!err && *text == '-') {
			text++;
			err = parse_number(&text, &last);
		}
		if (err)
			return err;
		if (last < first)
			return -EINVAL;
		for (int i = first; i <= last; i++)
			tune_cpus_add(&out, i);
		any = true;
	}
	if (text[strspn(text, " \t\n")])
		return -EINVAL;
	*c = out;
	return 0;
}

int tune_cpus_parse_mask(const char *text, struct tune_cpus *c)
{
	size_t length = strcspn(text, " \t\n");
	struct tune_cpus out = { 0 };
	int bit = 0;

	if (!length || text[length + strspn(text + length, " \t\n")])
		return -EINVAL;
	while (length--) {
		char digit[2] = { text[length], '\0' };
		unsigned long value;

		if (digit[0] == ',')
			continue;
		if (!isxdigit((unsigned char)digit[0]))
			return -EINVAL;
		value = strtoul(digit, NULL, 16);
		if (bit + 4 > TUNE_CPUS_MAX && value)
			return -ERANGE;
		for (int i = 0; i < 4; i++)
			if (value >> i & 1)
				tune_cpus_add(&out, bit + i);
		bit += 4;
	}
	*c = out;
	return 0;
}

int tune_cpus_print_list(const struct tune_cpus *c, char *to, size_t size)
{
	size_t used = 0;

	to[0] = '\0';
	for (int i = 0; i < TUNE_CPUS_MAX; i++) {
		int last = i;

		if (!tune_cpus_has(c, i))
			continue;
		while (tune_cpus_has(c, last + 1))
			last++;
		used += (size_t)snprintf(to + used, size - used, "%s%d", used ? "," : "", i);
		if (used < size && last > i)
			used += (size_t)snprintf(to + used, size - used, "-%d", last);
		if (used >= size)
			return -ENAMETOOLONG;
		i = last;
	}
	return 0;
}

int tune_cpus_print_mask(const struct tune_cpus *c, char *to, size_t size)
{
	size_t used = 0;

	for (int group = TUNE_CPUS_MAX / 32 - 1; group >= 0; group--) {
		uint32_t bits = (uint32_t)(c->word[group / 2] >> (group % 2 * 32));

		if (!used && !bits && group)
			continue;
		used += (size_t)snprintf(to + used, size - used, used ? ",%08x" : "%x", bits);
		if (used >= size)
			return -ENAMETOOLONG;
	}
	return 0;
}
