/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node whose server is a part of the test: it takes messages, confirms them, sends them back,
 * dies, comes again, is full, refuses. A thread writes, another one reads, a third one disturbs;
 * at the end each sample has arrived or is counted.
 */
#include "../nodes/fixture.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include "gateway/outside/outside.h"
#include "util/log.h"
#include "util/spin.h"

#define SAMPLES 60000
#define QUEUE 256
#define LEN 64

/* ---- the server ---- */

struct held {
	char data[LEN];
	size_t len;
	uint64_t tag;
};

static struct {
	pthread_mutex_t lock;
	bool alive, full, refuses, confirms, late, silent, sends_long, sends_again;
	unsigned life;              /* counts up with each death */
	struct held queue[QUEUE];   /* taken, not confirmed */
	unsigned queued;
	struct held first;          /* that was sent while it was silent; it is refused later */
	struct held kept[8 * QUEUE]; /* for the reader, beyond a death */
	unsigned kept_count;
	int fd;
	uint64_t taken, refused;
	uint64_t turns;
	uint64_t found;             /* turns that poll() told that something is there */
} server;

struct fake_node {
	struct outside outside; /* first */
	unsigned life;          /* of the server, when it was connected */
	bool opening;
};

static struct fake_node *fake_of(struct outside *o)
{
	return container_of(o, struct fake_node, outside);
}

static int fake_open(struct outside *o)
{
	struct fake_node *f = fake_of(o);
	int ret;

	pthread_mutex_lock(&server.lock);
	f->life = server.life;
	f->opening = server.late;
	ret = !server.alive ? outside_fail(o, -ECONNREFUSED, "it is dead") : server.late;
	pthread_mutex_unlock(&server.lock);
	return ret;
}

static void fake_close(struct outside *o)
{
}

static bool is_dead(const struct fake_node *f)
{
	return !server.alive || f->life != server.life;
}

static int fake_send(struct outside *o, struct outbox_message *m)
{
	struct held *h = &server.queue[server.queued];
	int ret = 0;

	pthread_mutex_lock(&server.lock);
	if (is_dead(fake_of(o)))
		ret = outside_fail(o, -EPIPE, "it died");
	else if (server.full || server.queued == QUEUE)
		ret = -EAGAIN;
	else if (server.refuses && ++server.refused % 100 == 0)
		ret = outside_fail(o, -EBADMSG, "it does not like the message");
	else if (!server.silent && server.first.len == m->len &&
		 !memcmp(m->data, server.first.data, m->len))
		ret = outside_fail(o, -EMSGSIZE, "it takes only short messages now");
	h = &server.queue[server.queued];
	if (!ret) {
		assert_true(m->len <= LEN);
		memcpy(h->data, m->data, m->len);
		h->len = m->len;
		h->tag = m->tag = outside_new_tag(o);
		if (server.silent && !server.first.len)
			server.first = *h;
		server.queued++;
		server.taken++;
		ret = server.confirms ? OUTSIDE_UNCONFIRMED : OUTSIDE_SENT;
		eventfd_write(server.fd, 1);
	}
	pthread_mutex_unlock(&server.lock);
	return ret;
}

/* What the server has goes to the reader, and is confirmed. */
static void move(struct outside *o)
{
	unsigned n = server.queued;

	for (unsigned i = 0; i < server.kept_count; i++)
		outside_received(o, server.kept[i].data, server.kept[i].len);
	server.kept_count = 0;
	for (unsigned i = 0; i < n; i++) {
		do
			outside_received(o, server.queue[i].data, server.queue[i].len);
		while (server.sends_again && !outside_is_enough(o));
		if (server.confirms && !server.silent && n % 2)
			outside_confirm(o, server.queue[i].tag, false);
	}
	if (server.confirms && !server.silent && n && n % 2 == 0)
		outside_confirm(o, server.queue[n - 1].tag, true);
	server.queued = 0;
}

/* Without sense, and more than one turn reads. */
static const char long_message[1 << 20];

