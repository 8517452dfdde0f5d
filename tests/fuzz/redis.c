/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies of a Redis server, and URIs of configurations. The same bytes, in one piece and in
 * random pieces, give the same values and end with the same status; a reply has no holes, and
 * takes no more memory than allowed.
 *
 * usage: fuzz_redis [RUNS [SEED]]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/redis/reply.h"
#include "gateway/node/redis/uri.h"

#define MUTATE_BYTES "*$+-:\r\n0123456789-_,#(=%~>|!@/[]. \x00\xff"
#include "drive.h"

/* One megabyte in all: a length that is believed is noticed. */
#define REPLY_MAX 4096
#define MEMORY_MAX (8 * REPLY_MAX)
#define DEPTH_MAX 9

static void must(bool good)
{
	if (!good)
		abort();
}

static uint64_t mix(uint64_t hash, uint64_t v)
{
	return (hash ^ v) * UINT64_C(0x100000001b3);
}

static uint64_t walk(const struct redis_value *v, uint64_t hash, unsigned depth)
{
	char shown[20];
	struct redis_id id;

	must(v && depth <= DEPTH_MAX);
	hash = mix(hash, v->type);
	must(strlen(redis_value_shown(v, shown, sizeof(shown))) < sizeof(shown));
	must(!redis_error_is_of_state(v) || v->type == REDIS_ERROR);
	if (redis_id_parse(v, &id))
		must(!redis_id_compare(&id, &id));
	switch (v->type) {
	case REDIS_TEXT:
	case REDIS_STATUS:
	case REDIS_ERROR:
		must(v->len <= MEMORY_MAX && !v->text[v->len]);
		for (size_t i = 0; i < v->len; i++)
			hash = mix(hash, (uint8_t)v->text[i]);
		return mix(hash, v->len);
	case REDIS_NUMBER:
		return mix(hash, (uint64_t)v->number);
	case REDIS_NIL:
		return hash;
	case REDIS_ARRAY:
		must(v->len <= MEMORY_MAX / sizeof(v));
		for (size_t i = 0; i < v->len; i++)
			hash = walk(v->items[i], hash, depth + 1);
		return mix(hash, v->len);
	}
	abort();
}

/* All that a reader finds in `data`, as one number, and its status at the end. */
static uint64_t read_all(const uint8_t *data, size_t size, bool pieces, int *status)
{
	struct redis_reader r;
	const struct redis_value *v;
	uint64_t hash = 1;
	size_t at = 0;
	int ret = 0;

	must(!redis_reader_init(&r, REPLY_MAX));
	while (at < size && ret >= 0) {
		size_t n = pieces ? 1 + random_below(size - at < 9 ? size - at : 9) : size - at;
		char *piece = malloc(n);

		must(piece);
		memcpy(piece, data + at, n);
		must(!redis_reader_feed(&r, piece, n));
		free(piece);
		at += n;
		while ((ret = redis_reader_next(&r, &v)) == 1) {
			hash = walk(v, hash, 0);
			must(r.used <= MEMORY_MAX);
		}
	}
	must(ret == 0 || (ret == -EPROTO && *r.why));
	if (ret)
		must(redis_reader_next(&r, &v) == -EPROTO);
	*status = ret;
	redis_reader_destroy(&r);
	return hash;
}

static void read_uri(const uint8_t *data, size_t size)
{
	static const char *const schemes[] = { "redis://", "rediss://", "unix://", "" };
	const char *scheme = schemes[random_below(4)], *why = NULL;
	char *text = malloc(size + 10);
	struct redis_address a;
	int ret;

	must(text);
	strcpy(text, scheme);
	memcpy(text + strlen(scheme), data, size);
	text[strlen(scheme) + size] = 0;
	ret = redis_uri_parse(&a, text, &why);
	free(text);
	must(ret == 0 || (ret == -EINVAL && why));
	if (ret)
		return;
	must(!*a.host == !!*a.path && a.db >= 0 && (!*a.user || *a.password));
	must(strlen(a.host) < sizeof(a.host) && strlen(a.path) < sizeof(a.path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int whole, pieces;
	uint64_t hash = read_all(data, size, false, &whole);

	must(hash == read_all(data, size, true, &pieces) && whole == pieces);
	read_uri(data, size);
	return 0;
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const char *const seeds[] = {
		"*1\r\n*2\r\n$1\r\nk\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nd\r\n$5\r\nhello\r\n*2\r\n$15\r\n1700000000000-9\r\n*-1\r\n",
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\n1 2 3\r\n:1\r\n+OK\r\n$-1\r\n",
		"-WRONGTYPE Operation against a key\r\n-OOM command not allowed\r\n*0\r\n",
		"*2147483647\r\n:1\r\n",
		"$536870912\r\nabc",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
		"$9223372036854775807\r\n*1000\r\n",
		"lab:se%63ret@localhost:6379/3",
		":secret@[::1]:70/",
		"/run/redis.sock/2",
	};
	const char *seed = seeds[random_below(sizeof(seeds) / sizeof(seeds[0]))];
	size_t size = strlen(seed);

	memcpy(bytes, seed, size);
	return mutate_times(bytes, size, capacity, random_below(12));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, 600, make);
}
