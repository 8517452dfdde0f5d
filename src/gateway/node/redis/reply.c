/* SPDX-License-Identifier: BSD-2-Clause */
/* See reply.h. */
#include "gateway/node/redis/reply.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/num.h"

/* Values of a reply are in chunks of memory; the first one is kept for the next reply. */
#define CHUNK 65536
#define ALIGN 16
/* Beside its text, a value costs memory: a reply of many short ones takes some times its size. */
#define MEMORY_FACTOR 8
/* The longest line that is no text with a length in front: a status, an error, a number. */
#define LINE_MAX_BYTES 65536

struct redis_chunk {
	struct redis_chunk *next;
	size_t used, size;
	_Alignas(ALIGN) char data[];
};

#if HIREDIS_MAJOR > 0
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* ---- memory of a reply ---- */

static void *take(struct redis_reader *r, size_t size)
{
	struct redis_chunk *c = r->chunks;
	size_t want = (size + ALIGN - 1) / ALIGN * ALIGN, room;
	void *at;

	if (r->used + want > MEMORY_FACTOR * r->max) {
		r->too_long = true;
		return NULL;
	}
	if (!c || c->size - c->used < want) {
		room = MAX(want, (size_t)CHUNK);
		c = malloc(sizeof(*c) + room);
		if (!c)
			return NULL;
		*c = (struct redis_chunk){ r->chunks, 0, room };
		r->chunks = c;
	}
	at = c->data + c->used;
	c->used += want;
	r->used += want;
	return at;
}

static void forget(struct redis_reader *r)
{
	struct redis_chunk *c;

	while ((c = r->chunks) && (c->next || c->size > CHUNK)) {
		r->chunks = c->next;
		free(c);
	}
	if (c)
		c->used = 0;
	r->used = 0;
}

/* ---- called by redisReader ---- */

static struct redis_value *make(const redisReadTask *task, size_t more)
{
	struct redis_reader *r = task->privdata;
	struct redis_value *v = take(r, sizeof(*v) + more);

	if (!v)
		return NULL;
	*v = (struct redis_value){ .type = REDIS_NIL };
	if (task->parent) {
		struct redis_value *parent = task->parent->obj;

		parent->items[task->idx] = v;
	}
	return v;
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
	struct redis_value *v = make(task, len + 1);
	char *copy;

	if (!v)
		return NULL;
	v->type = task->type == REDIS_REPLY_ERROR  ? REDIS_ERROR :
		  task->type == REDIS_REPLY_STATUS ? REDIS_STATUS :
						     REDIS_TEXT;
	copy = (char *)(v + 1);
	memcpy(copy, text, len);
	copy[len] = 0;
	v->text = copy;
	v->len = len;
	return v;
}

static void *make_array(const redisReadTask *task, element_count count)
{
	struct redis_reader *r = task->privdata;
	struct redis_value *v;

	if ((size_t)count > r->max) {
		r->too_long = true;
		return NULL;
	}
	v = make(task, (size_t)count * sizeof(v->items[0]));
	if (!v)
		return NULL;
	v->type = REDIS_ARRAY;
	v->len = (size_t)count;
	v->items = (struct redis_value **)(void *)(v + 1);
	memset(v->items, 0, v->len * sizeof(v->items[0]));
	return v;
}

static void *make_integer(const redisReadTask *task, long long number)
{
	struct redis_value *v = make(task, 0);

	if (v) {
		v->type = REDIS_NUMBER;
		v->number = number;
	}
	return v;
}

static void *make_nil(const redisReadTask *task)
{
	return make(task, 0);
}

static void free_nothing(void *v)
{
}

static redisReplyObjectFunctions functions = {
	.createString = make_string,
	.createArray = make_array,
	.createInteger = make_integer,
	.createNil = make_nil,
	.freeObject = free_nothing,
};

/* ---- reading ---- */

int redis_reader_init(struct redis_reader *r, size_t max)
{
	*r = (struct redis_reader){ .max = max };
	r->reader = redisReaderCreateWithFunctions(&functions);
	if (!r->reader)
		return -ENOMEM;
	r->reader->privdata = r;
	return 0;
}