static int fake_turn(struct outside *o)
{
	struct fake_node *f = fake_of(o);
	eventfd_t count;
	int ret = 0;

	/* Each turn begins anew. */
	assert_false(outside_is_enough(o));
	if (o->polled)
		assert_int_equal(o->polled[0].fd, server.fd);
	pthread_mutex_lock(&server.lock);
	server.turns++;
	server.found += o->polled && o->polled[0].revents & POLLIN;
	eventfd_read(server.fd, &count);
	if (is_dead(f)) {
		ret = outside_fail(o, -ECONNRESET, "it died");
	} else {
		if (f->opening)
			outside_is_up(o);
		f->opening = false;
		move(o);
		if (server.sends_long) {
			outside_received(o, long_message, sizeof(long_message));
			assert_true(outside_is_enough(o));
			server.sends_long = false;
		}
	}
	pthread_mutex_unlock(&server.lock);
	return ret;
}

static unsigned fake_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	fds[0] = (struct pollfd){ .fd = server.fd, .events = POLLIN };
	return 1;
}

/* Half of what it has reaches the reader all the same, without a confirmation. */
static void server_dies(void)
{
	pthread_mutex_lock(&server.lock);
	server.alive = false;
	server.life++;
	for (unsigned i = 0; i < server.queued / 2 && server.kept_count < ARRAY_SIZE(server.kept); i++)
		server.kept[server.kept_count++] = server.queue[i];
	server.queued = 0;
	eventfd_write(server.fd, 1);
	pthread_mutex_unlock(&server.lock);
}

static void server_lives(bool late)
{
	pthread_mutex_lock(&server.lock);
	server.alive = true;
	server.late = late;
	pthread_mutex_unlock(&server.lock);
}

static void server_is_full(bool full)
{
	pthread_mutex_lock(&server.lock);
	server.full = full;
	eventfd_write(server.fd, 1);
	pthread_mutex_unlock(&server.lock);
}

/* ---- the node ---- */

static const struct outside_ops fake_ops = {
	.open = fake_open, .close = fake_close, .send = fake_send, .turn = fake_turn,
	.wait = fake_wait,
};

static const struct outside_ops waiting_ops = {
	.flags = OUTSIDE_MAY_WAIT,
	.open = fake_open, .close = fake_close, .send = fake_send, .turn = fake_turn,
	.wait = fake_wait,
};

static bool may_wait;

static int fake_init(struct node *n)
{
	outside_init(n, may_wait ? &waiting_ops : &fake_ops);
	return 0;
}

static int fake_parse(struct node *n, struct config *c, json_t *cfg)
{
	return outside_parse(n, c, cfg, "villas.binary");
}

static const struct config_key keys[] = { OUTSIDE_KEYS("villas.binary") };
static const struct config_key in_keys[] = { OUTSIDE_IN_KEYS };
static const struct config_key out_keys[] = { OUTSIDE_OUT_KEYS };
static const struct node_figure figures[] = { OUTSIDE_FIGURE_TABLE };

static const struct node_type fake_type = {
	.name = "fake",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct fake_node),
	.keys = keys, .key_count = ARRAY_SIZE(keys),
	.in_keys = in_keys, .in_key_count = ARRAY_SIZE(in_keys),
	.out_keys = out_keys, .out_key_count = ARRAY_SIZE(out_keys),
	.figures = figures, .figure_count = ARRAY_SIZE(figures),
	OUTSIDE_CALLBACKS,
	.init = fake_init, .parse = fake_parse, .start = outside_start, .stop = outside_stop,
};

static struct pool pool;

static int set_up(void **state)
{
	log_set_level(LOG_OFF);
	pthread_mutex_init(&server.lock, NULL);
	server.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	return pool_init(&pool, 4096, 4, &memory_heap);
}

static int tear_down(void **state)
{
	close(server.fd);
	return (int)pool_destroy(&pool);
}

static void make(struct made_node *m, const char *text, bool alive)
{
	pthread_mutex_lock(&server.lock);
	server.queued = server.kept_count = 0;
	server.full = server.refuses = server.late = false;
	server.found = 0;
	server.alive = alive;
	pthread_mutex_unlock(&server.lock);
	make_node(m, &fake_type, text);
	m->node.is_source = m->node.is_destination = true;
	m->node.figures = calloc(OUTSIDE_FIGURES, sizeof(*m->node.figures));
	assert_int_equal(m->node.type->start(&m->node), 0);
	node_set_state(&m->node, NODE_STARTED);
}

