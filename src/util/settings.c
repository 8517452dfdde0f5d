/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings from the environment by table; see settings.h. */
#define LOG_ROOM "settings"
#include "util/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/log.h"

#define SHOWN_MAX 80

static int parse_uint(const struct setting *e, const char *text, void *field)
{
	char *end;
	unsigned long long v;
	unsigned shift = 0;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno)
		return -ERANGE;
	if (e->type == SETTING_SIZE && *end) {
		switch (tolower((unsigned char)*end)) {
		case 'k': shift = 10; break;
		case 'm': shift = 20; break;
		case 'g': shift = 30; break;
		default: return -EINVAL;
		}
		end++;
	}
	if (*end)
		return -EINVAL;
	if (shift && v > (UINT64_MAX >> shift))
		return -ERANGE;
	v <<= shift;
	if (v < e->min || v > e->max)
		return -ERANGE;
	*(uint64_t *)field = v;
	return 0;
}

static int parse_bool(const char *text, void *field)
{
	static const char *const off[] = { "0", "no", "off", "false" };
	static const char *const on[] = { "1", "yes", "on", "true" };

	for (size_t i = 0; i < 4; i++) {
		if (!strcasecmp(text, off[i]) || !strcasecmp(text, on[i])) {
			*(bool *)field = !strcasecmp(text, on[i]);
			return 0;
		}
	}
	return -EINVAL;
}

int setting_parse(const struct setting *e, const char *text, void *field)
{
	switch (e->type) {
	case SETTING_BOOL:
		return parse_bool(text, field);
	case SETTING_UINT:
	case SETTING_SIZE:
		return parse_uint(e, text, field);
	case SETTING_ENUM:
		for (int i = 0; e->names[i]; i++) {
			if (!strcasecmp(text, e->names[i])) {
				*(int *)field = i;
				return 0;
			}
		}
		return -EINVAL;
	case SETTING_STRING:
		*(const char **)field = text;
		return 0;
	}
	return -EINVAL;
}

static void expected(const struct setting *e, char *buf, size_t size)
{
	size_t len = 0;

	switch (e->type) {
	case SETTING_BOOL:
		snprintf(buf, size, "0 or 1");
		break;
	case SETTING_UINT:
	case SETTING_SIZE:
		snprintf(buf, size, "%s%llu to %llu",
			 e->type == SETTING_SIZE ? "bytes (k, m, g), " : "",
			 (unsigned long long)e->min, (unsigned long long)e->max);
		break;
	case SETTING_ENUM:
		for (int i = 0; e->names[i] && len < size; i++)
			len += (size_t)snprintf(buf + len, size - len, "%s%s",
						i ? ", " : "", e->names[i]);
		break;
	case SETTING_STRING:
		snprintf(buf, size, "text");
		break;
	}
}

int settings_load(const struct setting *table, size_t count, void *target)
{
	int bad = 0;

	for (size_t i = 0; i < count; i++) {
		const struct setting *e = &table[i];
		void *field = (char *)target + e->offset;
		const char *text = getenv(e->env);

		if (text && setting_parse(e, text, field)) {
			char want[256] = "";

			expected(e, want, sizeof(want));
			/* Shortened, so that the rest fits into a log line. */
			log_warn("%s='%.*s%s' not usable, expected %s; using %s",
				 e->env, SHOWN_MAX, text,
				 strlen(text) > SHOWN_MAX ? "..." : "", want,
				 e->fallback);
			bad++;
			text = NULL;
		}
		if (!text)
			setting_parse(e, e->fallback, field);
	}
	return bad;
}

void settings_print(const struct setting *table, size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		char want[256] = "";

		expected(&table[i], want, sizeof(want));
		fprintf(out, "%s=%s\n    %s (%s)\n", table[i].env,
			table[i].fallback, table[i].help, want);
	}
}
