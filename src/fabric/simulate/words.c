/* SPDX-License-Identifier: BSD-2-Clause */
/* Values in scenarios; see words.h. */
#include "fabric/simulate/words.h"

#include <errno.h>
#include <string.h>

#include "util/nearest.h"
#include "util/num.h"

#define WORD_MAX 200

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
	{ "ps", 1 }, { "ns", 1e3 }, { "us", 1e6 }, { "ms", 1e9 }, { "s", 1e12 }, { NULL, 0 },
};
static const struct unit sizes[] = {
	{ "", 1 }, { "B", 1 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "KB", 1e3 }, { "MB", 1e6 }, { NULL, 0 },
};
static const struct unit parts[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };

/* A number with one of the units. False: it is none, or negative. */
static bool take(const struct topology_word *text, const struct unit *units, double *value)
{
	const char *end = text->at + text->bytes, *at = num_parse_double(text->at, end, value);
	struct topology_word unit;

	if (!at || !(*value >= 0) || *value > 1e18)
		return false;
	unit = (struct topology_word){ at, (size_t)(end - at) };
	for (; units->name; units++)
		if (topology_word_is(&unit, units->name)) {
			*value *= units->factor;
			return true;
		}
	return false;
}

static int refuse(const struct topology_scan *s, const char *key, const struct topology_word *text, const char *right)
{
	char shown[WORD_MAX];

	return topology_scan_refuse(s, "%s: '%s' is not %s", key, topology_word_text(text, shown, sizeof(shown)), right);
}

int simulate_words_real(struct topology_scan *s, const struct topology_word *text, const char *what, double *value)
{
	return take(text, parts, value) ? 0 : refuse(s, what, text, "a number, such as 3, 0.5 or 90%");
}

static int take_whole(struct topology_scan *s, const struct simulate_key *key, const struct topology_word *text,
		      void *into)
{
	uint64_t number;
	const char *end = text->at + text->bytes;
	bool good = num_parse_u64(text->at, end, &number) == end;

	if (good && number >= key->least && number <= key->most) {
		if (key->value == SIMULATE_LARGE)
			*(uint64_t *)into = number;
		else if (key->value == SIMULATE_LEVEL)
			*(uint8_t *)into = (uint8_t)number;
		else
			*(uint32_t *)into = (uint32_t)number;
		return 0;
	}
	return topology_scan_refuse(s, "%s: expected a whole number from %llu to %llu", key->name,
				    (unsigned long long)key->least, (unsigned long long)key->most);
}

static int take_choice(struct topology_scan *s, const struct simulate_key *key, const struct topology_word *text,
		       bool *into)
{
	const char *bar = strchr(key->words, '|');
	size_t first = (size_t)(bar - key->words);

	*into = topology_word_is(text, bar + 1);
	if (*into || (text->bytes == first && !memcmp(text->at, key->words, first)))
		return 0;
	return topology_scan_refuse(s, "%s: expected %s", key->name, key->words);
}

int simulate_words_value(struct topology_scan *s, const struct simulate_key *key, const struct topology_word *text,
			 void *into)
{
	const bool is_time = key->value == SIMULATE_TIME, is_part = key->value == SIMULATE_PART;
	double value;

	if (key->value == SIMULATE_CHOICE)
		return take_choice(s, key, text, into);
	if (!is_time && !is_part && key->value != SIMULATE_SIZE)
		return take_whole(s, key, text, into);
	if (!take(text, is_time ? times : is_part ? parts : sizes, &value))
		return refuse(s, key->name, text, is_time ? "a time, such as 300ns or 2ms" : is_part ?
			      "a share, such as 30% or 0.3" : "a size, such as 512 or 4KiB");
	if (value * (is_part ? 1e6 : 1) < (double)key->least || value * (is_part ? 1e6 : 1) > (double)key->most)
		return refuse(s, key->name, text, is_part ? "within its limits: a share up to 100%" : "within its limits");
	if (is_part)
		*(double *)into = value;
	else if (is_time)
		*(uint64_t *)into = (uint64_t)(value + 0.5);
	else
		*(uint32_t *)into = (uint32_t)value;
	return 0;
}

