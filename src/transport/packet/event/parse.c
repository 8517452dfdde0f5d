/* SPDX-License-Identifier: BSD-2-Clause */
/* Events as text; see rules.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "transport/carrier/carrier.h"
#include "transport/packet/event/rules.h"
#include "util/container_of.h"
#include "util/num.h"

#define HOUR_NS UINT64_C(3600000000000)
#define PACKETS_MAX UINT32_MAX
#define QPN_MAX 0xffffffu
#define AGAIN_MAX 250 /* packet_history counts to 255 */
#define SHOWN 32      /* characters of a word in an error */

const char *const packet_event_actions[PACKET_EVENT_ACTIONS] = {
	"drop", "delay", "mark", "corrupt", "duplicate",
};

const char *const packet_event_classes[PACKET_EVENT_CLASSES] = {
	"", "send", "write", "read-request", "read-response", "ack", "nak", "atomic", "cnp",
};

static const char *const directions[] = { [CARRIER_OUT] = "out", [CARRIER_IN] = "in" };
static const char *const whichs[] = { "first", "each", "again" };

#define WANT_ACTION "drop, delay, mark, corrupt or duplicate"
#define WANT_PACKETS "packet N or packets N-M"
#define WANT_NUMBER "a number of a packet from 1 to 4294967295"
#define WANT_RANGE "numbers of packets N-M from 1 to 4294967295, N not above M"
#define WANT_BY "by TIME behind the packets of a delay"
#define WANT_TIME "a whole number above 0 with ns, us, ms or s, up to an hour, such as 2ms"
#define WANT_OF "of qp"
#define WANT_QP "any, nth N, or the number of a queue pair up to 0xffffff"
#define WANT_NTH "a number from 1 to 65535"
#define WANT_DIRECTION "in or out"
#define WANT_REST                                                                         \
	"send, write, read-request, read-response, ack, nak, atomic or cnp, then first, " \
	"each or again K"
#define WANT_WHICH "first, each or again K"
#define WANT_AGAIN "a number from 1 to 250"
#define WANT_END "the end of the line"

struct word {
	const char *at, *end;
};

