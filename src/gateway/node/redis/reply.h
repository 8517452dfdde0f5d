/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of a Redis server (RESP, version 2), read by hiredis' redisReader, with limits of our
 * own: the reader alone would take texts of any length and arrays of two thousand million
 * elements. No descriptors, no clock.
 */
#ifndef GATEWAY_NODE_REDIS_REPLY_H
#define GATEWAY_NODE_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>

enum redis_type {
	REDIS_TEXT,
	REDIS_STATUS, /* "OK" */
	REDIS_ERROR,  /* "WRONGTYPE Operation against a key ..." */
	REDIS_NUMBER,
	REDIS_NIL,
	REDIS_ARRAY,
};

struct redis_value {
	enum redis_type type;
	long long number;
	const char *text;            /* with a zero behind it */
	size_t len;                  /* of the text, or the number of items */
	struct redis_value **items;  /* none of them is NULL in a reply */
};

struct redis_reader {
	struct redisReader *reader;
	size_t max;                  /* bytes of a text, and of a reply */
	struct redis_chunk *chunks;  /* memory of the present reply */
	size_t used;                 /* of it */
	bool too_long;
	char why[200];               /* after an error */
};

/* 0 or -ENOMEM. */
int redis_reader_init(struct redis_reader *r, size_t max);
void redis_reader_destroy(struct redis_reader *r);
/* Adds bytes of the server, which are copied. 0 or -ENOMEM. */
int redis_reader_feed(struct redis_reader *r, const char *data, size_t len);
/* 1: *out is the next reply, which stays until the next call; 0: it has not come completely;
 * -EPROTO, with the reason in r->why, for ever: the server speaks something else. */
int redis_reader_next(struct redis_reader *r, const struct redis_value **out);

/* Whether a value is such a text or status. */
bool redis_value_is(const struct redis_value *v, const char *text);
/* Whether an error begins with this word. */
bool redis_error_is(const struct redis_value *v, const char *code);
/* Whether the server refuses a command because of its state (no memory, no disk, a replica), so
 * that it may take the same command later. */
bool redis_error_is_of_state(const struct redis_value *v);
/* The text of a value for messages: its first bytes, the printable ones. Returns buf. */
const char *redis_value_shown(const struct redis_value *v, char *buf, size_t size);

/* An identifier of an entry of a stream: "1700000000000-5". */
struct redis_id {
	unsigned long long ms, seq;
};

bool redis_id_parse(const struct redis_value *v, struct redis_id *id);
/* -1, 0, 1 */
int redis_id_compare(const struct redis_id *a, const struct redis_id *b);

#endif