static void drop(struct made_node *m)
{
	m->node.type->stop(&m->node);
	free(m->node.figures);
	m->node.figures = NULL;
	drop_node(m);
}

static uint64_t figure(struct made_node *m, unsigned which)
{
	return atomic_load(&m->node.figures[which]);
}

static uint64_t losses(struct made_node *m)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < NODE_LOSSES; i++)
		sum += atomic_load(&m->node.counters.losses[i]);
	return sum;
}

static void await(bool (*is)(struct made_node *m), struct made_node *m)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;

	while (!is(m)) {
		assert_true(clock_now_ns() < end);
		usleep(1000);
	}
}

static bool is_connected(struct made_node *m)
{
	return node_state(&m->node) == NODE_CONNECTED;
}

static bool is_pending(struct made_node *m)
{
	return node_state(&m->node) == NODE_PENDING_CONNECT;
}

static bool is_idle(struct made_node *m)
{
	return !figure(m, OUTSIDE_WAITING) && !figure(m, OUTSIDE_UNCONFIRMED_SAMPLES);
}

/* What the server has was handed over to the reader, too. */
static bool is_empty(struct made_node *m)
{
	bool empty;

	pthread_mutex_lock(&server.lock);
	empty = !server.queued && !server.kept_count;
	pthread_mutex_unlock(&server.lock);
	return empty && is_idle(m);
}

/* Returns whether the node took it. */
static bool put(struct made_node *m, uint64_t sequence)
{
	struct sample *s = sample_alloc(&pool);
	unsigned release = 1;
	int ret;

	assert_non_null(s);
	s->sequence = sequence;
	s->origin = clock_realtime();
	s->data[0].f = (double)(sequence % 1000);
	s->length = 1;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	ret = node_write(&m->node, &s, 1, &release);
	assert_true(ret == 0 || ret == 1);
	sample_put(s);
	return ret == 1;
}

/* ---- one thread ---- */

static void samples_go_through_the_server(void **state)
{
	struct made_node m;
	struct sample *s = sample_alloc(&pool);

	for (int mode = 0; mode < 4; mode++) {
		may_wait = mode & 1;
		server.confirms = mode & 2;
		make(&m, "{ \"in\": {}, \"out\": {} }", true);
		await(is_connected, &m);
		for (uint64_t i = 0; i < 1000; i++) {
			assert_true(put(&m, i));
			assert_int_equal(node_read_one(&m, s), 1);
			assert_int_equal(s->sequence, i);
			assert_true(s->flags & SAMPLE_HAS_RECEIVED);
		}
		await(is_idle, &m);
		assert_int_equal(figure(&m, OUTSIDE_CONFIRMED), server.confirms ? 1000 : 0);
		drop(&m);
	}
	may_wait = false;
	sample_put(s);
}

static bool has_found(void)
{
	bool found;

	pthread_mutex_lock(&server.lock);
	found = server.found;
	pthread_mutex_unlock(&server.lock);
	return found;
}

static void a_turn_sees_what_poll_has_found(void **state)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	make(&m, "{ \"in\": {}, \"out\": {} }", true);
	await(is_connected, &m);
	m.node.in.awaited = true;
	for (uint64_t i = 0; !has_found(); i++) {
		assert_true(clock_now_ns() < end);
		assert_true(put(&m, i));
		do
			m.node.type->sleep(&m.node, end);
		while (!node_read_one(&m, s));
		assert_int_equal(s->sequence, i);
	}
	drop(&m);
	sample_put(s);
}

static void an_interruption_ends_a_read(void **state)
{
	struct made_node m;
	struct sample *s = sample_alloc(&pool);

	make(&m, "{ \"in\": {}, \"out\": {} }", true);
	await(is_connected, &m);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, s), -EINTR);
	assert_int_equal(node_read_one(&m, s), -EINTR);
	m.node.type->rearm(&m.node);
	assert_true(put(&m, 5));
	assert_int_equal(node_read_one(&m, s), 1);
	drop(&m);
	sample_put(s);
}