int simulate_words_find(const struct topology_scan *s, const struct topology_word *name,
			const struct simulate_key *keys, unsigned count, const struct simulate_key **found)
{
	char text[WORD_MAX], hint[120];
	struct nearest near;

	topology_word_text(name, text, sizeof(text));
	near = NEAREST(text);
	for (unsigned i = 0; i < count; i++) {
		nearest_try(&near, keys[i].name);
		if (topology_word_is(name, keys[i].name)) {
			*found = &keys[i];
			return 0;
		}
	}
	return topology_scan_refuse(s, "there is no key '%s' here%s", text, nearest_hint(&near, hint, sizeof(hint)));
}

bool simulate_words_split(const struct topology_word *word, struct topology_word *key, struct topology_word *value)
{
	const char *equal = memchr(word->at, '=', word->bytes);

	if (!equal)
		return false;
	*key = (struct topology_word){ word->at, (size_t)(equal - word->at) };
	*value = (struct topology_word){ equal + 1, word->bytes - key->bytes - 1 };
	return true;
}

int simulate_words_pairs(struct topology_scan *s, const struct simulate_key *keys, unsigned count, void *into)
{
	struct topology_word word, name, value;

	while (topology_scan_word(s, &word)) {
		const struct simulate_key *key;
		int err;

		if (!simulate_words_split(&word, &name, &value))
			return refuse(s, "here", &word, "of the form key=value");
		err = simulate_words_find(s, &name, keys, count, &key);
		if (!err)
			err = simulate_words_value(s, key, &value, (char *)into + key->offset);
		if (err)
			return err;
	}
	return simulate_words_end(s);
}

int simulate_words_end(struct topology_scan *s)
{
	topology_scan_blanks(s);
	if (s->at == s->end || *s->at == '#')
		return 0;
	return refuse(s, "here", &(struct topology_word){ s->at, (size_t)(s->end - s->at) }, "expected any more");
}

static uint8_t first_port(const struct topology_node *n)
{
	for (unsigned port = 1; port <= n->port_count; port++)
		if (n->ports[port].link != TOPOLOGY_NONE)
			return (uint8_t)port;
	return 0;
}

/* The node that the first `bytes` of the text name; TOPOLOGY_NONE: there is none. */
static uint32_t find_node(const struct topology *t, const char *text, size_t bytes)
{
	char name[TOPOLOGY_NAME_MAX + 1];

	if (!bytes || bytes >= sizeof(name) || memchr(text, '\0', bytes))
		return TOPOLOGY_NONE;
	memcpy(name, text, bytes);
	name[bytes] = '\0';
	return topology_find_name(t, name);
}

int simulate_words_end_port(struct topology_scan *s, const struct topology *t, const struct topology_word *text,
			    bool host, struct topology_end *end)
{
	const struct topology_node *n;
	size_t bytes = text->bytes;
	uint64_t port = 0;

	end->node = find_node(t, text->at, bytes);
	if (end->node == TOPOLOGY_NONE) {
		while (bytes && text->at[bytes - 1] != ':')
			bytes--;
		if (bytes && num_parse_u64(text->at + bytes, text->at + text->bytes, &port) == text->at + text->bytes)
			end->node = find_node(t, text->at, bytes - 1);
	}
	if (end->node == TOPOLOGY_NONE)
		return refuse(s, "node", text, "the name of a node, such as host-1 or host-1:1");
	n = &t->nodes[end->node];
	if (host && n->kind != TOPOLOGY_HCA)
		return refuse(s, "host", text, "a host: switches send and receive no traffic");
	if (!port)
		port = first_port(n);
	if (!port || port > n->port_count || n->ports[port].link == TOPOLOGY_NONE)
		return refuse(s, "port", text, "a port with a cable");
	end->port = (uint8_t)port;
	return 0;
}
