/* SPDX-License-Identifier: BSD-2-Clause */
/* The ends of links in a topology file: their lines, and whether two of them fit. See reader.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/reader.h"
#include "util/container_of.h"
#include "util/nearest.h"

/* LinkWidthEnabled has bits for 1x to 12x and 2x; LinkSpeedEnabled for SDR, DDR, QDR. */
#define WIDTH_BITS_MAX 31
#define SPEED_BITS_MAX 7

/* ---- one line ---- */

/* "(GUID)" if it is there; 0: it is not. */
static int scan_port_guid(struct topology_scan *s, uint64_t *guid)
{
	int err;

	*guid = 0;
	topology_scan_blanks(s);
	if (!topology_scan_char(s, '('))
		return 0;
	err = topology_scan_guid(s, "the GUID of a port", guid);
	if (err)
		return err;
	if (!topology_scan_char(s, ')'))
		return topology_scan_refuse(s, "the GUID of a port has no closing parenthesis");
	return *guid ? 0 : topology_scan_refuse(s, "the GUID of a port is 0");
}

static int set_rate(struct topology_half *h, const struct topology_scan *s, enum topology_width width,
		    enum topology_speed speed)
{
	if (h->has_rate && (h->width != width || h->speed != speed))
		return topology_scan_refuse(s, "port %u has two widths or speeds: %ux%s and %ux%s", h->port,
					    topology_lanes(h->width), topology_speed_name(h->speed),
					    topology_lanes(width), topology_speed_name(speed));
	h->has_rate = true;
	h->width = width;
	h->speed = speed;
	return 0;
}

static int set_bits(const struct topology_scan *s, const struct topology_word *value, const char *what,
		    uint64_t max, uint8_t *bits)
{
	struct topology_scan part = *s;
	uint64_t number;
	int err;

	part.at = value->at;
	part.end = value->at + value->bytes;
	err = topology_scan_number(&part, what, max, &number);
	if (err)
		return err;
	if (part.at != part.end || !number)
		return topology_scan_refuse(s, "%s is a number from 1 to %llu", what, (unsigned long long)max);
	*bits = (uint8_t)number;
	return 0;
}

static int set_option(struct topology_half *h, const struct topology_scan *s, const struct topology_word *key,
		      const struct topology_word *value)
{
	char text[24], hint[64];
	struct nearest near;

	if (topology_word_is(key, "w"))
		return set_bits(s, value, "w (bits of enabled widths)", WIDTH_BITS_MAX, &h->widths);
	if (topology_word_is(key, "s"))
		return set_bits(s, value, "s (bits of enabled speeds)", SPEED_BITS_MAX, &h->speeds);
	if (topology_word_is(key, "delay")) {
		h->has_delay = true;
		if (topology_parse_delay(value->at, value->bytes, &h->delay_ns))
			return topology_scan_refuse(s, "delay '%s' is not a time up to 1s, as 300ns or 1.5us",
						    topology_word_text(value, text, sizeof(text)));
		return 0;
	}
	if (topology_word_is(key, "ber")) {
		h->has_error_rate = true;
		if (topology_parse_error_rate(value->at, value->bytes, &h->bit_error_rate))
			return topology_scan_refuse(s, "ber '%s' is not a bit error rate below 1, as 1e-12",
						    topology_word_text(value, text, sizeof(text)));
		return 0;
	}
	near = NEAREST(topology_word_text(key, text, sizeof(text)));
	nearest_try(&near, "delay");
	nearest_try(&near, "ber");
	return topology_scan_refuse(s, "a link has no '%s'%s Known are w, s, delay and ber.", text,
				    *nearest_hint(&near, hint, sizeof(hint)) ? hint : ".");
}

/* A word behind the peer: "4xEDR", "delay:300ns", "w=2". */
static int read_word(struct topology_half *h, const struct topology_scan *s, const struct topology_word *word)
{
	enum topology_width width;
	enum topology_speed speed;
	char text[40];

	if (!topology_parse_rate(word->at, word->bytes, &width, &speed))
		return set_rate(h, s, width, speed);
	for (size_t i = 0; i < word->bytes; i++)
		if (word->at[i] == '=' || word->at[i] == ':')
			return set_option(h, s, &(struct topology_word){ word->at, i },
					  &(struct topology_word){ word->at + i + 1, word->bytes - i - 1 });
	return topology_scan_refuse(s, "'%s' is not known behind a link, as 4xEDR or delay:300ns are",
				    topology_word_text(word, text, sizeof(text)));
}