static void a_path_with_several_sources_waits_for_a_descriptor(void **state)
{
	struct made_node m;
	struct sample *s = sample_alloc(&pool);
	struct pollfd p = { .events = POLLIN };

	make(&m, "{ \"in\": {}, \"out\": {} }", true);
	await(is_connected, &m);
	for (uint64_t i = 0; i < 200; i++) {
		int ret;

		assert_true(put(&m, i));
		do {
			assert_int_equal(m.node.type->poll_fds(&m.node, &p.fd, 1), 1);
			assert_int_equal(poll(&p, 1, 20000), 1);
			ret = node_read_one(&m, s);
		} while (!ret);
		assert_int_equal(ret, 1);
		assert_int_equal(s->sequence, i);
	}
	drop(&m);
	sample_put(s);
}

static void what_waits_is_bounded_and_counted(void **state)
{
	static const struct {
		const char *full;
		enum node_loss up, away;
		bool newest;
	} cases[] = {
		{ "drop_oldest", NODE_LOSS_FULL, NODE_LOSS_ABSENT, true },
		{ "drop_newest", NODE_LOSS_FULL, NODE_LOSS_ABSENT, false },
		{ "block", NODE_LOSS_STUCK, NODE_LOSS_ABSENT, false },
	};
	struct sample *s = sample_alloc(&pool);

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		bool away = i % 2;
		enum node_loss cause = away ? cases[i / 2].away : cases[i / 2].up;
		uint64_t lost, first = 0, last = 0;
		struct made_node m;
		char text[300];

		snprintf(text, sizeof(text),
			 "{ \"in\": {}, \"reconnect_interval\": 10, \"out\": { \"backlog\": 4096, \"max_message\": 100, \"full\": \"%s\", \"block_timeout\": 0.0005 } }",
			 cases[i / 2].full);
		make(&m, text, !away);
		await(away ? is_pending : is_connected, &m);
		server_is_full(true);
		for (uint64_t k = 0; k < 500; k++)
			put(&m, k);
		lost = atomic_load(&m.node.counters.losses[cause]);
		assert_true(lost > 300 && lost < 480);
		assert_int_equal(losses(&m), lost);
		assert_int_equal(figure(&m, OUTSIDE_WAITING), 500 - lost);
		server_is_full(false);
		if (away)
			server_lives(true);
		for (uint64_t k = 0; k < 500 - lost; k++) {
			assert_int_equal(node_read_one(&m, s), 1);
			first = k ? first : s->sequence;
			last = s->sequence;
		}
		assert_int_equal(last, cases[i / 2].newest ? 499 : 500 - lost - 1);
		assert_int_equal(last - first + 1, 500 - lost);
		drop(&m);
	}
	sample_put(s);
}

static uint64_t turns(void)
{
	uint64_t count;

	pthread_mutex_lock(&server.lock);
	count = server.turns;
	pthread_mutex_unlock(&server.lock);
	return count;
}

static void who_waits_for_room_keeps_no_processor_busy(void **state)
{
	struct made_node m;
	uint64_t before;

	make(&m, "{ \"in\": {}, \"out\": { \"backlog\": 4096, \"max_message\": 100, \"full\": \"block\", \"block_timeout\": 0.5 } }",
	     true);
	await(is_connected, &m);
	server_is_full(true);
	do {
		before = turns();
	} while (put(&m, 1));
	/* The last one waited for half a second. */
	assert_in_range(turns() - before, 1, 50);
	server_is_full(false);
	drop(&m);
}

static void what_still_waits_at_the_end_is_lost_and_counted(void **state)
{
	struct made_node m;

	for (int confirms = 0; confirms < 2; confirms++) {
		server.confirms = confirms;
		make(&m, "{ \"in\": {}, \"out\": {} }", false);
		for (uint64_t k = 0; k < 10; k++)
			assert_true(put(&m, k));
		m.node.type->stop(&m.node);
		assert_int_equal(atomic_load(&m.node.counters.losses[NODE_LOSS_ABSENT]), 10);
		assert_int_equal(atomic_load(&m.node.counters.not_stored), 10);
		drop(&m);
	}
}

