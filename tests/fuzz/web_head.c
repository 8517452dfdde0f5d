/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of heads of HTTP: requests, answers, and the values in them. Whatever is
 * accepted lies within the input, is read the same when it is cut behind its end, and a path
 * stays in its folder. Built plainly, main() runs a bounded number of random mutations
 * (argument 1: runs, argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer
 * drives it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "0123456789/.%:-=,? \t\r\n\0\x7f\xff"
#include "drive.h"
#include "web/head.h"

static void within(struct head_text t, const uint8_t *data, size_t size)
{
	const uint8_t *at = (const uint8_t *)t.at;

	if (at < data || at > data + size || t.bytes > (size_t)(data + size - at))
		abort();
	if (t.bytes && (memchr(t.at, '\r', t.bytes) || memchr(t.at, '\n', t.bytes) ||
			memchr(t.at, '\0', t.bytes)))
		abort();
}

static void head(const struct head *h, const uint8_t *data, size_t size)
{
	if (h->bytes > size || h->bytes < 4 || memcmp(data + h->bytes - 4, "\r\n\r\n", 4) ||
	    h->count > HEAD_FIELDS_MAX)
		abort();
	for (unsigned i = 0; i < h->count; i++) {
		within(h->fields[i].name, data, size);
		within(h->fields[i].value, data, size);
	}
}

static void path(struct head_text target)
{
	char out[64];
	size_t n;

	if (head_path(target, out, sizeof(out)))
		return;
	n = strlen(out);
	if (n >= sizeof(out) || out[0] == '/' || !strcmp(out, "..") || !strncmp(out, "../", 3) ||
	    strstr(out, "/../") || strstr(out, "//") || (n > 2 && !strcmp(out + n - 3, "/..")))
		abort();
	if (!head_content_type(out))
		abort();
}

static void values(const struct head *h)
{
	for (unsigned i = 0; i < h->count; i++) {
		uint64_t first, count;
		char text[HEAD_DATE_BYTES];
		time_t when, again;

		if (!head_range(h->fields[i].value, 1000, &first, &count) &&
		    (!count || first >= 1000 || count > 1000 - first))
			abort();
		if (!head_date_parse(h->fields[i].value, &when) || when < 0)
			continue;
		head_date_print(when, text);
		if (!head_date_parse((struct head_text){ text, strlen(text) }, &again) ||
		    again != when)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head_request q, cut;
	struct head_answer a;
	const char *text = (const char *)data;
	int ret = head_request_parse(&q, text, size);

	if (ret && ret != -EAGAIN && ret != -EBADMSG && ret != -E2BIG && ret != -EPROTONOSUPPORT)
		abort();
	if (!ret) {
		head(&q.head, data, size);
		within(q.target, data, size);
		within(q.method_text, data, size);
		path(q.target);
		values(&q.head);
		if (head_request_parse(&cut, text, q.head.bytes) ||
		    head_request_parse(&cut, text, q.head.bytes - 1) != -EAGAIN)
			abort();
	}
	ret = head_answer_parse(&a, text, size);
	if (!ret) {
		head(&a.head, data, size);
		values(&a.head);
		if (a.status < 100 || a.status > 599 || !head_reason(a.status))
			abort();
	}
	return 0;
}

#ifndef FUZZER
#define SEED_MAX 4096

static const char *const valid[] = {
	"GET /a/b%20c/../d?x=1 HTTP/1.1\r\nHost: a\r\nRange: bytes=10-20\r\n"
	"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
	"HEAD http://host/x//y/./z HTTP/1.0\r\nRange: bytes=-5\r\n\r\n",
	"GET /%2e%2e/etc HTTP/1.1\r\nHost:\r\nRange: bytes=999-\r\nDate: Sunday, 06-Nov-94 "
	"08:49:37 GMT\r\nDate: Sun Nov  6 08:49:37 1994\r\n\r\n",
	"HTTP/1.1 206 Partial Content\r\nRipc-Request: 17\r\nContent-Length: 5\r\n\r\n",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *text = valid[random_below(sizeof(valid) / sizeof(valid[0]))];
	size_t size = strlen(text);

	memcpy(bytes, text, size);
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, SEED_MAX, make);
}
#endif
