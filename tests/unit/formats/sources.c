/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one message or source says does not spoil what another says: every format
 * takes a valid message behind a foreign, damaged or cut one, and what describes
 * the samples holds for its own message.
 */
#include "samples.h"

#include <malloc.h>

#include "gateway/sample/signals.h"

#define VALUES 4

struct rig {
	struct signal_list *signals;
	struct made_format m;
	struct pool pool;
	struct sample *in, *out;
	char buf[8192];
};

static void rig_up(struct rig *r, const char *text, enum signal_type type)
{
	r->signals = signal_list_new(VALUES, type);
	r->m = make_format(text, r->signals);
	r->m.format->message = true;
	assert_int_equal(pool_init(&r->pool, 2, VALUES, &memory_heap), 0);
	r->in = make_sample(&r->pool);
	r->out = make_sample(&r->pool);
}

static void rig_down(struct rig *r)
{
	sample_put(r->in);
	sample_put(r->out);
	assert_int_equal(pool_destroy(&r->pool), 0);
	drop_format(&r->m);
	signal_list_put(r->signals);
}

/* A message of one sample, behind the header where `described`; its bytes. */
static size_t make_message(struct rig *r, char *buf, size_t size, bool described)
{
	struct format *f = r->m.format;
	size_t head = 0, used;

	if (described && f->type->header)
		head = f->type->header(f, buf, size, r->signals);
	assert_true(head < size);
	assert_int_equal(f->type->print(f, buf + head, size - head, &used, &r->in,
					1), 1);
	return head + used;
}

static int scan(struct rig *r, const char *buf, size_t len)
{
	size_t used;

	return r->m.format->type->scan(r->m.format, buf, len, &used, &r->out, 1);
}

/* As sockets do: the rest of a message is scanned until nothing of it is left. */
static int scan_message(struct rig *r, const char *buf, size_t len)
{
	struct format *f = r->m.format;
	size_t pos = 0, used;
	int n = 0;

	while (pos < len) {
		int ret = f->type->scan(f, buf + pos, len - pos, &used, &r->out, 1);

		pos += used;
		n += ret > 0;
		if (ret == 0 || (ret < 0 && !f->type->lines) || !used)
			break;
	}
	return n;
}

static enum signal_type first_type(unsigned types)
{
	enum signal_type type = SIGNAL_FLOAT;

	while (!(types & FORMAT_TYPE(type)))
		type++;
	return type;
}

static void for_each_text(void (*check)(const char *text, const struct format_type *))
{
	char text[300];

	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *type = plugin_type(p);

		/* Messages of comtrade are records, printed with their files. */
		if (!type || !type->print || !type->scan || !type->carries.types)
			continue;
		snprintf(text, sizeof(text), "{ \"type\": \"%s\" }", type->name);
		check(text, type);
		if (strcmp(type->name, "csv") && strcmp(type->name, "tsv"))
			continue;
		snprintf(text, sizeof(text),
			 "{ \"type\": \"%s\", \"columns\": \"plain\" }", type->name);
		check(text, type);
	}
}

/* Every other format's message, each with a header and cut short as well. */
static void scan_foreign(struct rig *r, unsigned round)
{
	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *type = plugin_type(p);
		struct rig other;
		char text[100];
		size_t len;

		if (!type || !type->print || !type->carries.types)
			continue;
		snprintf(text, sizeof(text), "{ \"type\": \"%s\" }", type->name);
		/* Other types than the configured ones where the format has them. */
		rig_up(&other, text, type->carries.types & FORMAT_TYPE(round % 4) ?
				     (enum signal_type)(round % 4) :
				     first_type(type->carries.types));
		randomise(other.in, 1 + round % VALUES, other.signals);
		other.in->length = 1 + round % VALUES;
		if (type->carries.values_max)
			other.in->length = MIN(other.in->length,
					       type->carries.values_max);
		len = make_message(&other, other.buf, sizeof(other.buf), round & 4);
		if (round & 8)
			len = 1 + random_bits() % len;
		scan_message(r, other.buf, len);
		rig_down(&other);
	}
}

static void check_recovers(const char *text, const struct format_type *type)
{
	struct rig r;
	size_t len;

	rig_up(&r, text, first_type(type->carries.types));
	randomise(r.in, VALUES, r.signals);
	r.in->flags |= SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	r.in->length = VALUES;
	if (type->carries.values_max)
		r.in->length = MIN(r.in->length, type->carries.values_max);
	len = make_message(&r, r.buf, sizeof(r.buf), false);
	assert_int_equal(scan_message(&r, r.buf, len), 1);
	for (unsigned round = 0; round < 16; round++) {
		scan_foreign(&r, round);
		if (scan_message(&r, r.buf, len) != 1)
			fail_msg("%s after foreign messages of round %u: %s", text,
				 round, format_error(r.m.format));
		if (r.out->length != r.in->length)
			fail_msg("%s: %u values instead of %u", text,
				 r.out->length, r.in->length);
		/* Named as configured, not as in the message. */
		assert_true(signal_list_equal(r.out->signals, r.signals));
	}
	rig_down(&r);
}

static void every_format_takes_a_valid_message_behind_any_foreign_one(void **state)
{
	for_each_text(check_recovers);
}