static void server_is_silent(bool silent)
{
	pthread_mutex_lock(&server.lock);
	server.silent = silent;
	pthread_mutex_unlock(&server.lock);
}

/* As by a broker that comes back with a lower limit. */
static void what_is_refused_the_second_time_stops_nothing(void **state)
{
	struct made_node m;

	server.confirms = true;
	make(&m, "{ \"reconnect_interval\": 10, \"in\": {}, \"out\": {} }", true);
	await(is_connected, &m);
	server_is_silent(true);
	for (uint64_t k = 0; k < 10; k++)
		assert_true(put(&m, k));
	server_dies();
	await(is_pending, &m);
	server_is_silent(false);
	server_lives(false);
	await(is_idle, &m);
	assert_int_equal(atomic_load(&m.node.counters.losses[NODE_LOSS_TOO_LONG]), 1);
	assert_int_equal(losses(&m), 1);
	assert_int_equal(figure(&m, OUTSIDE_CONFIRMED), 9);
	assert_int_equal(figure(&m, OUTSIDE_REPEATED), 9);
	drop(&m);
	server.first.len = 0;
}

static bool has_malformed(struct made_node *m)
{
	return figure(m, FAULT_MALFORMED);
}

static void a_long_message_ends_a_turn_and_not_the_next_one(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	make(&m, "{ \"in\": {}, \"out\": {} }", true);
	await(is_connected, &m);
	pthread_mutex_lock(&server.lock);
	server.sends_long = true;
	eventfd_write(server.fd, 1);
	pthread_mutex_unlock(&server.lock);
	await(has_malformed, &m);
	assert_true(put(&m, 7));
	assert_int_equal(node_read_one(&m, s), 1);
	assert_int_equal(s->sequence, 7);
	drop(&m);
	sample_put(s);
}

static void many_short_messages_end_a_turn_before_the_queue_is_full(void **state)
{
	struct sample *s = sample_alloc(&pool);
	struct made_node m;

	make(&m, "{ \"in\": { \"queuelen\": 16 }, \"out\": {} }", true);
	await(is_connected, &m);
	server.sends_again = true;
	for (uint64_t i = 0; i < 20; i++) {
		assert_true(put(&m, i));
		for (unsigned k = 0; k < 8; k++) {
			assert_int_equal(node_read_one(&m, s), 1);
			assert_int_equal(s->sequence, i);
		}
	}
	assert_int_equal(figure(&m, FAULT_OVERRUN), 0);
	server.sends_again = false;
	drop(&m);
	sample_put(s);
}

static void a_long_sample_is_refused_with_its_cause(void **state)
{
	struct made_node m;

	make(&m, "{ \"in\": {}, \"format\": \"json\", \"out\": { \"max_message\": 64 } }", true);
	await(is_connected, &m);
	assert_false(put(&m, 1));
	assert_int_equal(atomic_load(&m.node.counters.losses[NODE_LOSS_TOO_LONG]), 1);
	drop(&m);
}

/* ---- all at once ---- */

struct run {
	struct made_node m;
	atomic_bool written;
	unsigned *got;         /* how often each sample came */
	uint64_t received, refused;
};

static void *write_all(void *arg)
{
	struct run *r = arg;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		r->refused += !put(&r->m, i);
		if (i % 64 == 0)
			sched_yield();
	}
	atomic_store(&r->written, true);
	return NULL;
}

static void *read_all(void *arg)
{
	struct run *r = arg;
	struct sample *s = sample_alloc(&pool);
	int ret;

	while ((ret = node_read_one(&r->m, s)) != -EINTR) {
		if (ret != 1)
			continue;
		assert_true(s->sequence < SAMPLES);
		r->got[s->sequence]++;
		r->received++;
	}
	sample_put(s);
	return NULL;
}

