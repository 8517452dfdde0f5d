/* SPDX-License-Identifier: BSD-2-Clause */
/* Hiding of passwords; see secret.h. */
#include "gateway/config/secret.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

static const char *const secret_keys[] = {
	"access_token", "passphrase", "password", "secret", "secret_key", "token",
};

static bool is_secret(const char *key, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(secret_keys); i++)
		if (strlen(secret_keys[i]) == len && !memcmp(key, secret_keys[i], len))
			return true;
	return false;
}

bool secret_is_key(const char *key)
{
	return is_secret(key, strlen(key));
}

/* Where a URL in text[0..len) has its password: true with its place; the search begins at
 * *from, which is moved behind. */
static bool find_password(const char *text, size_t len, size_t *from, size_t *start, size_t *end)
{
	for (size_t i = *from; i + 3 < len; i++) {
		size_t colon = 0, at = 0;

		if (memcmp(text + i, "://", 3))
			continue;
		for (size_t k = i + 3; k < len && !strchr("/?#\"' \t\n", text[k]); k++) {
			if (text[k] == ':' && !colon)
				colon = k;
			if (text[k] == '@')
				at = k;
		}
		*from = i + 3;
		if (!colon || at < colon)
			continue;
		*start = colon + 1;
		*end = *from = at;
		return true;
	}
	return false;
}

/* Whether text[0..len) names an environment variable and holds nothing itself. */
static bool is_reference(const char *text, size_t len)
{
	return len > 3 && !memcmp(text, "${", 2) && text[len - 1] == '}' &&
	       !memmem(text, len, ":-", 2);
}

/* Writes text[0..len) without the passwords of URLs. */
static void print_urls(FILE *f, const char *text, size_t len)
{
	size_t from = 0, done = 0, start, end;

	while (find_password(text, len, &from, &start, &end)) {
		if (is_reference(text + start, end - start))
			continue;
		fwrite(text + done, 1, start - done, f);
		fputs(SECRET_HIDDEN, f);
		done = end;
	}
	fwrite(text + done, 1, len - done, f);
}

static json_t *copy_string(const json_t *v)
{
	char *text = NULL;
	size_t size = 0;
	json_t *copy = NULL;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	print_urls(f, json_string_value(v), json_string_length(v));
	if (!fclose(f))
		copy = json_stringn(text, size);
	free(text);
	return copy;
}

json_t *secret_copy(const json_t *v)
{
	json_t *copy, *entry;
	const char *key;
	size_t i;

	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_OBJECT:
		copy = json_object();
		json_object_foreach((json_t *)v, key, entry)
			json_object_set_new(copy, key,
					    json_is_string(entry) && secret_is_key(key) ?
						    json_string(SECRET_HIDDEN) :
						    secret_copy(entry));
		return copy;
	case JSON_ARRAY:
		copy = json_array();
		json_array_foreach(v, i, entry)
			json_array_append_new(copy, secret_copy(entry));
		return copy;
	case JSON_STRING:
		return copy_string(v);
	default:
		return json_deep_copy(v);
	}
}

/* ---- texts ---- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Behind the quoted text that begins at `at`, or the end. */
static size_t end_of_quotes(const char *text, size_t at)
{
	for (at++; text[at] && text[at] != '"'; at++)
		if (text[at] == '\\' && text[at + 1])
			at++;
	return text[at] ? at + 1 : at;
}

/* The key at `at`, plain or in quotes, has a secret: its text begins at the returned place,
 * with its quotes; 0: it has none. */
static size_t find_secret(const char *text, size_t at)
{
	bool quoted = text[at] == '"';
	size_t end = at + quoted;
	const char *key = text + end;

	while (is_word(text[end]))
		end++;
	if (!is_secret(key, (size_t)(text + end - key)) || (quoted && text[end++] != '"'))
		return 0;
	end += strspn(text + end, " \t\r\n");
	if (text[end] != '=' && text[end] != ':')
		return 0;
	end++;
	end += strspn(text + end, " \t\r\n");
	return text[end] == '"' ? end : 0;
}

char *secret_hide_text(const char *text)
{
	char *out = NULL;
	size_t size = 0, at = 0, done = 0;
	FILE *f = open_memstream(&out, &size);

	if (!f)
		return NULL;
	while (text[at]) {
		bool begins = text[at] == '"' ||
			      (is_word(text[at]) && (!at || !is_word(text[at - 1])));
		size_t value = begins ? find_secret(text, at) : 0;

		if (value) {
			size_t end = end_of_quotes(text, value);

			print_urls(f, text + done, value + 1 - done);
			if (end >= value + 2 && is_reference(text + value + 1, end - value - 2))
				fwrite(text + value + 1, 1, end - value - 2, f);
			else
				fputs(SECRET_HIDDEN, f);
			fputc('"', f);
			at = done = end;
		} else {
			at = text[at] == '"' ? end_of_quotes(text, at) : at + 1;
		}
	}
	print_urls(f, text + done, at - done);
	if (!fclose(f))
		return out;
	free(out);
	return NULL;
}
