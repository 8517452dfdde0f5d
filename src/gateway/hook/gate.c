/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `gate`: lets samples through while a signal is above or below a
 * threshold, or from when it crosses it, for `duration` seconds or `samples`
 * samples more.
 */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <math.h>

#include "gateway/sample/time.h"

enum mode { ABOVE, BELOW, RISING_EDGE, FALLING_EDGE };
static const char *const mode_names[] = { "above", "below", "rising_edge",
					  "falling_edge", NULL };

struct gate {
	struct hook_select select;
	int mode;
	double threshold, duration;
	int64_t samples;

	int64_t duration_ns;
	double previous;
	bool seen, open;
	int64_t left;       /* samples that still go through */
	struct timespec opened; /* origin of the sample that opened it */
};

extern const struct hook_type hook_gate;

static const struct config_key gate_keys[] = {
	HOOK_SELECT_KEYS(struct gate, select),
	{ "mode", CONFIG_ENUM, offsetof(struct gate, mode), "rising_edge",
	  .names = mode_names, .help = "What opens the gate" },
	{ "threshold", CONFIG_REAL, offsetof(struct gate, threshold), "0.5",
	  .help = "Value of the signal that it is compared with" },
	{ "duration", CONFIG_REAL, offsetof(struct gate, duration), "0",
	  .min = 0, .max = 1e9,
	  .help = "Seconds that the gate stays open, by origin timestamps" },
	{ "samples", CONFIG_INT, offsetof(struct gate, samples), "0",
	  .min = 0, .max = 1e15,
	  .help = "Samples that the gate stays open" },
};

static int gate_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct gate *g = h->private_data;

	g->duration_ns = llround(g->duration * 1e9);
	return hook_select_parse(&g->select, h, HOOK_SELECT_ONE);
}

static int gate_signals(struct hook *h, struct signal_list *in,
			struct signal_list **out)
{
	struct gate *g = h->private_data;
	int ret = hook_select_resolve(&g->select, h, in);

	if (!ret)
		ret = hook_select_check_types(&g->select, h, in,
					      1 << SIGNAL_FLOAT |
						      1 << SIGNAL_INTEGER |
						      1 << SIGNAL_BOOLEAN);
	if (!ret && in)
		*out = signal_list_get(in);
	return ret;
}

static void gate_restart(struct hook *h)
{
	struct gate *g = h->private_data;

	g->seen = g->open = false;
}

static int gate_start(struct hook *h)
{
	gate_restart(h);
	return 0;
}

/* Does the step to `value` open the gate? */
static bool opens(const struct gate *g, double value)
{
	switch ((enum mode)g->mode) {
	case ABOVE:
		return value > g->threshold;
	case BELOW:
		return value < g->threshold;
	case RISING_EDGE:
		return g->seen && g->previous <= g->threshold &&
		       value > g->threshold;
	case FALLING_EDGE:
		return g->seen && g->previous >= g->threshold &&
		       value < g->threshold;
	}
	return false;
}

/* A step back in time as long as the duration ends it as well: what was opened
 * at noon must not stay open when a replay is at morning again. */
static bool stays_open(const struct gate *g, const struct sample *s)
{
	int64_t since = sample_time_since_ns(s->origin, g->opened);

	return g->left > 0 || ((s->flags & SAMPLE_HAS_ORIGIN) &&
			       since < g->duration_ns && since > -g->duration_ns);
}

static enum hook_verdict gate_process(struct hook *h, struct sample **smp)
{
	struct gate *g = h->private_data;
	const struct sample *s = *smp;
	unsigned i = g->select.index[0];
	double value;

	if (unlikely(i >= s->length))
		return hook_fail(h, "a sample without the signal");
	value = hook_value_real(hook_value_type(h, s, i), &s->data[i]);
	if (g->open)
		g->open = stays_open(g, s);
	if (!g->open && opens(g, value)) {
		g->open = true;
		g->left = g->samples;
		g->opened = s->origin;
	}
	g->seen = true;
	g->previous = value;
	if (!g->open)
		return HOOK_SKIP;
	g->left--;
	return HOOK_OK;
}

static void gate_destroy(struct hook *h)
{
	hook_select_free(&((struct gate *)h->private_data)->select);
}

const struct hook_type hook_gate = {
	.name = "gate",
	.description = "lets samples through while a signal says so",
	.places = HOOK_NODE_READ | HOOK_PATH,
	.priority = 99,
	.read_only = true,
	.size = sizeof(struct gate),
	.keys = gate_keys,
	.key_count = ARRAY_SIZE(gate_keys),
	.parse = gate_parse,
	.start = gate_start,
	.destroy = gate_destroy,
	.signals = gate_signals,
	.restart = gate_restart,
	.process = gate_process,
};