/* A line that is being read. */
struct line {
	const char *at, *end;
	struct word word;  /* the next one; empty at the end */
	const char *want;  /* what would be right in its place, when it is wrong */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void advance(struct line *l)
{
	while (l->at < l->end && is_blank(*l->at))
		l->at++;
	l->word.at = l->at;
	while (l->at < l->end && !is_blank(*l->at))
		l->at++;
	l->word.end = l->at;
}

static bool is_end(const struct line *l)
{
	return l->word.at == l->word.end;
}

static bool is_word(struct word w, const char *text)
{
	size_t n = (size_t)(w.end - w.at);

	return n && strlen(text) == n && !strncasecmp(w.at, text, n);
}

/* Takes the next word if it is `text`. */
static bool take(struct line *l, const char *text)
{
	if (!is_word(l->word, text))
		return false;
	advance(l);
	return true;
}

static bool expect(struct line *l, const char *text, const char *want)
{
	l->want = want;
	return take(l, text);
}

/* Takes the next word if it is one of the names: its index, or -1. */
static int take_name(struct line *l, const char *const *names, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (take(l, names[i]))
			return (int)i;
	return -1;
}

/* A decimal number from 1 to `most` that is all of the word. */
static bool number(struct word w, uint64_t most, uint32_t *out)
{
	uint64_t n;

	if (num_parse_u64(w.at, w.end, &n) != w.end || !n || n > most)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool expect_number(struct line *l, uint64_t most, uint32_t *out, const char *want)
{
	l->want = want;
	if (is_end(l) || !number(l->word, most, out))
		return false;
	advance(l);
	return true;
}

static bool hex(struct word w, uint32_t *out)
{
	uint32_t n = 0;

	if (w.end - w.at < 3 || w.end - w.at > 10 || w.at[0] != '0' || (w.at[1] | 0x20) != 'x')
		return false;
	for (const char *c = w.at + 2; c < w.end; c++) {
		const char digit = (char)(*c | 0x20);

		if (*c >= '0' && *c <= '9')
			n = n << 4 | (uint32_t)(*c - '0');
		else if (digit >= 'a' && digit <= 'f')
			n = n << 4 | (uint32_t)(digit - 'a' + 10);
		else
			return false;
	}
	*out = n;
	return true;
}

/* ---- the parts of a line ---- */

static bool take_range(struct line *l, struct packet_event_rule *r)
{
	const char *dash = memchr(l->word.at, '-', (size_t)(l->word.end - l->word.at));

	l->want = WANT_RANGE;
	if (!dash || !number((struct word){ l->word.at, dash }, PACKETS_MAX, &r->from) ||
	    !number((struct word){ dash + 1, l->word.end }, PACKETS_MAX, &r->to) ||
	    r->from > r->to)
		return false;
	advance(l);
	return true;
}

static bool take_packets(struct line *l, struct packet_event_rule *r)
{
	if (take(l, "packets"))
		return take_range(l, r);
	if (!expect(l, "packet", WANT_PACKETS) ||
	    !expect_number(l, PACKETS_MAX, &r->from, WANT_NUMBER))
		return false;
	r->to = r->from;
	return true;
}

static bool take_time(struct line *l, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	const char *unit;
	uint64_t n;

	l->want = WANT_TIME;
	unit = is_end(l) ? NULL : num_parse_u64(l->word.at, l->word.end, &n);
	for (size_t i = 0; unit && i < ARRAY_SIZE(units); i++)
		if (is_word((struct word){ unit, l->word.end }, units[i].name) && n &&
		    n <= HOUR_NS / units[i].ns) {
			*ns = n * units[i].ns;
			advance(l);
			return true;
		}
	return false;
}

static bool take_qp(struct line *l, struct packet_event_rule *r)
{
	if (!expect(l, "of", WANT_OF) || !expect(l, "qp", WANT_OF))
		return false;
	if (take(l, "any"))
		return true;
	if (take(l, "nth")) {
		r->whose = PACKET_EVENT_NTH_QP;
		return expect_number(l, UINT16_MAX, &r->qp, WANT_NTH);
	}
	r->whose = PACKET_EVENT_QP;
	l->want = WANT_QP;
	if (is_end(l) || (!hex(l->word, &r->qp) && !number(l->word, QPN_MAX, &r->qp)) ||
	    !r->qp || r->qp > QPN_MAX)
		return false;
	advance(l);
	return true;
}

static bool take_which(struct line *l, struct packet_event_rule *r)
{
	int which = take_name(l, whichs, ARRAY_SIZE(whichs));
	uint32_t again = 0;

	if (which < 0)
		return true;
	r->which = (uint8_t)which;
	if (which == PACKET_EVENT_AGAIN && !expect_number(l, AGAIN_MAX, &again, WANT_AGAIN))
		return false;
	r->again = (uint8_t)again;
	l->want = WANT_END;
	return true;
}

/* All of a line that is not empty. */
static bool take_rule(struct line *l, struct packet_event_rule *r)
{
	int found = take_name(l, packet_event_actions, PACKET_EVENT_ACTIONS);

	l->want = WANT_ACTION;
	if (found < 0)
		return false;
	r->action = (uint8_t)found;
	if (!take_packets(l, r))
		return false;
	if (r->action == PACKET_EVENT_DELAY &&
	    (!expect(l, "by", WANT_BY) || !take_time(l, &r->delay_ns)))
		return false;
	if (!take_qp(l, r))
		return false;
	l->want = WANT_DIRECTION;
	found = take_name(l, directions, ARRAY_SIZE(directions));
	if (found < 0)
		return false;
	r->direction = (uint8_t)found;
	l->want = WANT_REST;
	found = take_name(l, packet_event_classes, PACKET_EVENT_CLASSES);
	if (found > 0) {
		r->class = (uint8_t)found;
		l->want = WANT_WHICH;
	}
	return take_which(l, r) && is_end(l);
}

/* ---- the file ---- */

/* The word, of bounded length and printable. */
static void show_word(struct word w, char to[SHOWN + 4])
{
	size_t n = (size_t)(w.end - w.at), i;

	for (i = 0; i < n && i < SHOWN; i++)
		to[i] = w.at[i] >= ' ' && w.at[i] < 0x7f ? w.at[i] : '?';
	memcpy(to + i, n > SHOWN ? "..." : "", n > SHOWN ? 4 : 1);
}

static int refuse(const char *name, uint32_t number, const struct line *l, char *error,
		  size_t error_bytes)
{
	char word[SHOWN + 4];

	show_word(l->word, word);
	if (is_end(l))
		snprintf(error, error_bytes, "%.100s:%u: the line ends too early, expected %s", name,
			 number, l->want);
	else
		snprintf(error, error_bytes, "%.100s:%u: '%s' is not usable, expected %s", name,
			 number, word, l->want);
	return -EINVAL;
}

static struct line line_from(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));
	struct line l = { .at = at, .end = newline ? newline : end };
	const char *comment = memchr(l.at, '#', (size_t)(l.end - l.at));

	if (comment)
		l.end = comment;
	advance(&l);
	return l;
}

static const char *next_line(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline + 1 : end;
}

int packet_event_parse(const char *name, const char *text, size_t bytes,
		       struct packet_event_rules *rules, char *error, size_t error_bytes)
{
	const char *const end = text + bytes;
	unsigned lines = 0, count = 0;

	/* All lines are checked before the first rule changes. */
	for (unsigned keep = 0; keep < 2; keep++) {
		lines = count = 0;
		for (const char *at = text; at < end; at = next_line(at, end)) {
			struct line l = line_from(at, end);
			struct packet_event_rule r = { .line = ++lines };

			if (is_end(&l))
				continue;
			if (!take_rule(&l, &r))
				return refuse(name, lines, &l, error, error_bytes);
			if (count == PACKET_EVENT_RULES_MAX) {
				snprintf(error, error_bytes, "%.100s:%u: more than %u events", name,
					 lines, PACKET_EVENT_RULES_MAX);
				return -EINVAL;
			}
			if (keep)
				rules->rule[count] = r;
			count++;
		}
	}
	rules->count = count;
	return 0;
}
