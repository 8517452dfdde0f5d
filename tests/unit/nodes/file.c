/* SPDX-License-Identifier: BSD-2-Clause */
/* The file node: what is written is there, and is replayed when it is due. */
#include "fixture.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>

static struct pool pool;
static struct sample *smp;

static int set_up(void **state)
{
	if (pool_init(&pool, 256, 64, &memory_heap))
		return -1;
	smp = sample_alloc(&pool);
	return 0;
}

static int tear_down(void **state)
{
	sample_put(smp);
	clear_scratch();
	return (int)pool_destroy(&pool);
}

static void fill(struct sample *s, uint64_t sequence)
{
	s->signals = NULL;
	s->sequence = sequence;
	s->origin = (struct timespec){ 1000 + (time_t)(sequence / 1000),
				       (long)(sequence % 1000) * 1000000 };
	s->received = s->origin;
	s->received.tv_nsec += 12345;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA;
	s->length = 8;
	for (unsigned i = 0; i < 8; i++)
		s->data[i].f = sin((double)sequence) * pow(10, i);
}

static void make_out(struct made_node *m, const char *name, const char *more)
{
	char text[600];

	unlink(scratch(name));
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"out\": { %s } }",
		 scratch(name), more);
	make_node(m, &node_file, text);
}

static void make_in(struct made_node *m, const char *name, const char *more)
{
	char text[600];

	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"in\": { %s } }",
		 scratch(name), more);
	make_node(m, &node_file, text);
}

