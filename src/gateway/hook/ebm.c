/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `ebm`: energy-based metric, the energy that has passed through pairs of
 * voltage and current since the beginning: the integral over the origin
 * timestamps, by the trapezoidal rule, of the sum of u i over all phases. It
 * compares two sides of a co-simulation interface: what one gives the other
 * must take.
 *
 * The energy is logged at the rate of the statistics; `add_signal` appends it
 * to each sample.
 */
#define LOG_ROOM "gateway/ebm"
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gateway/hook/part/pair.h"
#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"
#include "util/log.h"

#define PHASES_MAX 4096

struct ebm {
	json_t *phases;
	bool add_signal;

	struct pair *pairs;
	unsigned count, at;         /* position of the added signal */
	double energy, rest;        /* joules; unevaluated sum */
	double last_power;
	struct timespec last;
	bool seen;                  /* a sample with a timestamp */
	_Atomic double shown;       /* for the statistics thread */
	uint64_t backwards;         /* timestamps that did not grow */
};

extern const struct hook_type hook_ebm;

static const struct config_key ebm_keys[] = {
	{ "phases", CONFIG_JSON, offsetof(struct ebm, phases), .required = true,
	  .help = "List of pairs (voltage, current), each the index or the name of a signal" },
	{ "add_signal", CONFIG_BOOL, offsetof(struct ebm, add_signal), "false",
	  .help = "Append the energy to each sample, as signal `energy`" },
};

static int ebm_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct ebm *e = h->private_data;
	size_t n = json_array_size(e->phases);
	int ret = 0;

	if (!n || n > PHASES_MAX) {
		config_fail(c, cfg, "phases",
			    "expected a list of 1 to %d pairs of voltage and current, such as ( ( 0, 1 ), ( 2, 3 ) )",
			    PHASES_MAX);
		return -EINVAL;
	}
	e->pairs = calloc(n, sizeof(*e->pairs));
	if (!e->pairs)
		return -ENOMEM;
	e->count = (unsigned)n;
	for (size_t i = 0; i < n; i++)
		if (pair_parse(&e->pairs[i], c, cfg, "phases", i))
			ret = -EINVAL;
	return ret;
}

static int ebm_signals(struct hook *h, struct signal_list *in,
		       struct signal_list **out)
{
	struct ebm *e = h->private_data;
	struct signal_list *l;

	for (unsigned i = 0; i < e->count; i++) {
		int ret = pair_resolve(&e->pairs[i], h, in);

		if (ret)
			return ret;
	}
	if (!e->add_signal) {
		*out = in ? signal_list_get(in) : NULL;
		return 0;
	}
	e->at = in ? in->count : SIGNALS_DEFAULT;
	l = hook_signals_insert(in, e->at, 1);
	if (!l || !hook_signal_set(&l->signals[e->at], "energy", "J",
				   SIGNAL_FLOAT)) {
		signal_list_put(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

static void ebm_restart(struct hook *h)
{
	struct ebm *e = h->private_data;

	e->energy = e->rest = 0;
	e->seen = false;
	atomic_store_explicit(&e->shown, 0, memory_order_relaxed);
}

static int ebm_start(struct hook *h)
{
	ebm_restart(h);
	return 0;
}

static void ebm_periodic(struct hook *h)
{
	struct ebm *e = h->private_data;

	log_info("%s: energy %.9g J", h->owner,
		 atomic_load_explicit(&e->shown, memory_order_relaxed));
}

static int ebm_stop(struct hook *h)
{
	ebm_periodic(h);
	return 0;
}

static void ebm_destroy(struct hook *h)
{
	struct ebm *e = h->private_data;

	free(e->pairs);
}

/* Sum of u i over the phases; false when the sample is too short. */
static bool power_of(const struct ebm *e, const struct hook *h,
		     const struct sample *s, double *power)
{
	*power = 0;
	for (unsigned i = 0; i < e->count; i++) {
		double u, c;

		if (unlikely(!pair_values(&e->pairs[i], h, s, &u, &c)))
			return false;
		*power += u * c;
	}
	return true;
}

static void integrate(struct ebm *e, const struct hook *h,
		      const struct sample *s, double power)
{
	int64_t step = sample_time_since_ns(s->origin, e->last);

	if (unlikely(!isfinite(power)))
		return;
	if (likely(e->seen && step > 0))
		window_add(&e->energy, &e->rest,
			   (double)step * 1e-9 * (power + e->last_power) / 2);
	else if (e->seen && step < 0 && e->backwards++ < 5)
		log_warn("%s: hook ebm: a timestamp lies %lld ns before the last one; that step is not counted",
			 h->owner, (long long)-step);
	e->seen = true;
	e->last = s->origin;
	e->last_power = power;
	atomic_store_explicit(&e->shown, e->energy + e->rest,
			      memory_order_relaxed);
}

static enum hook_verdict ebm_process(struct hook *h, struct sample **smp)
{
	struct ebm *e = h->private_data;
	struct sample *s = *smp;
	double power;

	if (unlikely(!power_of(e, h, s, &power)))
		return hook_fail(h, "a sample without one of the signals");
	if (likely(s->flags & SAMPLE_HAS_ORIGIN))
		integrate(e, h, s, power);
	if (!e->add_signal)
		return HOOK_OK;
	/* One that is shorter than its list gets it behind its last value. */
	if (unlikely(s->length > e->at || s->length >= s->capacity))
		return hook_fail(h, "the sample has no room for another value");
	s->data[s->length++].f = e->energy + e->rest;
	return HOOK_OK;
}

const struct hook_type hook_ebm = {
	.name = "ebm",
	.description = "energy that passes through pairs of voltage and current",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct ebm),
	.keys = ebm_keys,
	.key_count = ARRAY_SIZE(ebm_keys),
	.parse = ebm_parse,
	.signals = ebm_signals,
	.start = ebm_start,
	.stop = ebm_stop,
	.restart = ebm_restart,
	.destroy = ebm_destroy,
	.process = ebm_process,
	.periodic = ebm_periodic,
};
