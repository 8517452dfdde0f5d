/* SPDX-License-Identifier: BSD-2-Clause */
/* ${NAME} and ${NAME:-default} from the environment. */
#include "gateway/config/tree.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *config_env_value(const char **p, const char *end, char *problem,
		       size_t size)
{
	const char *name = *p + 2, *stop = name, *fallback = NULL, *value;
	char text[128];
	char *copy;

	while (stop < end && (isalnum((unsigned char)*stop) || *stop == '_'))
		stop++;
	if (stop == name || (size_t)(stop - name) >= sizeof(text) ||
	    isdigit((unsigned char)*name)) {
		snprintf(problem, size,
			 "expected a variable name after '${'; write $${ for the characters themselves");
		return NULL;
	}
	memcpy(text, name, (size_t)(stop - name));
	text[stop - name] = '\0';
	if (end - stop >= 2 && stop[0] == ':' && stop[1] == '-') {
		fallback = stop + 2;
		for (stop = fallback; stop < end && *stop != '}' &&
				      *stop != '\n'; stop++)
			;
	}
	if (stop == end || *stop != '}') {
		snprintf(problem, size,
			 "no '}' behind '${%s'; write ${%s} or ${%s:-default}",
			 text, text, text);
		return NULL;
	}
	*p = stop + 1;
	value = getenv(text);
	if (value && *value)
		copy = strdup(value);
	else if (fallback)
		copy = strndup(fallback, (size_t)(stop - fallback));
	else if (value)
		copy = strdup("");
	else {
		snprintf(problem, size,
			 "environment variable %s is not set; set it or write ${%s:-default}",
			 text, text);
		return NULL;
	}
	if (!copy)
		snprintf(problem, size, "out of memory");
	return copy;
}

/* The string with everything expanded, NULL when it is to stay as it is. */
static char *expand(struct config *c, const struct config_place *at,
		    const char *p, const char *end)
{
	char *out = NULL, *value, problem[256];
	size_t len = 0, n;
	FILE *f = open_memstream(&out, &len);

	if (!f)
		return NULL;
	while (p < end) {
		if (end - p >= 3 && !memcmp(p, "$${", 3)) {
			fputs("${", f);
			p += 3;
		} else if (end - p >= 2 && !memcmp(p, "${", 2)) {
			value = config_env_value(&p, end, problem,
						 sizeof(problem));
			if (!value) {
				config_error_at(c, at->line, "%s", problem);
				fclose(f);
				free(out);
				return NULL;
			}
			fputs(value, f);
			free(value);
		} else {
			const char *next = memchr(p + 1, '$',
						  (size_t)(end - p - 1));

			n = (size_t)((next ? next : end) - p);
			fwrite(p, 1, n, f);
			p += n;
		}
	}
	fclose(f);
	return out;
}

void config_env_expand_strings(struct config *c)
{
	for (size_t i = 0; i < c->place_count; i++) {
		json_t *value = (json_t *)c->places[i].value;
		const char *s = json_string_value(value);
		char *expanded;

		if (!s || !strstr(s, "${"))
			continue;
		expanded = expand(c, &c->places[i], s,
				  s + json_string_length(value));
		if (expanded && json_string_set(value, expanded))
			config_error_at(c, c->places[i].line,
					"the value of an environment variable is not valid UTF-8");
		free(expanded);
	}
}
