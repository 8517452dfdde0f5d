/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device of C37.118 sends to a client: configurations and data frames that are cut, damaged
 * and do not fit together, over connections that begin again at any time. The session takes or
 * refuses them within their bounds, and every sample has no more values than it has room for.
 *
 * usage: fuzz_c37_session [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/wire/c37_random.h"
#include "gateway/node/c37.118/c37_session.h"
#include "wire/bytes.h"

#define MUTATE_BYTES "\x00\x01\x02\x0f\x10\x11\x12\x22\x31\x32\x41\x42\x52\x7f\x80\xaa\xff"
#include "drive.h"

#define VALUES 20

static struct c37_session session;
static struct sample *sample;
static uint64_t now_ns, sequence;

static void must(bool good)
{
	if (!good)
		abort();
}

static void send_command(void *arg, const uint8_t *data, size_t len)
{
	must(len == C37_FRAME_MIN + 2);
}

static void take_data(void *arg, const struct c37_layout *l, const struct c37_frame *f,
		      uint64_t number, int64_t time_ns)
{
	unsigned left;

	sample->capacity = 1 + (unsigned)(number % VALUES);
	left = c37_layout_read(l, f, NULL, sample);
	must(sample->length <= sample->capacity && sample->length + left == l->signals->count);
	must(time_ns >= 0);
	sequence = number;
}

static void take_layout(void *arg, const struct c37_layout *l, const struct c37_layout *before)
{
	for (unsigned i = 0; i < l->signals->count; i++) {
		const char *name = l->signals->signals[i].name;

		must(*name && !strpbrk(name, "\n\r\t\"\\"));
	}
}

static void take_header(void *arg, struct c37_bytes text)
{
	must(text.len <= C37_FRAME_MAX - C37_FRAME_MIN);
}

static void count(void *arg, enum c37_figure figure, uint64_t n)
{
	must(figure < C37_FIGURES);
}

static void fault(void *arg, enum socket_fault kind, const char *why)
{
	must(kind < FAULT_KINDS && why && *why);
}

static int64_t wall_ns(void *arg)
{
	return (int64_t)now_ns;
}

static const struct c37_session_ops ops = {
	.send = send_command, .data = take_data, .layout = take_layout, .header = take_header,
	.count = count, .fault = fault, .wall_ns = wall_ns,
};

/* Checks are made right where a frame stands as a whole, so that what is behind them is reached. */
static void mend(uint8_t *data, size_t size)
{
	size_t len;

	for (size_t at = 0; at + C37_FRAME_MIN <= size; at += len) {
		len = get_16(data + at + 2);
		if (len < C37_FRAME_MIN || len > size - at)
			return;
		put_16(data + at + len - 2, c37_crc(data + at, len - 2));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	size_t used = 0, at = 0;
	uint64_t next;

	must(copy);
	if (!sample) {
		sample = calloc(1, sizeof(*sample) + VALUES * sizeof(union signal_data));
		must(sample);
		session = (struct c37_session){ .ops = &ops, .timeout_ns = 1000000000,
						.wants_header = true };
	}
	memcpy(copy, data, size);
	if (size % 4)
		mend(copy, size);
	session.cfg3 = size & 8;
	session.status = size & 16;
	if (session.state == C37_IDLE || size % 64 == 0)
		c37_session_begin(&session, size & 32, now_ns);
	/* In two pieces. */
	for (unsigned piece = 0; piece < 2 && size; piece++) {
		size_t end = piece ? size : copy[0] % size;

		used = c37_session_take(&session, copy + at, end - at, now_ns);
		must(used <= end - at);
		at += used;
	}
	now_ns += 100000000;
	if (!c37_session_due(&session, now_ns, &next)) {
		must(*session.why);
		c37_session_end(&session, size & 1);
	}
	free(copy);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 4096

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const enum c37_type types[] = { C37_CFG2, C37_CFG2, C37_CFG3 };
	struct prng p = prng_from(random_below(UINT64_MAX));
	struct c37_frame head = c37_random_head(&p, types[random_below(3)]), f;
	size_t size = c37_random_config(&p, bytes, capacity, &head, 3), skip;
	struct c37_config c;
	const char *why;

	if (!size || c37_next(bytes, size, &f, &skip, &why) <= 0 || c37_config_decode(&f, &c))
		return 0;
	head.type = C37_DATA;
	for (unsigned i = 0; i < 3; i++) {
		/* The next period, some other one, or any time. */
		head.fraction = (uint32_t)(random_below(4) ? i * 20000 : random_below(0x1000000));
		head.soc += (uint32_t)(random_below(8) ? 0 : random_below(UINT32_MAX));
		size += c37_random_data(&p, bytes + size, capacity - size, &head, c);
	}
	return random_below(2) ? size : mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	int ret = drive(argc, argv, 30000, SIZE_MAX_BYTES, make);

	c37_session_destroy(&session);
	free(sample);
	return ret;
}
#endif
