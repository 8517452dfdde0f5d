/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of RMPP: a sender and a receiver between which the input loses, changes, repeats and
 * swaps packets. Built plainly, main() runs a bounded number of random inputs (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "tape.h"
#include "wire/mad/rmpp.h"

#define DATA 3000
#define STEPS 400

static void check(bool good)
{
	if (!good)
		abort();
}

/* Changes a byte of the headers now and then; whether it did. */
static bool damage(struct tape *t, uint8_t *packet)
{
	const uint8_t what = next_byte(t);

	if (what < 240)
		return false;
	packet[MAD_RMPP_AT + what % 12] = next_byte(t);
	return true;
}

struct ends {
	struct mad_rmpp_sender s;
	struct mad_rmpp_receiver r;
	uint8_t *sent, *buffer;
	size_t bytes;
	bool damaged;
	uint8_t held[MAD_BYTES]; /* a packet to the receiver that comes late */
	bool has_held;
};

static void deliver(struct ends *e, struct tape *t, uint8_t *packet, uint64_t now)
{
	uint8_t reply[MAD_BYTES];

	e->damaged |= damage(t, packet);
	if (!mad_rmpp_receive(&e->r, packet, now, reply))
		return;
	if (next_byte(t) < 30)
		return; /* lost */
	e->damaged |= damage(t, reply);
	mad_rmpp_send_receive(&e->s, reply, now);
}

static void step(struct ends *e, struct tape *t, uint64_t *now)
{
	uint8_t packet[MAD_BYTES];
	uint8_t what;

	if (!mad_rmpp_send_next(&e->s, *now, packet)) {
		uint64_t due = mad_rmpp_send_due_ns(&e->s);

		check(e->s.state != MAD_RMPP_RUNNING || due > *now);
		*now = due == UINT64_MAX ? *now : due;
		return;
	}
	what = next_byte(t);
	if (what < 20) {
		memcpy(e->held, packet, sizeof(packet));
		e->has_held = true;
	} else if (what >= 40) {
		deliver(e, t, packet, *now);
	}
	if (e->has_held && what > 230)
		deliver(e, t, e->held, *now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tape t = { data, data + size };
	const struct mad_rmpp_config config = {
		.class_bytes = next_byte(&t) % 220, .window = 1 + next_byte(&t) % 8,
		.timeout_ns = 1000, .total_ns = 100000, .retries = next_byte(&t) % 8,
	};
	struct ends e = { .bytes = next_word(&t) % DATA };
	const size_t capacity = next_byte(&t) < 250 ? e.bytes : e.bytes / 2;
	uint8_t head[MAD_BYTES] = { 1, 3, 2, 0x92 };
	uint64_t now = 0;

	/* Exactly as many bytes, so that a sanitizer sees what lies beyond. */
	e.sent = malloc(e.bytes + !e.bytes);
	e.buffer = malloc(capacity + !capacity);
	check(e.sent && e.buffer);
	for (size_t i = 0; i < e.bytes; i++)
		e.sent[i] = (uint8_t)(i * 7 + i / 251);
	check(!mad_rmpp_send_begin(&e.s, &config, head, e.sent, e.bytes, now));
	check(!mad_rmpp_receive_begin(&e.r, &config, e.buffer, capacity, now));
	for (unsigned i = 0; i < STEPS && e.s.state == MAD_RMPP_RUNNING; i++)
		step(&e, &t, &now);
	check(e.r.bytes <= capacity);
	if (!e.damaged) {
		check(!memcmp(e.buffer, e.sent, e.r.bytes));
		check(e.s.state != MAD_RMPP_DONE || e.r.state == MAD_RMPP_DONE);
		check(e.r.state != MAD_RMPP_DONE || e.r.bytes == e.bytes);
	}
	free(e.sent);
	free(e.buffer);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	const size_t size = random_below(capacity);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_below(256);
	return size;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 30000, 300, make);
}
#endif
