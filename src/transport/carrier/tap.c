/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that shows units; see tap.h. */
#include "transport/carrier/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "util/container_of.h"
#include "util/spin.h"

struct tap {
	struct carrier carrier;
	_Atomic(const struct carrier_watcher *) watcher;
	atomic_uint inside; /* calls of it */
};

static struct tap *tap_of(struct carrier *c)
{
	return container_of(c, struct tap, carrier);
}

static void show(struct tap *t, enum carrier_direction direction,
		 const struct carrier_unit *units, unsigned n)
{
	const struct carrier_watcher *w;

	/* carrier_tap_set() changes `watcher` and then looks at `inside`. */
	atomic_fetch_add(&t->inside, 1);
	w = atomic_load(&t->watcher);
	if (w)
		w->saw(w->arg, direction, units, n);
	atomic_fetch_sub(&t->inside, 1);
}

static bool is_watched(struct tap *t)
{
	return unlikely(atomic_load_explicit(&t->watcher, memory_order_relaxed));
}

static int tap_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	int taken = carrier_emit(c->below, units, n);

	if (is_watched(tap_of(c)) && taken > 0)
		show(tap_of(c), CARRIER_OUT, units, (unsigned)taken);
	return taken;
}

static void tap_deliver(void *arg, const struct carrier_unit *unit)
{
	struct tap *t = tap_of(arg);

	if (is_watched(t))
		show(t, CARRIER_IN, unit, 1);
	carrier_deliver(&t->carrier, unit);
}

static void tap_writable(void *arg)
{
	carrier_writable(arg);
}

static unsigned tap_poll(struct carrier *c, unsigned budget)
{
	return carrier_poll(c->below, budget);
}

static uint64_t tap_next_ns(struct carrier *c)
{
	return carrier_next_ns(c->below);
}

static void tap_close(struct carrier *c)
{
	carrier_close(c->below);
	free(tap_of(c));
}

static const struct carrier_ops tap_ops = {
	.emit = tap_emit,
	.poll = tap_poll,
	.next_ns = tap_next_ns,
	.close = tap_close,
};

int carrier_tap_open(struct carrier *below, const struct carrier_watcher *watcher,
		     struct carrier **out)
{
	struct carrier_upper upper = { tap_deliver, tap_writable, NULL };
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->carrier.ops = &tap_ops;
	t->carrier.below = below;
	atomic_init(&t->watcher, watcher);
	upper.arg = &t->carrier;
	carrier_set_upper(below, &upper);
	*out = &t->carrier;
	return 0;
}

void carrier_tap_set(struct carrier *c, const struct carrier_watcher *watcher)
{
	struct tap *t = tap_of(c);
	unsigned tries = 0;

	atomic_store(&t->watcher, watcher);
	while (atomic_load(&t->inside))
		spin_wait(++tries);
}
