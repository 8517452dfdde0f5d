/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of a peer of IEC 60870-5-104: each frame and each ASDU is refused with a reason or taken apart
 * within its bounds, what was decoded can be encoded and means the same, and a link that gets
 * them keeps to its window and to its timers.
 *
 * usage: fuzz_iec104 [RUNS [SEED]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/grid/iec104_link.h"

#define MUTATE_BYTES "\x00\x01\x02\x04\x07\x0b\x13\x43\x68\x0e\x64\x1e\x24\x2d\x81\xff"
#include "drive.h"

#define SECOND UINT64_C(1000000000)

static void must(bool good)
{
	if (!good)
		abort();
}

static void read_asdu(const uint8_t *at, size_t len)
{
	struct iec104_object objects[IEC104_OBJECTS_MAX], o;
	uint8_t again[IEC104_ASDU_MAX], third[IEC104_ASDU_MAX];
	struct iec104_asdu a, b;
	const char *why = iec104_asdu_decode(at, len, &a);
	int64_t ns;
	size_t put;

	if (why || !a.info)
		return;
	must(a.count && a.count <= IEC104_OBJECTS_MAX);
	for (unsigned i = 0; i < a.count; i++) {
		iec104_object_decode(&a, i, &objects[i]);
		must(objects[i].address <= IEC104_ADDRESS_MAX);
		if (iec104_time_to_ns(&objects[i].time, &ns)) {
			struct iec104_time t = iec104_time_from_ns(ns);

			must(t.millisecond == objects[i].time.millisecond &&
			     t.day == objects[i].time.day && t.year == objects[i].time.year);
		}
	}
	put = iec104_asdu_encode(&a, objects, again);
	must(put == len && !iec104_asdu_decode(again, put, &b) && b.type == a.type &&
	     b.cause == a.cause && b.count == a.count && b.station == a.station);
	for (unsigned i = 0; i < b.count; i++) {
		iec104_object_decode(&b, i, &o);
		must(o.address == objects[i].address && o.value == objects[i].value &&
		     o.quality == objects[i].quality && o.qualifier == objects[i].qualifier);
		objects[i] = o;
	}
	/* Reserved bits are gone now: nothing else changes. */
	must(iec104_asdu_encode(&b, objects, third) == put && !memcmp(again, third, put));
}

static void read_frames(const uint8_t *data, size_t size)
{
	uint8_t again[IEC104_APDU_MAX];
	struct iec104_frame f;

	while (size) {
		const char *why = NULL;
		int len = iec104_frame_decode(data, size, &f, &why);

		must(len >= 0 || (len == -EPROTO && why));
		if (len <= 0)
			return;
		must((size_t)len <= size);
		must(iec104_frame_encode(&f, again) == (size_t)len && !memcmp(again, data, (size_t)len));
		if (f.format == IEC104_I)
			read_asdu(f.asdu, f.asdu_len);
		data += len;
		size -= (size_t)len;
	}
}

/* ---- a link ---- */

static struct iec104_link peer;
static unsigned waiting;
static uint64_t now_ns;

static void link_send(void *arg, const uint8_t *frame, size_t len)
{
	must(len >= IEC104_APCI && len <= IEC104_APDU_MAX);
	waiting += !(frame[2] & 1);
}

static void link_asdu(void *arg, const uint8_t *asdu, size_t len)
{
	must(len && len <= IEC104_ASDU_MAX);
	/* An answer, as a slave gives it. */
	iec104_link_send(&peer, asdu, len, now_ns);
}

static void link_acknowledged(void *arg, unsigned count)
{
	must(count && count <= waiting);
	waiting -= count;
}

static void link_changed(void *arg)
{
	if (iec104_link_room(&peer))
		iec104_link_send(&peer, (const uint8_t *)"asdu", 4, now_ns);
}

static void feed_link(const uint8_t *data, size_t size, bool master, unsigned piece)
{
	static const struct iec104_settings settings = { 15 * SECOND, 10 * SECOND, 20 * SECOND, 12, 8 };
	static const struct iec104_link_ops ops = {
		.send = link_send, .asdu = link_asdu, .acknowledged = link_acknowledged,
		.changed = link_changed,
	};
	uint64_t sent_ns[12];

	waiting = 0;
	now_ns = 1;
	iec104_link_begin(&peer, master, &settings, sent_ns, &ops, NULL, now_ns);
	iec104_link_start(&peer, now_ns);
	for (size_t at = 0; at < size; at += piece) {
		iec104_link_receive(&peer, data + at, size - at < piece ? size - at : piece, now_ns);
		must(waiting == iec104_link_waiting(&peer) && waiting <= settings.k);
		must(peer.why || iec104_link_due_ns(&peer) <= now_ns + 20 * SECOND);
		now_ns += SECOND / 16;
		iec104_link_tick(&peer, now_ns);
		must(peer.why || iec104_link_due_ns(&peer) > now_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_frames(data, size);
	read_asdu(data, size);
	feed_link(data, size, false, 1 + (unsigned)(size % 31));
	feed_link(data, size, true, 1 + (unsigned)(size % 7));
	return 0;
}

/* Frames of both ends, and then changes to some of their bytes. */
static size_t make(uint8_t *bytes, size_t capacity)
{
	static const uint8_t kinds[][16] = {
		{ 6, 0x68, 4, 7, 0, 0, 0 }, { 6, 0x68, 4, 0x0b, 0, 0, 0 },
		{ 6, 0x68, 4, 0x13, 0, 0, 0 }, { 6, 0x68, 4, 0x23, 0, 0, 0 },
		{ 6, 0x68, 4, 0x43, 0, 0, 0 }, { 6, 0x68, 4, 0x83, 0, 0, 0 },
	};
	static const uint8_t types[] = { 1, 3, 5, 7, 9, 11, 13, 15, 21, 30, 31, 32, 33, 34, 35, 36, 37,
					 45, 46, 47, 48, 49, 50, 51, 58, 61, 63, 64, 70, 100, 101, 102,
					 103, 104, 105, 107 };
	size_t size = 0;
	unsigned sent = 0;

	/* Most links begin with a start. */
	if (random_below(8)) {
		size = 6;
		memcpy(bytes, kinds[random_below(2)] + 1, size);
	}
	for (uint64_t n = 1 + random_below(8); n && size + IEC104_APDU_MAX <= capacity; n--) {
		uint64_t kind = random_below(12);

		if (kind < sizeof(kinds) / sizeof(kinds[0])) {
			memcpy(bytes + size, kinds[kind] + 1, kinds[kind][0]);
			size += kinds[kind][0];
			continue;
		}
		struct iec104_frame f = { .format = kind == 6 ? IEC104_S : IEC104_I,
					  .send = (uint16_t)sent,
					  .receive = (uint16_t)random_below(3) };
		struct iec104_object objects[IEC104_OBJECTS_MAX] = { 0 };
		struct iec104_asdu a = { .type = types[random_below(sizeof(types))], .cause = 6,
					 .station = 1 };
		uint8_t asdu[IEC104_ASDU_MAX];

		a.sequence = !iec104_type_find(a.type)->command && random_below(2);
		a.count = 1 + (unsigned)random_below(iec104_asdu_room(iec104_type_find(a.type),
								       a.sequence));
		for (unsigned i = 0; i < a.count; i++)
			objects[i].address = i + 1;
		f.asdu = asdu;
		f.asdu_len = iec104_asdu_encode(&a, objects, asdu);
		sent += f.format == IEC104_I;
		size += iec104_frame_encode(&f, bytes + size);
	}
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, 2048, make);
}
