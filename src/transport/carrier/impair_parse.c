/* SPDX-License-Identifier: BSD-2-Clause */
/* Impairments as text; see impair.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "transport/carrier/impair.h"
#include "util/container_of.h"
#include "util/num.h"

enum kind { PROBABILITY, TIME, RATE, SWITCH, BYTES };

#define HOUR_NS 3600e9
#define RATE_MAX 1e15
#define BYTES_MAX 0x1p50
#define KEYS "loss, dup, reorder, gap, corrupt, delay, jitter, rate, partition, seed, events, " \
	     "and of streams cut, reset, after, stall, pause"

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset; /* in impair_params */
} keys[] = {
	{ "loss", PROBABILITY, offsetof(struct impair_params, loss) },
	{ "dup", PROBABILITY, offsetof(struct impair_params, duplicate) },
	{ "reorder", PROBABILITY, offsetof(struct impair_params, reorder) },
	{ "corrupt", PROBABILITY, offsetof(struct impair_params, corrupt) },
	{ "delay", TIME, offsetof(struct impair_params, delay_ns) },
	{ "jitter", TIME, offsetof(struct impair_params, jitter_ns) },
	{ "gap", TIME, offsetof(struct impair_params, gap_ns) },
	{ "rate", RATE, offsetof(struct impair_params, rate_bps) },
	{ "partition", SWITCH, offsetof(struct impair_params, partition) },
	{ "cut", PROBABILITY, offsetof(struct impair_params, cut) },
	{ "reset", PROBABILITY, offsetof(struct impair_params, reset) },
	{ "after", BYTES, offsetof(struct impair_params, after_bytes) },
	{ "stall", PROBABILITY, offsetof(struct impair_params, stall) },
	{ "pause", TIME, offsetof(struct impair_params, pause_ns) },
};

static const char *const wanted[] = {
	[PROBABILITY] = "a probability from 0 to 1, such as 0.01 or 1%",
	[TIME] = "a time up to an hour with its unit (ns, us, ms, s), such as 100us",
	[RATE] = "bits a second with their unit (bit, Kbit, Mbit, Gbit), such as 1Gbit",
	[SWITCH] = "0 or 1",
	[BYTES] = "a number of bytes (k, m, g: 1024 each), such as 64k",
};

struct unit {
	const char *name;
	double factor;
};

