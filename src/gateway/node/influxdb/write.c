/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines in requests of HTTP, version 1 (/write) and 2 (/api/v2/write). While a request is on
 * its way, messages wait; the next one takes as many as fit.
 *
 * A server refuses a whole request, or writes a part of it, because of one wrong line, and does
 * not say reliably which. So a refused request is divided until the line is found. What the
 * server has got twice thereby is the same point, which it keeps once.
 */
#define LOG_ROOM "gateway/influxdb"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/influxdb/influxdb.h"
#include "util/clock.h"

/* Bytes of a request, if messages are not longer. */
#define TEXT_MAX 1000000

static int make_url(struct influx_node *x)
{
	static const char *const precisions[2][4] = {
		{ "n", "u", "ms", "s" }, { "ns", "us", "ms", "s" },
	};
	size_t len = strlen(x->url);
	bool good;

	while (len && x->url[len - 1] == '/')
		len--;
	snprintf(x->write_url, sizeof(x->write_url), "%.*s%s", (int)len, x->url,
		 x->version ? "/api/v2/write" : "/write");
	good = outside_http_append(x->write_url, "?precision=", precisions[x->version][x->precision]);
	if (x->database)
		good = good && outside_http_append(x->write_url, "&db=", x->database);
	if (x->retention)
		good = good && outside_http_append(x->write_url, "&rp=", x->retention);
	if (x->org)
		good = good && outside_http_append(x->write_url, "&org=", x->org);
	if (x->bucket)
		good = good && outside_http_append(x->write_url, "&bucket=", x->bucket);
	return good ? 0 : outside_fail(&x->outside, -ENAMETOOLONG, "the address is too long");
}

/* ---- answers ---- */

static void confirm_part(struct influx_node *x)
{
	for (unsigned i = 0; i < x->part; i++)
		outside_confirm(&x->outside, x->messages[x->first + i].tag, false);
}

static void forget_part(struct influx_node *x)
{
	x->first += x->part;
	x->text_first += x->part_len;
	if (x->first < x->count)
		return;
	x->first = x->count = 0;
	x->text_first = x->text_len = 0;
	x->part_max = UINT32_MAX;
}

/* A line is wrong: a smaller part says which. */
static void refuse_part(struct influx_node *x, const char *why)
{
	if (x->part > 1) {
		x->part_max = x->part / 2;
		return;
	}
	outside_reject(&x->outside, x->messages[x->first].tag, why);
	forget_part(x);
}

static int on_answer(struct outside_http_call *call, int ret)
{
	struct influx_node *x = container_of(call, struct influx_node, call);
	char why[OUTSIDE_WHY];

	if (ret)
		return ret;
	if (call->attempts > 1)
		for (unsigned i = 0; i < x->part; i++)
			node_figure_add(x->outside.node, OUTSIDE_REPEATED,
					x->messages[x->first + i].samples);
	if (outside_http_is_later(call)) {
		x->later_ns = outside_http_later_ns(call);
		node_figure_add(x->outside.node, INFLUX_LATER, 1);
		return 0;
	}
	outside_http_reason(call, why, sizeof(why));
	if (!x->is_checked) {
		/* Version 2 calls an empty request wrong, after it has looked at the token. */
		if (!outside_http_is_good(call) && call->status != 400)
			return outside_fail(&x->outside, -EACCES, "%s", why);
		x->is_checked = true;
		outside_is_up(&x->outside);
	} else if (outside_http_is_good(call)) {
		confirm_part(x);
		forget_part(x);
		x->part_max = x->part_max > UINT32_MAX / 2 ? UINT32_MAX : 2 * x->part_max;
	} else if (call->status == 400 || call->status == 413 || call->status == 422) {
		refuse_part(x, why);
	} else {
		return outside_fail(&x->outside, -EACCES, "%s", why);
	}
	x->part = 0;
	return 0;
}

/* ---- requests ---- */

static int begin(struct influx_node *x)
{
	x->part = 0;
	x->part_len = 0;
	while (x->first + x->part < x->count && x->part < x->part_max)
		x->part_len += x->messages[x->first + x->part++].len;
	node_figure_add(x->outside.node, INFLUX_REQUESTS, 1);
	return outside_http_begin(&x->call, "POST", x->write_url, x->text + x->text_first,
				  x->part_len);
}

