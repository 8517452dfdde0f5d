/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of what comes to the sockets of a resolver and of a rendezvous: packets from
 * several sources, with numbers that fit to each other now and then. What it answers goes to
 * a socket of the test on the loopback interface. Input: packets, each behind a byte for its
 * source and one for its length. Built plainly, main() runs random ones (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUTATE_BYTES "\0\1\2\3\4\5\6\7\x10\x20\x21\x40\x7f\x80\xff"
#include "drive.h"
#include "ripc/find/places.h"
#include "ripc/find/resolver_private.h"

static struct resolver *resolver;
static uint16_t sink_port;

static bool has(void *arg, uint32_t *id, const char *name)
{
	if (!*id && !strcmp(name, "store"))
		*id = 1;
	return *id == 1;
}

static void moved(void *arg, uint32_t id, uint64_t old)
{
	if (!id || !old)
		abort();
}

static void conflict(void *arg, uint32_t id, const struct packet_where *other)
{
	if (!id || !other->instance)
		abort();
}

/* Nobody knows its sockets, so its thread sleeps: what it takes comes from here alone. */
static void open_once(void)
{
	struct resolver_config config = { .port = 9, .self = { .instance = 1 }, .has = has,
		.moved = moved, .conflict = conflict };
	char how[64];
	union address sink;
	socklen_t length = sizeof(sink);
	const char *why;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address_parse("127.0.0.1", 0, &sink);
	if (fd < 0 || bind(fd, &sink.any, sizeof(sink.in)) ||
	    getsockname(fd, &sink.any, &length))
		abort();
	sink_port = address_port(&sink);
	snprintf(how, sizeof(how), "rendezvous:127.0.0.1:%u", sink_port);
	config.how = how;
	if (resolver_open(&resolver, &config, &why))
		abort();
}

/* What waits for an answer with the nonce 1, 2 or 3. */
static struct question question;
static struct claim claim;
static struct own_service own;

static void wait_begin(void)
{
	question = (struct question){ .nonce = 1, .id = 2, .waiters = 1 };
	claim = (struct claim){ .nonce = 2, .id = 3, .name = "shop" };
	own = (struct own_service){ .id = 1, .name = "store", .listening = true };
	own.at[0].nonce = 3;
	own.at[0].due_ns = UINT64_MAX;
	pthread_mutex_lock(&resolver->lock);
	list_push(&resolver->questions, &question.link);
	list_push(&resolver->claims, &claim.link);
	list_push(&resolver->own, &own.link);
	pthread_mutex_unlock(&resolver->lock);
}

static void wait_end(void)
{
	pthread_mutex_lock(&resolver->lock);
	list_remove(&question.link);
	list_remove(&claim.link);
	list_remove(&own.link);
	pthread_mutex_unlock(&resolver->lock);
	if (question.answered && (question.found != 2 || !question.where.instance))
		abort();
}

static union address source(uint8_t which)
{
	union address a;

	address_parse(which & 1 ? "127.0.0.1" : "127.0.0.2", sink_port, &a);
	if (which & 2)
		address_parse("fe80::1", 9, &a);
	return a;
}

static void rendezvous_take(struct places *p, uint64_t now_ns, const union address *from,
			    const uint8_t *bytes, size_t length)
{
	struct places_out out[PLACES_OUT_MAX];
	uint8_t reply[PACKET_RESOLVE_BYTES_MAX];
	static const struct packet_key none;
	struct packet_resolve packet;

	if (packet_resolve_decode(&packet, &none, bytes, length))
		return;
	/* Everything it says can be said. */
	for (unsigned i = places_take(p, now_ns, from, &packet, out); i--;)
		if (packet_resolve_decode(&packet, &none, reply,
					  packet_resolve_encode(&out[i].packet, &none, reply)))
			abort();
	if (p->count > p->max)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct places places;
	uint64_t now_ns = UINT64_C(1000000000);

	if (!resolver)
		open_once();
	if (places_init(&places, 3, (const uint8_t[16]){ 7 }))
		return 0;
	/* Each input has its full share of answers. */
	limit_init(&resolver->limit, places.key);
	wait_begin();
	while (size > 2) {
		const union address from = source(data[0]);
		const size_t length = data[1] < size - 2 ? data[1] : size - 2;

		now_ns += (uint64_t)data[0] * 1000000;
		rendezvous_take(&places, now_ns, &from, data + 2, length);
		resolver_take(resolver, resolver->net.own4, &from, data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	wait_end();
	places_free(&places);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_ALL 2048

static size_t packet(uint8_t *out)
{
	static const struct packet_key none;
	struct packet_resolve p = {
		.type = (uint8_t)(1 + random_below(5)), .nonce = random_below(4),
		.from = (uint32_t)random_below(3), .id = (uint32_t)random_below(4),
		.lifetime_s = (uint16_t)(random_below(3) * 20),
		.where = { .instance = 1 + random_below(4), .port = 18515 },
	};

	if (random_below(3) == 0)
		strcpy(p.name, random_below(2) ? "store" : "shop");
	out[0] = (uint8_t)random_below(256);
	out[1] = (uint8_t)packet_resolve_encode(&p, &none, out + 2);
	return 2 + out[1];
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = 0;

	for (uint64_t n = 1 + random_below(8); n; n--)
		size += packet(bytes + size);
	return mutate_times(bytes, size, capacity, random_below(2) * random_below(4));
}

int main(int argc, char **argv)
{
	int ret = drive(argc, argv, 20000, SIZE_MAX_ALL, make);

	resolver_close(resolver);
	return ret;
}
#endif
