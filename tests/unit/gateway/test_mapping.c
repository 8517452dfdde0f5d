/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapping expressions: what is understood, which values are meant, and that
 * whatever is wrong is said with the nearest right name. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gateway/plugin/mapping.h"
#include "gateway/sample/signals.h"

static struct mapping parse(const char *text)
{
	char problem[MAPPING_PROBLEM_MAX] = "";
	struct mapping m;

	if (mapping_parse(&m, text, problem, sizeof(problem)))
		fail_msg("%s: %s", text, problem);
	return m;
}

static void assert_what(const struct mapping *m, enum mapping_kind kind,
			const char *node, const char *what)
{
	assert_int_equal(m->kind, kind);
	assert_int_equal(m->node_len, strlen(node));
	assert_memory_equal(m->node, node, m->node_len);
	assert_int_equal(m->what_len, strlen(what));
	assert_memory_equal(m->what, what, m->what_len);
}

static void all_spellings_are_understood(void **state)
{
	static const struct {
		const char *text;
		enum mapping_kind kind;
		const char *node, *what;
	} good[] = {
		{ "n", MAPPING_NODE, "n", "" },
		{ "node_1-b", MAPPING_NODE, "node_1-b", "" },
		{ "n[0-3]", MAPPING_RANGE, "n", "0-3" },
		{ "n[ua-uc]", MAPPING_RANGE, "n", "ua-uc" },
		{ "n.data[2]", MAPPING_RANGE, "n", "2" },
		{ "n.data[u]", MAPPING_RANGE, "n", "u" },
		{ "n.data.u", MAPPING_SIGNAL, "n", "u" },
		{ "n.u", MAPPING_SIGNAL, "n", "u" },
		{ "n.data", MAPPING_SIGNAL, "n", "data" },
		{ "n.a.b", MAPPING_SIGNAL, "n", "a.b" },
		{ "n.data.stats.x", MAPPING_SIGNAL, "n", "stats.x" },
		{ "n.hdr.sequence", MAPPING_SEQUENCE, "n", "" },
		{ "n.hdr.length", MAPPING_LENGTH, "n", "" },
		{ "n.ts.origin", MAPPING_ORIGIN, "n", "" },
		{ "n.ts.received", MAPPING_RECEIVED, "n", "" },
	};
	struct mapping m;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		m = parse(good[i].text);
		assert_what(&m, good[i].kind, good[i].node, good[i].what);
	}
	m = parse("n.stats.owd.mean");
	assert_int_equal(m.kind, MAPPING_STATS);
	assert_int_equal(m.metric, STATS_OWD);
	assert_int_equal(m.type, STATS_MEAN);
	/* Points within the names of both. */
	m = parse("n.stats.rtp.jitter.p99.9");
	assert_int_equal(m.metric, STATS_RTP_JITTER);
	assert_int_equal(m.type, STATS_P999);
}

