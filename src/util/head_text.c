/* SPDX-License-Identifier: BSD-2-Clause */
/* See head_text.h. */
#include "util/head_text.h"

#include <errno.h>
#include <strings.h>

#include "util/hex.h"

bool head_is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool head_is_token(struct head_text t)
{
	for (size_t i = 0; i < t.bytes; i++)
		if (!is_token_char(t.at[i]))
			return false;
	return t.bytes > 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct head_text trim(struct head_text t)
{
	while (t.bytes && is_blank(t.at[0])) {
		t.at++;
		t.bytes--;
	}
	while (t.bytes && is_blank(t.at[t.bytes - 1]))
		t.bytes--;
	return t;
}

bool head_is(struct head_text t, const char *word)
{
	return strlen(word) == t.bytes && !strncasecmp(t.at, word, t.bytes);
}

bool head_lists(struct head_text list, struct head_text word)
{
	while (list.bytes) {
		const char *comma = memchr(list.at, ',', list.bytes);
		size_t n = comma ? (size_t)(comma - list.at) : list.bytes;
		struct head_text t = trim((struct head_text){ list.at, n });

		if (t.bytes == word.bytes && !strncasecmp(t.at, word.at, t.bytes))
			return true;
		n += comma != NULL;
		list.at += n;
		list.bytes -= n;
	}
	return false;
}

bool head_number(struct head_text t, uint64_t *out)
{
	uint64_t n = 0;

	if (!t.bytes)
		return false;
	for (size_t i = 0; i < t.bytes; i++) {
		unsigned digit = (unsigned char)t.at[i] - (unsigned)'0';

		if (digit > 9 || n > ((uint64_t)INT64_MAX - digit) / 10)
			return false;
		n = 10 * n + digit;
	}
	*out = n;
	return true;
}

int head_escaped(struct head_text t)
{
	int high, low;

	if (t.bytes < 3 || t.at[0] != '%')
		return -1;
	high = hex_digit(t.at[1]);
	low = hex_digit(t.at[2]);
	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int head_field_parse(struct head_text line, struct head_field *out)
{
	const char *colon = memchr(line.at, ':', line.bytes);

	if (!colon)
		return -EBADMSG;
	out->name = (struct head_text){ line.at, (size_t)(colon - line.at) };
	out->value = trim((struct head_text){ colon + 1, line.bytes - out->name.bytes - 1 });
	if (!head_is_token(out->name))
		return -EBADMSG;
	for (size_t i = 0; i < out->value.bytes; i++)
		if (head_is_control(out->value.at[i]))
			return -EBADMSG;
	return 0;
}

int head_request_split(struct head_text line, struct head_text *method,
		       struct head_text *target, struct head_text *version)
{
	const char *end = line.at + line.bytes;
	const char *first = memchr(line.at, ' ', line.bytes), *second;

	if (!first)
		return -EBADMSG;
	*method = (struct head_text){ line.at, (size_t)(first - line.at) };
	first++;
	second = memchr(first, ' ', (size_t)(end - first));
	if (!second)
		return -EBADMSG;
	*target = (struct head_text){ first, (size_t)(second - first) };
	second++;
	*version = (struct head_text){ second, (size_t)(end - second) };
	return 0;
}

int head_version_parse(struct head_text t, unsigned *minor)
{
	if (t.bytes != 8 || memcmp(t.at, "HTTP/", 5) || t.at[6] != '.' ||
	    t.at[5] < '0' || t.at[5] > '9' || t.at[7] < '0' || t.at[7] > '9')
		return -EBADMSG;
	*minor = (unsigned)(t.at[7] - '0');
	return t.at[5] == '1' ? 0 : -EPROTONOSUPPORT;
}

const char *head_reason(unsigned status)
{
	switch (status) {
	case 101: return "Switching Protocols";
	case 200: return "OK";
	case 202: return "Accepted";
	case 204: return "No Content";
	case 206: return "Partial Content";
	case 301: return "Moved Permanently";
	case 304: return "Not Modified";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 406: return "Not Acceptable";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 411: return "Length Required";
	case 413: return "Content Too Large";
	case 414: return "URI Too Long";
	case 415: return "Unsupported Media Type";
	case 416: return "Range Not Satisfiable";
	case 417: return "Expectation Failed";
	case 422: return "Unprocessable Content";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 502: return "Bad Gateway";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	default: return "Other";
	}
}