static const struct unit time_units[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 },
};
static const struct unit rate_units[] = {
	{ "bit", 1 }, { "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 }, { NULL, 0 },
};
static const struct unit byte_units[] = {
	{ "", 1 }, { "k", 0x1p10 }, { "m", 0x1p20 }, { "g", 0x1p30 }, { NULL, 0 },
};
static const struct unit share_units[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };

/* A piece of the text, without blanks around it. */
struct piece {
	const char *at, *end;
};

static struct piece trimmed(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n'))
		at++;
	while (at < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\n'))
		end--;
	return (struct piece){ at, end };
}

static bool is_word(struct piece p, const char *word)
{
	size_t n = (size_t)(p.end - p.at);

	return strlen(word) == n && !strncasecmp(p.at, word, n);
}

/* A number from `min` to `max` in the smallest unit. 0 needs no unit. */
static bool number(struct piece text, const struct unit *units, double min, double max,
		   double *out)
{
	double value;
	const char *rest;
	struct piece unit;

	if (text.at == text.end || *text.at == '-' || *text.at == '+')
		return false;
	rest = num_parse_double(text.at, text.end, &value);
	if (!rest)
		return false;
	unit = trimmed(rest, text.end);
	for (; units->name; units++)
		if (is_word(unit, units->name))
			break;
	if (!units->name && !(unit.at == unit.end && value == 0))
		return false;
	if (units->name)
		value *= units->factor;
	/* Not so for what is no number. */
	if (!(value >= 0 && value <= max) || (value > 0 && value < min))
		return false;
	*out = value;
	return true;
}

static bool take_value(const struct key *k, struct piece text, void *field)
{
	double v;

	switch (k->kind) {
	case PROBABILITY:
		if (!number(text, share_units, 0, 1, &v))
			return false;
		*(double *)field = v;
		return true;
	case TIME:
		if (!number(text, time_units, 1, HOUR_NS, &v))
			return false;
		*(uint64_t *)field = (uint64_t)(v + 0.5);
		return true;
	case RATE:
		if (!number(text, rate_units, 1, RATE_MAX, &v))
			return false;
		*(uint64_t *)field = (uint64_t)(v + 0.5);
		return true;
	case BYTES:
		if (!number(text, byte_units, 1, BYTES_MAX, &v))
			return false;
		*(uint64_t *)field = (uint64_t)(v + 0.5);
		return true;
	default:
		*(bool *)field = is_word(text, "1");
		return is_word(text, "1") || is_word(text, "0");
	}
}

/* ---- errors ---- */

struct parser {
	struct impair_settings *out;
	uint32_t given[2], seed_given, events_given; /* a bit for each key */
	char *error;
	size_t error_size;
};

#define SHOWN 40

/* A part of the text to be shown: of bounded length, on one line. */
static const char *shown(struct piece p, char buf[SHOWN + 4])
{
	size_t n = (size_t)(p.end - p.at), i;

	for (i = 0; i < n && i < SHOWN; i++)
		buf[i] = p.at[i] >= ' ' && p.at[i] < 0x7f ? p.at[i] : '?';
	memcpy(buf + i, n > SHOWN ? "..." : "", n > SHOWN ? 4 : 1);
	return buf;
}

static int refuse_value(struct parser *p, struct piece key, struct piece value,
			const char *want)
{
	char k[SHOWN + 4], v[SHOWN + 4];

	snprintf(p->error, p->error_size, "%s: '%s' is not usable, expected %s",
		 shown(key, k), shown(value, v), want);
	return -EINVAL;
}

static int refuse_key(struct parser *p, struct piece key, const char *what)
{
	char k[SHOWN + 4];

	snprintf(p->error, p->error_size, "%s: %s", shown(key, k), what);
	return -EINVAL;
}

/* ---- keys ---- */

static int take_seed(struct parser *p, struct piece key, struct piece value)
{
	uint64_t seed;

	if (p->seed_given++)
		return refuse_key(p, key, "given twice");
	if (value.at == value.end ||
	    num_parse_u64(value.at, value.end, &seed) != value.end)
		return refuse_value(p, key, value, "a whole number below 2^64");
	p->out->seed = seed;
	return 0;
}

static int take_events(struct parser *p, struct piece key, struct piece value)
{
	const size_t n = (size_t)(value.end - value.at);

	if (p->events_given++)
		return refuse_key(p, key, "given twice");
	if (!n || n >= sizeof(p->out->events))
		return refuse_value(p, key, value, "the name of a file, up to 255 bytes");
	memcpy(p->out->events, value.at, n);
	return 0;
}

static int take_key(struct parser *p, struct piece key, struct piece value)
{
	struct piece name = key;
	bool in = key.end - key.at > 3 && !strncasecmp(key.at, "in.", 3);
	char *params = (char *)(in ? &p->out->in : &p->out->out);

	if (is_word(key, "seed"))
		return take_seed(p, key, value);
	if (is_word(key, "events"))
		return take_events(p, key, value);
	if (in)
		name.at += 3;
	for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!is_word(name, keys[i].name))
			continue;
		if (p->given[in] & (1u << i))
			return refuse_key(p, key, "given twice");
		p->given[in] |= 1u << i;
		if (!take_value(&keys[i], value, params + keys[i].offset))
			return refuse_value(p, key, value, wanted[keys[i].kind]);
		return 0;
	}
	return refuse_key(p, key, "no such key; there are " KEYS
				  ", also behind \"in.\" for what arrives");
}

static int take_entry(struct parser *p, struct piece entry)
{
	const char *equals = memchr(entry.at, '=', (size_t)(entry.end - entry.at));

	if (entry.at == entry.end)
		return refuse_key(p, entry, "nothing between two commas");
	if (!equals)
		return refuse_key(p, entry, "no value, expected key=value");
	return take_key(p, trimmed(entry.at, equals), trimmed(equals + 1, entry.end));
}

int impair_parse(const char *text, struct impair_settings *settings, char *error,
		 size_t error_size)
{
	struct impair_settings fresh = { .seed = 1 };
	struct parser p = { .out = &fresh, .error = error, .error_size = error_size };
	struct piece all = trimmed(text, text + strlen(text));

	while (all.at < all.end) {
		const char *comma = memchr(all.at, ',', (size_t)(all.end - all.at));
		const char *end = comma ? comma : all.end;
		int err = take_entry(&p, trimmed(all.at, end));

		if (err)
			return err;
		if (!comma)
			break;
		all.at = comma + 1;
		if (all.at == all.end)
			return take_entry(&p, (struct piece){ all.at, all.at });
	}
	*settings = fresh;
	return 0;
}
