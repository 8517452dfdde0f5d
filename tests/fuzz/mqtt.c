/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of a broker for the node-type mqtt, of both versions: each is one that a broker may send,
 * with its message inside of its bytes, or is refused; a piece of one is neither, unless its
 * beginning is wrong. What the client writes, it reads.
 *
 * usage: fuzz_mqtt [RUNS [SEED]]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/mqtt/packet.h"

#define MUTATE_BYTES \
	"\x00\x01\x02\x05\x0b\x10\x1f\x20\x21\x24\x26\x27\x30\x32\x34\x40\x50\x62\x7f\x80\x90\xd0\xe0\xff"
#include "drive.h"

#define SIZE_MAX_OF_PACKETS 400

static void must(bool good)
{
	if (!good)
		abort();
}

static void check(const struct mqtt_head *h, const uint8_t *body, bool v5)
{
	struct mqtt_packet p;
	uint16_t id;
	int ret = mqtt_packet_read(&p, h, body, v5);

	must(!ret || ret == -EPROTO);
	must(*mqtt_code_text(h->first, v5));
	if (ret)
		return;
	must(p.type == mqtt_type_of(h) && p.id_count_max && p.size_max && p.qos < 3);
	if (p.type != MQTT_PUBLISH) {
		must(!p.data || p.type == MQTT_SUBACK);
		return;
	}
	must(p.data >= body && p.data + p.len == body + h->body);
	must(mqtt_publish_id(h, body, h->body, &id) == 1 && id == p.id && !id == !p.qos);
	for (size_t len = 0; len < h->body; len++) {
		uint8_t *piece = malloc(len ? len : 1);

		must(piece);
		memcpy(piece, body, len);
		ret = mqtt_publish_id(h, piece, len, &id);
		must(!ret || (ret == 1 && id == p.id));
		free(piece);
	}
}

static void write_and_read(const uint8_t *data, size_t size)
{
	char topic[9] = "t";
	struct mqtt_publish out = { .v5 = size % 2, .qos = size / 2 % 3, .retain = size / 6 % 2,
				    .id = (uint16_t)(size + 1), .topic = topic, .data = data,
				    .len = size };
	struct stream_buffer b = { 0 };
	struct mqtt_head h;
	struct mqtt_packet p;

	must(!mqtt_put_publish(&b, &out));
	must(b.end == mqtt_publish_size(&out));
	must(mqtt_head_read(&h, (uint8_t *)b.at, b.end) == 1 && h.size + h.body == b.end);
	must(!mqtt_packet_read(&p, &h, (uint8_t *)b.at + h.size, out.v5));
	must(p.type == MQTT_PUBLISH && p.qos == out.qos && p.retain == out.retain);
	must(p.len == size && !memcmp(p.data, data, size) && p.id == (p.qos ? out.id : 0));
	stream_buffer_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	write_and_read(data, size);
	while (at < size) {
		struct mqtt_head h;
		int ret = mqtt_head_read(&h, data + at, size - at);

		must(ret == 1 || !ret || ret == -EPROTO);
		must(ret != -EPROTO || size - at > 4);
		if (ret != 1 || h.body > size - at - h.size)
			break;
		must(h.body <= MQTT_BODY_MAX);
		check(&h, data + at + h.size, false);
		check(&h, data + at + h.size, true);
		at += h.size + h.body;
	}
	return 0;
}

#ifndef FUZZER
#define SEED(text) { text, sizeof(text) - 1 }

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const struct {
		const char *at;
		size_t len;
	} seeds[] = {
		SEED("\x20\x02\x00\x00\x90\x03\x00\x01\x01\xd0\x00"),
		SEED("\x20\x0f\x01\x00\x0c\x21\x00\x14\x24\x01\x25\x00\x27\x00\x01\x00\x00"),
		SEED("\x20\x09\x00\x00\x06\x12\x00\x03\x61\x62\x63\x90\x05\x00\x07\x00\x02\x80"),
		SEED("\x32\x0c\x00\x03\x61/b\x00\x09" "1 2 3"),
		SEED("\x34\x17\x00\x01t\x00\x09\x0c\x0b\xff\x7f\x02\x00\x00\x00\x05\x23\x00\x01" "1 2 3"),
		SEED("\x30\x11\x00\x01t\x09\x26\x00\x01k\x00\x03val" "1 2 3"),
		SEED("\x40\x02\x00\x01\x50\x03\x00\x02\x10\x62\x04\x00\x03\x92\x00\x70\x02\x00\x04"),
		SEED("\xe0\x01\x8b\xe0\x08\x8e\x06\x1f\x00\x03" "why"),
		SEED("\x20\x06\x00\x00\x02\x7f\x00\x00"),
		SEED("\x30\xff\xff\xff\x7f\x00\x01t"),
		SEED("\x30\xff\xff\xff\xff\x01"),
	};
	size_t i = random_below(sizeof(seeds) / sizeof(seeds[0]));

	memcpy(bytes, seeds[i].at, seeds[i].len);
	return mutate_times(bytes, seeds[i].len, capacity, random_below(8));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, SIZE_MAX_OF_PACKETS, make);
}
#endif
