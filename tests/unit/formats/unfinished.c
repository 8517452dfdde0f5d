/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a reader of a stream asks before it scans an unfinished sample once more
 * (format_may_end) has the answer that scanning has, whatever the bytes are.
 */
#include "samples.h"

static uint64_t state_of_random = 1;

static unsigned random_below(unsigned n)
{
	state_of_random = state_of_random * UINT64_C(6364136223846793005) +
			  UINT64_C(1442695040888963407);
	return (unsigned)(state_of_random >> 33) % n;
}

/* Adds a byte at a time, as a slow peer does, until scanning finds something. */
static void compare_while_it_grows(struct format *f, const char *text, size_t len,
				   struct sample *s)
{
	struct format_unfinished u = { 0 };

	for (size_t have = 1; have <= len; have++) {
		/* Nothing may stand behind what has come. */
		char *buf = memcpy(malloc(have), text, have);
		size_t used = 0;
		bool may_end;
		int ret;

		may_end = format_may_end(f, buf, have, &u);
		assert_int_equal(u.seen, have);
		ret = f->type->scan(f, buf, have, &used, &s, 1);
		free(buf);
		if ((ret || used) != may_end)
			fail_msg("%s: after %zu bytes of '%.*s'",
				 f->type->name, have, (int)len, text);
		if (ret || used)
			return;
	}
}

static void asking_first_gives_the_answer_of_scanning(void **state)
{
	static const char alphabet[] = "{{{}}}\"\"\\\n\n,:[]a1";
	struct signal_list *signals = signal_list_new(2, SIGNAL_FLOAT);
	struct made_format json = make_format("{ \"type\": \"json\" }", signals);
	struct made_format kafka = make_format("{ \"type\": \"json.kafka\" }", signals);
	struct pool pool;
	struct sample *s;

	assert_int_equal(pool_init(&pool, 1, 2, &memory_heap), 0);
	s = make_sample(&pool);
	for (unsigned i = 0; i < 5000; i++) {
		size_t len = 2 + random_below(40);
		char text[64];

		text[0] = '{';
		for (size_t k = 1; k < len; k++)
			text[k] = alphabet[random_below(sizeof(alphabet) - 1)];
		compare_while_it_grows(i % 2 ? json.format : kafka.format, text,
				       len, s);
	}
	sample_put(s);
	pool_destroy(&pool);
	drop_format(&json);
	drop_format(&kafka);
	signal_list_put(signals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asking_first_gives_the_answer_of_scanning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
