/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of a CAN bus, and places of signals in them: a frame is refused with a reason, or its values
 * are read within its bytes; values that are written are read again; error frames become a line.
 * The first byte says how many bytes of places there are, then comes what a socket gave.
 *
 * usage: fuzz_can [RUNS [SEED]]
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/can/can.h"

#define MUTATE_BYTES "\x00\x01\x07\x08\x10\x18\x20\x3f\x40\x7f\x80\xe0\xff"
#include "drive.h"

#define SIGNALS 6
/* Of a signal: identifier, kind and flags, start, length, factor. */
#define PLACE 6

static void must(bool good)
{
	if (!good)
		abort();
}

/* A place as the settings may say it. */
static bool take_place(const uint8_t *at, unsigned signal, struct can_map *m)
{
	enum can_kind kind = at[1] % 5;
	unsigned start = (unsigned)at[2] << 1 | (at[1] >> 7), length = 1 + at[3] % 64;
	bool big = at[1] & 0x20;

	if (kind == CAN_COMPLEX) {
		length = 64;
		start = start / 8 * 8 + (big ? 7 : 0);
	}
	if (kind == CAN_REAL)
		length = length % 2 ? 32 : 64;
	*m = (struct can_map){ .signal = signal, .id = at[0] & 3, .kind = kind, .start = start,
			       .length = length, .big = big, .is_signed = at[1] & 0x40,
			       .factor = at[4] + 0.5, .offset = at[5], .min = -INFINITY, .max = INFINITY,
			       .frame_length = at[4] % 65 };
	if (at[0] & 0x80)
		m->id |= CAN_EFF_FLAG;
	/* A multiplexor in bits that any frame may have. */
	if ((at[2] & 3) == 3)
		m->mux = (struct can_switch){ 8 * (at[0] >> 3 & 7), 1 + (at[3] & 7), false, at[5] & 3 };
	if (at[0] & 0x40) {
		m->min = at[5];
		m->max = m->min + at[4];
	}
	return can_bits_reach(start, length, big) <= CANFD_MAX_DLEN;
}

static enum signal_type type_of(const struct can_map *m)
{
	return m->kind == CAN_INTEGER ? SIGNAL_INTEGER : m->kind == CAN_BOOLEAN ? SIGNAL_BOOLEAN :
	       m->kind == CAN_COMPLEX ? SIGNAL_COMPLEX : SIGNAL_FLOAT;
}

static bool is_same(const struct can_map *m, const union signal_data *a, const union signal_data *b)
{
	if (type_of(m) != SIGNAL_FLOAT)
		return a->bits == b->bits;
	/* The factor may round, where the bits have more digits than a double. */
	return a->f == b->f || (isnan(a->f) && isnan(b->f)) || fabs(a->f - b->f) <= 1e-6 * fabs(a->f);
}

/* What was read and lies within its limits can be written, and is the same then. */
static void write_again(const struct can_map *m, const union signal_data *v)
{
	uint8_t data[CANFD_MAX_DLEN] = { 0 };
	union signal_data again = { 0 };
	enum can_written w = can_value_write(m, type_of(m), v, data);

	if (w != CAN_WRITTEN)
		return;
	can_value_read(m, data, &again);
	if (m->kind == CAN_COMPLEX && (isnan(v->z.re) || isnan(v->z.im)))
		return;
	must(is_same(m, v, &again));
}

static void take_message(const struct can_message *msg, const struct can_map maps[],
			 const struct can_received *r)
{
	union signal_data values[SIGNALS] = { 0 };

	must(can_message_read(msg, maps, r, values) <= msg->count);
	for (unsigned i = msg->first; i < msg->first + msg->count; i++)
		write_again(&maps[i], &values[maps[i].signal]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct can_map maps[SIGNALS];
	struct can_message messages[SIGNALS];
	struct can_received r;
	unsigned count = 0, n;
	size_t places = size ? data[0] % (SIGNALS + 1) : 0;
	char text[400];

	if (size < 1 + places * PLACE)
		return 0;
	for (size_t i = 0; i < places; i++)
		count += take_place(data + 1 + i * PLACE, count, &maps[count]);
	data += 1 + places * PLACE;
	size -= 1 + places * PLACE;
	n = can_messages_make(maps, count, true, messages);
	must(n <= count);
	for (unsigned i = 0; i < n; i++) {
		const struct can_message *first = can_message_find(messages, n, messages[i].id);

		must(first && first <= &messages[i] && first->id == messages[i].id);
		must(first == messages || first[-1].id != first->id);
		must(messages[i].length >= messages[i].reach && messages[i].length <= CANFD_MAX_DLEN);
	}
	can_find_overlap(maps, count);
	if (can_frame_decode(data, size, &r))
		return 0;
	must(r.data >= data && r.data + r.len <= data + size);
	if (r.error) {
		can_error_print(&r, text, sizeof(text));
		must(text[0] && strlen(text) < sizeof(text));
	}
	for (unsigned i = 0; i < n; i++)
		if (r.len >= messages[i].reach && can_message_is_there(&messages[i], r.data))
			take_message(&messages[i], maps, &r);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES (1 + SIGNALS * PLACE + CANFD_MTU)

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = 0, places = random_below(SIGNALS + 1);
	size_t frame = random_below(8) ? (random_below(2) ? CAN_MTU : CANFD_MTU) : random_below(80);

	bytes[size++] = (uint8_t)places;
	for (size_t i = 0; i < places * PLACE; i++)
		bytes[size++] = (uint8_t)random_below(256);
	for (size_t i = 0; i < frame && size < capacity; i++)
		bytes[size++] = i == 4 ? (uint8_t)random_below(70) : (uint8_t)random_below(256);
	return random_below(4) ? size : mutate_times(bytes, size, capacity, 2);
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, SIZE_MAX_BYTES, make);
}
#endif
