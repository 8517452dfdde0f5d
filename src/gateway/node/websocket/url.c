/* SPDX-License-Identifier: BSD-2-Clause */
/* See url.h. */
#include "gateway/node/websocket/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "HOST", "HOST:PORT", "[::1]:PORT" */
static const char *parse_authority(struct ws_url *u, const char *s, size_t len)
{
	const char *end = *s == '[' ? memchr(s, ']', len) : memchr(s, ':', len);
	const char *host = *s == '[' ? s + 1 : s, *port;
	size_t host_len;

	if (memchr(s, '@', len))
		return "names of users are not supported; see the key token_file";
	if (*s == '[' && !end)
		return "the bracket of the address does not end";
	if (!end)
		end = s + len;
	host_len = (size_t)(end - host);
	if (!host_len || host_len >= sizeof(u->host))
		return "the host is missing, or too long";
	if (memchr(host, '[', host_len) || memchr(host, ']', host_len))
		return "brackets stand around the address only, as in ws://[::1]:8080/";
	port = *s == '[' ? end + 1 : end;
	len -= (size_t)(port - s);
	if (len && *port != ':')
		return "expected ':' and a port behind the host";
	if (len == 1 || len > 6 || (len && strspn(port + 1, "0123456789") < len - 1) ||
	    (len && (atoi(port + 1) < 1 || atoi(port + 1) > 65535)))
		return "a port is a number from 1 to 65535";
	snprintf(u->host, sizeof(u->host), "%.*s", (int)host_len, host);
	if (len)
		snprintf(u->port, sizeof(u->port), "%.*s", (int)len - 1, port + 1);
	else
		strcpy(u->port, u->tls ? "443" : "80");
	snprintf(u->authority, sizeof(u->authority), "%s%s%s:%s", *s == '[' ? "[" : "", u->host,
		 *s == '[' ? "]" : "", u->port);
	return NULL;
}

/* "/a/node.villas.web?x" -> "villas.web". False: it is too long for any format. */
static bool find_format(struct ws_url *u)
{
	const char *end = u->target + strcspn(u->target, "?"), *at = end, *dot;

	while (at > u->target && at[-1] != '/')
		at--;
	dot = memchr(at, '.', (size_t)(end - at));
	return !dot || (size_t)snprintf(u->format, sizeof(u->format), "%.*s",
					(int)(end - dot - 1), dot + 1) < sizeof(u->format);
}

static bool is_plain(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || *s == '#')
			return false;
	return true;
}

/* Sets `tls`. Returns what follows the scheme; NULL: the scheme is another one. */
static const char *parse_scheme(struct ws_url *u, const char *s)
{
	/* VILLASnode writes http and https. */
	static const char *const schemes[] = { "ws://", "http://", "wss://", "https://" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		u->tls = i >= 2;
		if (!strncasecmp(s, schemes[i], strlen(schemes[i])))
			return s + strlen(schemes[i]);
	}
	return NULL;
}

int ws_url_parse(struct ws_url *u, const char *text, const char **why)
{
	const char *s, *path;

	memset(u, 0, sizeof(*u));
	s = parse_scheme(u, text);
	*why = "expected ws://HOST:PORT/NODE or wss://HOST:PORT/NODE (http:// and https:// mean the same)";
	if (!s)
		return -EINVAL;
	if (!is_plain(s)) {
		*why = "a URL has neither blanks, nor '#', nor characters beyond ASCII (write %XX)";
		return -EINVAL;
	}
	path = s + strcspn(s, "/?");
	*why = parse_authority(u, s, (size_t)(path - s));
	if (*why)
		return -EINVAL;
	*why = "the path is too long";
	if ((size_t)snprintf(u->target, sizeof(u->target), "%s%s", *path == '/' ? "" : "/",
			     path) >= sizeof(u->target))
		return -EINVAL;
	*why = "the extension, which names the format, is too long";
	return find_format(u) ? 0 : -EINVAL;
}