static void what_is_wrong_is_said_with_the_nearest_name(void **state)
{
	static const char *const bad[][2] = {
		{ "", "the name of the node is missing" },
		{ "[0]", "the name of the node is missing" },
		{ "a b", "'a b' is no name of a node" },
		{ "n[", "is no range" },
		{ "n[]", "is no range" },
		{ "n[1", "is no range" },
		{ "n[1]x", "is no range" },
		{ "n.", "the name of a signal is missing" },
		{ "n.data.", "the name of a signal is missing" },
		{ "n.data[", "is no range" },
		{ "n.hdr.seqence", "did you mean 'sequence'?" },
		{ "n.hdr.", "is neither hdr.sequence nor hdr.length" },
		{ "n.ts.orign", "did you mean 'origin'?" },
		{ "n.stats.owd", "for example 'owd.mean'" },
		{ "n.stats.owd.men", "did you mean 'mean'?" },
		{ "n.stats.gap_send.mean", "did you mean 'gap_sent'?" },
		{ "n.stats.", "no metric" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char problem[MAPPING_PROBLEM_MAX] = "";
		struct mapping m;

		if (mapping_parse(&m, bad[i][0], problem, sizeof(problem)) !=
		    -EINVAL)
			fail_msg("'%s' was understood", bad[i][0]);
		if (!strstr(problem, bad[i][1]))
			fail_msg("'%s': %s", bad[i][0], problem);
	}
}

/* u-a v 0 ua ub uc 1-2 data? */
static struct signal_list *make_list(bool with_data)
{
	static const char *const names[] = { "u-a", "v", "0", "ua", "ub",
					     "uc", "1-2", "data" };
	struct signal_list *l = signal_list_alloc(with_data ? 8 : 7);

	for (unsigned i = 0; i < l->count; i++)
		assert_int_equal(signal_set(&l->signals[i], names[i], NULL,
					    SIGNAL_FLOAT),
				 0);
	return l;
}

static void assert_place(const struct signal_list *l, const char *text,
			 unsigned first, unsigned count)
{
	char problem[MAPPING_PROBLEM_MAX] = "";
	struct mapping m = parse(text);
	unsigned got_first = 99, got_count = 99;

	if (mapping_resolve(&m, l, &got_first, &got_count, problem,
			    sizeof(problem)))
		fail_msg("%s: %s", text, problem);
	if (got_first != first || got_count != count)
		fail_msg("%s: %u values from %u", text, got_count, got_first);
}

static void values_are_found_by_number_and_by_name(void **state)
{
	struct signal_list *l = make_list(false);

	assert_place(l, "n", 0, 7);
	assert_place(l, "n[0-3]", 0, 4);
	assert_place(l, "n[6]", 6, 1);
	assert_place(l, "n[ua-uc]", 3, 3);
	assert_place(l, "n[v-4]", 1, 4);
	assert_place(l, "n[3-3]", 3, 1);
	assert_place(l, "n.ub", 4, 1);
	assert_place(l, "n.data.ub", 4, 1);
	assert_place(l, "n.4", 4, 1);
	/* A '-' within a name is no range, also at the end of one. */
	assert_place(l, "n[u-a]", 0, 1);
	assert_place(l, "n.u-a", 0, 1);
	assert_place(l, "n[u-a-v]", 0, 2);
	assert_place(l, "n[u-a-u-a]", 0, 1);
	/* In brackets numbers are places, behind a point names go first; a
	 * name of its own goes before a range. */
	assert_place(l, "n[0]", 0, 1);
	assert_place(l, "n.0", 2, 1);
	assert_place(l, "n[1-2]", 6, 1);
	assert_place(l, "n.data", 0, 7);
	signal_list_put(l);

	l = make_list(true);
	assert_place(l, "n.data", 7, 1);
	signal_list_put(l);
}

static void values_that_are_not_there_are_refused(void **state)
{
	static const char *const bad[][2] = {
		{ "n[7]", "there is no value 7, the node has 7 (0 to 6)" },
		{ "n[2-9]", "there is no value 9" },
		{ "n[99999999999999999999]", "no signal '9999" },
		{ "n[3-1]", "ends before it begins" },
		{ "n[ua-ux]", "no signal 'ux'" },
		{ "n[ux-uc]", "no signal 'ux'" },
		{ "n[-]", "no signal" },
		{ "n[0-]", "no signal" },
		{ "n.vx", "no signal 'vx'" },
		{ "n.w", "no signal 'w'" },
		{ "n.UA", "did you mean 'ua'?" },
	};
	struct signal_list *l = make_list(false);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char problem[MAPPING_PROBLEM_MAX] = "";
		struct mapping m = parse(bad[i][0]);
		unsigned first, count;

		if (mapping_resolve(&m, l, &first, &count, problem,
				    sizeof(problem)) != -EINVAL)
			fail_msg("'%s' was found", bad[i][0]);
		if (!strstr(problem, bad[i][1]))
			fail_msg("'%s': %s", bad[i][0], problem);
	}
	signal_list_put(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_spellings_are_understood),
		cmocka_unit_test(what_is_wrong_is_said_with_the_nearest_name),
		cmocka_unit_test(values_are_found_by_number_and_by_name),
		cmocka_unit_test(values_that_are_not_there_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
