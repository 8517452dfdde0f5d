/* SPDX-License-Identifier: BSD-2-Clause */
/* See harness.h. */
#include "harness.h"

#include <string.h>

#include "gateway/base/memory.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"

int harness_open(struct harness *t, enum hook_place place, const char *text)
{
	json_t *root;
	int ret;

	clock_init();
	fake_log_start();
	memset(t, 0, sizeof(*t));
	t->node.name = (char *)"n";
	t->c = fake_config(text);
	root = config_root(t->c);
	assert_int_equal(signal_list_parse(&t->in, t->c, root, "signals"), 0);
	ret = hook_list_parse(&t->hooks, t->c, json_object_get(root, "hooks"),
			      place, place == HOOK_PATH ? NULL : &t->node,
			      place == HOOK_PATH ? "a -> b" : "n");
	if (ret)
		return ret;
	t->capacity = 8;
	ret = hook_list_signals(t->hooks, t->in, &t->out, &t->capacity);
	if (ret)
		return ret;
	assert_int_equal(pool_init(&t->pool, POOL_SIZE, t->capacity,
				   &memory_heap), 0);
	ret = hook_list_start(t->hooks);
	t->started = !ret;
	return ret;
}

void harness_start(struct harness *t, enum hook_place place, const char *text)
{
	int ret = harness_open(t, place, text);

	if (ret)
		print_error("%s", fake_log());
	assert_int_equal(ret, 0);
}

void harness_end(struct harness *t)
{
	if (t->last)
		sample_put(t->last);
	if (t->started)
		hook_list_stop(t->hooks);
	assert_int_equal(pool_destroy(&t->pool), 0);
	hook_list_destroy(t->hooks);
	signal_list_put(t->in);
	signal_list_put(t->out);
	config_destroy(t->c);
}

struct sample *harness_sample(struct harness *t, uint64_t sequence,
			      uint64_t origin_ns)
{
	struct sample *s = sample_alloc(&t->pool);

	assert_non_null(s);
	s->signals = t->in;
	s->sequence = sequence;
	s->origin = timespec_from_ns(origin_ns);
	s->received = timespec_from_ns(origin_ns + 5000);
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	return s;
}

void put_real(struct sample *s, double v)
{
	assert_true(s->length < s->capacity);
	s->data[s->length++].f = v;
}

void put_integer(struct sample *s, int64_t v)
{
	assert_true(s->length < s->capacity);
	s->data[s->length++].i = v;
}

void put_complex(struct sample *s, float re, float im)
{
	assert_true(s->length < s->capacity);
	s->data[s->length].z.re = re;
	s->data[s->length++].z.im = im;
}

struct sample *harness_run(struct harness *t, struct sample *s)
{
	unsigned n;

	if (t->last)
		sample_put(t->last);
	n = hook_list_process(t->hooks, &s, 1);
	t->last = n ? s : NULL;
	return t->last;
}

struct sample *harness_step(struct harness *t, uint64_t sequence, double v)
{
	struct sample *s = harness_sample(t, sequence, 1000000000 +
							       sequence * 1000000);

	put_real(s, v);
	return harness_run(t, s);
}

void expect_refused(enum hook_place place, const char *text,
		    const char *expected)
{
	struct harness t;
	int ret = harness_open(&t, place, text);

	if (!ret || !strstr(fake_log(), expected))
		print_error("%s\n-> %d\n%s", text, ret, fake_log());
	assert_int_not_equal(ret, 0);
	assert_non_null(strstr(fake_log(), expected));
	harness_end(&t);
}
