/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the three decoders of ripc: what was accepted can be said again, and is
 * the same bytes; and of what `busbar ripc top` reads: all of it can be shown. Built plainly, main() runs a bounded number of random mutations of valid
 * packets (argument 1: runs, argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER,
 * libFuzzer drives it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "\0\1\2\3\4\5\6\7\x10\x20\x21\x40\x7f\x80\xff"
#include "cli/ripc_shown.h"
#include "drive.h"
#include "ripc/wire/packet.h"

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
	int ret = packet_connect_decode(&p, key, 0, data, size);

	only(ret, -EBADMSG, -EPROTONOSUPPORT, -EKEYREJECTED);
	if (ret)
		return;
	packet_connect_encode(&p, key, 0, out);
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

static void text(const char *at, size_t bytes)
{
	size_t length = strnlen(at, bytes);

	if (length == bytes)
		abort();
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)at[i] < ' ' || at[i] == 0x7f)
			abort();
}

/* In memory of exactly so many bytes, so that a sanitizer sees reading beyond. */
static void shown(const uint8_t *data, size_t size)
{
	static char out[4096];
	struct cli_json j = { .out = fmemopen(out, sizeof(out), "w") };
	struct shown *s = malloc(size ? size : 1);

	if (!j.out || !s)
		abort();
	memcpy(s, data, size);
	if (ripc_shown_check(s, size)) {
		if (size != sizeof(s->head) + s->head.services * sizeof(s->services[0]))
			abort();
		text(s->head.command, sizeof(s->head.command));
		text(s->head.address, sizeof(s->head.address));
		for (unsigned i = 0; i < s->head.services; i++) {
			text(s->services[i].name, sizeof(s->services[i].name));
			ripc_shown_service_json(&s->services[i], &j);
		}
	}
	fclose(j.out);
	free(s);
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
	shown(data, size);
	return 0;
}

#ifndef FUZZER
#define SEED_MAX 4096

/* What an instance shows of itself, with some services. */
static size_t valid_shown(uint8_t *out)
{
	struct ripc_show_head head = { .magic = RIPC_SHOW_MAGIC, .pid = 1, .instance = 2,
				       .services = (uint32_t)random_below(4),
				       .command = "busbar", .address = "[::1]:18515" };
	struct ripc_show_service v = { .id = 1, .queued = 2, .name = "Gr\xc3\xbc\xc3\x9f" "e" };

	memcpy(out, &head, sizeof(head));
	for (unsigned i = 0; i < head.services; i++)
		memcpy(out + sizeof(head) + i * sizeof(v), &v, sizeof(v));
	return sizeof(head) + head.services * sizeof(v);
}

/* A valid packet of any kind. */
static size_t valid(uint8_t *out)
{
	struct packet_key key = { .set = random_below(2) };
	const struct packet_where where = { .instance = 1 + random_below(9), .port = 18515 };
	struct packet_message m = { .from = 1, .to = 2, .instance = 3, .number = 4,
				    .error = EIO };

	if (key.set)
		packet_key_make(&key, "0123456789abcdef", 16);
	switch (random_below(5)) {
	case 4:
		return valid_shown(out);
	case 0:
		return packet_resolve_encode(&(struct packet_resolve){
			.type = (uint8_t)(1 + random_below(5)), .id = 1, .where = where,
			.name = "Gr\xc3\xbc\xc3\x9f" "e" }, &key, out);
	case 1:
		packet_connect_encode(&(struct packet_connect){ .instance = 1, .to = 2 },
				      &key, 0, out);
		return PACKET_CONNECT_BYTES;
	default:
		m.type = (uint8_t)(1 + random_below(PACKET_TYPE_LAST));
		if (m.type <= PACKET_LONG) {
			m.count = (uint8_t)random_below(RIPC_ITEMS_MAX + 1);
			m.returns_count = (uint8_t)random_below(RIPC_RETURNS_MAX + 1);
		}
		return packet_message_encode(&m, random_below(2), out);
	}
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = valid(bytes);

	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SEED_MAX, make);
}
#endif
