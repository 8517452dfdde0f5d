/* SPDX-License-Identifier: BSD-2-Clause */
/* See head.h. RFC 9110, RFC 9112, RFC 6454 (origins), RFC 7240 (Prefer). */
#include "gateway/http/head.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/head_text.h"

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

	put(&t, "HTTP/1.1 %d %s\r\n", h->status, head_reason((unsigned)h->status));
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
	/* Which one is required has to be said (RFC 9110, 15.5.22). */
	if (h->status == 426)
		put(&t, "Upgrade: websocket\r\n");
	put(&t, "%sConnection: %s%s\r\n\r\n", h->more ? h->more : "",
	    h->keep ? "keep-alive" : "close", h->status == 426 ? ", upgrade" : "");
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

/* The value of Host without the port. */
static bool host_name(const char *host, char name[64])
{
	size_t len;

	if (*host == '[') {
		host++;
		len = strcspn(host, "]");
		if (host[len] != ']')
			return false;
	} else {
		len = strcspn(host, ":");
	}
	if (!len || len >= 64)
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return true;
}

bool http_host_is_local(const char *host)
{
	unsigned char a[16];
	char name[64];

	if (!host_name(host, name))
		return false;
	return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, a) == 1 ||
	       inet_pton(AF_INET6, name, a) == 1;
}

bool http_host_is_loopback(const char *host)
{
	unsigned char a[16];
	char name[64];

	if (!host_name(host, name))
		return false;
	if (inet_pton(AF_INET, name, a) == 1)
		return a[0] == 127;
	if (inet_pton(AF_INET6, name, a) == 1)
		return !memcmp(a, &in6addr_loopback, sizeof(a));
	return !strcasecmp(name, "localhost");
}

int64_t http_length_parse(const char *text)
{
	struct head_text t = head_text_of(text);
	uint64_t n;

	return t.bytes <= 15 && head_number(t, &n) ? (int64_t)n : -1;
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
	return head_lists(head_text_of(prefer), head_text_of("respond-async")) ? 0 : otherwise;
}
