/* SPDX-License-Identifier: BSD-2-Clause */
/* See parse.h. */
#include "gateway/http/parse.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "gateway/http/head.h"
#include "util/container_of.h"

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

static bool is_token_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (!is_token_char((unsigned char)*s))
			return false;
	return true;
}

/* Visible characters, blanks and tabs, and what is above ASCII. */
static bool is_value(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 ? *s != '\t' : *s == 0x7f)
			return false;
	return true;
}

static bool is_target(const char *s)
{
	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return false;
	return *s;
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

static int parse_first(char *line, struct http_request *r, const char **why)
{
	char *target = strchr(line, ' '), *version;

	*why = "the first line is no request";
	if (!target)
		return 400;
	*target++ = '\0';
	version = strchr(target, ' ');
	if (!version)
		return 400;
	*version++ = '\0';
	if (!is_token(line) || !is_target(target))
		return 400;
	if (strncmp(version, "HTTP/", 5))
		return 400;
	if (strncmp(version, "HTTP/1.", 7) || !isdigit((unsigned char)version[7]) ||
	    version[8]) {
		*why = "only HTTP/1.1 and 1.0 are spoken";
		return 505;
	}
	r->method = line;
	r->target = strip_authority(target);
	r->minor = version[7] - '0';
	if (*r->target == '/' || (!strcmp(r->target, "*") && !strcmp(line, "OPTIONS")))
		return 0;
	return 400;
}

static int take_field(struct http_request *r, const char *name, char *value,
		      const char **why)
{
	if (!strcasecmp(name, "connection")) {
		r->close |= http_list_has(value, "close");
		r->upgrades |= http_list_has(value, "upgrade");
		return 0;
	}
	if (!strcasecmp(name, "transfer-encoding"))
		r->has_encoding = true;
	if (!strcasecmp(name, "content-length"))
		r->has_length = true;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char **field = (const char **)((char *)r + fields[i].offset);

		if (strcasecmp(name, fields[i].name))
			continue;
		/* An empty one is as good as none, but twice. */
		if (**field) {
			*why = "a header is there twice";
			return 400;
		}
		*field = value;
	}
	return 0;
}

static int parse_field(char *line, struct http_request *r, const char **why)
{
	char *colon = strchr(line, ':'), *value, *end;

	*why = "a header is not well-formed";
	if (!colon)
		return 400;
	*colon = '\0';
	if (!is_token(line))
		return 400;
	value = colon + 1 + strspn(colon + 1, " \t");
	end = value + strlen(value);
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	if (!is_value(value))
		return 400;
	return take_field(r, line, value, why);
}

int http_parse(char *text, size_t len, struct http_request *r, const char **why)
{
	char *end = text + len - 2, *line = text, *next;
	bool first = true;
	int status;

	memset(r, 0, sizeof(*r));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*(const char **)((char *)r + fields[i].offset) = "";
	*why = "the header has a zero byte";
	if (memchr(text, '\0', len))
		return 400;
	/* The last line ends with the first half of the empty one's. */
	*end = '\0';
	for (; line < end; line = next) {
		next = strstr(line, "\r\n");
		if (!next)
			break;
		*next = '\0';
		next += 2;
		status = first ? parse_first(line, r, why) : parse_field(line, r, why);
		if (status)
			return status;
		first = false;
	}
	*why = "the first line is no request";
	return first ? 400 : 0;
}
