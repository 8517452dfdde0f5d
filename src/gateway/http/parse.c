/* SPDX-License-Identifier: BSD-2-Clause */
/* See parse.h. */
#include "gateway/http/parse.h"

#include <string.h>
#include <strings.h>

#include "util/container_of.h"
#include "util/head_text.h"

#define FIELD(name) offsetof(struct http_request, name)

/* Fields that count. More than one of a name is refused: they could disagree. */
static const struct {
	const char *name;
	size_t offset;
} fields[] = {
	{ "host", FIELD(host) },
	{ "origin", FIELD(origin) },
	{ "authorization", FIELD(authorization) },
	{ "content-length", FIELD(length) },
	{ "content-type", FIELD(type) },
	{ "prefer", FIELD(prefer) },
	{ "accept", FIELD(accept) },
	{ "expect", FIELD(expect) },
	{ "upgrade", FIELD(upgrade) },
	{ "if-none-match", FIELD(if_none_match) },
	{ "sec-fetch-site", FIELD(fetch_site) },
	{ "sec-websocket-key", FIELD(socket_key) },
	{ "sec-websocket-version", FIELD(socket_version) },
	{ "sec-websocket-protocol", FIELD(socket_protocol) },
};

size_t http_header_end(const char *text, size_t len, size_t from)
{
	const char *end;

	from = from > 3 ? from - 3 : 0;
	end = len > from ? memmem(text + from, len - from, "\r\n\r\n", 4) : NULL;
	return end ? (size_t)(end - text) + 4 : 0;
}

/* Visible characters of ASCII. */
static bool is_target(struct head_text t)
{
	for (size_t i = 0; i < t.bytes; i++)
		if ((unsigned char)t.at[i] <= 0x20 || (unsigned char)t.at[i] >= 0x7f)
			return false;
	return t.bytes > 0;
}

/* `t`, a part of `text`, as a string. The character behind it, which the NUL replaces, must
 * not be needed any more. */
static char *end_text(char *text, struct head_text t)
{
	char *s = text + (t.at - text);

	s[t.bytes] = '\0';
	return s;
}

/* "http://host/path" means "/path". */
static const char *strip_authority(const char *target)
{
	size_t skip = !strncasecmp(target, "http://", 7)  ? 7 :
		      !strncasecmp(target, "https://", 8) ? 8 :
							    0;

	if (!skip)
		return target;
	target = strchr(target + skip, '/');
	return target ? target : "/";
}

static int parse_first(char *text, struct head_text line, struct http_request *r,
		       const char **why)
{
	struct head_text method, target, version;
	unsigned minor;

	*why = "the first line is no request";
	if (head_request_split(line, &method, &target, &version) || !head_is_token(method) ||
	    !is_target(target) || version.bytes < 5 || memcmp(version.at, "HTTP/", 5))
		return 400;
	if (head_version_parse(version, &minor)) {
		*why = "only HTTP/1.1 and 1.0 are spoken";
		return 505;
	}
	r->method = end_text(text, method);
	r->target = strip_authority(end_text(text, target));
	r->minor = (int)minor;
	if (*r->target == '/' || (!strcmp(r->target, "*") && !strcmp(r->method, "OPTIONS")))
		return 0;
	return 400;
}

/* *seen has a bit for each of `fields`. */
static int take_field(char *text, const struct head_field *f, struct http_request *r,
		      unsigned *seen, const char **why)
{
	if (head_is(f->name, "connection")) {
		r->close |= head_lists(f->value, head_text_of("close"));
		r->upgrades |= head_lists(f->value, head_text_of("upgrade"));
		return 0;
	}
	if (head_is(f->name, "transfer-encoding"))
		r->has_encoding = true;
	if (head_is(f->name, "content-length"))
		r->has_length = true;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char **field = (const char **)((char *)r + fields[i].offset);

		if (!head_is(f->name, fields[i].name))
			continue;
		if (*seen & 1u << i) {
			*why = "a header is there twice";
			return 400;
		}
		*seen |= 1u << i;
		*field = end_text(text, f->value);
	}
	return 0;
}

static int parse_field(char *text, struct head_text line, struct http_request *r,
		       unsigned *seen, const char **why)
{
	struct head_field f;

	*why = "a header is not well-formed";
	return head_field_parse(line, &f) ? 400 : take_field(text, &f, r, seen, why);
}

int http_parse(char *text, size_t len, struct http_request *r, const char **why)
{
	unsigned seen = 0;

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*(const char **)((char *)r + fields[i].offset) = "";
	*why = "the header has a zero byte";
	if (memchr(text, '\0', len))
		return 400;
	/* The last line ends with the first half of the empty one's. */
	for (size_t at = 0; at < len - 2;) {
		const char *end = memmem(text + at, len - at, "\r\n", 2);
		struct head_text line = { text + at, (size_t)(end - text) - at };
		int status = at ? parse_field(text, line, r, &seen, why) :
				  parse_first(text, line, r, why);

		if (status)
			return status;
		at += line.bytes + 2;
	}
	/* In HTTP/1.0 nothing is upgraded (RFC 9110, 7.8). */
	r->upgrades &= r->minor > 0;
	return 0;
}
