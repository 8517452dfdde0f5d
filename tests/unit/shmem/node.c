/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node-type `shmem` by itself: settings, and samples to and from a simulator
 * that lives in this process.
 */
#include "../nodes/fixture.h"

#include <busbar/shmem.h>
#include <pthread.h>

#include "util/log.h"

extern const struct node_type node_shmem;

static char one[64], two[64], text[512], said[4096];

/* %1$s and %2$s are the names of objects. */
__attribute__((format(printf, 1, 2))) static const char *cfg(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return text;
}

/* The watcher of a node reports, too. */
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static bool keep(enum log_level level, const char *line)
{
	size_t at;

	pthread_mutex_lock(&said_lock);
	at = strlen(said);
	snprintf(said + at, sizeof(said) - at, "%s\n", line);
	pthread_mutex_unlock(&said_lock);
	return true;
}

static void forget_said(void)
{
	pthread_mutex_lock(&said_lock);
	said[0] = '\0';
	pthread_mutex_unlock(&said_lock);
}

/* How often the text was reported. */
static int times_said(const char *what)
{
	int count = 0;

	pthread_mutex_lock(&said_lock);
	for (const char *at = said; (at = strstr(at, what)); at++)
		count++;
	pthread_mutex_unlock(&said_lock);
	return count;
}

static void refused(const char *config, const char *because)
{
	struct made_node m;

	forget_said();
	assert_int_not_equal(try_node(&m, &node_shmem, config), 0);
	if (!times_said(because))
		fail_msg("'%s' is not in: %s", because, said);
	drop_node(&m);
}

static void wrong_settings_are_refused_with_words(void **state)
{
	log_set_sink(keep);
	refused("{}", "`in.name` and `out.name` are missing");
	refused("{ \"in\": { \"name\": \"a/b\" } }", "'a/b' is no name");
	refused("{ \"in\": { \"name\": \"/\" } }", "is no name");
	refused("{ \"in\": { \"name\": \"a\" }, \"mode\": \"eventfd\" }", "mode");
	refused("{ \"in\": { \"name\": \"a\" }, \"queuelen\": 1 }", "queuelen");
	refused("{ \"in\": { \"name\": \"a\" }, \"exec\": \"echo\" }",
		"list of a program");
	refused("{ \"in\": { \"name\": \"a\" }, \"exec\": [] }",
		"list of a program");
	refused("{ \"in\": { \"name\": \"a\" }, \"exec\": [ \"x\", 5 ] }",
		"write numbers in quotes");
	log_set_sink(NULL);
}

static void start_node(struct made_node *m, const char *config)
{
	make_node(m, &node_shmem, config);
	assert_int_equal(m->node.type->start(&m->node), 0);
	node_set_state(&m->node, NODE_STARTED);
}

static void until_state(struct made_node *m, enum node_state state)
{
	for (int i = 0; i < 5000 && node_state(&m->node) != state; i++)
		usleep(1000);
	assert_int_equal(node_state(&m->node), state);
}

static struct sample *new_sample(unsigned values)
{
	struct sample *s = calloc(1, sizeof(*s) + values * sizeof(s->data[0]));

	assert_non_null(s);
	s->capacity = values;
	return s;
}

static int write_sample(struct made_node *m, struct sample *s)
{
	unsigned release = 1;
	int ret = node_write(&m->node, &s, 1, &release);

	assert_int_equal(release, 1);
	return ret;
}

static void samples_go_to_a_simulator_and_back(void **state)
{
	struct busbar_shmem *sim;
	struct made_node m;
	struct sample *s = new_sample(3), *r = new_sample(3);
	double v[3];

	start_node(&m, cfg("{ \"queuelen\": 8, \"in\": { \"name\": \"%s\", \"signals\": \"3f\" }, \"out\": { \"name\": \"%s\" } }",
			   one, two));
	until_state(&m, NODE_PENDING_CONNECT);
	s->length = 3;
	s->sequence = 17;
	s->origin = (struct timespec){ 5, 6 };
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	s->data[2].f = 2.5;
	assert_int_equal(write_sample(&m, s), 0);
	assert_int_equal(busbar_shmem_open(&sim, one, two, NULL), 0);
	until_state(&m, NODE_CONNECTED);
	assert_int_equal(busbar_shmem_write_max(sim), 3);

	assert_int_equal(write_sample(&m, s), 1);
	assert_int_equal(busbar_shmem_read_values(sim, v, 3, 0), 3);
	assert_true(v[2] == 2.5);
	v[0] = 8;
	assert_int_equal(busbar_shmem_write_values(sim, v, 2), 1);
	assert_int_equal(node_read_one(&m, r), 1);
	assert_int_equal(r->length, 2);
	assert_true(r->data[0].f == 8);
	assert_int_equal(r->sequence, 0);
	/* Stamped here, behind the origin. */
	assert_int_equal(r->flags, SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
				   SAMPLE_HAS_DATA | SAMPLE_HAS_RECEIVED);
	assert_true(timespec_to_ns(r->received) + 1000000 >=
		    timespec_to_ns(r->origin));

	busbar_shmem_close(sim);
	until_state(&m, NODE_PENDING_CONNECT);
	assert_int_equal(write_sample(&m, s), 0);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, r), 0); /* it has gone */
	assert_int_equal(node_read_one(&m, r), -EINTR);
	m.node.type->stop(&m.node);
	drop_node(&m);
	free(s);
	free(r);
}

