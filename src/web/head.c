/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and fields of heads; see head.h. */
#include "web/head.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Characters of names and methods (RFC 9110, 5.6.2). */
static bool is_token(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token_text(struct head_text t)
{
	for (size_t i = 0; i < t.bytes; i++)
		if (!is_token(t.at[i]))
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

/* The line at `at`, without its end. -EAGAIN: it has none; -EBADMSG. */
static int take_line(const char *text, size_t bytes, size_t *at, struct head_text *line)
{
	size_t i = *at;

	while (i < bytes && text[i] != '\r') {
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return -EBADMSG;
		i++;
	}
	if (i + 1 >= bytes)
		return -EAGAIN;
	if (text[i + 1] != '\n')
		return -EBADMSG;
	*line = (struct head_text){ text + *at, i - *at };
	*at = i + 2;
	return 0;
}

static int take_field(struct head *h, struct head_text line)
{
	const char *colon = memchr(line.at, ':', line.bytes);
	struct head_field *f = &h->fields[h->count];

	if (!colon)
		return -EBADMSG;
	if (h->count == HEAD_FIELDS_MAX)
		return -E2BIG;
	f->name = (struct head_text){ line.at, (size_t)(colon - line.at) };
	if (!is_token_text(f->name))
		return -EBADMSG;
	f->value = trim((struct head_text){ colon + 1, line.bytes - f->name.bytes - 1 });
	h->count++;
	return 0;
}

int head_parse(struct head *h, const char *text, size_t bytes)
{
	size_t at = 0;
	int ret = take_line(text, bytes, &at, &h->first);

	h->count = 0;
	while (!ret) {
		struct head_text line;

		ret = take_line(text, bytes, &at, &line);
		if (!ret && !line.bytes) {
			h->bytes = at;
			return h->first.bytes ? 0 : -EBADMSG;
		}
		if (!ret)
			ret = take_field(h, line);
	}
	return ret;
}

bool head_is(struct head_text t, const char *word)
{
	return strlen(word) == t.bytes && !strncasecmp(t.at, word, t.bytes);
}

const struct head_field *head_find(const struct head *h, const char *name)
{
	for (unsigned i = 0; i < h->count; i++)
		if (head_is(h->fields[i].name, name))
			return &h->fields[i];
	return NULL;
}

unsigned head_count(const struct head *h, const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->count; i++)
		n += head_is(h->fields[i].name, name);
	return n;
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

/* "HTTP/1.x" */
static int version_of(struct head_text t, unsigned *minor)
{
	if (t.bytes != 8 || memcmp(t.at, "HTTP/", 5) || t.at[6] != '.' ||
	    t.at[5] < '0' || t.at[5] > '9' || t.at[7] < '0' || t.at[7] > '9')
		return -EBADMSG;
	*minor = (unsigned)(t.at[7] - '0');
	return t.at[5] == '1' ? 0 : -EPROTONOSUPPORT;
}

int head_request_parse(struct head_request *q, const char *text, size_t bytes)
{
	int ret = head_parse(&q->head, text, bytes);
	struct head_text rest = q->head.first;
	const char *first, *last;

	if (ret)
		return ret;
	first = memchr(rest.at, ' ', rest.bytes);
	last = memrchr(rest.at, ' ', rest.bytes);
	if (!first || last == first)
		return -EBADMSG;
	q->method_text = (struct head_text){ rest.at, (size_t)(first - rest.at) };
	q->target = (struct head_text){ first + 1, (size_t)(last - first) - 1 };
	if (!is_token_text(q->method_text) || !q->target.bytes)
		return -EBADMSG;
	for (size_t i = 0; i < q->target.bytes; i++)
		if (is_blank(q->target.at[i]))
			return -EBADMSG;
	/* Methods have a case. */
	q->method = HEAD_OTHER;
	if (q->method_text.bytes == 3 && !memcmp(rest.at, "GET", 3))
		q->method = HEAD_GET;
	else if (q->method_text.bytes == 4 && !memcmp(rest.at, "HEAD", 4))
		q->method = HEAD_HEAD;
	ret = version_of((struct head_text){ last + 1, (size_t)(rest.at + rest.bytes - last) - 1 },
			 &q->minor);
	if (!ret && head_count(&q->head, "Host") != (q->minor ? 1u : 0u) &&
	    (q->minor || head_count(&q->head, "Host") > 1))
		ret = -EBADMSG;
	return ret;
}

int head_answer_parse(struct head_answer *a, const char *text, size_t bytes)
{
	int ret = head_parse(&a->head, text, bytes);
	struct head_text line = a->head.first;
	uint64_t status;
	unsigned minor;

	if (ret)
		return ret;
	if (line.bytes < 12 || line.at[8] != ' ' || (line.bytes > 12 && line.at[12] != ' '))
		return -EBADMSG;
	ret = version_of((struct head_text){ line.at, 8 }, &minor);
	if (ret)
		return ret;
	if (!head_number((struct head_text){ line.at + 9, 3 }, &status) ||
	    status < 100 || status > 599)
		return -EBADMSG;
	a->status = (unsigned)status;
	return 0;
}
