/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `signal.v2`: the generator of `signal` (signal/source.c) with another
 * way to say what each value is: beside the name and unit of the signal. Nothing
 * else differs.
 */
#include <errno.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "gateway/part/signal_source.h"
#include "gateway/sample/signals.h"

struct signal_v2 {
	struct signal_source source; /* first */
};

_Static_assert(offsetof(struct signal_v2, source) == 0,
	       "callbacks take the private data for it");

static const struct config_key v2_keys[] = {
	SIGNAL_SOURCE_KEYS(offsetof(struct signal_v2, source), "false"),
};

/* Beside those of every signal; read by parse. */
static const struct config_key v2_signal_keys[] = {
	{ "signal", CONFIG_STRING,
	  .help = "mixed, random, sine, square, triangle, ramp, counter, "
		  "constant or pulse; mixed (the default) gives each value "
		  "another one" },
	{ "frequency", CONFIG_REAL,
	  .help = "Of the signal in Hz, 1; of a ramp its period in s" },
	{ "amplitude", CONFIG_REAL, .help = "1" },
	{ "stddev", CONFIG_REAL,
	  .help = "Standard deviation of a random walk's step, 0.2" },
	{ "offset", CONFIG_REAL,
	  .help = "Added to every value, 0; where a random walk starts" },
	{ "phase", CONFIG_REAL, .help = "In radians, 0" },
	{ "pulse_width", CONFIG_REAL, .help = "Steps that a pulse lasts, 1" },
	{ "pulse_low", CONFIG_REAL, .help = "Value between pulses, 0" },
	{ "pulse_high", CONFIG_REAL, .help = "Value of a pulse, 1" },
};

static bool is_mixed(const json_t *shape)
{
	const char *name = json_string_value(shape);

	return !shape || (name && !strcmp(name, waveform_names[WAVEFORM_MIXED]));
}

/* One entry of the list, for all the values that it stands for. `mixed` counts
 * the values that take one shape after the other. */
static int set_entry(struct signal_source *s, unsigned first, unsigned count,
		     unsigned *mixed, struct config *c, const json_t *e)
{
	const json_t *shape = json_object_get(e, "signal");

	for (unsigned i = first; i < first + count; i++) {
		int ret = 0;

		if (is_mixed(shape))
			s->generator.values[i].waveform =
				generator_mixed((*mixed)++);
		else
			ret = signal_source_set_shape(s, i, shape, c, e);
		for (size_t k = 0; k < SIGNAL_SETTING_COUNT && !ret; k++)
			ret = signal_source_set(
				s, i, &signal_settings[k],
				json_object_get(e, signal_settings[k].key), c, e);
		if (ret)
			return ret;
	}
	return 0;
}

/* Values that an entry stands for; the core has checked what stands there. */
static unsigned count_of(struct config *c, const json_t *e)
{
	static const struct config_key key[] = {
		{ "count", CONFIG_INT, 0, "1", .help = "Values" },
	};
	int64_t count = 1;

	config_unpack_part(c, e, key, 1, &count);
	return (unsigned)count;
}

static int v2_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct signal_v2 *s = n->private_data;
	json_t *list = json_object_get(signal_list_is_given(n->in.cfg, "signals") ?
					       n->in.cfg : cfg, "signals");
	unsigned index = 0, mixed = 0;
	int ret;

	if (!n->in.signals) {
		config_fail(c, cfg, "in",
			    "signals are required: in = { signals = ( { name = \"u\", signal = \"sine\", frequency = 50.0 } ) }");
		return -EINVAL;
	}
	ret = signal_source_init(&s->source, n->in.signals->count);
	if (!ret && json_is_object(list))
		ret = set_entry(&s->source, 0, n->in.signals->count,
				&mixed, c, list);
	for (size_t i = 0; !ret && i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);
		unsigned count = count_of(c, e);

		ret = set_entry(&s->source, index, count, &mixed, c, e);
		index += count;
	}
	return ret ? ret : signal_source_ready(n, &s->source, cfg, true);
}

const struct node_type node_signal_v2 = {
	.name = "signal.v2",
	.description = "Generates signals that are described one by one",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS | NODE_GENERATES,
	.size = sizeof(struct signal_v2),
	.keys = v2_keys,
	.key_count = ARRAY_SIZE(v2_keys),
	.signal_keys = v2_signal_keys,
	.signal_key_count = ARRAY_SIZE(v2_signal_keys),
	.parse = v2_parse,
	.start = signal_source_start,
	.stop = signal_source_stop,
	.destroy = signal_source_destroy,
	.read = signal_source_read,
	.interrupt = signal_source_interrupt,
	.rearm = signal_source_rearm,
	.resume = signal_source_resume,
	.poll_fds = signal_source_poll_fds,
	.print = signal_source_print,
};
