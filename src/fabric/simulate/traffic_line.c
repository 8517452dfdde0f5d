/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of traffic in scenarios:
 *
 *	traffic NAME PATTERN [KEY=VALUE]...
 *	traffic NAME SOURCES -> TARGETS [KEY=VALUE]...
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/simulate/lines.h"
#include "util/num.h"

#define AT(member) offsetof(struct simulate_traffic, member)

static const char *const patterns[] = {
	[SIMULATE_LISTED] = "listed",
	[SIMULATE_ALL_TO_ALL] = "all-to-all",
	[SIMULATE_PERMUTATION] = "permutation",
	[SIMULATE_SHIFT] = "shift",
	[SIMULATE_BIT_REVERSAL] = "bit-reversal",
	[SIMULATE_UNIFORM] = "uniform",
	[SIMULATE_HOT_SPOT] = "hot-spot",
};

#define PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

static const struct simulate_key keys[] = {
	{ "load", SIMULATE_PART, AT(load), 1, 1000000, NULL },
	{ "message", SIMULATE_SIZE, AT(message_bytes), 1, 1u << 30, NULL },
	{ "packet", SIMULATE_SIZE, AT(packet_bytes), 1, 4096, NULL },
	{ "window", SIMULATE_COUNT, AT(window), 0, 1u << 16, NULL },
	{ "messages", SIMULATE_LARGE, AT(messages), 1, UINT64_C(1) << 40, NULL },
	{ "start", SIMULATE_TIME, AT(start_ps), 0, SIMULATE_TIME_PS_MAX, NULL },
	{ "stop", SIMULATE_TIME, AT(stop_ps), 1, SIMULATE_TIME_PS_MAX, NULL },
	{ "sl", SIMULATE_LEVEL, AT(sl), 0, 15, NULL },
	{ "arrivals", SIMULATE_CHOICE, AT(random_arrivals), 0, 0, "regular|random" },
	{ "by", SIMULATE_COUNT, AT(shift), 1, TOPOLOGY_NODES_MAX, NULL },
	{ "share", SIMULATE_PART, AT(hot_share), 0, 1000000, NULL },
};

const char *simulate_pattern_name(enum simulate_pattern pattern)
{
	return patterns[pattern];
}

/* ---- lists of hosts ---- */

struct hosts {
	struct topology_end *list;
	uint32_t count;
};

