/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every format of the registry promises in its `carries`: read back from a
 * stream cut anywhere, from messages and from files, nothing else is lost.
 */
#include "samples.h"

#include <malloc.h>
#include <unistd.h>

#include "gateway/part/reader.h"
#include "gateway/part/writer.h"

#define BATCH 6
#define VALUES_MAX 10000

struct setup {
	const struct format_type *type;
	struct pool pool;
	struct signal_list *signals;
	struct format *format;
	struct sample *in[BATCH], *out[BATCH];
	char *buf;
	size_t size;
};

static uint64_t low_bits(uint64_t v, unsigned bits)
{
	return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static struct timespec carried_time(const struct format_carries *c,
				    struct timespec t)
{
	t.tv_sec = (time_t)low_bits((uint64_t)t.tv_sec, MIN(c->seconds_bits, 40u));
	t.tv_nsec -= t.tv_nsec % MAX(c->time_step_ns, 1u);
	return t;
}

static void carry_value(const struct format_carries *c, enum signal_type type,
			union signal_data *d)
{
	unsigned cut = 64 - c->integer_bits;

	if (type == SIGNAL_FLOAT && c->real_bits == 32)
		d->f = (double)(float)d->f;
	else if (type == SIGNAL_INTEGER)
		d->i = (int64_t)((uint64_t)d->i << cut) >> cut;
}

/* A random sample of which the format loses nothing. */
static void make_carried(const struct setup *t, struct sample *s, unsigned length)
{
	const struct format_carries *c = &t->type->carries;
	uint32_t stamps = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			  SAMPLE_HAS_RECEIVED;

	randomise(s, length, t->signals);
	s->flags |= random_bits() & SAMPLE_NEW_SIMULATION;
	if (!(c->traits & FORMAT_TELLS_ABSENT))
		s->flags |= stamps;
	s->flags &= c->flags;
	s->sequence = low_bits(s->sequence, c->sequence_bits);
	s->origin = carried_time(c, s->origin);
	s->received = carried_time(c, s->received);
	for (unsigned i = 0; i < length; i++)
		carry_value(c, t->signals->signals[i].type, &s->data[i]);
}

static enum signal_type random_type(unsigned types)
{
	enum signal_type type;

	do {
		type = (enum signal_type)(random_bits() % 4);
	} while (!(types & FORMAT_TYPE(type)));
	return type;
}

/* Samples of up to `values` values; all have that many where reading needs it. */
static void set_up(struct setup *t, const struct format_type *type, unsigned values)
{
	const struct format_carries *c = &type->carries;

	if (c->values_max && values > c->values_max)
		values = c->values_max;
	t->type = type;
	t->signals = signal_list_new(values, SIGNAL_FLOAT);
	for (unsigned i = 0; i < values; i++) {
		struct signal *s = &t->signals->signals[i];

		s->type = random_type(c->types);
		if (random_bits() % 3 == 0)
			s->unit = strdup("kV");
	}
	assert_int_equal(format_new(&t->format, NULL, NULL, type->name, t->signals), 0);
	assert_int_equal(pool_init(&t->pool, 2 * BATCH, values, &memory_heap), 0);
	for (unsigned i = 0; i < BATCH; i++) {
		bool all = !(c->traits & FORMAT_SELF_DELIMITING) || i == 0;

		t->in[i] = make_sample(&t->pool);
		t->out[i] = make_sample(&t->pool);
		make_carried(t, t->in[i], all ? values :
			     1 + (unsigned)(random_bits() % values));
	}
	t->size = 400 + (size_t)values * 260;
	t->buf = malloc((BATCH + 1) * t->size);
	assert_non_null(t->buf);
}

static void tear_down(struct setup *t)
{
	for (unsigned i = 0; i < BATCH; i++) {
		sample_put(t->in[i]);
		sample_put(t->out[i]);
	}
	assert_int_equal(pool_destroy(&t->pool), 0);
	format_destroy(t->format);
	signal_list_put(t->signals);
	free(t->buf);
}

static void assert_carried(const struct setup *t, unsigned i)
{
	assert_same(t->in[i], t->out[i], t->type->carries.flags);
}

/* Each declared format that both writes and reads. */
static void for_each_format(void (*fn)(const struct format_type *type))
{
	unsigned count = 0;

	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *type = plugin_type(p);

		assert_non_null(type);
		if (!type->print || !type->scan || !type->carries.types)
			continue;
		random_state = 0x2545f4914f6cdd1d;
		fn(type);
		count++;
	}
	assert_true(count >= 15);
}

