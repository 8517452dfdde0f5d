/* SPDX-License-Identifier: BSD-2-Clause */
/* See head.h. RFC 9110, RFC 9112, RFC 6454 (origins), RFC 7240 (Prefer). */
#include "gateway/http/head.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/container_of.h"

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 411, "Length Required" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
};

const char *http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Other";
}

/* A text of limited room; `full` once something did not fit. */
struct text {
	char *at;
	size_t size, len;
	bool full;
};

__attribute__((format(printf, 2, 3)))
static void put(struct text *t, const char *form, ...)
{
	va_list args;
	int n;

	if (t->full)
		return;
	va_start(args, form);
	n = vsnprintf(t->at + t->len, t->size - t->len, form, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->len)
		t->full = true;
	else
		t->len += (size_t)n;
}

static void put_cors(struct text *t, const struct http_head *h)
{
	put(t, "Vary: Origin\r\n");
	if (!h->origin)
		return;
	put(t, "Access-Control-Allow-Origin: %s\r\n", h->origin);
	put(t, "Access-Control-Expose-Headers: Location, Retry-After\r\n");
	if (h->allow && h->status == 204) {
		put(t, "Access-Control-Allow-Methods: %s\r\n", h->allow);
		put(t, "Access-Control-Allow-Headers: Authorization, Content-Type, Prefer\r\n");
		put(t, "Access-Control-Max-Age: 600\r\n");
	}
}

size_t http_head_write(char *to, size_t size, const struct http_head *h)
{
	struct text t = { .at = to, .size = size };

	put(&t, "HTTP/1.1 %d %s\r\n", h->status, http_reason(h->status));
	if (h->type)
		put(&t, "Content-Type: %s\r\n", h->type);
	if (h->status != 204 && h->status != 304)
		put(&t, "Content-Length: %" PRIu64 "\r\n", h->length);
	put(&t, "Cache-Control: %s\r\nX-Content-Type-Options: nosniff\r\n",
	    h->cache ? h->cache : "no-store");
	if (h->challenge)
		put(&t, "WWW-Authenticate: Bearer realm=\"busbar\"\r\n");
	if (h->retry_s)
		put(&t, "Retry-After: %u\r\n", h->retry_s);
	if (h->allow)
		put(&t, "Allow: %s\r\n", h->allow);
	if (h->location)
		put(&t, "Location: %s\r\n", h->location);
	if (h->encoding)
		put(&t, "Content-Encoding: %s\r\n", h->encoding);
	put_cors(&t, h);
	put(&t, "%sConnection: %s\r\n\r\n", h->more ? h->more : "",
	    h->keep ? "keep-alive" : "close");
	return t.full ? 0 : t.len;
}

bool http_origin_fits(const char *origin, const char *host, bool tls,
		      const json_t *allowed)
{
	const char *scheme = tls ? "https://" : "http://";
	json_t *e;
	size_t i;

	if (!strncasecmp(origin, scheme, strlen(scheme)) && host &&
	    !strcasecmp(origin + strlen(scheme), host))
		return true;
	json_array_foreach(allowed, i, e)
		if (json_is_string(e) && !strcasecmp(json_string_value(e), origin))
			return true;
	return false;
}

bool http_host_is_local(const char *host)
{
	char name[64];
	unsigned char a[16];
	size_t len;

	if (*host == '[') {
		host++;
		len = strcspn(host, "]");
		if (host[len] != ']')
			return false;
	} else {
		len = strcspn(host, ":");
	}
	if (!len || len >= sizeof(name))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, a) == 1 ||
	       inet_pton(AF_INET6, name, a) == 1;
}

int64_t http_length_parse(const char *text)
{
	size_t len = strlen(text);

	if (!len || len > 15 || strspn(text, "0123456789") != len)
		return -1;
	return (int64_t)strtoull(text, NULL, 10);
}

bool http_list_has(const char *list, const char *word)
{
	size_t want = strlen(word);

	while (*list) {
		size_t len = strcspn(list, ","), skip = strspn(list, " \t");
		const char *item = list + MIN(skip, len);
		size_t n = len - MIN(skip, len);

		while (n && (item[n - 1] == ' ' || item[n - 1] == '\t'))
			n--;
		if (n == want && !strncasecmp(item, word, n))
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

bool http_type_is(const char *value, const char *type)
{
	size_t len = strlen(type);

	return !strncasecmp(value, type, len) &&
	       (!value[len] || strchr("; \t", value[len]));
}

double http_prefer_wait(const char *prefer, double otherwise, double max)
{
	const char *p = strcasestr(prefer, "wait=");
	double wait;

	if (p && (p == prefer || strchr(", \t;", p[-1])) && isdigit((unsigned char)p[5])) {
		wait = strtod(p + 5, NULL);
		return wait < max ? wait : max;
	}
	return http_list_has(prefer, "respond-async") ? 0 : otherwise;
}
