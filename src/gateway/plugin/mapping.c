/* SPDX-License-Identifier: BSD-2-Clause */
/* Mapping expressions; see mapping.h. Pure: no node, no path, no memory. */
#include "gateway/plugin/mapping.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/container_of.h"
#include "util/nearest.h"
#include "util/num.h"

#define SHOWN_MAX 60

static bool is_node_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int shown(size_t len)
{
	return (int)MIN(len, SHOWN_MAX);
}

static int parse_range(struct mapping *m, const char *open, char *problem,
		       size_t size)
{
	size_t len = strlen(open);

	if (len < 3 || open[len - 1] != ']') {
		snprintf(problem, size,
			 "'%.60s' is no range; write for example [0-3], [ua-uc] or [ua]",
			 open);
		return -EINVAL;
	}
	m->kind = MAPPING_RANGE;
	m->what = open + 1;
	m->what_len = len - 2;
	return 0;
}

static int parse_signal(struct mapping *m, const char *name, char *problem,
			size_t size)
{
	if (!*name) {
		snprintf(problem, size,
			 "the name of a signal is missing behind the point");
		return -EINVAL;
	}
	m->kind = MAPPING_SIGNAL;
	m->what = name;
	m->what_len = strlen(name);
	return 0;
}

struct word {
	const char *name;
	enum mapping_kind kind;
};

