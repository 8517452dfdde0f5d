/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of messages that wait, beside a plain list of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/outside/outbox.h"
#include "util/container_of.h"

#define LEN_MAX 300
#define LIST_MAX 4096

/* What has to be in the ring. */
struct entry {
	unsigned char fill;
	size_t len;
	unsigned samples;
	uint64_t tag;
	bool confirmed, again;
};

static struct entry list[LIST_MAX];
static unsigned first, last; /* entries [first, last) */
static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % below;
}

static void look_at(const struct outbox_message *m, const struct entry *e)
{
	assert_int_equal(m->len, e->len);
	assert_int_equal(m->samples, e->samples);
	for (size_t i = 0; i < m->len; i++)
		assert_int_equal((unsigned char)m->data[i], e->fill);
}

/* Confirmed entries at the front are gone. */
static void trim(void)
{
	while (first < last && list[first].confirmed)
		first++;
}

static void count(const struct outbox *o)
{
	unsigned messages = 0;
	uint64_t samples = 0;

	for (unsigned i = first; i < last; i++) {
		messages += !list[i].confirmed;
		samples += list[i].confirmed ? 0 : list[i].samples;
	}
	assert_int_equal(o->messages, messages);
	assert_int_equal(o->samples, samples);
}

static void put(struct outbox *o, uint64_t tag)
{
	struct entry e = { .fill = (unsigned char)draw(256), .len = draw(LEN_MAX),
			   .samples = 1 + draw(5), .tag = tag };
	struct outbox_message m = { .len = e.len, .samples = e.samples, .tag = e.tag };
	char data[LEN_MAX];
	bool room = outbox_has_room(o, e.len);

	memset(data, e.fill, sizeof(data));
	m.data = data;
	/* It is sent in its turn if those before it still have to be. */
	for (unsigned i = first; i < last; i++)
		e.again |= list[i].again && !list[i].confirmed;
	if (!e.again)
		assert_false(outbox_next(o, &m));
	assert_int_equal(outbox_put(o, &m), room);
	if (room)
		list[last++] = e;
	else
		assert_true(o->messages > 0 || first < last);
}

static void look(struct outbox *o)
{
	struct outbox_message m;

	assert_int_equal(outbox_first(o, &m), first < last);
	if (first == last)
		return;
	look_at(&m, &list[first]);
	if (draw(2)) {
		outbox_drop(o);
		first++;
	}
}

static void confirm(struct outbox *o)
{
	unsigned i = first + draw(last - first);
	bool before = draw(2);
	uint64_t want = 0;

	if (list[i].again)
		return;
	for (unsigned k = first; k <= i; k++)
		if (k == i || (before && list[k].tag < list[i].tag)) {
			want += list[k].confirmed ? 0 : list[k].samples;
			list[k].confirmed = true;
		}
	assert_int_equal(outbox_confirm(o, list[i].tag, before), want);
	trim();
}

/* The connection is lost: all are sent once more, with new tags. */
static void repeat(struct outbox *o, uint64_t *tag)
{
	outbox_repeat(o);
	for (unsigned i = first; i < last; i++)
		list[i].again = true;
	for (unsigned i = first; i < last && draw(20); i++) {
		struct outbox_message m;

		if (list[i].confirmed) {
			list[i].again = false;
			continue;
		}
		assert_true(outbox_next(o, &m));
		look_at(&m, &list[i]);
		/* An old number, which does not count any more. */
		assert_int_equal(outbox_confirm(o, m.tag, false), 0);
		list[i].tag = ++*tag;
		list[i].again = false;
		outbox_repeated(o, *tag);
	}
}

static void it_holds_what_was_put_in(void **state)
{
	for (unsigned run = 0; run < 300; run++) {
		struct outbox o;
		uint64_t tag = 0;
		bool is_confirmed = run % 2;

		seed = run;
		first = last = 0;
		assert_int_equal(outbox_init(&o, 700 + draw(8000)), 0);
		while (last < LIST_MAX && tag < 20000) {
			unsigned what = draw(10);

			tag++;
			if (what < 5)
				put(&o, tag);
			else if (!is_confirmed)
				look(&o);
			else if (first < last && what < 9)
				confirm(&o);
			else if (first < last && !draw(10))
				repeat(&o, &tag);
			count(&o);
		}
		outbox_destroy(&o);
	}
}

static void a_message_that_never_fits_is_refused(void **state)
{
	struct outbox o;
	char data[2000] = "";

	assert_int_equal(outbox_init(&o, 2000), 0);
	assert_false(outbox_could_hold(&o, sizeof(data)));
	assert_false(outbox_put(&o, &(struct outbox_message){ data, sizeof(data), 1, 0 }));
	assert_false(outbox_could_hold(&o, SIZE_MAX - 100));
	assert_true(outbox_could_hold(&o, 900));
	/* At any place. */
	for (unsigned i = 0; i < 100; i++) {
		assert_true(outbox_put(&o, &(struct outbox_message){ data, i, 1, 0 }));
		outbox_drop(&o);
		assert_true(outbox_has_room(&o, 900));
	}
	outbox_destroy(&o);
}

static void an_outbox_without_bytes_is_empty(void **state)
{
	struct outbox o = { 0 };
	struct outbox_message m;

	assert_false(outbox_first(&o, &m));
	assert_false(outbox_next(&o, &m));
	assert_int_equal(outbox_confirm(&o, 1, true), 0);
	outbox_destroy(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_what_was_put_in),
		cmocka_unit_test(a_message_that_never_fits_is_refused),
		cmocka_unit_test(an_outbox_without_bytes_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