/* Each check disturbs the thread that has the processor. A busy machine makes them fewer. */
static void few_looks_are_taken_while_the_simulator_is_there(void **state)
{
	struct busbar_shmem *sim;
	struct made_node m;
	uint64_t begin, ms;
	long looks;

	start_node(&m, cfg("{ \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
			   one, two));
	assert_int_equal(busbar_shmem_open(&sim, one, two, NULL), 0);
	until_state(&m, NODE_CONNECTED);
	begin = clock_now_ns();
	looks = thread_sleeps("shmem-watch");
	assert_true(looks >= 0);
	usleep(600000);
	looks = thread_sleeps("shmem-watch") - looks;
	ms = (clock_now_ns() - begin) / 1000000;
	assert_true((uint64_t)looks <= ms / 100 + 2);
	busbar_shmem_close(sim);
	until_state(&m, NODE_PENDING_CONNECT);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void what_is_lost_is_refused_and_said_once(void **state)
{
	struct busbar_shmem *sim;
	struct made_node m;
	struct sample *s = new_sample(5);

	start_node(&m, cfg("{ \"queuelen\": 4, \"samplelen\": 4, \"out\": { \"name\": \"%s\" } }",
			   two));
	assert_int_equal(busbar_shmem_open(&sim, NULL, two, NULL), 0);
	forget_said();
	log_set_sink(keep);
	s->length = 5;
	assert_int_equal(write_sample(&m, s), 0);
	assert_int_equal(write_sample(&m, s), 0);
	s->length = 4;
	for (int i = 0; i < 4; i++)
		assert_int_equal(write_sample(&m, s), 1);
	assert_int_equal(write_sample(&m, s), 0);
	assert_int_equal(write_sample(&m, s), 0);
	log_set_sink(NULL);
	assert_int_equal(atomic_load(&m.node.counters.not_sent), 4);
	assert_int_equal(times_said("samples have 5 values"), 1);
	assert_int_equal(times_said("reads too slowly"), 1);
	m.node.type->stop(&m.node);
	busbar_shmem_close(sim);
	drop_node(&m);
	free(s);
}

struct reading {
	struct busbar_shmem *sim;
	unsigned in_order;
};

static void *read_all(void *arg)
{
	struct reading *r = arg;
	double v;
	struct busbar_shmem_sample s = { .values = (void *)&v, .capacity = 1 };

	for (unsigned i = 0; i < 5000; i++) {
		if (busbar_shmem_read(r->sim, &s, 1, 10000000000) != 1)
			break;
		r->in_order += s.sequence == i;
	}
	return NULL;
}

static void a_full_ring_can_be_waited_for(void **state)
{
	struct reading r = { 0 };
	struct made_node m;
	struct sample *s = new_sample(1);
	pthread_t reader;

	start_node(&m, cfg("{ \"queuelen\": 2, \"out\": { \"name\": \"%s\", \"full\": \"block\" } }",
			   two));
	assert_int_equal(busbar_shmem_open(&r.sim, NULL, two, NULL), 0);
	pthread_create(&reader, NULL, read_all, &r);
	s->length = 1;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA;
	for (s->sequence = 0; s->sequence < 5000; s->sequence++)
		assert_int_equal(write_sample(&m, s), 1);
	pthread_join(reader, NULL);
	assert_int_equal(r.in_order, 5000);
	/* There is no reader any more: it is waited for once. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(write_sample(&m, s), 1);
	for (int i = 0; i < 20; i++)
		assert_int_equal(write_sample(&m, s), 0);
	m.node.type->stop(&m.node);
	busbar_shmem_close(r.sim);
	drop_node(&m);
	free(s);
}

/* The node finds out in its own time that its object is none. */
static void attach_simulator(struct made_node *m, struct busbar_shmem **sim)
{
	for (int i = 0; i < 5000; i++) {
		int ret = busbar_shmem_open(sim, one, two, NULL);

		for (int k = 0; !ret && k < 200; k++) {
			if (node_state(&m->node) == NODE_CONNECTED &&
			    busbar_shmem_connected(*sim))
				return;
			usleep(1000);
		}
		if (!ret)
			busbar_shmem_close(*sim);
		usleep(1000);
	}
	fail_msg("the node is not found again");
}

static void an_object_that_is_removed_is_made_anew(void **state)
{
	static const char *const modes[] = { "pthread", "polling" };
	struct sample *s = new_sample(2);
	double value = 3;

	for (unsigned k = 0; k < 4; k++) {
		struct busbar_shmem *sim;
		struct made_node m;
		char path[300];

		start_node(&m, cfg("{ \"mode\": \"%s\", \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
				   modes[k & 1], one, two));
		attach_simulator(&m, &sim);
		snprintf(path, sizeof(path), "/dev/shm/%s", k & 2 ? one : two);
		assert_int_equal(unlink(path), 0);
		/* Processes that are attached go on. */
		s->length = 1;
		assert_int_equal(write_sample(&m, s), 1);
		assert_int_equal(busbar_shmem_write_values(sim, &value, 1), 1);
		assert_int_equal(node_read_one(&m, s), 1);
		assert_int_equal(node_state(&m.node), NODE_CONNECTED);
		busbar_shmem_close(sim);
		until_state(&m, NODE_PENDING_CONNECT);
		attach_simulator(&m, &sim);
		s->length = 1;
		assert_int_equal(write_sample(&m, s), 1);
		assert_int_equal(busbar_shmem_write_values(sim, &value, 1), 1);
		assert_int_equal(node_read_one(&m, s), 1);
		busbar_shmem_close(sim);
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
	free(s);
}

static void an_object_that_is_cut_off_is_said_and_survived(void **state)
{
	struct busbar_shmem *sim;
	struct made_node m;
	struct sample *s = new_sample(2), *list[] = { s };
	double value = 7;
	char path[300];

	start_node(&m, cfg("{ \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
			   one, two));
	assert_int_equal(busbar_shmem_open(&sim, one, two, NULL), 0);
	until_state(&m, NODE_CONNECTED);
	s->length = 2;
	assert_int_equal(write_sample(&m, s), 1);
	forget_said();
	log_set_sink(keep);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/dev/shm/%s", i ? one : two);
		assert_int_equal(truncate(path, 0), 0);
	}
	for (int i = 0; i < 3; i++) {
		unsigned release = 1;

		write_sample(&m, s);
		busbar_shmem_interrupt(sim); /* the node's own is only at its end */
		m.node.type->interrupt(&m.node);
		assert_true(m.node.type->read(&m.node, list, 1, &release) <= 0);
	}
	until_state(&m, NODE_PENDING_CONNECT);
	log_set_sink(NULL);
	assert_int_equal(times_said("smaller while it was in use"), 1);
	/* The simulator has the old object until it goes. */
	busbar_shmem_close(sim);
	attach_simulator(&m, &sim);
	assert_int_equal(write_sample(&m, s), 1);
	assert_int_equal(busbar_shmem_write_values(sim, &value, 1), 1);
	assert_int_equal(node_read_one(&m, s), 1);
	assert_true(s->data[0].f == value);
	s->length = 2;
	busbar_shmem_close(sim);
	m.node.type->stop(&m.node);
	drop_node(&m);
	/* What is left of the objects disturbs nothing. */
	start_node(&m, cfg("{ \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
			   one, two));
	assert_int_equal(busbar_shmem_open(&sim, one, two, NULL), 0);
	until_state(&m, NODE_CONNECTED);
	assert_int_equal(write_sample(&m, s), 1);
	m.node.type->stop(&m.node);
	busbar_shmem_close(sim);
	drop_node(&m);
	free(s);
}

static void one_object_for_both_directions_is_a_loop(void **state)
{
	struct made_node m;
	struct sample *s = new_sample(2), *back = new_sample(2);
	struct sample *list[] = { back };
	unsigned release = 1;

	start_node(&m, cfg("{ \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
			   one, one));
	s->length = 2;
	s->sequence = 77;
	s->data[1].f = 4.5;
	assert_int_equal(write_sample(&m, s), 1);
	assert_int_equal(m.node.type->read(&m.node, list, 1, &release), 1);
	assert_int_equal(back->sequence, 77);
	assert_true(back->length == 2 && back->data[1].f == 4.5);
	m.node.type->stop(&m.node);
	drop_node(&m);
	free(s);
	free(back);
}

static void reversing_swaps_the_names(void **state)
{
	struct busbar_shmem *sim;
	struct made_node m;

	make_node(&m, &node_shmem, cfg("{ \"in\": { \"name\": \"%s\" }, \"out\": { \"name\": \"%s\" } }",
				       one, two));
	assert_int_equal(m.node.type->reverse(&m.node), 0);
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(busbar_shmem_open(&sim, two, one, NULL), 0);
	assert_int_equal(busbar_shmem_connected(sim), 1);
	busbar_shmem_close(sim);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_settings_are_refused_with_words),
		cmocka_unit_test(samples_go_to_a_simulator_and_back),
		cmocka_unit_test(few_looks_are_taken_while_the_simulator_is_there),
		cmocka_unit_test(what_is_lost_is_refused_and_said_once),
		cmocka_unit_test(a_full_ring_can_be_waited_for),
		cmocka_unit_test(an_object_that_is_removed_is_made_anew),
		cmocka_unit_test(an_object_that_is_cut_off_is_said_and_survived),
		cmocka_unit_test(one_object_for_both_directions_is_a_loop),
		cmocka_unit_test(reversing_swaps_the_names),
	};

	snprintf(one, sizeof(one), "/busbar-shmem-node-%d-a", (int)getpid());
	snprintf(two, sizeof(two), "/busbar-shmem-node-%d-b", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
