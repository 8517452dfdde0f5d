/* SPDX-License-Identifier: BSD-2-Clause */
/* See client.h. */
#include "web/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define REQUEST_ROOM 8192
#define SLICE_MS 100        /* how often `stop` is looked at */
#define RESEND_MS 1000      /* the first time, then twice as long each time */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static bool is_plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("/-._~!$&'()*+,;=:@", c));
}

static int encode(const char *path, char *out, size_t room)
{
	size_t n = 0;

	if (*path != '/')
		out[n++] = '/';
	for (; *path; path++) {
		if (n + 4 > room)
			return -ENAMETOOLONG;
		if (is_plain(*path))
			out[n++] = *path;
		else
			n += (size_t)sprintf(out + n, "%%%02X", (unsigned char)*path);
	}
	out[n] = '\0';
	return 0;
}

static int send_request(struct client *c, char *text, size_t bytes)
{
	const struct ripc_item item = { text, bytes };

	return bytes <= ripc_short_max(c->r, 1) ?
		       ripc_send_short(c->service, c->server, &item, 1, NULL, 0) :
		       ripc_send_long(c->service, c->server, &item, 1, NULL, 0, NULL);
}

/* 0: it is the answer; -ENOENT: something else, late or of somebody else; -EBADMSG. */
static int look(struct client *c, struct client_answer *a)
{
	const struct ripc_message *m = &a->message;
	const struct head_field *f;
	uint64_t number;

	if (m->from != c->server || !m->is_long)
		return -ENOENT;
	if (m->count != 2 ||
	    head_answer_parse(&a->head, m->items[0].data, m->items[0].bytes))
		return -EBADMSG;
	f = head_find(&a->head.head, "Ripc-Request");
	/* One that could not read the request does not know its number. */
	if (f && (!head_number(f->value, &number) || number != c->number))
		return -ENOENT;
	a->content = m->items[1].data;
	a->bytes = m->items[1].bytes;
	return 0;
}

static int wait_answer(struct client *c, char *text, size_t bytes, struct client_answer *a)
{
	int64_t now = now_ms(), until = now + c->timeout_ms, again_ms = RESEND_MS;
	int64_t again = c->resend ? now + again_ms : INT64_MAX;

	for (; now < until; now = now_ms()) {
		int ret;

		if (c->stop && atomic_load(c->stop))
			return -EINTR;
		if (now >= again) {
			ret = send_request(c, text, bytes);
			if (ret)
				return ret;
			again_ms *= 2;
			again = now + again_ms;
		}
		ret = ripc_receive(c->service, &a->message,
				   until - now < SLICE_MS ? (int)(until - now) : SLICE_MS);
		if (ret == -EAGAIN)
			continue;
		if (ret)
			return ret;
		ret = look(c, a);
		if (!ret)
			return 0;
		ripc_release(&a->message);
		if (ret != -ENOENT)
			return ret;
	}
	return -ETIMEDOUT;
}

int client_ask(struct client *c, const char *method, const char *path, const char *fields,
	       struct client_answer *out)
{
	char target[REQUEST_ROOM / 2], text[REQUEST_ROOM];
	int ret = encode(path, target, sizeof(target)), n;

	if (ret)
		return ret;
	if (getrandom(&c->number, sizeof(c->number), 0) != sizeof(c->number))
		return -EIO;
	c->number >>= 1; /* the number in a head has 63 bits (head_number()) */
	n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: ripc\r\n"
		     "User-Agent: busbar\r\nRipc-Request: %" PRIu64 "\r\n%s\r\n", method,
		     target, c->number, fields);
	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	ret = send_request(c, text, (size_t)n);
	return ret ? ret : wait_answer(c, text, (size_t)n, out);
}

void client_release(struct client_answer *a)
{
	ripc_release(&a->message);
}
