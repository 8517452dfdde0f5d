/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of filters share: a carrier below that records and can refuse, a clock
 * set by hand, an owner above that records. */
#ifndef TESTS_UNIT_CARRIER_RIG_H
#define TESTS_UNIT_CARRIER_RIG_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "transport/carrier/carrier.h"
#include "util/clock_source.h"

enum { RIG_UNITS = 65536 };

/* Units as numbers: the first four bytes. */
struct rig_log {
	uint32_t number[RIG_UNITS];
	uint32_t bytes[RIG_UNITS];
	uint64_t at_ns[RIG_UNITS];
	bool damaged[RIG_UNITS]; /* behind the number every byte is the length's */
	struct carrier_unit last;
	unsigned count, writable;
};

static struct rig {
	uint64_t now_ns;
	struct carrier below;
	struct rig_log sent, got;  /* came to the carrier below; to the owner */
	unsigned room;             /* units that the carrier below takes yet */
	bool closed;
	uint32_t arriving, arrived; /* numbers that the next polls deliver */
	uint32_t length;           /* of them */
	uint32_t segment;
} rig;

static inline void rig_make(uint32_t number, uint8_t *bytes, uint32_t length)
{
	memset(bytes, (uint8_t)length, length);
	memcpy(bytes, &number, sizeof(number));
}

static inline void rig_record(struct rig_log *log, const struct carrier_unit *u)
{
	uint8_t bytes[8192];
	size_t n = carrier_unit_bytes(u);
	unsigned i = log->count++;

	check(i < RIG_UNITS && n >= 4 && n <= sizeof(bytes));
	carrier_unit_gather(u, 0, n, bytes);
	memcpy(&log->number[i], bytes, 4);
	log->bytes[i] = (uint32_t)n;
	log->at_ns[i] = rig.now_ns;
	log->damaged[i] = false;
	for (size_t k = 4; k < n; k++)
		log->damaged[i] |= bytes[k] != (uint8_t)n;
	log->last = *u;
}

static int rig_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	unsigned i;

	for (i = 0; i < n && rig.room; i++, rig.room--)
		rig_record(&rig.sent, &units[i]);
	return i ? (int)i : -EAGAIN;
}

static unsigned rig_poll(struct carrier *c, unsigned budget)
{
	uint8_t bytes[8192];
	unsigned n = 0;

	for (; n < budget && rig.arrived < rig.arriving; n++) {
		struct iovec iov = { bytes, rig.length };
		struct carrier_unit u = {
			.iov = &iov, .count = 1, .segment = rig.segment,
		};

		rig_make(rig.arrived++, bytes, rig.length);
		carrier_deliver(c, &u);
	}
	return n;
}

static uint64_t rig_next_ns(struct carrier *c)
{
	return UINT64_MAX;
}

static void rig_close(struct carrier *c)
{
	rig.closed = true;
}

static const struct carrier_ops rig_ops = { rig_emit, rig_poll, rig_next_ns, rig_close };

static uint64_t rig_now(void *arg)
{
	return rig.now_ns;
}

static void rig_deliver(void *arg, const struct carrier_unit *u)
{
	rig_record(&rig.got, u);
}

static void rig_writable(void *arg)
{
	rig.got.writable++;
}

/* Begins anew; the carrier below is rig.below. */
static inline void rig_begin(void)
{
	memset(&rig, 0, sizeof(rig));
	rig.now_ns = 1000;
	rig.room = UINT32_MAX;
	rig.length = 100;
	rig.below.ops = &rig_ops;
}

static inline struct clock_source rig_clock(void)
{
	return (struct clock_source){ rig_now, NULL };
}

static inline void rig_own(struct carrier *c)
{
	struct carrier_upper upper = { rig_deliver, rig_writable, NULL };

	carrier_set_upper(c, &upper);
}

static inline int rig_send(struct carrier *c, uint32_t number, uint32_t length)
{
	uint8_t bytes[8192];
	struct iovec iov = { bytes, length };
	struct carrier_unit u = { .iov = &iov, .count = 1 };

	rig_make(number, bytes, length);
	return carrier_emit(c, &u, 1);
}

/* Polls whenever the carrier wants it, until nothing is due before `until_ns`. */
static inline void rig_play(struct carrier *c, uint64_t until_ns)
{
	uint64_t next;

	while ((next = carrier_next_ns(c)) <= until_ns) {
		if (next > rig.now_ns)
			rig.now_ns = next;
		carrier_poll(c, 16);
	}
	rig.now_ns = until_ns;
}

#endif
