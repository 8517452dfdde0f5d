/* SPDX-License-Identifier: BSD-2-Clause */
/* What targets, ranges and dates in heads mean; see head.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/container_of.h"
#include "web/head.h"

/* One character of the target, decoded; -1: not one. */
static int take_character(struct head_text *t)
{
	bool is_escaped = t->at[0] == '%';
	int c = is_escaped ? head_escaped(*t) : (unsigned char)t->at[0];
	size_t n = is_escaped ? 3 : 1;

	if (c < ' ' || c == 0x7f)
		return -1;
	t->at += n;
	t->bytes -= n;
	return c;
}

/* The target without "http://host" and query. False: neither form of a target. */
static bool path_part(struct head_text *t)
{
	const char *end = memchr(t->at, '?', t->bytes);

	if (end)
		t->bytes = (size_t)(end - t->at);
	if (t->bytes > 7 && !strncasecmp(t->at, "http://", 7)) {
		const char *slash = memchr(t->at + 7, '/', t->bytes - 7);

		t->bytes = slash ? t->bytes - (size_t)(slash - t->at) : 0;
		t->at = slash ? slash : t->at;
		return true;
	}
	return t->bytes && t->at[0] == '/';
}

int head_path(struct head_text target, char *out, size_t room)
{
	size_t n = 0, segment = 0;

	if (!path_part(&target))
		return -EBADMSG;
	while (target.bytes) {
		int c = take_character(&target);
		size_t length;

		if (c < 0)
			return -EBADMSG;
		if (n + 2 > room)
			return -ENAMETOOLONG;
		out[n++] = (char)c;
		if (target.bytes && c != '/')
			continue;
		/* A segment has ended. */
		length = n - segment - (c == '/');
		if (length == 2 && !memcmp(out + segment, "..", 2))
			return -EACCES;
		if (!length || (length == 1 && out[segment] == '.'))
			n = segment;
		segment = n;
	}
	if (!room)
		return -ENAMETOOLONG;
	out[n] = '\0';
	return 0;
}

int head_range(struct head_text value, uint64_t size, uint64_t *first, uint64_t *count)
{
	const char *dash;
	struct head_text from, to;
	uint64_t a = 0, b = 0;

	if (value.bytes < 7 || strncasecmp(value.at, "bytes=", 6))
		return -ENOENT;
	value.at += 6;
	value.bytes -= 6;
	dash = memchr(value.at, '-', value.bytes);
	if (!dash)
		return -ENOENT;
	from = (struct head_text){ value.at, (size_t)(dash - value.at) };
	to = (struct head_text){ dash + 1, value.bytes - from.bytes - 1 };
	if ((from.bytes && !head_number(from, &a)) || (to.bytes && !head_number(to, &b)) ||
	    (!from.bytes && !to.bytes) || (from.bytes && to.bytes && b < a))
		return -ENOENT;
	if (!from.bytes) { /* the last b bytes */
		*count = b < size ? b : size;
		*first = size - *count;
		return *count ? 0 : -ERANGE;
	}
	if (a >= size)
		return -ERANGE;
	*first = a;
	*count = (to.bytes && b < size ? b + 1 : size) - a;
	return 0;
}

/* Not by strftime(), which has the language of the user. */
void head_date_print(time_t when, char out[HEAD_DATE_BYTES])
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
					  "Aug", "Sep", "Oct", "Nov", "Dec" };
	struct tm t;

	if (!gmtime_r(&when, &t) || t.tm_year > 9999 - 1900 || t.tm_year < -1900) {
		when = 0;
		gmtime_r(&when, &t);
	}
	snprintf(out, HEAD_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT",
		 days[t.tm_wday % 7u], (unsigned)t.tm_mday % 100, months[t.tm_mon % 12u],
		 (unsigned)(t.tm_year + 1900) % 10000, (unsigned)t.tm_hour % 100,
		 (unsigned)t.tm_min % 100, (unsigned)t.tm_sec % 100);
}

bool head_date_parse(struct head_text text, time_t *out)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
		"%a %b %d %H:%M:%S %Y",
	};
	char copy[64];

	if (text.bytes >= sizeof(copy))
		return false;
	memcpy(copy, text.at, text.bytes);
	copy[text.bytes] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct tm t = { 0 };
		const char *end = strptime(copy, forms[i], &t);

		if (!end || *end)
			continue;
		*out = timegm(&t);
		return true;
	}
	return false;
}

const char *head_content_type(const char *path)
{
	static const char *const types[][2] = {
		{ "html", "text/html; charset=utf-8" }, { "htm", "text/html; charset=utf-8" },
		{ "txt", "text/plain; charset=utf-8" }, { "log", "text/plain; charset=utf-8" },
		{ "md", "text/markdown; charset=utf-8" }, { "css", "text/css; charset=utf-8" },
		{ "js", "text/javascript; charset=utf-8" },
		{ "mjs", "text/javascript; charset=utf-8" }, { "json", "application/json" },
		{ "csv", "text/csv; charset=utf-8" }, { "xml", "application/xml" },
		{ "svg", "image/svg+xml" }, { "png", "image/png" }, { "jpg", "image/jpeg" },
		{ "jpeg", "image/jpeg" }, { "gif", "image/gif" }, { "webp", "image/webp" },
		{ "ico", "image/vnd.microsoft.icon" }, { "pdf", "application/pdf" },
		{ "wasm", "application/wasm" }, { "woff2", "font/woff2" },
		{ "mp4", "video/mp4" }, { "webm", "video/webm" }, { "mp3", "audio/mpeg" },
		{ "gz", "application/gzip" }, { "zip", "application/zip" },
		{ "tar", "application/x-tar" },
	};
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
		if (!strcasecmp(dot + 1, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}