static void disturb(struct run *r, bool dies)
{
	unsigned n = 0;

	while (!atomic_load(&r->written)) {
		usleep(2000);
		server_is_full(n % 3 == 0);
		if (dies && n % 4 == 1) {
			server_dies();
			usleep(1000 * (n % 3));
			server_lives(n % 8 == 1);
		}
		n++;
	}
	server_is_full(false);
}

static void account(struct run *r, bool dies)
{
	uint64_t missing = 0, twice = 0, overrun = figure(&r->m, FAULT_OVERRUN);

	for (uint64_t i = 0; i < SAMPLES; i++) {
		missing += !r->got[i];
		twice += r->got[i] > 1 ? r->got[i] - 1 : 0;
	}
	assert_int_equal(atomic_load(&r->m.node.counters.sent), SAMPLES - r->refused);
	assert_true(twice <= figure(&r->m, OUTSIDE_REPEATED));
	if (server.confirms || !dies)
		assert_true(missing <= losses(&r->m) + overrun);
	if (!dies) {
		assert_int_equal(missing, losses(&r->m) + overrun);
		assert_int_equal(figure(&r->m, OUTSIDE_REPEATED), 0);
	}
	if (server.confirms)
		assert_true(figure(&r->m, OUTSIDE_CONFIRMED) >= SAMPLES - losses(&r->m));
}

static void each_sample_arrives_or_is_counted(void **state)
{
	for (int mode = 0; mode < 8; mode++) {
		struct run r = { .got = calloc(SAMPLES, sizeof(unsigned)) };
		pthread_t writer, reader;
		bool dies = mode & 4;

		may_wait = mode & 1;
		server.confirms = mode & 2;
		make(&r.m, "{ \"reconnect_interval\": 10, \"in\": { \"queuelen\": 8192 }, \"out\": { \"backlog\": 65536, \"max_message\": 100 } }",
		     true);
		await(is_connected, &r.m);
		pthread_mutex_lock(&server.lock);
		server.refuses = mode & 1;
		pthread_mutex_unlock(&server.lock);
		assert_int_equal(pthread_create(&reader, NULL, read_all, &r), 0);
		assert_int_equal(pthread_create(&writer, NULL, write_all, &r), 0);
		disturb(&r, dies);
		pthread_join(writer, NULL);
		await(is_connected, &r.m);
		await(is_empty, &r.m);
		r.m.node.type->interrupt(&r.m.node);
		pthread_join(reader, NULL);
		account(&r, dies);
		drop(&r.m);
		free(r.got);
	}
	may_wait = false;
}

static void it_starts_and_stops_at_any_moment(void **state)
{
	struct made_node m;

	make(&m, "{ \"reconnect_interval\": 10, \"in\": {}, \"out\": {} }", true);
	for (unsigned i = 0; i < 200; i++) {
		put(&m, i);
		if (i % 5 == 0)
			server_dies();
		if (i % 5 == 2)
			server_lives(i % 2);
		m.node.type->stop(&m.node);
		node_set_state(&m.node, NODE_STOPPED);
		assert_int_equal(m.node.type->start(&m.node), 0);
		node_set_state(&m.node, NODE_STARTED);
	}
	drop(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_go_through_the_server),
		cmocka_unit_test(a_turn_sees_what_poll_has_found),
		cmocka_unit_test(an_interruption_ends_a_read),
		cmocka_unit_test(a_path_with_several_sources_waits_for_a_descriptor),
		cmocka_unit_test(what_waits_is_bounded_and_counted),
		cmocka_unit_test(who_waits_for_room_keeps_no_processor_busy),
		cmocka_unit_test(what_still_waits_at_the_end_is_lost_and_counted),
		cmocka_unit_test(what_is_refused_the_second_time_stops_nothing),
		cmocka_unit_test(a_long_message_ends_a_turn_and_not_the_next_one),
		cmocka_unit_test(many_short_messages_end_a_turn_before_the_queue_is_full),
		cmocka_unit_test(a_long_sample_is_refused_with_its_cause),
		cmocka_unit_test(each_sample_arrives_or_is_counted),
		cmocka_unit_test(it_starts_and_stops_at_any_moment),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