/* A comment is of interest for its width and speed; names of nodes in it may look like them. */
static int read_comment(struct topology_half *h, struct topology_scan *s)
{
	bool quoted = false;

	while (s->at < s->end) {
		struct topology_word word = { s->at, 0 };
		enum topology_width width;
		enum topology_speed speed;
		int err;

		if (*s->at == '"')
			quoted = !quoted;
		while (s->at < s->end && *s->at != ' ' && *s->at != '\t' && *s->at != '"')
			s->at++;
		word.bytes = (size_t)(s->at - word.at);
		if (!word.bytes)
			s->at++;
		if (quoted || topology_parse_rate(word.at, word.bytes, &width, &speed))
			continue;
		err = set_rate(h, s, width, speed);
		if (err)
			return err;
	}
	return 0;
}

static int read_words(struct topology_half *h, struct topology_scan *s)
{
	struct topology_word word;

	while (topology_scan_word(s, &word)) {
		int err = read_word(h, s, &word);

		if (err)
			return err;
	}
	if (s->at < s->end && s->end[-1] == '\r')
		s->end--;
	return read_comment(h, s);
}

/* "PEER"[2](GUID); without a number it is port 1. */
static int read_peer(struct topology_half *h, struct topology_scan *s)
{
	int err = topology_scan_quoted(s, "the name of the node at the other end", h->peer, sizeof(h->peer));

	if (err)
		return err;
	h->peer_port = 1;
	topology_scan_blanks(s);
	if (s->at < s->end && *s->at == '[') {
		err = topology_scan_port(s, &h->peer_port);
		if (err)
			return err;
	}
	return scan_port_guid(s, &h->peer_guid);
}

/* ---- all lines ---- */

static int keep(struct topology_halves *h, const struct topology_scan *s, const struct topology_half *half)
{
	if (h->count == h->capacity) {
		uint32_t capacity = h->capacity ? 2 * h->capacity : 64;
		struct topology_half *larger = reallocarray(h->list, capacity, sizeof(*larger));

		if (!larger)
			goto err_memory;
		h->list = larger;
		h->capacity = capacity;
	}
	if (h->count >= 2 * TOPOLOGY_LINKS_MAX) {
		topology_scan_refuse(s, "more than %d links", TOPOLOGY_LINKS_MAX);
		return -ENOSPC;
	}
	if (topology_table_reserve(&h->by_end, 1))
		goto err_memory;
	topology_table_add(&h->by_end, half->node * UINT64_C(256) + half->port, h->count);
	h->list[h->count++] = *half;
	return 0;
err_memory:
	topology_scan_refuse(s, "no memory for a link");
	return -ENOMEM;
}

int topology_half_read(struct topology_halves *h, struct topology_scan *s, const struct topology_node *n,
		       uint32_t node, uint8_t widths, uint8_t speeds)
{
	struct topology_half half = { .node = node, .widths = widths, .speeds = speeds,
				      .file = s->file, .line = s->line };
	uint32_t other;
	uint64_t guid;
	int err = topology_scan_port(s, &half.port);

	if (err)
		return err;
	if (half.port > n->port_count)
		return topology_scan_refuse(s, "'%s' has no port %u, only 1 to %u", n->id, half.port, n->port_count);
	other = topology_table_find(&h->by_end, node * UINT64_C(256) + half.port);
	if (other != TOPOLOGY_NONE)
		return topology_scan_refuse(s, "port %u of '%s' is used twice, first in line %u", half.port, n->id,
					    h->list[other].line);
	err = scan_port_guid(s, &guid);
	if (err)
		return err;
	if (guid && n->kind == TOPOLOGY_HCA)
		n->ports[half.port].guid = guid;
	topology_scan_blanks(s);
	if (guid && (s->at == s->end || *s->at == '#'))
		return 0;
	err = read_peer(&half, s);
	if (!err)
		err = read_words(&half, s);
	return err ? err : keep(h, s, &half);
}

void topology_halves_free(struct topology_halves *h)
{
	topology_table_free(&h->by_end);
	free(h->list);
}

/* ---- joining ---- */

static int refuse_peer(const struct topology *t, const struct topology_half *half, const struct topology_scan *s)
{
	struct nearest near = NEAREST(half->peer);
	char hint[96];

	for (uint32_t i = 0; i < t->node_count; i++)
		nearest_try(&near, t->nodes[i].id);
	return topology_scan_refuse(s, "no node is called '%s'%s", half->peer,
				    nearest_hint(&near, hint, sizeof(hint)));
}