/* One of two words behind "hdr." and "ts.". */
static int parse_word(struct mapping *m, const char *group, const char *name,
		      const struct word words[2], char *problem, size_t size)
{
	struct nearest near = NEAREST(name);
	char hint[100];

	for (int i = 0; i < 2; i++) {
		nearest_try(&near, words[i].name);
		if (strcmp(name, words[i].name))
			continue;
		m->kind = words[i].kind;
		return 0;
	}
	snprintf(problem, size, "'%s.%.60s' is neither %s.%s nor %s.%s%s", group,
		 name, group, words[0].name, group, words[1].name,
		 nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

static const char *behind(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) ? NULL : text + len;
}

/* What stands behind the point. */
static int parse_member(struct mapping *m, const char *text, char *problem,
			size_t size)
{
	static const struct word header[2] = {
		{ "sequence", MAPPING_SEQUENCE },
		{ "length", MAPPING_LENGTH },
	};
	static const struct word timestamp[2] = {
		{ "origin", MAPPING_ORIGIN },
		{ "received", MAPPING_RECEIVED },
	};
	const char *rest;

	if (behind(text, "data["))
		return parse_range(m, text + strlen("data"), problem, size);
	rest = behind(text, "data.");
	if (rest)
		return parse_signal(m, rest, problem, size);
	rest = behind(text, "hdr.");
	if (rest)
		return parse_word(m, "hdr", rest, header, problem, size);
	rest = behind(text, "ts.");
	if (rest)
		return parse_word(m, "ts", rest, timestamp, problem, size);
	rest = behind(text, "stats.");
	if (rest) {
		m->kind = MAPPING_STATS;
		return stats_parse(rest, &m->metric, &m->type, problem, size);
	}
	return parse_signal(m, text, problem, size);
}

int mapping_parse(struct mapping *m, const char *text, char *problem,
		  size_t size)
{
	size_t len = strcspn(text, ".[");

	*m = (struct mapping){ .node = text, .node_len = len };
	for (size_t i = 0; i < len; i++) {
		if (is_node_char(text[i]))
			continue;
		snprintf(problem, size,
			 "'%.*s' is no name of a node (letters, digits, '-', '_')",
			 shown(len), text);
		return -EINVAL;
	}
	if (!len) {
		snprintf(problem, size, "the name of the node is missing");
		return -EINVAL;
	}
	switch (text[len]) {
	case '[':
		return parse_range(m, text + len, problem, size);
	case '.':
		return parse_member(m, text + len + 1, problem, size);
	default:
		m->kind = MAPPING_NODE;
		return 0;
	}
}

/* The place of the signal called `name`; false when there is none. */
static bool by_name(const struct signal_list *l, const char *name, size_t len,
		    unsigned *place)
{
	for (unsigned i = 0; i < l->count; i++) {
		if (strlen(l->signals[i].name) != len ||
		    memcmp(l->signals[i].name, name, len))
			continue;
		*place = i;
		return true;
	}
	return false;
}

static bool is_number(const char *text, size_t len, uint64_t *number)
{
	return len && text[0] >= '0' && text[0] <= '9' &&
	       num_parse_u64(text, text + len, number) == text + len;
}

static bool by_number(const struct signal_list *l, const char *text, size_t len,
		      unsigned *place)
{
	uint64_t number;

	if (!is_number(text, len, &number) || number >= l->count)
		return false;
	*place = (unsigned)number;
	return true;
}

static int fail_place(const struct signal_list *l, const char *text, size_t len,
		      char *problem, size_t size)
{
	char name[SHOWN_MAX + 1], hint[100];
	struct nearest near;
	uint64_t number;

	snprintf(name, sizeof(name), "%.*s", shown(len), text);
	near = NEAREST(name);
	if (is_number(text, len, &number)) {
		snprintf(problem, size,
			 "there is no value %s, the node has %u (0 to %u)",
			 name, l->count, l->count ? l->count - 1 : 0);
		return -EINVAL;
	}
	for (unsigned i = 0; i < l->count; i++)
		nearest_try(&near, l->signals[i].name);
	snprintf(problem, size, "the node has no signal '%s'%s", name,
		 nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

/* The end of a range: a number, or a name. */
static bool find_end(const struct signal_list *l, const char *text, size_t len,
		     unsigned *place)
{
	return by_number(l, text, len, place) || by_name(l, text, len, place);
}

/* Names may hold a '-', so every one of them may be the one between two ends. */
static int resolve_range(const char *text, size_t len,
			 const struct signal_list *l, unsigned *first,
			 unsigned *count, char *problem, size_t size)
{
	const char *dash = memchr(text, '-', len), *end = text + len;
	const char *missing = text;
	size_t missing_len = len;
	unsigned last;

	*count = 1;
	if (find_end(l, text, len, first))
		return 0;
	for (; dash; dash = memchr(dash + 1, '-', (size_t)(end - dash - 1))) {
		if (!find_end(l, text, (size_t)(dash - text), first)) {
			/* The first dash is the one most people mean. */
			if (missing_len == len)
				missing_len = (size_t)(dash - text);
			continue;
		}
		if (!find_end(l, dash + 1, (size_t)(end - dash - 1), &last)) {
			missing = dash + 1;
			missing_len = (size_t)(end - dash - 1);
			continue;
		}
		if (last < *first) {
			snprintf(problem, size,
				 "the range '%.*s' ends before it begins",
				 shown(len), text);
			return -EINVAL;
		}
		*count = last - *first + 1;
		return 0;
	}
	return fail_place(l, missing, missing_len, problem, size);
}

int mapping_resolve(const struct mapping *m, const struct signal_list *l,
		    unsigned *first, unsigned *count, char *problem, size_t size)
{
	switch (m->kind) {
	case MAPPING_RANGE:
		return resolve_range(m->what, m->what_len, l, first, count,
				     problem, size);
	case MAPPING_SIGNAL:
		*count = 1;
		if (by_name(l, m->what, m->what_len, first) ||
		    by_number(l, m->what, m->what_len, first))
			return 0;
		/* "node.data" is the whole, unless a signal is called so. */
		if (m->what_len != 4 || memcmp(m->what, "data", 4))
			return fail_place(l, m->what, m->what_len, problem,
					  size);
		break;
	case MAPPING_NODE:
		break;
	default:
		snprintf(problem, size, "not values of a sample");
		return -EINVAL;
	}
	*first = 0;
	*count = l->count;
	return 0;
}
