/* SPDX-License-Identifier: BSD-2-Clause */
/* Taps: copies of samples, from the thread of a node to an observer. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/plugin/node.h"
#include "gateway/plugin/tap.h"

enum { VALUES = 4, LONG = 40, MANY = 50000, ROUNDS = 200 };

static char node_name[] = "n";

static struct node *make_node(void)
{
	struct node *n = aligned_alloc(CACHE_LINE, sizeof(*n));

	assert_non_null(n);
	memset(n, 0, sizeof(*n));
	n->name = node_name;
	taps_add_node(n);
	return n;
}

static void end_node(struct node *n)
{
	taps_remove_node(n);
	free(n);
}

static struct sample *make_sample(unsigned capacity)
{
	struct sample *s = calloc(1, sizeof(*s) + capacity * sizeof(s->data[0]));

	assert_non_null(s);
	s->capacity = s->length = capacity;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	return s;
}

static void number(struct sample *s, uint64_t sequence)
{
	s->sequence = sequence;
	for (unsigned i = 0; i < s->length; i++)
		s->data[i].i = (int64_t)(sequence * LONG + i);
}

static void give(struct node *n, struct sample *s, uint64_t sequence)
{
	number(s, sequence);
	tap_note(&n->in.tap, &s, 1);
}

/* Looks at all that is there: whole, in order, from *next on. Their number. */
static unsigned look(struct tap *t, uint64_t *next)
{
	struct tap_look looks[16];
	unsigned n, all = 0;

	while ((n = tap_peek(t, looks, 16))) {
		for (unsigned i = 0; i < n; i++) {
			const struct sample *s = looks[i].smp;

			assert_true(s->sequence >= *next);
			*next = s->sequence + 1;
			for (unsigned v = 0; v < s->length; v++)
				assert_int_equal(s->data[v].i, s->sequence * LONG + v);
		}
		all += n;
		tap_done(t, n);
	}
	return all;
}

static void what_is_not_there_cannot_be_tapped(void **state)
{
	struct node *n = make_node();
	struct tap *t;

	assert_int_equal(tap_open(&t, "other", TAP_IN), -ENOENT);
	/* One that is not running yet can. */
	assert_int_equal(tap_open(&t, "n", TAP_OUT), 0);
	assert_int_equal(look(t, &(uint64_t){ 0 }), 0);
	tap_close(t);
	end_node(n);
}

static void each_sample_is_seen_or_counted(void **state)
{
	struct node *n = make_node();
	struct sample *s = make_sample(VALUES);
	uint64_t next = 0;
	struct tap *t, *same;
	unsigned seen;

	taps_start_node(n);
	give(n, s, 0); /* nobody looks */
	assert_int_equal(tap_open(&t, "n", TAP_IN), 0);
	assert_int_equal(tap_open(&same, "n", TAP_IN), 0);
	assert_ptr_equal(t, same);
	tap_close(same);
	for (unsigned i = 1; i <= 10; i++)
		give(n, s, i);
	assert_int_equal(look(t, &next), 10);
	for (unsigned i = 11; i <= MANY; i++)
		give(n, s, i);
	seen = look(t, &next);
	assert_true(seen > 1000 && seen < MANY);
	assert_int_equal(seen + tap_lost(t), MANY - 10);
	tap_close(t);
	assert_null(atomic_load(&n->in.tap.ring));
	free(s);
	end_node(n);
}

static void a_tap_goes_on_with_the_next_node_of_its_name(void **state)
{
	struct node *a = make_node(), *b = make_node();
	struct sample *s = make_sample(VALUES);
	uint64_t next = 0;
	struct tap *t;

	assert_int_equal(tap_open(&t, "n", TAP_IN), 0);
	taps_start_node(a);
	give(a, s, 1);
	taps_start_node(b); /* not while another one has it */
	give(b, s, 2);
	assert_int_equal(look(t, &next), 1);
	taps_stop_node(a);
	give(a, s, 3);
	give(b, s, 4);
	assert_int_equal(look(t, &next), 1);
	assert_int_equal(next, 5);
	end_node(b);
	taps_start_node(a);
	give(a, s, 6);
	end_node(a);
	assert_int_equal(look(t, &next), 1);
	tap_close(t);
	free(s);
}

static void longer_samples_get_more_room(void **state)
{
	struct node *n = make_node();
	struct sample *s = make_sample(LONG);
	uint64_t next = 0;
	struct tap *t;

	taps_start_node(n);
	assert_int_equal(tap_open(&t, "n", TAP_IN), 0);
	give(n, s, 1);
	assert_int_equal(look(t, &next), 0);
	assert_int_equal(tap_lost(t), 1);
	give(n, s, 2);
	assert_int_equal(look(t, &next), 1);
	assert_int_equal(tap_lost(t), 1);
	tap_close(t);
	free(s);
	end_node(n);
}

/* ---- threads ---- */

static struct node *shared;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* that of the node's direction */
static atomic_bool stop;

static void *give_on(void *arg)
{
	struct sample *s[2] = { make_sample(VALUES), make_sample(VALUES) };
	struct sample *longer = make_sample(LONG);

	for (uint64_t i = 1; !atomic_load(&stop); i += 2) {
		pthread_mutex_lock(&gate);
		if (i % 1001 == 0) {
			give(shared, longer, i);
		} else {
			number(s[0], i);
			number(s[1], i + 1);
			tap_note(&shared->in.tap, s, 2);
		}
		pthread_mutex_unlock(&gate);
	}
	free(s[0]);
	free(s[1]);
	free(longer);
	return NULL;
}

static void *restart(void *arg)
{
	while (!atomic_load(&stop)) {
		pthread_mutex_lock(&gate);
		end_node(shared);
		shared = make_node();
		taps_start_node(shared);
		pthread_mutex_unlock(&gate);
		sched_yield();
	}
	return NULL;
}

static void observers_come_and_go_while_nodes_do(void **state)
{
	pthread_t giver, restarter;
	unsigned seen = 0;

	shared = make_node();
	taps_start_node(shared);
	assert_int_equal(pthread_create(&giver, NULL, give_on, NULL), 0);
	assert_int_equal(pthread_create(&restarter, NULL, restart, NULL), 0);
	for (unsigned i = 0; i < ROUNDS || !seen; i++) {
		uint64_t next = 0;
		struct tap *t;

		/* There is none for a moment. */
		if (tap_open(&t, "n", TAP_IN))
			continue;
		for (unsigned k = 0; k < 5; k++) {
			seen += look(t, &next);
			sched_yield();
		}
		tap_close(t);
	}
	atomic_store(&stop, true);
	pthread_join(giver, NULL);
	pthread_join(restarter, NULL);
	end_node(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_cannot_be_tapped),
		cmocka_unit_test(each_sample_is_seen_or_counted),
		cmocka_unit_test(a_tap_goes_on_with_the_next_node_of_its_name),
		cmocka_unit_test(longer_samples_get_more_room),
		cmocka_unit_test(observers_come_and_go_while_nodes_do),
	};

	return cmocka_run_group_tests_name("tap", tests, NULL, NULL);
}