/* The other end of the link in *peer, after a check that its line says the same. */
static int find_peer(const struct topology_halves *h, const struct topology *t, const struct topology_scan *s,
		     const struct topology_half *half, const struct topology_half **peer)
{
	uint32_t node = topology_find_id(t, half->peer), other;
	const struct topology_node *n, *self = &t->nodes[half->node];

	if (node == TOPOLOGY_NONE)
		return refuse_peer(t, half, s);
	n = &t->nodes[node];
	if (half->peer_port > n->port_count)
		return topology_scan_refuse(s, "'%s' has no port %u, only 1 to %u", n->id, half->peer_port,
					    n->port_count);
	other = topology_table_find(&h->by_end, node * UINT64_C(256) + half->peer_port);
	if (other == TOPOLOGY_NONE)
		return topology_scan_refuse(s,
					    "'%s' has no line for this link: right is [%u] \"%s\"[%u] below it",
					    n->id, half->peer_port, self->id, half->port);
	*peer = &h->list[other];
	if (topology_find_id(t, (*peer)->peer) != half->node || (*peer)->peer_port != half->port)
		return topology_scan_refuse(s,
					    "port %u of '%s' is linked to port %u of '%s', which %s line %u "
					    "links to port %u of '%s'",
					    half->port, self->id, half->peer_port, n->id, (*peer)->file,
					    (*peer)->line, (*peer)->peer_port, (*peer)->peer);
	if (half->peer_guid && n->kind == TOPOLOGY_HCA && n->ports[half->peer_port].guid != half->peer_guid)
		return topology_scan_refuse(s,
					    "port %u of '%s' has the GUID 0x%016llx there and 0x%016llx here",
					    half->peer_port, n->id,
					    (unsigned long long)n->ports[half->peer_port].guid,
					    (unsigned long long)half->peer_guid);
	return 0;
}

/* The highest bit that both ends allow; -1: there is none. */
static int highest_common(unsigned a, unsigned b)
{
	unsigned both = a & b;

	return both ? 31 - __builtin_clz(both) : -1;
}

static int agree_on_rate(const struct topology_half *a, const struct topology_half *b,
			 const struct topology_scan *s, struct topology_link *l)
{
	const struct topology_half *said = a->has_rate ? a : b;
	/* 2x has the highest bit, and is wider than 1x alone. */
	unsigned widths = a->widths & b->widths;
	unsigned wide = widths & ~(unsigned)TOPOLOGY_1X & ~(unsigned)TOPOLOGY_2X;
	int width, speed;

	if (a->has_rate && b->has_rate && (a->width != b->width || a->speed != b->speed))
		return topology_scan_refuse(s, "the link is %ux%s here and %ux%s at its other end, in line %u",
					    topology_lanes(a->width), topology_speed_name(a->speed),
					    topology_lanes(b->width), topology_speed_name(b->speed), b->line);
	if (said->has_rate) {
		l->width = said->width;
		l->speed = said->speed;
		return 0;
	}
	width = highest_common(wide ? wide : widths, widths);
	speed = highest_common(a->speeds, b->speeds);
	if (width < 0 || speed < 0)
		return topology_scan_refuse(s, "the link has no %s that both ends allow (the other: line %u)",
					    width < 0 ? "width" : "speed", b->line);
	l->width = (enum topology_width)(1 << width);
	l->speed = (enum topology_speed)speed;
	return 0;
}

static int agree(const struct topology_half *a, const struct topology_half *b, const struct topology_scan *s,
		 struct topology_link *l)
{
	if (a->has_delay && b->has_delay && a->delay_ns != b->delay_ns)
		return topology_scan_refuse(s, "the link has another delay at its other end, in line %u", b->line);
	if (a->has_error_rate && b->has_error_rate && a->bit_error_rate != b->bit_error_rate)
		return topology_scan_refuse(s, "the link has another ber at its other end, in line %u", b->line);
	l->delay_ns = a->has_delay ? a->delay_ns : b->delay_ns;
	l->bit_error_rate = a->has_error_rate ? a->bit_error_rate : b->bit_error_rate;
	return agree_on_rate(a, b, s, l);
}

int topology_halves_join(struct topology_halves *h, struct topology *t, struct topology_scan *s)
{
	for (uint32_t i = 0; i < h->count; i++) {
		const struct topology_half *half = &h->list[i], *peer = NULL;
		struct topology_link l = { 0 };
		char text[256];
		int err;

		s->file = half->file;
		s->line = half->line;
		err = find_peer(h, t, s, half, &peer);
		if (err)
			return err;
		if (peer < half)
			continue;
		err = agree(half, peer, s, &l);
		if (err)
			return err;
		l.end[0] = (struct topology_end){ half->node, half->port };
		l.end[1] = (struct topology_end){ peer->node, peer->port };
		err = topology_add_link(t, &l, text, sizeof(text));
		if (err) {
			topology_scan_refuse(s, "%s", text);
			return err;
		}
	}
	return 0;
}
