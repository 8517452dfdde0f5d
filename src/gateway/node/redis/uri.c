/* SPDX-License-Identifier: BSD-2-Clause */
/* See uri.h. */
#include "gateway/node/redis/uri.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/num.h"

#define DB_MAX 1000000

static int fail(const char **why, const char *text)
{
	*why = text;
	return -EINVAL;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Copies [at, end) with %XX replaced. False: it is too long, or wrong. */
static bool decode(const char *at, const char *end, char *out, size_t size)
{
	size_t len = 0;

	for (; at < end; at++) {
		char c = *at;

		if (c == '%') {
			if (end - at < 3 || digit(at[1]) < 0 || digit(at[2]) < 0)
				return false;
			c = (char)(digit(at[1]) * 16 + digit(at[2]));
			at += 2;
		}
		if (!c || len + 1 >= size)
			return false;
		out[len++] = c;
	}
	out[len] = 0;
	return true;
}

static bool copy(const char *at, const char *end, char *out, size_t size)
{
	size_t len = (size_t)(end - at);

	if (len >= size)
		return false;
	memcpy(out, at, len);
	out[len] = 0;
	return true;
}

/* The number of a database. */
static int parse_db(struct redis_address *a, const char *at, const char *end, const char **why)
{
	uint64_t db;

	if (at == end)
		return 0;
	if (num_parse_u64(at, end, &db) != end || db > DB_MAX)
		return fail(why, "behind the last / stands the number of a database");
	a->db = (int64_t)db;
	return 0;
}

/* user:password@ */
static int parse_user(struct redis_address *a, const char **at, const char *end, const char **why)
{
	const char *sign = NULL, *colon;

	for (const char *p = *at; p < end; p++)
		if (*p == '@')
			sign = p;
	if (!sign)
		return 0;
	colon = memchr(*at, ':', (size_t)(sign - *at));
	/* Without a colon some programs take it for the user and others for the password. */
	if (!colon)
		return fail(why, "in front of @ stands USER:PASSWORD or :PASSWORD");
	if (!decode(*at, colon, a->user, sizeof(a->user)) ||
	    !decode(colon + 1, sign, a->password, sizeof(a->password)))
		return fail(why, "the user or the password is too long, or has a wrong %");
	if (*a->user && !*a->password)
		return fail(why, "the password of the user is missing");
	*at = sign + 1;
	return 0;
}

static int parse_host(struct redis_address *a, const char *at, const char *end, const char **why)
{
	const char *close = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
	const char *host_end = close ? close : memchr(at, ':', (size_t)(end - at));
	const char *behind = close ? close + 1 : host_end;
	uint64_t port;

	if (*at == '[' && !close)
		return fail(why, "a ] is missing");
	if (!host_end)
		host_end = behind = end;
	if (!copy(at + (close != NULL), host_end, a->host, sizeof(a->host)))
		return fail(why, "the host is too long");
	if (!*a->host)
		return fail(why, "the host is missing");
	if (behind == end)
		return 0;
	if (*behind != ':' || num_parse_u64(behind + 1, end, &port) != end || !port ||
	    port > 65535)
		return fail(why, "the port is a number from 1 to 65535");
	snprintf(a->port, sizeof(a->port), "%u", (unsigned)port);
	return 0;
}

static int parse_tcp(struct redis_address *a, const char *at, const char **why)
{
	const char *end = at + strlen(at), *slash = NULL;
	int ret;

	/* A password may hold a slash: what counts is the one behind the last @. */
	for (const char *p = end; p > at && p[-1] != '@'; p--)
		if (p[-1] == '/')
			slash = p - 1;
	ret = parse_user(a, &at, slash ? slash : end, why) ?:
	      parse_host(a, at, slash ? slash : end, why);
	return ret ?: slash ? parse_db(a, slash + 1, end, why) : 0;
}

static int parse_unix(struct redis_address *a, const char *at, const char **why)
{
	const char *end = at + strlen(at), *slash;
	uint64_t db;
	int ret = parse_user(a, &at, end, why);

	if (ret)
		return ret;
	slash = strrchr(at, '/');
	if (slash && slash > at && slash + 1 < end &&
	    num_parse_u64(slash + 1, end, &db) == end) {
		ret = parse_db(a, slash + 1, end, why);
		end = slash;
	}
	if (at == end)
		return fail(why, "the path of the socket is missing");
	if (!copy(at, end, a->path, sizeof(a->path)))
		return fail(why, "the path of the socket is too long");
	return ret;
}

int redis_uri_parse(struct redis_address *a, const char *text, const char **why)
{
	static const struct {
		const char *name;
		bool tls, is_path;
	} schemes[] = {
		{ "redis://", false, false }, { "tcp://", false, false },
		{ "rediss://", true, false }, { "unix://", false, true },
	};

	*a = (struct redis_address){ .port = "6379" };
	if (strpbrk(text, "?# \t\r\n\""))
		return fail(why, "options, spaces, quotes, ? and # do not belong there");
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t len = strlen(schemes[i].name);

		if (strncmp(text, schemes[i].name, len))
			continue;
		a->tls = schemes[i].tls;
		return schemes[i].is_path ? parse_unix(a, text + len, why) :
					    parse_tcp(a, text + len, why);
	}
	return fail(why, "expected redis://, rediss:// or unix://");
}