static bool is_due(const struct influx_node *x)
{
	return !x->call.busy && (x->count || !x->is_checked) && clock_now_ns() >= x->later_ns;
}

static int http_send(struct outside *o, struct outbox_message *m)
{
	struct influx_node *x = influx_of(o);

	if (x->call.busy || x->first || x->part_max != UINT32_MAX ||
	    x->count == (unsigned)x->batch_max || m->len > x->text_size - x->text_len)
		return -EAGAIN;
	m->tag = outside_new_tag(o);
	memcpy(x->text + x->text_len, m->data, m->len);
	x->text_len += m->len;
	x->messages[x->count++] = (struct influx_message){ m->tag, m->len, m->samples };
	return OUTSIDE_UNCONFIRMED;
}

static int http_turn(struct outside *o)
{
	struct influx_node *x = influx_of(o);
	int ret = outside_http_turn(&x->http);

	return ret ?: is_due(x) ? begin(x) : 0;
}

static unsigned http_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct influx_node *x = influx_of(o);
	unsigned count = outside_http_wait(&x->http, fds, until_ns);

	if (!x->call.busy && (x->count || !x->is_checked))
		*until_ns = MIN(*until_ns, x->later_ns);
	return count;
}

/* ---- connecting ---- */

static int set_token(struct influx_node *x)
{
	char buf[OUTSIDE_SECRET_MAX], header[OUTSIDE_SECRET_MAX + 32];
	int ret = 0;

	if (!x->token && !x->token_file)
		return 0;
	if (!outside_secret(x->token, x->token_file, buf, x->outside.why, sizeof(x->outside.why)))
		return -EACCES;
	snprintf(header, sizeof(header), "Authorization: Token %s", buf);
	ret = outside_http_call_header(&x->call, header);
	explicit_bzero(buf, sizeof(buf));
	explicit_bzero(header, sizeof(header));
	return ret;
}

static int open_call(struct influx_node *x)
{
	char buf[OUTSIDE_SECRET_MAX];
	int ret;

	if (!outside_secret(x->password, x->password_file, buf, x->outside.why,
			    sizeof(x->outside.why)))
		return -EACCES;
	x->http.username = x->username;
	x->http.password = buf;
	ret = outside_http_call_open(&x->call, &x->http, on_answer);
	x->http.password = NULL;
	explicit_bzero(buf, sizeof(buf));
	if (ret)
		return ret;
	return outside_http_call_header(&x->call, "Content-Type: text/plain; charset=utf-8") ?:
	       set_token(x);
}

static void http_close(struct outside *o)
{
	struct influx_node *x = influx_of(o);

	outside_http_call_close(&x->call);
	outside_http_close(&x->http);
	free(x->text);
	free(x->messages);
	x->text = NULL;
	x->messages = NULL;
}

static int http_open(struct outside *o)
{
	struct influx_node *x = influx_of(o);
	int ret;

	x->http.o = o;
	x->http.tls = &x->tls;
	x->http.timeout_s = x->timeout_s;
	/* An answer may repeat each wrong line; only its beginning is told. */
	x->http.answer_max = 64u << 20;
	x->http.keep_max = 4096;
	x->text_size = MAX((size_t)TEXT_MAX, (size_t)o->message_max);
	x->text_len = x->text_first = 0;
	x->count = x->first = x->part = 0;
	x->part_max = UINT32_MAX;
	x->is_checked = false;
	x->later_ns = 0;
	ret = make_url(x) ?: outside_http_open(&x->http);
	if (ret)
		return ret;
	x->text = malloc(x->text_size);
	x->messages = calloc((size_t)x->batch_max, sizeof(*x->messages));
	ret = x->text && x->messages ? open_call(x) : -ENOMEM;
	/* Whether the server knows us and the database: by a request without lines. */
	ret = ret ?: begin(x);
	if (!ret)
		return 1;
	http_close(o);
	return ret;
}

const struct outside_ops influx_http_ops = {
	/* libcurl is used by one thread. */
	.flags = OUTSIDE_MAY_WAIT,
	.open = http_open,
	.close = http_close,
	.send = http_send,
	.turn = http_turn,
	.wait = http_wait,
	.print = influx_print,
};