static size_t print_all(struct setup *t, bool with_header)
{
	size_t head = 0, used;

	if (with_header && t->type->header)
		head = t->type->header(t->format, t->buf, t->size, t->signals);
	assert_true(head <= t->size);
	if (t->type->print(t->format, t->buf + head, BATCH * t->size, &used, t->in,
			   BATCH) != BATCH)
		fail_msg("%s: not all printed: %s", t->type->name,
			 format_error(t->format));
	return head + used;
}

/*
 * Reads a stream that comes in pieces: before each call more of it is there, in
 * memory of exactly that size.
 */
static void scan_in_pieces(struct setup *t, size_t total, size_t piece_max)
{
	size_t start = 0, end = 0, used;
	unsigned n = 0;

	while (n < BATCH) {
		char *piece;
		int ret;

		if (start == total)
			fail_msg("%s: %u of %d samples", t->type->name, n, BATCH);
		end = MIN(total, end + 1 + random_bits() % piece_max);
		piece = malloc(end - start);
		memcpy(piece, t->buf + start, end - start);
		ret = t->type->scan(t->format, piece, end - start, &used,
				    t->out + n, 1 + (unsigned)(random_bits() % (BATCH - n)));
		free(piece);
		if (ret < 0)
			fail_msg("%s: %s", t->type->name, format_error(t->format));
		assert_true(used <= end - start);
		start += used;
		n += (unsigned)ret;
		if (end == total && !ret && !used)
			fail_msg("%s: no progress at the end", t->type->name);
	}
	/* Nothing but blanks may be left. */
	assert_true(total - start <= 1);
	for (unsigned i = 0; i < BATCH; i++)
		assert_carried(t, i);
}

static void check_stream(const struct format_type *type)
{
	for (unsigned round = 0; round < 60; round++) {
		unsigned values = 1 + (unsigned)(random_bits() % 20);
		struct setup t;

		set_up(&t, type, values);
		scan_in_pieces(&t, print_all(&t, round % 2), round < 20 ? 7 : 2000);
		tear_down(&t);
	}
}

static void a_stream_cut_anywhere_reads_back(void **state)
{
	for_each_format(check_stream);
}

static void check_long(const struct format_type *type)
{
	struct setup t;

	set_up(&t, type, VALUES_MAX);
	scan_in_pieces(&t, print_all(&t, true), 1 << 20);
	tear_down(&t);
}

static void samples_of_ten_thousand_values_read_back(void **state)
{
	for_each_format(check_long);
}

static void check_message(const struct format_type *type)
{
	for (unsigned round = 0; round < 60; round++) {
		struct setup t;
		unsigned done = 0;

		set_up(&t, type, 1 + (unsigned)(random_bits() % 20));
		t.format->message = true;
		while (done < BATCH) {
			size_t used, taken;
			char *message;
			int n = type->print(t.format, t.buf, BATCH * t.size, &used,
					    t.in + done, BATCH - done);

			assert_true(n > 0);
			if (type->carries.traits & FORMAT_ONE_PER_MESSAGE)
				assert_int_equal(n, 1);
			message = malloc(used);
			memcpy(message, t.buf, used);
			if (type->scan(t.format, message, used, &taken, t.out + done,
				       (unsigned)n) != n)
				fail_msg("%s: %s", type->name, format_error(t.format));
			free(message);
			done += (unsigned)n;
		}
		for (unsigned i = 0; i < BATCH; i++)
			assert_carried(&t, i);
		tear_down(&t);
	}
}

static void messages_read_back(void **state)
{
	for_each_format(check_message);
}

