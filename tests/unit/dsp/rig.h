/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks by their configuration, fed with samples that a test makes: without a
 * node, path or thread.
 */
#ifndef TESTS_DSP_RIG_H
#define TESTS_DSP_RIG_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/plugin/hook.h"
#include "gateway/base/memory.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

struct rig {
	struct config *config;
	struct hook_list *hooks;
	struct signal_list *in, *out;
	struct pool pool;
	uint64_t sequence;
	int64_t offset_ns;   /* from origin to receive timestamp */
	uint32_t flags;      /* for the next sample only */
	struct sample *got;  /* the last one that came out */
};

static char rig_log[16384];

static inline bool rig_sink(enum log_level level, const char *line)
{
	size_t n = strlen(rig_log);

	(void)level;
	snprintf(rig_log + n, sizeof(rig_log) - n, "%s\n", line);
	return true;
}

/* `hooks` and `signals` as a configuration says them. 0 or the error. */
static inline int rig_try(struct rig *r, const char *hooks, const char *signals)
{
	char text[4096];
	unsigned capacity = 0;
	int ret;

	clock_init();
	memset(r, 0, sizeof(*r));
	rig_log[0] = 0;
	log_set_level(LOG_INFO);
	log_set_sink(rig_sink);
	snprintf(text, sizeof(text), "hooks = ( %s );\n%s%s%s", hooks,
		 signals ? "signals = " : "", signals ? signals : "",
		 signals ? ";\n" : "");
	assert_int_equal(config_load_text("test", text, strlen(text), &r->config),
			 0);
	assert_int_equal(signal_list_parse(&r->in, r->config,
					   config_root(r->config), "signals"), 0);
	ret = hook_list_parse(&r->hooks, r->config,
			      json_object_get(config_root(r->config), "hooks"),
			      HOOK_PATH, NULL, "test");
	if (!ret)
		ret = hook_list_signals(r->hooks, r->in, &r->out, &capacity);
	if (ret)
		return ret;
	assert_int_equal(pool_init(&r->pool, 4, capacity ? capacity : 64,
				   &memory_heap), 0);
	return hook_list_start(r->hooks);
}

static inline void rig_start(struct rig *r, const char *hooks,
			     const char *signals)
{
	int ret = rig_try(r, hooks, signals);

	if (ret)
		fail_msg("%d: %s", ret, rig_log);
}

static inline void rig_stop(struct rig *r)
{
	if (r->got)
		sample_put(r->got);
	if (r->pool.count)
		hook_list_stop(r->hooks);
	hook_list_destroy(r->hooks);
	signal_list_put(r->in);
	signal_list_put(r->out);
	if (r->pool.count)
		assert_int_equal(pool_destroy(&r->pool), 0);
	config_destroy(r->config);
	log_set_sink(NULL);
}

/* The hooks are refused, with a message that holds `what`. */
static inline void rig_refuses(const char *hooks, const char *signals,
			       const char *what)
{
	struct rig r;
	int ret = rig_try(&r, hooks, signals);

	if (!ret || !strstr(rig_log, what))
		fail_msg("%s: %d, expected '%s' in: %s", hooks, ret, what,
			 rig_log);
	rig_stop(&r);
}

/* One sample of `n` real values through the hooks; true when one comes out,
 * which then is r->got. */
static inline bool rig_push(struct rig *r, int64_t time_ns,
			    const double values[], unsigned n)
{
	struct sample *s;

	if (r->got)
		sample_put(r->got);
	r->got = NULL;
	s = sample_alloc(&r->pool);
	assert_non_null(s);
	s->signals = r->in;
	s->sequence = r->sequence++;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA | r->flags;
	r->flags = 0;
	s->origin = timespec_from_ns((uint64_t)time_ns);
	s->received = timespec_from_ns((uint64_t)(time_ns + r->offset_ns));
	s->length = n;
	for (unsigned i = 0; i < n; i++)
		s->data[i].f = values[i];
	if (hook_list_process(r->hooks, &s, 1))
		r->got = s;
	return r->got != NULL;
}

static inline bool rig_push1(struct rig *r, int64_t time_ns, double value)
{
	return rig_push(r, time_ns, &value, 1);
}

static inline void assert_near(double v, double expected, double bound)
{
	if (!(fabs(v - expected) <= bound))
		fail_msg("%.17g is not within %.3g of %.17g (off by %.3g)", v,
			 bound, expected, v - expected);
}

static inline void assert_signal(const struct rig *r, unsigned i,
				 const char *name, const char *unit)
{
	assert_true(i < r->out->count);
	assert_string_equal(r->out->signals[i].name, name);
	if (unit)
		assert_string_equal(r->out->signals[i].unit, unit);
	else
		assert_null(r->out->signals[i].unit);
}

#endif
