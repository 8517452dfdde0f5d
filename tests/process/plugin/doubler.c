/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `doubler`, built outside of the tree with the installed headers alone:
 * what is written to it is read from it, times `factor`.
 *
 * One sample at a time; who writes waits for who reads, because the test counts
 * what comes through.
 */
#define LOG_ROOM "doubler"
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "gateway/plugin/module.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/ring.h"

#ifndef INTERFACE_OFFSET
PLUGIN_MODULE();
#else
/* Of a gateway that came later. */
extern const struct plugin_interface busbar_plugin_interface;
const struct plugin_interface busbar_plugin_interface = {
	.version = PLUGIN_INTERFACE + INTERFACE_OFFSET, .sizes = PLUGIN_SIZES,
};
#endif

struct doubler {
	double factor;
	struct ring queue;
};

extern const struct node_type node_doubler;

static const struct config_key doubler_keys[] = {
	{ "factor", CONFIG_REAL, offsetof(struct doubler, factor), "2.0",
	  .help = "What each value is multiplied by" },
};

static int doubler_prepare(struct node *n)
{
	struct doubler *d = n->private_data;

	return ring_init(&d->queue, 4096);
}

static int doubler_start(struct node *n)
{
	log_info("node %s: doubles", n->name);
	return 0;
}

static int doubler_stop(struct node *n)
{
	struct doubler *d = n->private_data;
	struct sample *s;

	while ((s = ring_pop(&d->queue)))
		sample_put(s);
	return 0;
}

static void doubler_destroy(struct node *n)
{
	struct doubler *d = n->private_data;

	ring_destroy(&d->queue);
}

static int doubler_read(struct node *n, struct sample *smps[], unsigned cnt,
			unsigned *release)
{
	struct doubler *d = n->private_data;
	struct sample *from = ring_pop(&d->queue);

	if (!from)
		return 0;
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
	unsigned i = 0;

	while (i < cnt && ring_push(&d->queue, sample_get(smps[i])))
		i++;
	if (i < cnt) {
		sample_put(smps[i]);
		node_refuse(n, NODE_LOSS_FULL, cnt - i, "nobody reads it");
	}
	return (int)i;
}

const struct node_type node_doubler = {
	.name = "doubler",
	.description = "what is written, read back twice as large",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_LOOPS,
	.size = sizeof(struct doubler),
	.keys = doubler_keys,
	.key_count = 1,
	.prepare = doubler_prepare,
	.start = doubler_start,
	.stop = doubler_stop,
	.destroy = doubler_destroy,
	.read = doubler_read,
	.write = doubler_write,
};
