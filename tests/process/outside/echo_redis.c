/* SPDX-License-Identifier: BSD-2-Clause */
/* A bare loop over hiredis, by channels; see echo.h. SERVER: HOST:PORT. One connection
 * is subscribed, the other one publishes and reads the answers when they come. */
#include <hiredis/hiredis.h>
#include <poll.h>

#include "echo.h"

struct echo {
	redisContext *pub, *sub;
	const char *to;
};

static int failed(redisContext *c, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, c ? c->errstr : "no memory");
	return -1;
}

struct echo *echo_open(const char *server, const char *from, const char *to)
{
	struct echo *e = calloc(1, sizeof(*e));
	redisReply *reply;
	char host[256];
	int port = echo_host(server, host, sizeof(host));

	if (!e)
		return NULL;
	e->to = to;
	e->pub = redisConnect(host, port);
	if (!e->pub || e->pub->err || !(e->sub = redisConnect(host, port)) ||
	    e->sub->err) {
		failed(e->sub ? e->sub : e->pub, "connect");
		return NULL;
	}
	reply = redisCommand(e->sub, "SUBSCRIBE %s", from);
	if (!reply || reply->type != REDIS_REPLY_ARRAY) {
		failed(e->sub, reply ? reply->str : "subscribe");
		return NULL;
	}
	freeReplyObject(reply);
	return e;
}

int echo_send(struct echo *e, const void *data, size_t len)
{
	int done = 0;

	if (redisAppendCommand(e->pub, "PUBLISH %s %b", e->to, data, len))
		return failed(e->pub, "publish");
	while (!done)
		if (redisBufferWrite(e->pub, &done))
			return failed(e->pub, "publish");
	return 0;
}

/* Reads the answers that have come. */
static int read_answers(redisContext *c)
{
	redisReply *reply = NULL;

	if (redisBufferRead(c))
		return failed(c, "answer");
	do {
		if (reply && reply->type == REDIS_REPLY_ERROR) {
			fprintf(stderr, "publish: %s\n", reply->str);
			return -1;
		}
		freeReplyObject(reply);
		reply = NULL;
		if (redisGetReplyFromReader(c, (void **)&reply))
			return failed(c, "answer");
	} while (reply);
	return 0;
}

int echo_wait(struct echo *e, void *buf, size_t size)
{
	struct pollfd p[2] = { { .fd = e->sub->fd, .events = POLLIN },
			       { .fd = e->pub->fd, .events = POLLIN } };
	redisReply *reply = NULL;

	for (;;) {
		if (redisGetReplyFromReader(e->sub, (void **)&reply))
			return failed(e->sub, "message");
		if (reply)
			break;
		if (poll(p, 2, 1000) <= 0)
			return 0;
		if (p[1].revents && read_answers(e->pub))
			return -1;
		if (p[0].revents && redisBufferRead(e->sub))
			return failed(e->sub, "message");
	}
	/* "message", the channel, the data */
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
	    reply->element[2]->type != REDIS_REPLY_STRING ||
	    (size_t)reply->element[2]->len > size) {
		fprintf(stderr, "an answer that is no message\n");
		return -1;
	}
	size = (size_t)reply->element[2]->len;
	memcpy(buf, reply->element[2]->str, size);
	freeReplyObject(reply);
	return (int)size;
}
