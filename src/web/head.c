/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and fields of heads; see head.h. */
#include "web/head.h"

#include <errno.h>
#include <string.h>

/* The line at `at`, without its end. -EAGAIN: it has none; -EBADMSG. */
static int take_line(const char *text, size_t bytes, size_t *at, struct head_text *line)
{
	size_t i = *at;

	while (i < bytes && text[i] != '\r') {
		if (head_is_control(text[i]))
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
	int ret;

	if (h->count == HEAD_FIELDS_MAX)
		return memchr(line.at, ':', line.bytes) ? -E2BIG : -EBADMSG;
	ret = head_field_parse(line, &h->fields[h->count]);
	h->count += !ret;
	return ret;
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

int head_request_parse(struct head_request *q, const char *text, size_t bytes)
{
	int ret = head_parse(&q->head, text, bytes);
	struct head_text version;
	unsigned hosts;

	if (!ret)
		ret = head_request_split(q->head.first, &q->method_text, &q->target, &version);
	if (ret)
		return ret;
	if (!head_is_token(q->method_text) || !q->target.bytes ||
	    memchr(q->target.at, '\t', q->target.bytes))
		return -EBADMSG;
	/* Methods have a case. */
	q->method = HEAD_OTHER;
	if (q->method_text.bytes == 3 && !memcmp(q->method_text.at, "GET", 3))
		q->method = HEAD_GET;
	else if (q->method_text.bytes == 4 && !memcmp(q->method_text.at, "HEAD", 4))
		q->method = HEAD_HEAD;
	ret = head_version_parse(version, &q->minor);
	if (ret)
		return ret;
	hosts = head_count(&q->head, "Host");
	return hosts > 1 || (q->minor && !hosts) ? -EBADMSG : 0;
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
	ret = head_version_parse((struct head_text){ line.at, 8 }, &minor);
	if (ret)
		return ret;
	if (!head_number((struct head_text){ line.at + 9, 3 }, &status) ||
	    status < 100 || status > 599)
		return -EBADMSG;
	a->status = (unsigned)status;
	return 0;
}
