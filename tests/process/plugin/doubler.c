/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `doubler`, built outside of the tree with the installed headers alone:
 * what is written to it is read from it, times `factor`.
 *
 * Its queue is longer than what the test sends; when it is full, samples are lost.
 */
#define LOG_ROOM "doubler"
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "gateway/base/waker.h"
#include "gateway/plugin/module.h"
#include "gateway/plugin/node.h"
#include "util/log.h"
#include "util/ring.h"

/* Of a gateway that came later, or was built otherwise, where the test says so. */
#ifndef INTERFACE_OFFSET
PLUGIN_MODULE();
#else
extern const struct plugin_interface busbar_plugin_interface;
const struct plugin_interface busbar_plugin_interface = {
	.version = PLUGIN_INTERFACE + INTERFACE_OFFSET,
#ifndef OTHER_SIZE
	.sizes = PLUGIN_SIZES,
#endif
};
#endif

#define QUEUE_LENGTH 1024

struct doubler {
	double factor;
	struct ring queue;
	struct waker waker;
	atomic_bool interrupted;
};

extern const struct node_type node_doubler;

static const struct config_key doubler_keys[] = {
	{ "factor", CONFIG_REAL, offsetof(struct doubler, factor), "2.0",
	  .help = "What each value is multiplied by" },
};

enum { FIGURE_TAKEN, FIGURES, NO_FIGURE = 9 };

static const struct node_figure doubler_figures[FIGURES] = {
	[FIGURE_TAKEN] = { "taken", "Samples that were written to it", NODE_COUNTER },
};

static int doubler_prepare(struct node *n)
{
	struct doubler *d = n->private_data;

	return ring_init(&d->queue, QUEUE_LENGTH);
}

static int doubler_start(struct node *n)
{
	struct doubler *d = n->private_data;

	atomic_store(&d->interrupted, false);
	log_info("node %s: multiplies by %g", n->name, d->factor);
	return 0;
}

static int doubler_stop(struct node *n)
{
	struct doubler *d = n->private_data;
	struct sample *s;

	while (d->queue.slots && (s = ring_pop(&d->queue)))
		sample_put(s);
	return 0;
}

static void doubler_destroy(struct node *n)
{
	struct doubler *d = n->private_data;

	doubler_stop(n);
	ring_destroy(&d->queue);
}

static int doubler_read(struct node *n, struct sample *smps[], unsigned cnt,
			unsigned *release)
{
	struct doubler *d = n->private_data;
	struct sample *from;

	while (!(from = ring_pop(&d->queue))) {
		unsigned generation = waker_prepare(&d->waker);

		if (atomic_load(&d->interrupted))
			return -EINTR;
		if (!ring_count(&d->queue))
			waker_wait(&d->waker, generation, 100000000);
	}
	sample_copy(smps[0], from);
	sample_put(from);
	for (unsigned i = 0; i < smps[0]->length; i++)
		smps[0]->data[i].f *= d->factor;
	return 1;
}

static int doubler_write(struct node *n, struct sample *smps[], unsigned cnt,
			 unsigned *release)
{
	struct doubler *d = n->private_data;
	unsigned taken = 0;

	while (taken < cnt && ring_push(&d->queue, smps[taken]))
		taken++;
	node_figure_add(n, FIGURE_TAKEN, taken);
	node_figure_add(n, NO_FIGURE, taken); /* of no effect */
	waker_wake(&d->waker);
	/* The queue keeps what it took; the others go back. */
	memmove(smps, smps + taken, (cnt - taken) * sizeof(*smps));
	*release = cnt - taken;
	if (taken < cnt)
		node_refuse(n, NODE_LOSS_FULL, cnt - taken, "the queue is full");
	return (int)taken;
}

static void doubler_interrupt(struct node *n)
{
	struct doubler *d = n->private_data;

	atomic_store(&d->interrupted, true);
	waker_wake(&d->waker);
}

static unsigned doubler_hold_max(struct node *n)
{
	return QUEUE_LENGTH;
}

const struct node_type node_doubler = {
	.name = "doubler",
	.description = "what is written, read back twice as large",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_LOOPS,
	.size = sizeof(struct doubler),
	.keys = doubler_keys,
	.key_count = 1,
	.figures = doubler_figures,
	.figure_count = FIGURES,
	.prepare = doubler_prepare,
	.start = doubler_start,
	.stop = doubler_stop,
	.destroy = doubler_destroy,
	.read = doubler_read,
	.write = doubler_write,
	.interrupt = doubler_interrupt,
	.hold_max = doubler_hold_max,
};