static void check_full(const struct format_type *type)
{
	struct setup t;

	set_up(&t, type, 9);
	for (unsigned message = 0; message < 2; message++) {
		t.format->message = message;
		for (size_t size = 0; size < 3000; size += 23) {
			char *buf = malloc(size ? size : 1);
			size_t used = 12345, taken;
			int n = type->print(t.format, buf, size, &used, t.in, BATCH);

			assert_in_range(n, 0, BATCH);
			assert_true(used <= size);
			if (n == 0)
				assert_int_equal(used, 0);
			else
				assert_int_equal(type->scan(t.format, buf, used, &taken,
							    t.out, BATCH), n);
			for (int i = 0; i < n; i++)
				assert_carried(&t, (unsigned)i);
			free(buf);
		}
	}
	tear_down(&t);
}

static void a_full_buffer_holds_whole_samples_only(void **state)
{
	for_each_format(check_full);
}

/* What check promises: the room that was found for the longest sample is enough for
 * any, and none is shorter than the shortest. */
static void check_sizes(const struct format_type *type)
{
	struct format_sizes sizes;
	struct setup t;

	set_up(&t, type, 40);
	assert_int_equal(format_sizes(t.format, t.signals, &sizes), 0);
	assert_true(sizes.bytes_min <= sizes.room_max);
	for (unsigned i = 0; i < BATCH; i++) {
		char *buf = malloc(sizes.room_max);
		size_t used;

		assert_non_null(buf);
		assert_int_equal(type->print(t.format, buf, sizes.room_max, &used,
					     t.in + i, 1), 1);
		if (t.in[i]->length == t.signals->count && type->binary)
			assert_true(used >= sizes.bytes_min);
		free(buf);
	}
	tear_down(&t);
}

static void the_longest_sample_is_known_before_it_comes(void **state)
{
	for_each_format(check_sizes);
}

static char folder[] = "/tmp/busbar-formats-XXXXXX";

static void check_file(const struct format_type *type)
{
	struct writer_settings settings = { .block = true, .buffer_size = 1 << 20 };
	char path[sizeof(folder) + 16];
	struct writer *writer;
	struct reader reader;
	struct setup t;

	snprintf(path, sizeof(path), "%s/samples", folder);
	settings.path = path;
	set_up(&t, type, 12);
	assert_int_equal(writer_open(&writer, &settings, t.format), 0);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(writer_put(writer, t.in, BATCH), BATCH);
	assert_int_equal(writer_close(writer, t.signals), 0);

	/* A small buffer: samples do not end where it does. */
	assert_int_equal(reader_open(&reader, path, t.format, 1000), 0);
	for (unsigned i = 0; i < 500; i++) {
		for (unsigned n = 0; n < BATCH;) {
			int ret = reader_next(&reader, t.out + n, BATCH - n, true);

			if (ret <= 0)
				fail_msg("%s: ends after %u samples: %s", type->name,
					 BATCH * i + n, format_error(t.format));
			n += (unsigned)ret;
		}
		for (unsigned n = 0; n < BATCH; n++)
			assert_carried(&t, n);
	}
	assert_int_equal(reader_next(&reader, t.out, BATCH, true), 0);
	assert_int_equal(reader.malformed, 0);
	reader_close(&reader);
	unlink(path);
	tear_down(&t);
}

static void files_of_every_format_read_back(void **state)
{
	assert_non_null(mkdtemp(folder));
	for_each_format(check_file);
	rmdir(folder);
}

/* Bytes go wrong in the middle: what stands behind is found again. */
static void check_damage(const struct format_type *type)
{
	unsigned good = 0, rounds = 0;

	if (!(type->carries.traits & FORMAT_SELF_DELIMITING))
		return;
	for (; rounds < 200; rounds++) {
		struct setup t;
		size_t total, start = 0, used;
		bool last = false;

		set_up(&t, type, 10);
		total = print_all(&t, false);
		for (unsigned i = 0; i < 4; i++)
			t.buf[total / 4 + random_bits() % (total / 4)] =
				(char)random_bits();
		while (start < total) {
			int ret = type->scan(t.format, t.buf + start, total - start,
					     &used, t.out, BATCH);

			assert_true(ret == -EBADMSG || ret >= 0);
			assert_true(used <= total - start);
			assert_true(ret == 0 || used > 0);
			if (ret < 0)
				assert_true(*format_error(t.format));
			if (ret == 0)
				break;
			start += used;
			last = ret > 0 && start == total;
		}
		good += last;
		tear_down(&t);
	}
	/* Without a checksum or text a damaged length can hide what follows. */
	if (good < rounds * (type->binary && strcmp(type->name, "busbar.binary") ? 6 : 9) / 10)
		fail_msg("%s: the end was found in %u of %u damaged streams",
			 type->name, good, rounds);
}