void redis_reader_destroy(struct redis_reader *r)
{
	struct redis_chunk *c;

	if (r->reader)
		redisReaderFree(r->reader);
	while ((c = r->chunks)) {
		r->chunks = c->next;
		free(c);
	}
	*r = (struct redis_reader){ 0 };
}

int redis_reader_feed(struct redis_reader *r, const char *data, size_t len)
{
	return redisReaderFeed(r->reader, data, len) == REDIS_OK ? 0 : -ENOMEM;
}

static int __attribute__((format(printf, 2, 3)))
fail(struct redis_reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

/* What has come of a value that is not complete: may the rest come? */
static int check_begun(struct redis_reader *r)
{
	const char *at = r->reader->buf + r->reader->pos, *end;
	size_t left = r->reader->len - r->reader->pos;
	int64_t len;

	if (!left)
		return 0;
	end = memchr(at, '\n', MIN(left, (size_t)LINE_MAX_BYTES));
	if (!end && left >= LINE_MAX_BYTES)
		return fail(r, "a line of more than %d bytes", LINE_MAX_BYTES);
	/* Of all that has its line, only a text waits for more: the line is its length. */
	if (end && end > at && end[-1] == '\r' && num_parse_i64(at, end - 1, &len) == end - 1 &&
	    len > (int64_t)r->max)
		return fail(r, "a text of %lld bytes, more than max_reply",
			    (long long)len);
	return 0;
}

int redis_reader_next(struct redis_reader *r, const struct redis_value **out)
{
	void *value = NULL;
	int ret;

	if (*r->why)
		return -EPROTO;
	/* The reader keeps what it has begun to build. */
	if (r->reader->ridx < 0)
		forget(r);
	ret = redisReaderGetReply(r->reader, &value);
	if (ret == REDIS_OK && value) {
		*out = value;
		return 1;
	}
	if (ret == REDIS_OK)
		return check_begun(r);
	if (r->too_long)
		return fail(r, "a reply that needs more than max_reply (%zu bytes)", r->max);
	return fail(r, "%s", *r->reader->errstr ? r->reader->errstr : "no sense");
}

/* ---- values ---- */

bool redis_value_is(const struct redis_value *v, const char *text)
{
	return (v->type == REDIS_TEXT || v->type == REDIS_STATUS) && v->len == strlen(text) &&
	       !memcmp(v->text, text, v->len);
}

bool redis_error_is(const struct redis_value *v, const char *code)
{
	size_t len = strlen(code);

	return v->type == REDIS_ERROR && v->len >= len && !memcmp(v->text, code, len) &&
	       (v->text[len] == ' ' || !v->text[len]);
}

bool redis_error_is_of_state(const struct redis_value *v)
{
	static const char *const codes[] = {
		"OOM", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN",
		"BUSY", "NOREPLICAS", "NOAUTH", "MOVED", "ASK",
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (redis_error_is(v, codes[i]))
			return true;
	return false;
}

const char *redis_value_shown(const struct redis_value *v, char *buf, size_t size)
{
	size_t len = v->text ? MIN(v->len, size - 1) : 0;

	for (size_t i = 0; i < len; i++)
		buf[i] = v->text[i] >= ' ' && v->text[i] <= '~' ? v->text[i] : '?';
	buf[len] = 0;
	if (!v->text)
		snprintf(buf, size, "something else");
	return buf;
}

bool redis_id_parse(const struct redis_value *v, struct redis_id *id)
{
	const char *end = v->text + v->len, *at;
	uint64_t ms, seq;

	if (v->type != REDIS_TEXT)
		return false;
	at = num_parse_u64(v->text, end, &ms);
	if (!at || at == end || *at != '-' || num_parse_u64(at + 1, end, &seq) != end)
		return false;
	*id = (struct redis_id){ ms, seq };
	return true;
}

int redis_id_compare(const struct redis_id *a, const struct redis_id *b)
{
	if (a->ms != b->ms)
		return a->ms < b->ms ? -1 : 1;
	return a->seq == b->seq ? 0 : a->seq < b->seq ? -1 : 1;
}