static const char binary[] = "{ \"type\": \"busbar.binary\" }";

static void a_description_holds_to_the_end_of_its_message(void **state)
{
	struct rig r, other;
	char both[8192];
	size_t len, head, used;

	rig_up(&r, binary, SIGNAL_FLOAT);
	rig_up(&other, binary, SIGNAL_INTEGER);
	randomise(r.in, VALUES, r.signals);
	randomise(other.in, VALUES, other.signals);
	len = make_message(&r, r.buf, sizeof(r.buf), false);
	/* Two samples behind it, which are asked for one by one. */
	head = make_message(&other, both, sizeof(both), true);
	used = make_message(&other, both + head, sizeof(both) - head, false);
	assert_int_equal(scan_message(&r, both, head + used), 2);
	assert_int_equal(r.out->signals->signals[0].type, SIGNAL_INTEGER);
	assert_int_equal(scan(&r, r.buf, len), 1);
	assert_int_equal(r.out->signals->signals[0].type, SIGNAL_FLOAT);
	/* Without its own it is told that it lacks one. */
	assert_int_equal(scan(&r, both + head, used), -EBADMSG);
	assert_non_null(strstr(format_error(r.m.format), "no description of its own"));
	assert_int_equal(scan(&r, r.buf, len), 1);
	rig_down(&other);
	rig_down(&r);
}

static void a_header_line_holds_to_the_end_of_its_message(void **state)
{
	static const char described[] = "a,b,time\n1,2,7\n3,4,8\n";
	static const char bare[] = "9,1,2,3\n";
	struct rig r;

	rig_up(&r, "{ \"type\": \"csv\", \"columns\": \"plain\" }", SIGNAL_FLOAT);
	assert_int_equal(scan_message(&r, described, strlen(described)), 2);
	assert_int_equal(r.out->origin.tv_sec, 8);
	assert_int_equal(r.out->length, 2);
	assert_int_equal(scan(&r, bare, strlen(bare)), 1);
	assert_int_equal(r.out->origin.tv_sec, 9);
	assert_int_equal(r.out->length, 3);
	rig_down(&r);

	rig_up(&r, "{ \"type\": \"csv\", \"columns\": \"plain\", \"time_column\": \"time\" }",
	       SIGNAL_FLOAT);
	assert_int_equal(scan_message(&r, described, strlen(described)), 2);
	assert_int_equal(scan(&r, bare, strlen(bare)), -EBADMSG);
	assert_non_null(strstr(format_error(r.m.format), "no header line"));
	assert_int_equal(scan_message(&r, described, strlen(described)), 2);
	rig_down(&r);
}

static size_t describe(char *buf, size_t size, unsigned number)
{
	struct signal_list *l = signal_list_alloc(VALUES);
	struct made_format m = make_format(binary, NULL);
	char name[40];
	size_t len;

	for (unsigned i = 0; i < VALUES; i++) {
		snprintf(name, sizeof(name), "ever-new-%u-%u", number, i);
		assert_int_equal(signal_set(&l->signals[i], name, "V",
					    SIGNAL_INTEGER), 0);
	}
	len = m.format->type->header(m.format, buf, size, l);
	drop_format(&m);
	signal_list_put(l);
	return len;
}

static size_t allocated(void)
{
	return mallinfo2().uordblks;
}

/* And the samples under way keep theirs, also behind the end of the format. */
static void ever_new_descriptions_take_bounded_memory(void **state)
{
	struct rig r, sender;
	struct sample *held;
	char name[40], tail[1000];
	size_t before = 0, used;

	rig_up(&r, binary, SIGNAL_FLOAT);
	rig_up(&sender, binary, SIGNAL_INTEGER);
	randomise(sender.in, VALUES, sender.signals);
	used = make_message(&sender, tail, sizeof(tail), false);
	for (unsigned i = 0; i < 3000; i++) {
		size_t head = describe(r.buf, sizeof(r.buf), i);

		memcpy(r.buf + head, tail, used);
		assert_int_equal(scan_message(&r, r.buf, head + used), 1);
		snprintf(name, sizeof(name), "ever-new-%u-0", i);
		assert_string_equal(r.out->signals->signals[0].name, name);
		if (i == 2000)
			before = allocated();
	}
	if (before && allocated() > before + 4096)
		fail_msg("%zu bytes more after 1000 descriptions",
			 allocated() - before);
	assert_false(atomic_load(&r.out->signals->lasting));

	held = sample_alloc(&r.pool);
	assert_null(held); /* both are in use: a copy into the other one */
	sample_copy(r.in, r.out);
	sample_put(r.out);
	drop_format(&r.m);
	snprintf(name, sizeof(name), "ever-new-%u-0", 2999);
	assert_string_equal(r.in->signals->signals[0].name, name);
	sample_put(r.in);
	assert_int_equal(pool_destroy(&r.pool), 0);
	signal_list_put(r.signals);
	rig_down(&sender);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_takes_a_valid_message_behind_any_foreign_one),
		cmocka_unit_test(a_description_holds_to_the_end_of_its_message),
		cmocka_unit_test(a_header_line_holds_to_the_end_of_its_message),
		cmocka_unit_test(ever_new_descriptions_take_bounded_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
