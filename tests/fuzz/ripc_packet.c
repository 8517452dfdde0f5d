/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the three decoders of ripc: what was accepted can be said again, and is
 * the same bytes. Built plainly, main() runs a bounded number of random mutations of valid
 * packets (argument 1: runs, argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER,
 * libFuzzer drives it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "\0\1\2\3\4\5\6\7\x10\x20\x21\x40\x7f\x80\xff"
#include "mutate.h"
#include "ripc/wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void only(int ret, int a, int b, int c)
{
	if (ret && ret != a && ret != b && ret != c)
		abort();
}

static void resolve(const struct packet_key *key, const uint8_t *data, size_t size)
{
	uint8_t out[PACKET_RESOLVE_BYTES_MAX];
	struct packet_resolve p;
	int ret = packet_resolve_decode(&p, key, data, size);

	only(ret, -EBADMSG, -EPROTONOSUPPORT, -EKEYREJECTED);
	if (!ret && (packet_resolve_encode(&p, key, out) != size || memcmp(out, data, size)))
		abort();
}

static void connection(const struct packet_key *key, const uint8_t *data, size_t size)
{
	uint8_t out[PACKET_CONNECT_BYTES];
	struct packet_connect p;
	int ret = packet_connect_decode(&p, key, data, size);

	only(ret, -EBADMSG, -EPROTONOSUPPORT, -EKEYREJECTED);
	if (ret)
		return;
	packet_connect_encode(&p, key, out);
	/* Without a secret nobody looks at the bytes of the code. */
	if (memcmp(out, data, key->set ? sizeof(out) : sizeof(out) - 16))
		abort();
}

static void message(bool datagram, const uint8_t *data, size_t size)
{
	uint8_t out[PACKET_MESSAGE_BYTES_MAX];
	struct packet_message p;
	size_t header;
	int ret = packet_message_decode(&p, datagram, data, size, &header);

	only(ret, -EBADMSG, -EPROTONOSUPPORT, -EPROTONOSUPPORT);
	if (!ret && (header > size ||
		     packet_message_encode(&p, datagram, out) != header ||
		     memcmp(out, data, header)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct packet_key none;
	struct packet_key key;

	packet_key_make(&key, "0123456789abcdef", 16);
	resolve(&none, data, size);
	resolve(&key, data, size);
	connection(&none, data, size);
	connection(&key, data, size);
	message(false, data, size);
	message(true, data, size);
	return 0;
}

#ifndef FUZZER
#define SEED_MAX 4096

/* A valid packet of any kind. */
static size_t valid(uint8_t *out)
{
	struct packet_key key = { .set = random_below(2) };
	const struct packet_where where = { .instance = 1 + random_below(9), .port = 18515 };
	struct packet_message m = { .from = 1, .to = 2, .instance = 3, .number = 4,
				    .error = EIO };

	if (key.set)
		packet_key_make(&key, "0123456789abcdef", 16);
	switch (random_below(4)) {
	case 0:
		return packet_resolve_encode(&(struct packet_resolve){
			.type = (uint8_t)(1 + random_below(5)), .id = 1, .where = where,
			.name = "Gr\xc3\xbc\xc3\x9f" "e" }, &key, out);
	case 1:
		packet_connect_encode(&(struct packet_connect){ .instance = 1, .to = 2 },
				      &key, out);
		return PACKET_CONNECT_BYTES;
	default:
		m.type = (uint8_t)(1 + random_below(7));
		if (m.type <= PACKET_LONG) {
			m.count = (uint8_t)random_below(RIPC_ITEMS_MAX + 1);
			m.returns_count = (uint8_t)random_below(RIPC_RETURNS_MAX + 1);
		}
		return packet_message_encode(&m, random_below(2), out);
	}
}

int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 200000;
	unsigned long seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;

	printf("seed %lu\n", seed);
	random_state = seed;
	for (unsigned long run = 0; run < runs; run++) {
		static uint8_t bytes[SEED_MAX];
		size_t size = valid(bytes);
		uint8_t *data;

		for (uint64_t changes = random_below(4); changes; changes--)
			size = mutate(bytes, size, sizeof(bytes));
		/* Exactly `size` bytes, so that a sanitizer sees overreading. */
		data = malloc(size ? size : 1);
		if (!data)
			return 1;
		memcpy(data, bytes, size);
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	return 0;
}
#endif
