/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iotagent_ul: Ultralight 2.0 measures for FIWARE IoT agents, `name|value` pairs
 * with `|` between them. No time, no sequence number. In files each sample is a
 * line; a message is one sample, without an end of line.
 */
#include "gateway/format/part/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BAR '|'

static char *print_line(const struct format *f, char *at, const char *end,
			size_t real_max, const struct sample *s)
{
	const struct signal_list *signals = s->signals ? s->signals : f->signals;

	for (unsigned i = 0; f->data && i < s->length; i++) {
		bool named = signals && i < signals->count;
		enum signal_type type = text_type(signals, i);
		size_t name = named ? strlen(signals->signals[i].name) : 16;

		if ((size_t)(end - at) < name + 2 + text_value_max(real_max, type))
			return NULL;
		if (i > 0)
			*at++ = BAR;
		if (named) {
			memcpy(at, signals->signals[i].name, name);
			at += name;
		} else {
			memcpy(at, "signal_", 7);
			at = num_print_u64(at + 7, i);
		}
		*at++ = BAR;
		at = text_print_value(f, at, type, &s->data[i]);
	}
	if (f->message)
		return at;
	if (at == end)
		return NULL;
	*at++ = f->delimiter;
	return at;
}

static int iotagent_print(struct format *f, char *buf, size_t size, size_t *used,
			  struct sample *const smps[], unsigned cnt)
{
	return text_print_lines(f, print_line, buf, size, used, smps,
				f->message ? MIN(cnt, 1u) : cnt);
}

/* Up to the next bar or the end; `line` moves behind it. */
static struct text next_piece(struct text *line)
{
	const char *bar = memchr(line->at, BAR, (size_t)(line->end - line->at));
	struct text piece = { line->at, bar ? bar : line->end };

	line->at = bar ? bar + 1 : line->end;
	return piece;
}

static int scan_pairs(struct format *f, struct text line, struct sample *s)
{
	struct text name, value;
	unsigned n = 0;

	s->signals = f->signals->count ? f->signals : NULL;
	s->flags = 0;
	s->length = 0;
	for (; line.at < line.end; n++) {
		bool lone;
		int ret;
		long i;

		name = next_piece(&line);
		lone = name.end == line.end;
		value = next_piece(&line);
		if (lone)
			return text_fail_at(f, "name", name, "has no value");
		i = s->signals ? text_find_signal(f->signals, name, n) : (long)n;
		f->foreign |= i < 0;
		if (i < 0)
			continue; /* a measure that is not a signal */
		ret = text_reach_value(f, s, (unsigned)i);
		if (ret)
			return ret;
		if (!text_scan_value(value, text_type(f->signals, (unsigned)i),
				     &s->data[i]))
			return text_fail_at(f, "value", value,
				text_value_problem(text_type(f->signals,
							     (unsigned)i)));
	}
	s->flags |= s->length ? SAMPLE_HAS_DATA : 0;
	text_tell_foreign(f, s);
	return 0;
}

static int iotagent_scan(struct format *f, const char *buf, size_t len,
			 size_t *used, struct sample *smps[], unsigned cnt)
{
	return text_scan_lines(f, scan_pairs, buf, len, used, smps, cnt);
}

const struct format_type format_iotagent_ul = {
	.name = "iotagent_ul",
	.description = "Ultralight 2.0 text for FIWARE IoT agents",
	.lines = true,
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_ONE_PER_MESSAGE,
		.types = FORMAT_ALL_TYPES, .flags = SAMPLE_HAS_DATA,
		.real_bits = 64, .integer_bits = 64,
	},
	.size = sizeof(struct text_state),
	.print = iotagent_print,
	.reset = text_reset,
	.scan = iotagent_scan,
};
