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
		/* A password may hold a slash, and each program takes another one for its end. */
		for (size_t k = i + 3; k < len && !strchr("\" \t\r\n", text[k]); k++) {
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
	return len > 3 && !memcmp(text, "${", 2) && memchr(text, '}', len) == text + len - 1 &&
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

static bool is_scalar(const json_t *v)
{
	return json_is_string(v) || json_is_number(v);
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
					    is_scalar(entry) && secret_is_key(key) ?
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

/* Behind the comment that begins at `at`; without one, `at`. */
static size_t end_of_comment(const char *text, size_t at)
{
	const char *end;

	if (text[at] == '#' || (text[at] == '/' && text[at + 1] == '/'))
		return at + strcspn(text + at, "\n");
	if (text[at] != '/' || text[at + 1] != '*')
		return at;
	end = strstr(text + at + 2, "*/");
	return end ? (size_t)(end + 2 - text) : at + strlen(text + at);
}

static size_t skip_blanks(const char *text, size_t at)
{
	size_t before;

	do {
		before = at;
		at += strspn(text + at, " \t\r\n\f");
		at = end_of_comment(text, at);
	} while (at > before);
	return at;
}

/* Behind the quoted texts, one behind the other, that libconfig puts together. */
static size_t end_of_texts(const char *text, size_t at)
{
	size_t end = end_of_quotes(text, at);

	while (text[at = skip_blanks(text, end)] == '"')
		end = end_of_quotes(text, at);
	return end;
}

static unsigned hex(const char *at, unsigned digits)
{
	char text[5] = "";

	memcpy(text, at, strnlen(at, digits));
	return (unsigned)strtoul(text, NULL, 16);
}

/* What the quoted texts in text[at..end) say; `out` has room for as many bytes. Characters
 * beyond ASCII need not be right. */
static size_t decode(const char *text, size_t at, size_t end, char *out)
{
	size_t len = 0;

	while (at < end) {
		size_t stop = end_of_quotes(text, at);

		for (at++; at < stop && text[at] != '"'; at++) {
			static const char from[] = "nrtfabv", to[] = "\n\r\t\f\a\b\v";
			const char *known;

			if (text[at] != '\\' || at + 1 >= stop) {
				out[len++] = text[at];
				continue;
			}
			at++;
			known = strchr(from, text[at]);
			if ((text[at] == 'x' && at + 2 < stop) || (text[at] == 'u' && at + 4 < stop)) {
				unsigned digits = text[at] == 'x' ? 2 : 4;

				out[len++] = (char)hex(text + at + 1, digits);
				at += digits;
			} else {
				out[len++] = known ? to[known - from] : text[at];
			}
		}
		at = skip_blanks(text, stop);
	}
	return len;
}

static void print_quoted(FILE *f, const char *text, size_t len)
{
	fputc('"', f);
	for (size_t i = 0; i < len; i++) {
		if (strchr("\"\\", text[i]) && text[i])
			fputc('\\', f);
		fputc(iscntrl((unsigned char)text[i]) ? ' ' : text[i], f);
	}
	fputc('"', f);
}

/* Writes the quoted texts in text[at..end): as they are, unless a URL in them has a password. */
static void print_texts(FILE *f, const char *text, size_t at, size_t end)
{
	char *said = malloc(end - at + 1), *shown = NULL;
	size_t size = 0, len;
	FILE *copy = said ? open_memstream(&shown, &size) : NULL;

	if (copy) {
		len = decode(text, at, end, said);
		print_urls(copy, said, len);
		if (fclose(copy))
			size = 0;
		if (size == len && !memcmp(shown, said, len))
			fwrite(text + at, 1, end - at, f);
		else
			print_quoted(f, shown, size);
	}
	free(shown);
	free(said);
}

/* The key at `at`, plain or in quotes, has a secret: its value begins at the returned place;
 * 0: it has none. */
static size_t find_secret(const char *text, size_t at)
{
	char key[64];
	size_t end = at, len;

	if (text[at] == '"') {
		end = end_of_quotes(text, at);
		if (end - at > sizeof(key))
			return 0;
		len = decode(text, at, end, key);
	} else {
		while (is_word(text[end]))
			end++;
		len = MIN(end - at, sizeof(key));
		memcpy(key, text + at, len);
	}
	if (!is_secret(key, len))
		return 0;
	end = skip_blanks(text, end);
	if (text[end] != '=' && text[end] != ':')
		return 0;
	return skip_blanks(text, end + 1);
}

/* Writes the secret at `at` without it. Returns the place behind it; `at`: it is none. */
static size_t print_secret(FILE *f, const char *text, size_t at, bool in_comment)
{
	size_t end = at;

	if (text[at] == '"') {
		end = end_of_texts(text, at);
		if (end >= at + 2 && is_reference(text + at + 1, end - at - 2)) {
			fwrite(text + at, 1, end - at, f);
			return end;
		}
	} else if (text[at] == '$' && text[at + 1] == '{') {
		end += strcspn(text + at, "}");
		end += text[end] == '}';
		if (is_reference(text + at, end - at))
			return at;
	} else if (!in_comment) {
		/* Where a text is expected, some node-types take a number. */
		end += strspn(text + at, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
	}
	if (end > at)
		fputs("\"" SECRET_HIDDEN "\"", f);
	return end;
}

/* In comments, quotes need not come in pairs. */
static void hide(FILE *f, const char *text, bool in_comment)
{
	size_t at = 0, done = 0;

	while (text[at]) {
		size_t comment = in_comment ? at : end_of_comment(text, at);
		bool begins = text[at] == '"' ||
			      (is_word(text[at]) && (!at || !is_word(text[at - 1])));
		size_t value = begins ? find_secret(text, at) : 0, end;

		if (comment > at) {
			char *said = strndup(text + at, comment - at);

			print_urls(f, text + done, at - done);
			if (said)
				hide(f, said, true);
			free(said);
			at = done = comment;
		} else if (value) {
			print_urls(f, text + done, value - done);
			end = print_secret(f, text, value, in_comment);
			at = done = end;
		} else if (text[at] == '"' && !in_comment) {
			print_urls(f, text + done, at - done);
			end = end_of_texts(text, at);
			print_texts(f, text, at, end);
			at = done = end;
		} else {
			at++;
		}
	}
	print_urls(f, text + done, at - done);
}

char *secret_hide_text(const char *text)
{
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);

	if (!f)
		return NULL;
	hide(f, text, false);
	if (!fclose(f))
		return out;
	free(out);
	return NULL;
}