static void put_text(const char *name, const char *text)
{
	FILE *f = fopen(scratch(name), "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* Writes samples 0..count-1 as fast as they are taken. */
static void write_samples(struct made_node *m, uint64_t count)
{
	struct sample *smps[16];
	uint64_t sent = 0;

	assert_int_equal(sample_alloc_many(&pool, smps, 16), 16);
	while (sent < count) {
		unsigned n = (unsigned)MIN(count - sent, 16u), release = n;

		for (unsigned i = 0; i < n; i++)
			fill(smps[i], sent + i);
		node_write(&m->node, smps, n, &release);
		assert_int_equal(release, n);
		sent += n;
	}
	sample_put_many(smps, 16);
}

/* Reads the file back; returns how many of 0..count-1 are there, in order. */
static uint64_t count_samples(const char *name, uint64_t count)
{
	struct sample *expected = sample_alloc(&pool);
	struct made_node m;
	uint64_t n = 0, next = 0;

	make_in(&m, name, "\"epoch_mode\": \"original\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	while (node_read_one(&m, smp) == 1) {
		assert_true(smp->sequence >= next && smp->sequence < count);
		fill(expected, smp->sequence);
		assert_int_equal(smp->length, 8);
		assert_memory_equal(smp->data, expected->data, 64);
		assert_memory_equal(&smp->origin, &expected->origin, 16);
		assert_memory_equal(&smp->received, &expected->received, 16);
		next = smp->sequence + 1;
		n++;
	}
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->stop(&m.node);
	drop_node(&m);
	sample_put(expected);
	return n;
}

static void a_blocking_writer_loses_nothing(void **state)
{
	/* Buffers from far too small to ample; both ways of buffering. */
	static const char *const settings[] = {
		"\"buffer_size\": 32768",
		"\"flush\": true, \"buffer_size\": 65536",
		"\"buffering\": \"memory\"",
		"\"buffer_size\": 4096",
		"\"buffering\": \"memory\", \"buffer_size\": 32768",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		struct made_node m;

		make_out(&m, "out", settings[i]);
		assert_int_equal(m.node.type->start(&m.node), 0);
		write_samples(&m, 20000);
		assert_int_equal(atomic_load(&m.node.counters.sent), 20000);
		assert_int_equal(atomic_load(&m.node.counters.not_sent), 0);
		assert_int_equal(m.node.type->stop(&m.node), 0);
		drop_node(&m);
		assert_int_equal(count_samples("out", 20000), 20000);
	}
}

/* Polling at intervals would delay the thread that generates samples meanwhile. */
static void a_writer_in_memory_sleeps_until_half_is_used(void **state)
{
	struct made_node m;
	long sleeps;

	make_out(&m, "out", "\"buffering\": \"memory\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	write_samples(&m, 1000);
	sleeps = thread_sleeps("file-writer");
	assert_true(sleeps >= 0);
	usleep(400000);
	/* It may only just have begun to. */
	assert_true(thread_sleeps("file-writer") <= sleeps + 1);
	/* Twice the buffer. */
	write_samples(&m, 130000);
	assert_int_equal(atomic_load(&m.node.counters.not_sent), 0);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	drop_node(&m);
}

static void a_dropping_writer_counts_what_it_drops(void **state)
{
	struct made_node m;
	uint64_t sent;

	make_out(&m, "out", "\"full\": \"drop\", \"buffer_size\": 32768");
	assert_int_equal(m.node.type->start(&m.node), 0);
	write_samples(&m, 50000);
	sent = atomic_load(&m.node.counters.sent);
	assert_int_equal(sent + atomic_load(&m.node.counters.not_sent), 50000);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	drop_node(&m);
	assert_int_equal(count_samples("out", 50000), sent);
}

static void appending_keeps_and_truncating_replaces(void **state)
{
	for (int append = 0; append < 2; append++) {
		char line[100];
		unsigned headers = 0, lines = 0;
		FILE *f;

		unlink(scratch("out"));
		for (int run = 0; run < 2; run++) {
			struct made_node m;
			char text[400];

			snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"format\": "
				 "\"csv\", \"out\": { \"append\": %s } }",
				 scratch("out"), append ? "true" : "false");
			make_node(&m, &node_file, text);
			assert_int_equal(m.node.type->start(&m.node), 0);
			write_samples(&m, 3);
			assert_int_equal(m.node.type->stop(&m.node), 0);
			drop_node(&m);
		}
		f = fopen(scratch("out"), "r");
		while (fgets(line, sizeof(line), f)) {
			headers += line[0] == '#';
			lines += strchr(line, '\n') != NULL;
		}
		fclose(f);
		assert_int_equal(headers, 1);
		assert_int_equal(lines, append ? 7 : 4);
	}
}

static void an_unwritable_path_fails_at_start(void **state)
{
	struct made_node m;
	char text[300];

	put_text("in", "a file, no folder");
	snprintf(text, sizeof(text), "{ \"uri\": \"%s/y\", \"out\": { } }", scratch("in"));
	make_node(&m, &node_file, text);
	assert_int_equal(m.node.type->start(&m.node), -ENOTDIR);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	drop_node(&m);
}

static void a_full_disk_is_an_error_of_the_writer(void **state)
{
	struct made_node m;

	make_node(&m, &node_file, "{ \"uri\": \"/dev/full\", \"out\": { } }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	write_samples(&m, 20000);
	assert_int_equal(m.node.type->stop(&m.node), -ENOSPC);
	/* Each one is counted as lost, whichever way. */
	assert_int_equal(m.node.counters.losses[NODE_LOSS_REFUSED], 20000);
	drop_node(&m);
}

struct pipe_reader {
	const char *path;
	uint64_t lines;
	bool ending;         /* the node is asked to come to an end before anything is read */
	struct node *node;
	atomic_bool asked;
};

static void *ask_to_end(void *arg)
{
	struct pipe_reader *r = arg;
	uint64_t end_ns = clock_now_ns() + 150000000;

	do {
		usleep(20000);
		r->node->type->interrupt(r->node);
	} while (clock_now_ns() < end_ns);
	atomic_store(&r->asked, true);
	return NULL;
}

static void *read_pipe(void *arg)
{
	static char buf[1 << 16];
	struct pipe_reader *r = arg;
	int fd = open(r->path, O_RDONLY);
	ssize_t n;

	while (r->ending && !atomic_load(&r->asked))
		usleep(1000);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++)
			r->lines += buf[i] == '\n';
	close(fd);
	return NULL;
}

static void write_to_pipe(const char *settings, bool ending)
{
	struct made_node m;
	pthread_t reader, asker;
	struct pipe_reader r = { .ending = ending, .node = &m.node };
	char text[300];

	snprintf(text, sizeof(text), "%s", scratch("pipe"));
	r.path = strdup(text);
	assert_int_equal(mkfifo(r.path, 0600), 0);
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"out\": { %s } }", r.path,
		 settings);
	make_node(&m, &node_file, text);
	assert_int_equal(pthread_create(&reader, NULL, read_pipe, &r), 0);
	/* No reader yet is an error that names the cause. */
	for (int i = 0; m.node.type->start(&m.node) && i < 1000; i++)
		usleep(1000);
	/* As the super-node does: while a thread may be inside, and not during stop(). */
	if (ending)
		assert_int_equal(pthread_create(&asker, NULL, ask_to_end, &r), 0);
	write_samples(&m, 20000);
	if (ending)
		pthread_join(asker, NULL);
	assert_int_equal(atomic_load(&m.node.counters.not_sent), 0);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	pthread_join(reader, NULL);
	assert_int_equal(r.lines, 20001);
	drop_node(&m);
	unlink(r.path);
	free((char *)r.path);
}

static void a_pipe_takes_everything_in_short_writes(void **state)
{
	write_to_pipe("", false);
}

/* Its buffer is full when the gateway ends, and room comes within half a second. */
static void a_recorder_that_ends_writes_what_is_queued(void **state)
{
	write_to_pipe("\"buffer_size\": 32768", true);
}

static const char recording[] =
	"# header\n"
	"100.000000000(7)\t1\n"
	"100.010000000(8)\t2\n"
	"100.020000000(9)\t3\n"
	"100.030000000(10)\t4"; /* without newline */

static void samples_are_replayed_at_their_distances(void **state)
{
	struct made_node m;
	uint64_t first_ns = 0, first_origin = 0;

	put_text("in", recording);
	make_in(&m, "in", "");
	assert_int_equal(m.node.type->start(&m.node), 0);
	first_ns = clock_now_ns();
	for (unsigned i = 0; i < 4; i++) {
		uint64_t now;

		assert_int_equal(node_read_one(&m, smp), 1);
		now = clock_now_ns();
		if (i == 0) {
			first_origin = timespec_to_ns(smp->origin);
		}
		assert_true(now >= first_ns + i * UINT64_C(10000000) - 1000000);
		/* The recorded time, moved to the present. */
		assert_int_equal(timespec_to_ns(smp->origin) - first_origin,
				 i * UINT64_C(10000000));
		assert_int_equal(smp->sequence, 7 + i);
		assert_true(smp->data[0].f == i + 1);
	}
	assert_true(llabs((int64_t)(timespec_to_ns(clock_realtime()) - first_origin)) <
		    INT64_C(10000000000));
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void epoch_modes_move_recorded_times(void **state)
{
	static const struct {
		const char *settings;
		uint64_t origin; /* of the first sample; 0: about now */
	} cases[] = {
		{ "\"epoch_mode\": \"original\"", UINT64_C(100000000000) },
		{ "\"epoch_mode\": \"relative\", \"epoch\": 50.5", UINT64_C(150500000000) },
		{ "\"epoch_mode\": \"absolute\", \"epoch\": 77", UINT64_C(77000000000) },
		{ "\"epoch_mode\": \"direct\"", 0 },
		{ "\"epoch_mode\": \"wait\", \"epoch\": 0.02", 0 },
		{ "\"epoch_mode\": \"original\", \"stamp\": \"now\"", 0 },
	};

	put_text("in", recording);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct made_node m;
		uint64_t now;

		make_in(&m, "in", cases[i].settings);
		assert_int_equal(m.node.type->start(&m.node), 0);
		assert_int_equal(node_read_one(&m, smp), 1);
		now = timespec_to_ns(clock_realtime());
		if (cases[i].origin)
			assert_int_equal(timespec_to_ns(smp->origin), cases[i].origin);
		else
			assert_true(now - timespec_to_ns(smp->origin) <
				    UINT64_C(5000000000));
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

/* Times that no clock shows come out as they were recorded, or moved by the epoch. */
static void any_recorded_time_is_replayed(void **state)
{
	static const int64_t seconds[] = { 0, 1, -1, -2, -1700000000, UINT32_MAX,
					   INT64_C(9223372037), INT64_C(-9223372038),
					   INT64_C(253402300799), INT64_MAX - 200,
					   INT64_MIN + 200 };
	static const struct { const char *settings; bool moved; } modes[] = {
		{ "\"epoch_mode\": \"original\"", false },
		{ "\"epoch_mode\": \"original\", \"rate\": 100000.0", false },
		{ "\"epoch_mode\": \"relative\", \"epoch\": -100.5, \"rate\": 100000.0", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(seconds) * ARRAY_SIZE(modes); i++) {
		int64_t sec = seconds[i / ARRAY_SIZE(modes)];
		struct made_node m;
		char text[300];

		snprintf(text, sizeof(text),
			 "# secs,nsecs,offset,sequence\n%jd,500000000,nan,1,2\n%jd,500000007,nan,2,3\n",
			 (intmax_t)sec, (intmax_t)sec + 1);
		put_text("in", text);
		snprintf(text, sizeof(text),
			 "{ \"uri\": \"%s\", \"format\": \"csv\", \"in\": { %s } }",
			 scratch("in"), modes[i % ARRAY_SIZE(modes)].settings);
		make_node(&m, &node_file, text);
		assert_int_equal(m.node.type->start(&m.node), 0);
		for (int k = 0; k < 2; k++) {
			bool moved = modes[i % ARRAY_SIZE(modes)].moved;

			assert_int_equal(node_read_one(&m, smp), 1);
			assert_true(smp->origin.tv_sec ==
				    sec + k + (moved ? -100 : 0));
			assert_int_equal(smp->origin.tv_nsec,
					 (moved ? 0 : 500000000) + 7 * k);
		}
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

static void a_rewound_file_goes_on_for_ever(void **state)
{
	struct made_node m;

	put_text("in", recording);
	make_in(&m, "in", "\"eof\": \"rewind\", \"epoch_mode\": \"original\", \"skip\": 1");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned i = 0; i < 30; i++) {
		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->sequence, 8 + i % 3);
	}
	m.node.type->stop(&m.node);
	drop_node(&m);
	/* By its times: one more distance lies between end and beginning. */
	make_in(&m, "in", "\"eof\": \"rewind\", \"sequence\": \"new\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (uint64_t i = 0, first = 0; i < 10; i++) {
		assert_int_equal(node_read_one(&m, smp), 1);
		if (i == 0)
			first = timespec_to_ns(smp->origin);
		assert_int_equal(timespec_to_ns(smp->origin) - first, i * 10000000);
		assert_int_equal(smp->sequence, i);
	}
	m.node.type->stop(&m.node);
	drop_node(&m);
	/* One that yields nothing has an end. */
	make_in(&m, "in", "\"eof\": \"rewind\", \"skip\": 4");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->stop(&m.node);
	drop_node(&m);
	put_text("in", "# nothing\n");
	make_in(&m, "in", "\"eof\": \"rewind\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void a_replay_is_as_fast_as_asked(void **state)
{
	static const double speeds[] = { 4, 0.5 };

	put_text("in", recording);
	for (unsigned k = 0; k < 2; k++) {
		char text[64];
		struct made_node m;
		uint64_t first_ns = 0, first_origin = 0;

		snprintf(text, sizeof(text), "\"speed\": %g", speeds[k]);
		make_in(&m, "in", text);
		assert_int_equal(m.node.type->start(&m.node), 0);
		first_ns = clock_now_ns();
		for (unsigned i = 0; i < 4; i++) {
			uint64_t apart = (uint64_t)(i * 10000000 / speeds[k]), now;

			assert_int_equal(node_read_one(&m, smp), 1);
			now = clock_now_ns();
			if (i == 0)
				first_origin = timespec_to_ns(smp->origin);
			assert_true(now + 1000000 >= first_ns + apart);
			assert_int_equal(timespec_to_ns(smp->origin) - first_origin,
					 apart);
		}
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

/* At the recorded distances and at a rate: 10 and 4 ms. */
static void a_replayed_sample_may_tell_its_planned_time(void **state)
{
	static const struct {
		const char *more;
		int64_t apart_ns;
	} rows[] = {
		{ "\"stamp\": \"planned\", \"timer\": \"tsc\"", 10000000 },
		{ "\"stamp\": \"planned\", \"timer\": \"timerfd\"", 10000000 },
		{ "\"stamp\": \"planned\", \"rate\": 250", 4000000 },
	};

	put_text("in", recording);
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		const unsigned both = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED;
		unsigned exact = 0;
		int64_t last = 0;
		struct made_node m;

		make_in(&m, "in", rows[k].more);
		assert_true(m.node.origin_planned);
		assert_int_equal(m.node.type->start(&m.node), 0);
		for (unsigned i = 0; i < 4; i++) {
			int64_t origin, beside;

			assert_int_equal(node_read_one(&m, smp), 1);
			assert_int_equal(smp->flags & both, both);
			origin = (int64_t)timespec_to_ns(smp->origin);
			assert_true((int64_t)timespec_to_ns(smp->received) >=
				    origin);
			/* However late: whole periods apart. */
			beside = (origin - last) % rows[k].apart_ns;
			exact += i && (beside < 20000 ||
				       beside > rows[k].apart_ns - 20000);
			last = origin;
		}
		/* The host may have come between two readings of the clocks. */
		assert_true(exact >= 2);
		assert_true(m.node.step_late_ns->count >= 3);
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

struct rewinder {
	struct made_node *m;
	atomic_uint asked, got;
};

/* Rewinds until that fails, because the node has stopped reading, and counts from the
 * second sample on. */
static void *rewind_often(void *arg)
{
	struct rewinder *r = arg;

	while (r->m->node.type->rewind(&r->m->node) == 0 &&
	       atomic_fetch_add(&r->asked, atomic_load(&r->got) > 1) < 200)
		usleep(100);
	return NULL;
}

static void a_rewind_begins_anew_from_any_thread(void **state)
{
	struct made_node m;
	struct rewinder r = { .m = &m };
	pthread_t thread;
	int ret;

	/* The second sample is due in an hour: only a rewind ends the wait. */
	put_text("in", "100.0(7)\t1\n3700.0(8)\t2\n");
	make_in(&m, "in", "");
	assert_int_equal(m.node.type->rewind(&m.node), -EBADF);
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(pthread_create(&thread, NULL, rewind_often, &r), 0);
	while (atomic_load(&r.asked) < 200) {
		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->sequence, 7);
		/* Its time is that of now again. */
		assert_true(llabs((int64_t)(timespec_to_ns(clock_realtime()) -
					    timespec_to_ns(smp->origin))) <
			    INT64_C(5000000000));
		atomic_fetch_add(&r.got, 1);
		/* The last one may have come before this read began. */
		if (atomic_load(&r.asked) >= 200)
			break;
	}
	pthread_join(thread, NULL);
	assert_true(atomic_load(&r.got) > 1);
	/* A stop still ends the wait. */
	m.node.type->interrupt(&m.node);
	while ((ret = node_read_one(&m, smp)) == 1)
		m.node.type->interrupt(&m.node);
	assert_int_equal(ret, -EINTR);
	m.node.type->stop(&m.node);
	drop_node(&m);

	put_text("in", recording);
	make_in(&m, "in", "\"epoch_mode\": \"original\", \"skip\": 1");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(m.node.type->rewind(&m.node), 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->sequence, 8 + i);
	}
	/* Also behind the end, and after a stop that was taken back. */
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->interrupt(&m.node);
	m.node.type->rearm(&m.node);
	assert_int_equal(m.node.type->rewind(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(smp->sequence, 8);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

/* The next sample of a node that is waited for by its descriptor. */
static int poll_one(struct made_node *m)
{
	int ret = 0;

	while (ret == 0) {
		struct pollfd p = { .events = POLLIN };

		assert_int_equal(m->node.type->poll_fds(&m->node, &p.fd, 1), 1);
		assert_int_equal(poll(&p, 1, 20000), 1);
		ret = node_read_one(m, smp);
	}
	return ret;
}

static void a_descriptor_tells_when_a_sample_is_due(void **state)
{
	static const char *const settings[] = {
		"", "\"timer\": \"timerfd\"", "\"rate\": 100",
		"\"rate\": 100, \"timer\": \"tsc\"", "\"epoch_mode\": \"original\"",
	};

	put_text("in", recording);
	for (size_t k = 0; k < ARRAY_SIZE(settings); k++) {
		struct made_node m;
		uint64_t first_ns;

		make_in(&m, "in", settings[k]);
		assert_int_equal(m.node.type->start(&m.node), 0);
		first_ns = clock_now_ns();
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(poll_one(&m), 1);
			assert_int_equal(smp->sequence, 7 + i);
			assert_true(smp->data[0].f == i + 1);
			/* A late first one of a rate is no longer its step. */
			if (k < 2)
				assert_true(clock_now_ns() + 1000000 >=
					    first_ns + i * UINT64_C(10000000));
		}
		assert_int_equal(poll_one(&m), -ENODATA);
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

static void a_polled_read_does_not_wait(void **state)
{
	struct made_node m;
	struct pollfd p = { .events = POLLIN };
	FILE *f;

	/* Due in an hour: readable only once it is rewound. */
	put_text("in", "100.0(7)\t1\n3700.0(8)\t2\n");
	make_in(&m, "in", "");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(poll_one(&m), 1);
	assert_int_equal(node_read_one(&m, smp), 0);
	assert_int_equal(m.node.type->poll_fds(&m.node, &p.fd, 1), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(m.node.type->rewind(&m.node), 0);
	assert_int_equal(poll_one(&m), 1);
	assert_int_equal(smp->sequence, 7);
	m.node.type->stop(&m.node);
	drop_node(&m);

	/* A file that grows is looked at now and then. */
	put_text("in", "100.0(7)\t1\n");
	make_in(&m, "in", "\"eof\": \"wait\", \"epoch_mode\": \"original\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(poll_one(&m), 1);
	assert_int_equal(node_read_one(&m, smp), 0);
	f = fopen(scratch("in"), "a");
	fputs("101.0(8)\t2\n", f);
	fclose(f);
	assert_int_equal(poll_one(&m), 1);
	assert_int_equal(smp->sequence, 8);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void placeholders_of_the_date_are_replaced(void **state)
{
	struct made_node m;
	char text[300], year[8], name[32];
	time_t now = time(NULL);

	strftime(year, sizeof(year), "%Y", localtime(&now));
	snprintf(name, sizeof(name), "at-%s%%", year);
	snprintf(text, sizeof(text), "{ \"uri\": \"%s\", \"out\": { \"buffer_size\": 0 } }",
		 scratch("at-%Y%%"));
	make_node(&m, &node_file, text);
	assert_int_equal(m.node.type->start(&m.node), 0);
	write_samples(&m, 10);
	assert_int_equal(m.node.type->stop(&m.node), 0);
	drop_node(&m);
	assert_int_equal(access(scratch(name), R_OK), 0);
	unlink(scratch(name));
}

static void what_is_not_paced_goes_in_batches(void **state)
{
	struct made_node m;

	make_in(&m, "in", "\"epoch_mode\": \"original\"");
	assert_true(m.node.in.vectorize > 1);
	drop_node(&m);
	make_in(&m, "in", "\"epoch_mode\": \"original\", \"rate\": 5");
	assert_int_equal(m.node.in.vectorize, 1);
	drop_node(&m);
	make_in(&m, "in", "");
	assert_int_equal(m.node.in.vectorize, 1);
	drop_node(&m);
	/* An explicit number is used. */
	make_in(&m, "in", "\"epoch_mode\": \"original\", \"vectorize\": 1");
	assert_int_equal(m.node.in.vectorize, 1);
	drop_node(&m);
}

static void *append_later(void *arg)
{
	FILE *f;

	usleep(20000);
	f = fopen(arg, "a");
	fputs("5\n101.000000000(11)\t9\n", f);
	fclose(f);
	return NULL;
}

static void a_growing_file_is_followed(void **state)
{
	pthread_t thread;
	struct made_node m;

	put_text("in", recording);
	make_in(&m, "in", "\"eof\": \"wait\", \"epoch_mode\": \"original\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(pthread_create(&thread, NULL, append_later,
					(char *)scratch("in")), 0);
	/* The fourth line was not complete: "4" becomes "45". */
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_true(smp->data[0].f == 45);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(smp->sequence, 11);
	pthread_join(thread, NULL);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, smp), -EINTR);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void *write_pipe(void *arg)
{
	int fd = open(arg, O_WRONLY);

	for (size_t i = 0; i < sizeof(recording) - 1; i++)
		if (write(fd, recording + i, 1) != 1)
			break;
	close(fd);
	return NULL;
}

static void a_pipe_is_read_to_its_end(void **state)
{
	pthread_t writer;
	struct made_node m;
	char path[300];

	snprintf(path, sizeof(path), "%s", scratch("pipe"));
	assert_int_equal(mkfifo(path, 0600), 0);
	make_in(&m, "pipe", "\"epoch_mode\": \"original\"");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_pipe, path), 0);
	/* The writer may come later than the reader. */
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->sequence, 7 + i);
	}
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	pthread_join(writer, NULL);
	m.node.type->stop(&m.node);
	drop_node(&m);
	unlink(path);
}

static void malformed_lines_are_passed_over(void **state)
{
	_Atomic uint64_t figures[1] = { 0 };
	struct made_node m;

	put_text("in", "1.0(1)\t1\nnonsense\n1.1(2)\tx\n1.2(3)\t3\n");
	make_in(&m, "in", "\"epoch_mode\": \"original\", \"buffer_size\": 64");
	m.node.figures = figures;
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(smp->sequence, 3);
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	assert_int_equal(figures[0], 2);
	m.node.type->stop(&m.node);
	m.node.figures = NULL;
	drop_node(&m);
}

static void wrong_settings_are_refused(void **state)
{
	static const char *const texts[] = {
		"{ \"in\": { } }",
		"{ \"uri\": \"https://lab/a\", \"in\": { } }",
		"{ \"uri\": \"a\", \"format\": \"cvs\", \"in\": { } }",
		"{ \"uri\": \"a\", \"in\": { \"eof\": \"restart\" } }",
		"{ \"uri\": \"a\", \"in\": { \"rate\": -1 } }",
		"{ \"uri\": \"a\", \"out\": { \"buffer_size\": -1 } }",
		"{ \"uri\": \"a\", \"in\": { \"speed\": 0 } }",
		"{ \"uri\": \"a\", \"in\": { \"speed\": 2, \"rate\": 5 } }",
		"{ \"uri\": \"a\", \"in\": { \"stamp\": \"planned\", \"epoch_mode\": \"original\" } }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct made_node m;

		if (try_node(&m, &node_file, texts[i]) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		drop_node(&m);
	}
	{
		struct made_node m;

		make_in(&m, "none", "");
		assert_int_equal(m.node.type->start(&m.node), -ENOENT);
		drop_node(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_blocking_writer_loses_nothing),
		cmocka_unit_test(a_writer_in_memory_sleeps_until_half_is_used),
		cmocka_unit_test(a_dropping_writer_counts_what_it_drops),
		cmocka_unit_test(appending_keeps_and_truncating_replaces),
		cmocka_unit_test(an_unwritable_path_fails_at_start),
		cmocka_unit_test(a_full_disk_is_an_error_of_the_writer),
		cmocka_unit_test(a_recorder_that_ends_writes_what_is_queued),
		cmocka_unit_test(a_pipe_takes_everything_in_short_writes),
		cmocka_unit_test(samples_are_replayed_at_their_distances),
		cmocka_unit_test(epoch_modes_move_recorded_times),
		cmocka_unit_test(any_recorded_time_is_replayed),
		cmocka_unit_test(a_rewound_file_goes_on_for_ever),
		cmocka_unit_test(a_replay_is_as_fast_as_asked),
		cmocka_unit_test(a_replayed_sample_may_tell_its_planned_time),
		cmocka_unit_test(a_rewind_begins_anew_from_any_thread),
		cmocka_unit_test(a_descriptor_tells_when_a_sample_is_due),
		cmocka_unit_test(a_polled_read_does_not_wait),
		cmocka_unit_test(placeholders_of_the_date_are_replaced),
		cmocka_unit_test(what_is_not_paced_goes_in_batches),
		cmocka_unit_test(a_growing_file_is_followed),
		cmocka_unit_test(a_pipe_is_read_to_its_end),
		cmocka_unit_test(malformed_lines_are_passed_over),
		cmocka_unit_test(wrong_settings_are_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
