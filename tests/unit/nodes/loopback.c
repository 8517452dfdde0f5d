/* SPDX-License-Identifier: BSD-2-Clause */
/* The loopback node: everything that is taken comes out, in order, in each mode. */
#include "fixture.h"

#include <poll.h>
#include <pthread.h>

static struct pool pool;

static int set_up(void **state)
{
	return pool_init(&pool, 4096, 4, &memory_heap);
}

static int tear_down(void **state)
{
	/* Also tells when the node has kept one. */
	return (int)pool_destroy(&pool);
}

static void make_loopback(struct made_node *m, const char *text)
{
	make_node(m, &node_loopback, text);
	assert_int_equal(m->node.type->init(&m->node), 0);
	assert_int_equal(m->node.type->prepare(&m->node), 0);
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static void drop_loopback(struct made_node *m)
{
	assert_int_equal(m->node.type->stop(&m->node), 0);
	drop_node(m);
}

/* One sample in; false when the queue is full. */
static bool put(struct made_node *m, uint64_t sequence)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	assert_non_null(s);
	s->sequence = sequence;
	s->origin = clock_realtime();
	s->data[0].f = (double)sequence;
	s->length = 1;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	ret = node_write(&m->node, &s, 1, &release);
	assert_true(ret == 0 || ret == 1);
	assert_int_equal(release, 1 - ret);
	if (release)
		sample_put(s);
	return ret == 1;
}

struct writer_args {
	struct made_node *m;
	uint64_t count;
};

static void *write_all(void *arg)
{
	struct writer_args *a = arg;

	for (uint64_t i = 0; i < a->count; i++)
		while (!put(a->m, i))
			sched_yield();
	return NULL;
}

/* Next samples, waiting by the descriptor when there is one. */
static unsigned get(struct made_node *m, struct sample *smps[], unsigned cnt,
		    bool polled)
{
	for (;;) {
		unsigned release = cnt;
		struct pollfd p;
		int ret;

		if (polled) {
			assert_int_equal(m->node.type->poll_fds(&m->node, &p.fd, 1), 1);
			p.events = POLLIN;
			assert_int_equal(poll(&p, 1, 20000), 1);
		}
		ret = node_read(&m->node, smps, cnt, &release);
		assert_int_equal(release, cnt);
		if (ret > 0)
			return (unsigned)ret;
		assert_true(ret == 0 || ret == -EAGAIN);
	}
}

static void nothing_is_lost_in_any_mode(void **state)
{
	static const struct {
		const char *text;
		bool polled;
	} modes[] = {
		{ "{ \"mode\": \"auto\", \"queuelen\": 64 }", false },
		{ "{ \"mode\": \"eventfd\", \"queuelen\": 64 }", false },
		{ "{ \"mode\": \"pthread\", \"queuelen\": 64 }", false },
		{ "{ \"mode\": \"polling\", \"queuelen\": 64 }", false },
		{ "{ \"mode\": \"eventfd\", \"queuelen\": 64 }", true },
		{ "{ \"queuelen\": 2 }", true },
	};
	struct sample *smps[7];

	for (size_t k = 0; k < ARRAY_SIZE(modes); k++) {
		struct made_node m;
		/* With room for two each is handed over by itself. */
		struct writer_args args = { &m, k == ARRAY_SIZE(modes) - 1 ? 2000 : 20000 };
		pthread_t writer;
		uint64_t next = 0;

		assert_int_equal(sample_alloc_many(&pool, smps, 7), 7);
		make_loopback(&m, modes[k].text);
		assert_int_equal(pthread_create(&writer, NULL, write_all, &args), 0);
		while (next < args.count) {
			unsigned n = get(&m, smps, 7, modes[k].polled);

			for (unsigned i = 0; i < n; i++, next++) {
				assert_int_equal(smps[i]->sequence, next);
				assert_true(smps[i]->data[0].f == (double)next);
				assert_true(smps[i]->flags & SAMPLE_HAS_RECEIVED);
				assert_true(timespec_to_ns(smps[i]->received) + 1000000 >=
					    timespec_to_ns(smps[i]->origin));
			}
		}
		pthread_join(writer, NULL);
		assert_int_equal(atomic_load(&m.node.counters.sent), args.count);
		assert_int_equal(atomic_load(&m.node.counters.received), args.count);
		drop_loopback(&m);
		sample_put_many(smps, 7);
	}
}

