/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `signal`: generates samples of known shape at a fixed rate. Here are
 * its settings, each a value for all or a list with one for each; source.c
 * generates.
 */
#include <errno.h>
#include <stdlib.h>

#include "gateway/plugin/node.h"
#include "gateway/part/signal_source.h"
#include "gateway/sample/signals.h"

struct signal_node {
	struct signal_source source; /* first */
	int64_t values;
	json_t *signal, *frequency, *amplitude, *stddev, *offset, *phase,
		*pulse_width, *pulse_low, *pulse_high;
};

#define OFFSET(field) offsetof(struct signal_node, field)

_Static_assert(OFFSET(source) == 0, "callbacks take the private data for it");

/* A value for all, or a list with one for each. */
#define PER_VALUE(key, text) \
	{ #key, CONFIG_JSON, OFFSET(key), .help = text }

static const struct config_key signal_keys[] = {
	PER_VALUE(signal, "mixed, random, sine, square, triangle, ramp, "
			  "counter, constant or pulse; mixed (the default) "
			  "gives each value another one"),
	{ "values", CONFIG_INT, OFFSET(values), "0", .min = 0, .max = SIGNALS_MAX,
	  .help = "Values in a sample; 0: as many as the lists hold, else 1" },
	PER_VALUE(frequency, "Of the signal in Hz, 1; of a ramp its period in s"),
	PER_VALUE(amplitude, "1"),
	PER_VALUE(stddev, "Standard deviation of a random walk's step, 0.2"),
	PER_VALUE(offset, "Added to every value, 0; where a random walk starts"),
	PER_VALUE(phase, "In radians, 0"),
	PER_VALUE(pulse_width, "Steps that a pulse lasts, 1"),
	PER_VALUE(pulse_low, "Value between pulses, 0"),
	PER_VALUE(pulse_high, "Value of a pulse, 1"),
	SIGNAL_SOURCE_KEYS(OFFSET(source), "true"),
};

/* Where the lists of signal_settings[] stand. */
static const size_t lists[SIGNAL_SETTING_COUNT] = {
	OFFSET(frequency), OFFSET(amplitude), OFFSET(stddev), OFFSET(offset),
	OFFSET(phase), OFFSET(pulse_width), OFFSET(pulse_low),
	OFFSET(pulse_high),
};

/* What a list says for value `index`; NULL when nothing does. */
static const json_t *setting_of(const json_t *list, unsigned index)
{
	return json_is_array(list) ? json_array_get(list, index) : list;
}

static const json_t *list_at(const struct signal_node *s, size_t setting)
{
	return *(json_t *const *)((const char *)s + lists[setting]);
}

/* All lists must be of one length; that is the number of values. */
static int count_values(struct signal_node *s, struct config *c, json_t *cfg,
			const struct signal_list *signals, unsigned *out)
{
	size_t count = (size_t)s->values;
	const char *key = "signal";
	const json_t *list = s->signal;

	for (size_t i = 0;; i++) {
		if (json_is_array(list)) {
			if (count == 0)
				count = json_array_size(list);
			if (count == 0) {
				config_fail(c, cfg, key, "the list is empty");
				return -EINVAL;
			}
			if (json_array_size(list) != count) {
				config_fail(c, cfg, key,
					    "the list has %zu entries, expected %zu, one for each value",
					    json_array_size(list), count);
				return -EINVAL;
			}
		}
		if (i == SIGNAL_SETTING_COUNT)
			break;
		key = signal_settings[i].key;
		list = list_at(s, i);
	}
	if (count == 0)
		count = signals ? signals->count : 1;
	if (signals && signals->count != count) {
		config_fail(c, cfg, "values",
			    "%zu values are to be generated, but `signals` names %u",
			    count, signals->count);
		return -EINVAL;
	}
	*out = (unsigned)count;
	return 0;
}

static int set_values(struct signal_node *s, struct config *c, json_t *cfg)
{
	struct signal_source *source = &s->source;
	int ret = 0;

	for (unsigned i = 0; i < source->generator.count && !ret; i++) {
		ret = signal_source_set_shape(source, i,
					      setting_of(s->signal, i), c, cfg);
		for (size_t k = 0; k < SIGNAL_SETTING_COUNT; k++)
			if (signal_source_set(source, i, &signal_settings[k],
					      setting_of(list_at(s, k), i), c,
					      cfg))
				ret = -EINVAL;
	}
	return ret;
}

static int signal_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct signal_node *s = n->private_data;
	bool named = n->in.signals;
	unsigned count;
	int ret;

	ret = count_values(s, c, cfg, n->in.signals, &count);
	if (!ret)
		ret = signal_source_init(&s->source, count);
	if (!ret)
		ret = set_values(s, c, cfg);
	return ret ? ret : signal_source_ready(n, &s->source, cfg, named);
}

const struct node_type node_signal = {
	.name = "signal",
	.description = "Generates signals of known shape",
	.flags = NODE_CAN_READ | NODE_READ_BLOCKS | NODE_GENERATES,
	.size = sizeof(struct signal_node),
	.keys = signal_keys,
	.key_count = ARRAY_SIZE(signal_keys),
	.parse = signal_parse,
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
