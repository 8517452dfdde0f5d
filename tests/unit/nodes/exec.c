/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type exec: what becomes of samples that its program does not take at once. */
#include <pthread.h>
#include <stdatomic.h>

#include "fixture.h"

extern const struct node_type node_exec;

static struct pool pool;

/* A program that reads nothing until the file `go` is there, and then all. */
static void make_slow(struct made_node *m, const char *go, const char *out)
{
	char text[600];

	snprintf(text, sizeof(text),
		 "{\"exec\": \"while [ ! -e %s ]; do sleep 0.02; done; cat >%s\", \"format\": \"csv\"}",
		 go, out);
	make_node(m, &node_exec, text);
	m->node.is_destination = true;
	assert_int_equal(m->node.type->start(&m->node), 0);
}

static int write_one(struct made_node *m, uint64_t sequence)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	s->length = s->capacity;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	s->sequence = sequence;
	memset(s->data, 0, s->length * sizeof(s->data[0]));
	ret = node_write(&m->node, &s, 1, &release);
	sample_put(s);
	return ret;
}

struct interrupter {
	struct node *node;
	const char *go;          /* one interrupt, then this file */
	atomic_bool full;        /* without `go`: the end */
};

static void *interrupt(void *arg)
{
	struct interrupter *i = arg;
	FILE *f;

	do {
		usleep(30000);
		i->node->type->interrupt(i->node);
	} while (!i->go && !atomic_load(&i->full));
	if (i->go) {
		f = fopen(i->go, "we");
		fclose(f);
	}
	return NULL;
}

/* Fills pipe and buffer; the number of samples that went. The write that finds no
 * room is interrupted: one that waits to its end would mark the program as stuck,
 * and none behind it would wait. */
static uint64_t fill_up(struct made_node *m)
{
	struct interrupter many = { .node = &m->node };
	uint64_t sent = 0;
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, interrupt, &many), 0);
	while (write_one(m, sent) == 1)
		sent++;
	atomic_store(&many.full, true);
	pthread_join(t, NULL);
	return sent;
}

static void a_write_waits_again_after_an_interrupted_one(void **state)
{
	char go[256], out[256];
	struct interrupter release;
	struct made_node m;
	uint64_t sent, rows = 0;
	pthread_t t;
	FILE *f;

	assert_int_equal(pool_init(&pool, 4, 60000, &memory_heap), 0);
	snprintf(go, sizeof(go), "%s", scratch("go"));
	snprintf(out, sizeof(out), "%s", scratch("out"));
	make_slow(&m, go, out);
	sent = fill_up(&m);
	assert_int_equal(m.node.counters.not_sent, 1);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_STUCK], 1);
	/* It is full. The program begins to read while the next write waits; one
	 * interrupt, which may be for a reader, does not end that. */
	release = (struct interrupter){ .node = &m.node, .go = go };
	assert_int_equal(pthread_create(&t, NULL, interrupt, &release), 0);
	assert_int_equal(write_one(&m, sent), 1);
	pthread_join(t, NULL);
	assert_int_equal(m.node.counters.not_sent, 1);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	assert_int_equal(m.node.counters.not_stored, 0);
	drop_node(&m);
	f = fopen(out, "re");
	assert_non_null(f);
	for (int c, first = 1; (c = fgetc(f)) != EOF; first = c == '\n')
		rows += first && c != '#';
	fclose(f);
	assert_int_equal(rows, sent + 1);
	assert_int_equal(pool_destroy(&pool), 0);
}

/* The buffer was filled, and the program never reads. */
static void what_a_program_never_takes_is_counted(void **state)
{
	struct made_node m;
	uint64_t sent;
	char go[256];

	assert_int_equal(pool_init(&pool, 4, 60000, &memory_heap), 0);
	snprintf(go, sizeof(go), "%s", scratch("never"));
	make_slow(&m, go, "/dev/null");
	sent = fill_up(&m);
	m.node.type->stop(&m.node);
	/* A pipe takes less than one of them. */
	assert_int_equal(m.node.counters.sent, sent);
	assert_int_equal(m.node.counters.not_stored, sent);
	assert_int_equal(m.node.counters.losses[NODE_LOSS_STUCK], sent + 1);
	drop_node(&m);
	assert_int_equal(pool_destroy(&pool), 0);
}

static int tidy(void **state)
{
	clear_scratch();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_waits_again_after_an_interrupted_one),
		cmocka_unit_test(what_a_program_never_takes_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, tidy);
}
