/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of queries and lists of types; see query.h. RFC 3986 2.1, RFC 9110 12.5.1. */
#include "gateway/control/query.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/head_text.h"

void query_decode_loosely(char *s)
{
	char *to = s;

	for (; *s; s++) {
		int c = head_escaped((struct head_text){ s, strnlen(s, 3) });

		if (c > 0) {
			*to++ = (char)c;
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

int query_decode(const char *from, size_t len, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			c = head_escaped((struct head_text){ from + i, len - i });
			i += 2;
		}
		if (c <= 0)
			return -EINVAL;
		if (n + 1 >= size)
			return -ENAMETOOLONG;
		to[n++] = (char)c;
	}
	if (!size)
		return -ENAMETOOLONG;
	to[n] = '\0';
	return 0;
}

int query_encode(const char *from, size_t len, const char *keep, char *to, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)from[i];

		if (n + 4 > size)
			return -ENAMETOOLONG;
		if (isalnum(c) || (c && (strchr("-._~", c) || strchr(keep, c)))) {
			to[n++] = (char)c;
			continue;
		}
		to[n++] = '%';
		to[n++] = digits[c >> 4];
		to[n++] = digits[c & 15];
	}
	if (n >= size)
		return -ENAMETOOLONG;
	to[n] = '\0';
	return 0;
}

int query_value(const char *query, const char *key, char *to, size_t size)
{
	size_t key_len = strlen(key);

	while (*query) {
		size_t len = strcspn(query, "&");

		if (len > key_len && query[key_len] == '=' &&
		    !strncmp(query, key, key_len)) {
			char value[256];
			int ret = query_decode(query + key_len + 1,
					       len - key_len - 1, value,
					       sizeof(value));

			if (!ret && strlen(value) >= size)
				ret = -ENAMETOOLONG;
			if (!ret)
				strcpy(to, value);
			return ret;
		}
		query += len + (query[len] == '&');
	}
	return -ENOENT;
}

static size_t trim(const char **s, size_t len)
{
	while (len && isspace((unsigned char)**s)) {
		(*s)++;
		len--;
	}
	while (len && isspace((unsigned char)(*s)[len - 1]))
		len--;
	return len;
}

/* How exactly `range` means `type`: 0 not at all, 1 any type, 2 its family, 3 itself. */
static int matches(const char *range, size_t len, const char *type)
{
	size_t family = strcspn(type, "/") + 1;

	len = trim(&range, len);
	if (len == 3 && !strncmp(range, "*/*", 3))
		return 1;
	if (len == family + 1 && range[family] == '*' &&
	    !strncasecmp(range, type, family))
		return 2;
	return len == strlen(type) && !strncasecmp(range, type, len) ? 3 : 0;
}

/* Of "; q=0.5" and other parameters; 1000 without q. */
static int weight_of(const char *s, const char *end)
{
	while (s < end) {
		const char *next = memchr(s, ';', (size_t)(end - s));
		const char *p = s;
		size_t len = trim(&p, (size_t)((next ? next : end) - s));

		if (len >= 3 && tolower((unsigned char)p[0]) == 'q' && p[1] == '=') {
			int w = p[2] == '1' ? 1000 : 0, unit = 100;

			if (p[2] != '0' || len < 4 || p[3] != '.')
				return w;
			for (size_t i = 4; i < len && i < 7; i++, unit /= 10)
				if (isdigit((unsigned char)p[i]))
					w += (p[i] - '0') * unit;
			return w;
		}
		s = next ? next + 1 : end;
	}
	return 1000;
}

int query_weight(const char *accept, const char *type)
{
	int best = 0, weight = 0;

	if (!accept[strspn(accept, " \t")])
		return 1000;
	while (*accept) {
		size_t len = strcspn(accept, ",");
		const char *end = accept + len;
		const char *params = memchr(accept, ';', len);
		int m = matches(accept, (size_t)((params ? params : end) - accept),
				type);

		/* What is named more exactly counts, in any order. */
		if (m > best) {
			best = m;
			weight = params ? weight_of(params + 1, end) : 1000;
		}
		accept = end + (*end == ',');
	}
	return weight;
}

bool query_prefers(const char *accept, const char *a, const char *b)
{
	return query_weight(accept, a) >= query_weight(accept, b);
}
