/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that shows units. */
#include "rig.h"
#include "transport/carrier/tap.h"

static struct {
	unsigned out, in;
	uint32_t last;
} seen;

static void saw(void *arg, enum carrier_direction direction,
		const struct carrier_unit *units, unsigned n)
{
	check(arg == &seen);
	*(direction == CARRIER_OUT ? &seen.out : &seen.in) += n;
	carrier_unit_gather(&units[n - 1], 0, 4, &seen.last);
}

static void what_is_taken_and_what_arrives_is_shown_once(void)
{
	static const struct carrier_watcher watcher = { saw, &seen };
	struct carrier *c;

	rig_begin();
	memset(&seen, 0, sizeof(seen));
	check(carrier_tap_open(&rig.below, &watcher, &c) == 0);
	rig_own(c);
	rig.room = 1;
	check(rig_send(c, 5, 100) == 1 && seen.out == 1 && seen.last == 5);
	check(rig_send(c, 6, 100) == -EAGAIN && seen.out == 1);
	rig.arriving = 2;
	check(carrier_poll(c, 8) == 2 && seen.in == 2 && seen.last == 1);
	check(rig.got.count == 2);
	rig.below.upper.writable(rig.below.upper.arg);
	check(rig.got.writable == 1);
	carrier_tap_set(c, NULL);
	rig.room = 1;
	check(rig_send(c, 7, 100) == 1 && seen.out == 1 && rig.sent.count == 2);
	rig.arriving = 3;
	check(carrier_poll(c, 8) == 1 && seen.in == 2 && rig.got.count == 3);
	carrier_tap_set(c, &watcher);
	rig.room = 1;
	check(rig_send(c, 8, 100) == 1 && seen.out == 2 && seen.last == 8);
	check(carrier_next_ns(c) == UINT64_MAX);
	carrier_close(c);
	check(rig.closed);
}

int main(void)
{
	run_test(what_is_taken_and_what_arrives_is_shown_once);
	return 0;
}
