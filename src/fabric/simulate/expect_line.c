/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a scenario expects of its result:
 *
 *	expect FIGURE [TRAFFIC [/ TRAFFIC]] <|>|= NUMBER [within NUMBER]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/lines.h"
#include "util/nearest.h"

static const char *const figures[SIMULATE_FIGURES] = {
	[SIMULATE_RATE] = "rate", [SIMULATE_SHARE] = "share", [SIMULATE_LEAST_SHARE] = "least-share",
	[SIMULATE_LATENCY] = "latency", [SIMULATE_LATENCY_99] = "latency-99",
	[SIMULATE_DEADLOCKS] = "deadlocks", [SIMULATE_CIRCLES] = "circles", [SIMULATE_LOST] = "lost",
	[SIMULATE_REORDERED] = "reordered", [SIMULATE_MARKED] = "marked", [SIMULATE_LAYERS] = "layers",
	[SIMULATE_CARRIED] = "carried",
};

const char *simulate_figure_name(enum simulate_figure figure)
{
	return figures[figure];
}

static int take_traffic(struct topology_scan *s, const struct simulate_scenario *c, int *index)
{
	char text[SIMULATE_NAME_MAX + 1], hint[120];
	struct topology_word word;
	struct nearest near;

	if (!topology_scan_word(s, &word))
		return topology_scan_refuse(s, "expect: the name of traffic is missing");
	topology_word_text(&word, text, sizeof(text));
	near = NEAREST(text);
	for (uint32_t i = 0; i < c->traffic_count; i++) {
		nearest_try(&near, c->traffic[i].name);
		if (topology_word_is(&word, c->traffic[i].name)) {
			*index = (int)i;
			return 0;
		}
	}
	return topology_scan_refuse(s, "expect: no traffic '%s' stands before this line%s", text,
				    nearest_hint(&near, hint, sizeof(hint)));
}

static int take_figure(struct topology_scan *s, enum simulate_figure *figure)
{
	struct simulate_key known[SIMULATE_FIGURES];
	const struct simulate_key *found;
	struct topology_word word;
	int err;

	if (!topology_scan_word(s, &word))
		return topology_scan_refuse(s, "expect: a figure is missing");
	for (unsigned i = 0; i < SIMULATE_FIGURES; i++)
		known[i] = (struct simulate_key){ .name = figures[i] };
	err = simulate_words_find(s, &word, known, SIMULATE_FIGURES, &found);
	if (!err)
		*figure = (enum simulate_figure)(found - known);
	return err;
}

/* The next word of the line, which is left there. */
static struct topology_word peek(struct topology_scan *s)
{
	const char *at = s->at;
	struct topology_word word;

	topology_scan_word(s, &word);
	s->at = at;
	return word;
}

static int take_relation(struct topology_scan *s, struct simulate_expect *e)
{
	struct topology_word word;

	if (topology_scan_word(s, &word) && word.bytes == 1 && strchr("<>=", word.at[0])) {
		e->relation = word.at[0] == '<' ? SIMULATE_BELOW : word.at[0] == '>' ? SIMULATE_ABOVE : SIMULATE_EQUAL;
		if (!topology_scan_word(s, &word))
			return topology_scan_refuse(s, "expect: a number is missing");
		return simulate_words_real(s, &word, "expect", &e->value);
	}
	return topology_scan_refuse(s, "expect: <, > or = is missing, between blanks");
}

static int take_rest(struct topology_scan *s, const struct simulate_scenario *c, struct simulate_expect *e)
{
	struct topology_word word;
	int err = 0;

	if (e->figure < SIMULATE_DEADLOCKS)
		err = take_traffic(s, c, &e->a);
	word = peek(s);
	if (!err && e->a >= 0 && topology_word_is(&word, "/")) {
		topology_scan_word(s, &word);
		err = take_traffic(s, c, &e->b);
	}
	if (!err)
		err = take_relation(s, e);
	if (err || !topology_scan_word(s, &word))
		return err ? err : simulate_words_end(s);
	if (e->relation != SIMULATE_EQUAL || !topology_word_is(&word, "within") || !topology_scan_word(s, &word))
		return topology_scan_refuse(s, "expect: behind the number of = may stand 'within NUMBER', nothing else");
	err = simulate_words_real(s, &word, "within", &e->tolerance);
	return err ? err : simulate_words_end(s);
}

int simulate_lines_expect(struct topology_scan *s, struct simulate_scenario *c)
{
	struct simulate_expect *more, *e;
	struct topology_word text;
	int err;

	if (c->expect_count == SIMULATE_EXPECT_MAX)
		return topology_scan_refuse(s, "expect: a scenario has up to %d such lines", SIMULATE_EXPECT_MAX);
	more = realloc(c->expect, (c->expect_count + 1U) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->expect = more;
	e = &c->expect[c->expect_count++];
	*e = (struct simulate_expect){ .line = s->line, .a = -1, .b = -1 };
	topology_scan_blanks(s);
	text.at = s->at;
	err = take_figure(s, &e->figure);
	if (!err)
		err = take_rest(s, c, e);
	text.bytes = (size_t)(s->at - text.at);
	while (text.bytes && strchr(" \t\r", text.at[text.bytes - 1]))
		text.bytes--;
	topology_word_text(&text, e->text, sizeof(e->text));
	return err;
}