static void reading_goes_on_behind_damage(void **state)
{
	for_each_format(check_damage);
}

/* Bytes allocated in this process; always 0 under a sanitizer. */
static size_t allocated(void)
{
	return mallinfo2().uordblks;
}

static void check_kept(const struct format_type *type)
{
	struct setup t;
	size_t before = 0, used, total;

	set_up(&t, type, 8);
	for (unsigned round = 0; round < 300; round++) {
		if (round == 50) /* buffers of first use are there */
			before = allocated();
		total = print_all(&t, round % 2);
		t.format->type->scan(t.format, t.buf, total, &used, t.out, BATCH);
		if (type->reset)
			type->reset(t.format);
	}
	if (allocated() != before)
		fail_msg("%s: %zd bytes more after 1500 samples", type->name,
			 (ssize_t)(allocated() - before));
	tear_down(&t);
}

static void nothing_is_kept_per_sample(void **state)
{
	for_each_format(check_kept);
}

static void check_refusal(const struct format_type *type)
{
	for (int k = 0; k < 4; k++) {
		bool held = type->carries.types & FORMAT_TYPE(k);
		struct signal_list *l = signal_list_new(3, SIGNAL_FLOAT);
		struct format *f;

		if (type->carries.types & FORMAT_TYPE(SIGNAL_FLOAT)) {
			l->signals[2].type = (enum signal_type)k;
			assert_int_equal(format_new(&f, NULL, NULL, type->name, l),
					 held ? 0 : -EINVAL);
			if (held)
				format_destroy(f);
		}
		/* And of signals that only the path knows. */
		assert_int_equal(format_new(&f, NULL, NULL, type->name, NULL), 0);
		assert_int_equal(format_refused_signal(f, l), held ? -1 : 2);
		assert_int_equal(format_check_signals(f, NULL, NULL, l),
				 held ? 0 : -EINVAL);
		format_destroy(f);
		signal_list_put(l);
	}
}

static void signals_that_a_format_cannot_hold_are_refused(void **state)
{
	for_each_format(check_refusal);
}

static void check_print_refusal(const struct format_type *type)
{
	static const enum signal_type kinds[] = { SIGNAL_BOOLEAN, SIGNAL_COMPLEX };
	struct signal_list *l = signal_list_new(1, SIGNAL_FLOAT);
	struct format *f;
	struct pool pool;
	struct sample *s;
	char buf[1000];
	size_t used;

	assert_int_equal(format_new(&f, NULL, NULL, type->name, NULL), 0);
	assert_int_equal(pool_init(&pool, 1, 1, &memory_heap), 0);
	s = make_sample(&pool);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		l->signals[0].type = kinds[i];
		randomise(s, 1, l);
		if (type->carries.types & FORMAT_TYPE(kinds[i])) {
			assert_int_equal(type->print(f, buf, sizeof(buf), &used, &s, 1), 1);
			continue;
		}
		assert_int_equal(type->print(f, buf, sizeof(buf), &used, &s, 1), -ENOTSUP);
		assert_int_equal(used, 0);
		assert_non_null(strstr(format_error(f), signal_type_name(kinds[i])));
	}
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	format_destroy(f);
	signal_list_put(l);
}

static void a_value_that_a_format_cannot_hold_is_not_printed(void **state)
{
	for_each_format(check_print_refusal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_cut_anywhere_reads_back),
		cmocka_unit_test(samples_of_ten_thousand_values_read_back),
		cmocka_unit_test(messages_read_back),
		cmocka_unit_test(a_full_buffer_holds_whole_samples_only),
		cmocka_unit_test(the_longest_sample_is_known_before_it_comes),
		cmocka_unit_test(files_of_every_format_read_back),
		cmocka_unit_test(reading_goes_on_behind_damage),
		cmocka_unit_test(nothing_is_kept_per_sample),
		cmocka_unit_test(signals_that_a_format_cannot_hold_are_refused),
		cmocka_unit_test(a_value_that_a_format_cannot_hold_is_not_printed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