static int add_host(struct topology_scan *s, struct hosts *h, struct topology_end end)
{
	struct topology_end *more;

	if (h->count == TOPOLOGY_NODES_MAX)
		return topology_scan_refuse(s, "a list has up to %d hosts", TOPOLOGY_NODES_MAX);
	more = realloc(h->list, (h->count + 1U) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	h->list = more;
	h->list[h->count++] = end;
	return 0;
}

static int add_all(struct topology_scan *s, const struct topology *t, struct hosts *h)
{
	int err = 0;

	for (uint32_t i = 0; i < t->node_count && !err; i++) {
		struct topology_end end = { i, 1 };

		if (t->nodes[i].kind != TOPOLOGY_HCA)
			continue;
		while (end.port < t->nodes[i].port_count && t->nodes[i].ports[end.port].link == TOPOLOGY_NONE)
			end.port++;
		if (t->nodes[i].ports[end.port].link != TOPOLOGY_NONE)
			err = add_host(s, h, end);
	}
	return err;
}

/* "host-3..8": from the number at the end of the first name to the other. 0: it is no range. */
static int add_range(struct topology_scan *s, const struct topology *t, const struct topology_word *item,
		     struct hosts *h)
{
	const char *dots = memmem(item->at, item->bytes, "..", 2), *end = item->at + item->bytes, *digits = dots;
	uint64_t from, to;
	int err = 0;

	while (digits && digits > item->at && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	if (!dots || num_parse_u64(digits, dots, &from) != dots || num_parse_u64(dots + 2, end, &to) != end)
		return 0;
	if (from > to || to - from >= TOPOLOGY_NODES_MAX)
		return topology_scan_refuse(s, "hosts: a range goes upwards and has up to %d hosts", TOPOLOGY_NODES_MAX);
	for (; from <= to && !err; from++) {
		char name[TOPOLOGY_NAME_MAX + NUM_INT_MAX + 1];
		size_t bytes = (size_t)(digits - item->at);
		struct topology_word word = { name, 0 };
		struct topology_end host;

		if (bytes > TOPOLOGY_NAME_MAX)
			return topology_scan_refuse(s, "hosts: the name in a range is too long");
		memcpy(name, item->at, bytes);
		word.bytes = (size_t)(num_print_u64(name + bytes, from) - name);
		err = simulate_words_end_port(s, t, &word, true, &host);
		if (!err)
			err = add_host(s, h, host);
	}
	return err ? err : 1;
}

static int add_list(struct topology_scan *s, const struct topology *t, const struct topology_word *list,
		    struct hosts *h)
{
	const char *at = list->at, *end = list->at + list->bytes;

	if (topology_word_is(list, "all"))
		return add_all(s, t, h);
	while (at <= end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		struct topology_word item = { at, (size_t)((comma ? comma : end) - at) };
		struct topology_end host;
		int ret = add_range(s, t, &item, h);

		if (!ret) {
			ret = simulate_words_end_port(s, t, &item, true, &host);
			if (!ret)
				ret = add_host(s, h, host);
		}
		if (ret < 0)
			return ret;
		at = (comma ? comma : end) + 1;
	}
	return 0;
}

/* ---- the line ---- */

static int find_pattern(struct topology_scan *s, const struct topology_word *word, enum simulate_pattern *pattern)
{
	struct simulate_key known[PATTERNS - 1];
	const struct simulate_key *found;
	int err;

	for (unsigned i = 1; i < PATTERNS; i++)
		known[i - 1] = (struct simulate_key){ .name = patterns[i] };
	err = simulate_words_find(s, word, known, PATTERNS - 1, &found);
	if (!err)
		*pattern = (enum simulate_pattern)(found - known + 1);
	return err;
}

/* "hosts=" and "target=", which need the description, and the keys of the table. */
static int take_pairs(struct topology_scan *s, const struct topology *t, struct simulate_traffic *f,
		      struct hosts *hosts, struct topology_end *hot)
{
	struct topology_word word, name, value;

	while (topology_scan_word(s, &word)) {
		const struct simulate_key *key;
		int err;

		if (!simulate_words_split(&word, &name, &value))
			return topology_scan_refuse(s, "traffic: expected KEY=VALUE");
		if (topology_word_is(&name, "hosts") && f->pattern != SIMULATE_LISTED) {
			err = add_list(s, t, &value, hosts);
		} else if (topology_word_is(&name, "target") && f->pattern == SIMULATE_HOT_SPOT) {
			err = simulate_words_end_port(s, t, &value, true, hot);
		} else {
			err = simulate_words_find(s, &name, keys, sizeof(keys) / sizeof(keys[0]), &key);
			if (!err)
				err = simulate_words_value(s, key, &value, (char *)f + key->offset);
		}
		if (err)
			return err;
	}
	return simulate_words_end(s);
}

static int check_pattern(struct topology_scan *s, struct simulate_traffic *f, const struct topology_end *hot)
{
	uint32_t i;

	if (f->pattern == SIMULATE_SHIFT && (!f->shift || f->shift >= f->source_count))
		return topology_scan_refuse(s, "by: a shift of %u hosts is by=1 to by=%u", f->source_count,
					    f->source_count - 1);
	if (f->pattern == SIMULATE_BIT_REVERSAL && (f->source_count & (f->source_count - 1)))
		return topology_scan_refuse(s, "bit-reversal: %u hosts are not a power of two; hosts= gives a list",
					    f->source_count);
	if (f->pattern != SIMULATE_HOT_SPOT)
		return 0;
	for (i = 0; i < f->target_count; i++)
		if (f->targets[i].node == hot->node && f->targets[i].port == hot->port)
			f->hot_target = i;
	return hot->node != TOPOLOGY_NONE ? 0 : topology_scan_refuse(s, "hot-spot: target=HOST is missing");
}

static int check(struct topology_scan *s, struct simulate_traffic *f, const struct topology_end *hot)
{
	if (f->pattern != SIMULATE_LISTED && f->source_count < 2)
		return topology_scan_refuse(s, "hosts: a pattern needs two hosts at least");
	if (f->stop_ps <= f->start_ps)
		return topology_scan_refuse(s, "stop: it is not behind start");
	if (f->packet_bytes > f->message_bytes)
		f->packet_bytes = f->message_bytes;
	return check_pattern(s, f, hot);
}

static int copy_hosts(struct simulate_traffic *f)
{
	f->targets = malloc((f->source_count + 1U) * sizeof(*f->targets));
	if (!f->targets)
		return -ENOMEM;
	if (f->source_count)
		memcpy(f->targets, f->sources, f->source_count * sizeof(*f->targets));
	f->target_count = f->source_count;
	return 0;
}

/* What stands behind the name. */
static int take_line(struct topology_scan *s, const struct topology *t, struct simulate_traffic *f)
{
	struct hosts sources = { 0 }, targets = { 0 };
	struct topology_end hot = { TOPOLOGY_NONE, 0 };
	struct topology_word word, arrow;
	const char *rest;
	int err = 0;

	if (!topology_scan_word(s, &word))
		return topology_scan_refuse(s, "traffic: expected NAME PATTERN or NAME SOURCES -> TARGETS");
	rest = s->at;
	if (topology_scan_word(s, &arrow) && topology_word_is(&arrow, "->")) {
		if (!topology_scan_word(s, &arrow))
			return topology_scan_refuse(s, "traffic: targets are missing behind ->");
		err = add_list(s, t, &word, &sources);
		if (!err)
			err = add_list(s, t, &arrow, &targets);
	} else {
		s->at = rest;
		err = find_pattern(s, &word, &f->pattern);
	}
	if (!err)
		err = take_pairs(s, t, f, &sources, &hot);
	if (!err && f->pattern != SIMULATE_LISTED && !sources.count)
		err = add_all(s, t, &sources);
	f->sources = sources.list;
	f->source_count = sources.count;
	f->targets = targets.list;
	f->target_count = targets.count;
	if (!err && f->pattern != SIMULATE_LISTED)
		err = copy_hosts(f);
	return err ? err : check(s, f, &hot);
}

int simulate_lines_traffic(struct topology_scan *s, struct simulate_scenario *c)
{
	struct simulate_traffic *more, *f;
	struct topology_word word;

	if (c->traffic_count == SIMULATE_TRAFFIC_MAX)
		return topology_scan_refuse(s, "traffic: a scenario has up to %d lines of it", SIMULATE_TRAFFIC_MAX);
	if (!topology_scan_word(s, &word) || word.bytes > SIMULATE_NAME_MAX || memchr(word.at, '/', word.bytes))
		return topology_scan_refuse(s, "traffic: expected a name of up to %d characters without '/'",
					    SIMULATE_NAME_MAX);
	more = realloc(c->traffic, (c->traffic_count + 1U) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->traffic = more;
	f = &c->traffic[c->traffic_count];
	*f = (struct simulate_traffic){ .line = s->line, .message_bytes = 4096, .stop_ps = UINT64_MAX };
	topology_word_text(&word, f->name, sizeof(f->name));
	for (uint32_t i = 0; i < c->traffic_count; i++)
		if (!strcmp(c->traffic[i].name, f->name))
			return topology_scan_refuse(s, "traffic: '%s' stands in line %u already", f->name,
						    c->traffic[i].line);
	c->traffic_count++;
	return take_line(s, c->topology, f);
}