static void a_full_queue_refuses_and_counts(void **state)
{
	struct made_node m;
	unsigned taken = 0;

	/* 100 is rounded up to 128. */
	make_loopback(&m, "{ \"queuelen\": 100 }");
	for (unsigned i = 0; i < 200; i++)
		taken += put(&m, i);
	assert_int_equal(taken, 128);
	assert_int_equal(m.node.type->hold_max(&m.node), 128);
	assert_int_equal(atomic_load(&m.node.counters.sent), 128);
	assert_int_equal(atomic_load(&m.node.counters.not_sent), 72);
	/* What is left in the queue goes back when the node stops. */
	drop_loopback(&m);
}

static void *write_each_once(void *arg)
{
	struct writer_args *a = arg;
	uint64_t taken = 0;

	for (uint64_t i = 0; i < a->count; i++)
		taken += put(a->m, i);
	a->count = taken;
	return NULL;
}

static void a_full_queue_that_blocks_refuses_nothing(void **state)
{
	static const char *const modes[] = { "auto", "polling" };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct made_node m;
		struct writer_args args = { &m, 20000 };
		struct sample *s = sample_alloc(&pool);
		pthread_t writer;
		char text[80];

		snprintf(text, sizeof(text),
			 "{ \"queuelen\": 2, \"full\": \"block\", \"mode\": \"%s\" }",
			 modes[i]);
		make_loopback(&m, text);
		pthread_create(&writer, NULL, write_each_once, &args);
		for (uint64_t k = 0; k < 20000; k++) {
			assert_int_equal(node_read_one(&m, s), 1);
			assert_int_equal(s->sequence, k);
		}
		pthread_join(writer, NULL);
		assert_int_equal(args.count, 20000);
		drop_loopback(&m);
		sample_put(s);
	}
}

static void who_blocks_waits_neither_for_ever_nor_twice(void **state)
{
	struct made_node m;
	struct sample *s = sample_alloc(&pool);
	uint64_t start = clock_monotonic_ns_slow(), took;

	make_loopback(&m, "{ \"queuelen\": 2, \"full\": \"block\" }");
	assert_true(put(&m, 0) && put(&m, 1));
	for (unsigned i = 2; i < 50; i++)
		assert_false(put(&m, i));
	took = clock_monotonic_ns_slow() - start;
	assert_in_range(took, UINT64_C(1500000000), UINT64_C(20000000000));
	/* A reader that has come back is waited for again, until the end is asked for. */
	assert_int_equal(node_read_one(&m, s), 1);
	assert_true(put(&m, 50));
	m.node.type->interrupt(&m.node);
	assert_false(put(&m, 51));
	drop_loopback(&m);
	sample_put(s);
}

static void an_interrupted_read_returns(void **state)
{
	static const char *const modes[] = { "auto", "polling" };
	struct sample *s = sample_alloc(&pool);

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		struct made_node m;
		char text[64];

		snprintf(text, sizeof(text), "{ \"mode\": \"%s\" }", modes[i]);
		make_loopback(&m, text);
		m.node.type->interrupt(&m.node);
		assert_int_equal(node_read_one(&m, s), -EINTR);
		drop_loopback(&m);
	}
	sample_put(s);
}

static void wrong_settings_are_refused(void **state)
{
	static const char *const texts[] = {
		"{ \"mode\": \"pipe\" }",
		"{ \"queuelen\": 1 }",
		"{ \"full\": \"wait\" }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct made_node m;

		if (try_node(&m, &node_loopback, texts[i]) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		node_loopback.init(&m.node);
		drop_node(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_in_any_mode),
		cmocka_unit_test(a_full_queue_refuses_and_counts),
		cmocka_unit_test(a_full_queue_that_blocks_refuses_nothing),
		cmocka_unit_test(who_blocks_waits_neither_for_ever_nor_twice),
		cmocka_unit_test(an_interrupted_read_returns),
		cmocka_unit_test(wrong_settings_are_refused),
	};

	clock_init();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
