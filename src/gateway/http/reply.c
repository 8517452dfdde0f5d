/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers: their headers, and sending them piece by piece; see service.h. */
#define LOG_ROOM "gateway/http"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "gateway/http/service.h"
#include "util/container_of.h"
#include "util/log.h"

void http_reply_clear(struct http_conn *c)
{
	c->server->bytes -= c->text ? c->text_len : 0;
	free(c->text);
	c->text = NULL;
	c->file = NULL;
	c->text_len = c->text_done = c->head_len = c->head_done = 0;
}

/* The body, if there is one to send, is in its place. */
static void start(struct http_conn *c, struct http_head *h, size_t len)
{
	h->length = len;
	h->keep = c->keep;
	h->origin = *c->origin ? c->origin : NULL;
	c->head_len = http_head_write(c->head, sizeof(c->head), h);
	http_conn_set_state(c, HTTP_ANSWERING);
}

void http_reply(struct http_conn *c, struct http_head *h, char *text, size_t len)
{
	struct http_server *s = c->server;

	http_reply_clear(c);
	if (text && !http_share_allows(c, len)) {
		free(text);
		text = NULL;
		len = 0;
		h->status = 503;
		h->type = NULL;
		h->retry_s = 1;
	}
	if (c->is_head) {
		free(text);
	} else if (text) {
		c->text = text;
		c->text_len = len;
		s->bytes += len;
	}
	start(c, h, len);
}

void http_reply_json(struct http_conn *c, struct http_head *h, json_t *body)
{
	char *text = json_dumps(body, JSON_COMPACT);

	json_decref(body);
	h->type = CONTROL_JSON;
	http_reply(c, h, text, text ? strlen(text) : 0);
}

void http_reply_error(struct http_conn *c, int status, const char *text)
{
	struct http_head h = { .status = status, .challenge = status == 401,
			       .retry_s = status == 503 ? 1 : 0 };

	http_reply_json(c, &h, json_pack("{ss}", "error", text));
}

void http_reply_refusal(struct http_conn *c, int status, const struct http_refusal *r)
{
	struct http_head h = { .status = status, .retry_s = status == 503 ? 1 : 0,
			       .more = r->lines };

	http_reply_json(c, &h, json_pack("{ss}", "error", r->why));
}

void http_reply_file(struct http_conn *c, const struct web_file *file, const char *known)
{
	bool same = strstr(known, file->etag) != NULL;
	struct http_head h = { .status = same ? 304 : 200, .type = file->type,
			       .cache = "no-cache", .encoding = file->encoding };
	char more[512];

	snprintf(more, sizeof(more), "ETag: %s\r\n%s%s%s", file->etag,
		 file->policy ? "Content-Security-Policy: " : "",
		 file->policy ? file->policy : "", file->policy ? "\r\n" : "");
	h.more = more;
	http_reply_clear(c);
	if (!c->is_head && !same) {
		c->file = file->data;
		c->text_len = file->len;
	}
	start(c, &h, file->len);
}

void http_reply_job(struct http_conn *c, struct http_job *j)
{
	struct http_head h = { .status = j->status, .type = j->type, .allow = j->allow,
			       .retry_s = j->status == 503 ? 1 : 0 };
	char *text = j->text;
	size_t len = j->len;

	/* A job that others may ask for keeps its own. */
	if (j->id)
		text = text ? strndup(text, len) : NULL;
	else
		j->text = NULL;
	http_reply(c, &h, text, text ? len : 0);
}

/* Counts `n` bytes that were sent, of the header first. */
static void count_sent(struct http_conn *c, size_t n)
{
	size_t head = MIN(n, c->head_len - c->head_done);

	c->head_done += head;
	c->text_done += n - head;
	/* Who takes a part has time for the next one. */
	http_conn_set_state(c, HTTP_ANSWERING);
}

int http_reply_write(struct http_conn *c)
{
	while (c->head_done < c->head_len || c->text_done < c->text_len) {
		struct iovec parts[2];
		int count = 0;
		ssize_t n;

		if (c->head_done < c->head_len)
			parts[count++] = (struct iovec){ c->head + c->head_done,
							 c->head_len - c->head_done };
		if (c->text_done < c->text_len)
			parts[count++] = (struct iovec){ (char *)(c->text ? c->text : c->file) +
								 c->text_done,
							 c->text_len - c->text_done };
		n = stream_send_parts(&c->socket, parts, count);
		if (n == -EAGAIN)
			return 1;
		if (n <= 0)
			return n ? (int)n : -EPIPE;
		count_sent(c, (size_t)n);
	}
	return c->head_len ? 0 : -ENOMEM;
}
