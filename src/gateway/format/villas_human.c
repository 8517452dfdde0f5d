/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * villas.human: one sample per line,
 *
 *   SEC.NNNNNNNNN+OFFSET(SEQUENCE)F<TAB>value<TAB>value...
 *
 * Everything but the seconds and one value may be left out when reading. Unlike
 * other writers of this format this one loses nothing: values print so that
 * they read back to the same bits, the offset (received - origin) with all its
 * nanoseconds. "0.0" stands for a sample without origin; a time of zero is
 * written 0.000000000. Not carried: the flag of a new simulation.
 */
#include "gateway/format/part/text.h"

#include <errno.h>
#include <string.h>

/* Time, offset, sequence, flag and delimiter. */
#define HEAD_MAX 128

static char *print_head(const struct format *f, char *at, const struct sample *s)
{
	const struct timespec zero = { 0, 0 };
	bool has_origin = f->ts_origin && (s->flags & SAMPLE_HAS_ORIGIN);

	if (has_origin) {
		at = text_print_time(at, s->origin);
	} else {
		memcpy(at, "0.0", 3);
		at += 3;
	}
	if (f->ts_received && f->offset && (s->flags & SAMPLE_HAS_RECEIVED))
		at = text_print_offset(at, has_origin ? s->origin : zero,
				       s->received);
	if (f->sequence && (s->flags & SAMPLE_HAS_SEQUENCE)) {
		*at++ = '(';
		at = num_print_u64(at, s->sequence);
		*at++ = ')';
	}
	if (s->flags & SAMPLE_NEW_FRAME)
		*at++ = 'F';
	return at;
}

/* NULL when the line might not fit. */
static char *print_line(const struct format *f, char *at, const char *end,
			size_t real_max, const struct sample *s)
{
	const struct signal_list *signals = s->signals ? s->signals : f->signals;

	if (end - at < HEAD_MAX)
		return NULL;
	at = print_head(f, at, s);
	for (unsigned i = 0; f->data && i < s->length; i++) {
		enum signal_type type = text_type(signals, i);

		if ((size_t)(end - at) < text_value_max(real_max, type))
			return NULL;
		*at++ = f->separator;
		at = text_print_value(f, at, type, &s->data[i]);
	}
	*at++ = f->delimiter;
	return at;
}

static int human_print(struct format *f, char *buf, size_t size, size_t *used,
		       struct sample *const smps[], unsigned cnt)
{
	return text_print_lines(f, print_line, buf, size, used, smps, cnt);
}

static size_t human_header(struct format *f, char *buf, size_t size,
			   const struct signal_list *signals)
{
	size_t used = 0;

	text_append(buf, size, &used, "%c ", f->comment_prefix);
	text_append(buf, size, &used, "seconds.nanoseconds");
	text_append(buf, size, &used, "%s",
		    f->ts_received && f->offset ? "+offset" : "");
	text_append(buf, size, &used, "%s", f->sequence ? "(sequence)" : "");
	if (f->data)
		text_append_signals(buf, size, &used, f->separator, signals);
	text_append(buf, size, &used, "%c", f->delimiter);
	return used;
}

static int scan_head(struct format *f, struct text head, struct sample *s)
{
	const char *at = text_scan_time(head, false, 0, &s->origin);

	s->flags = 0;
	if (!at)
		return text_fail_at(f, "timestamp", head,
				    "is not SECONDS or SECONDS.FRACTION");
	if (at - head.at != 3 || memcmp(head.at, "0.0", 3))
		s->flags |= SAMPLE_HAS_ORIGIN;
	if (at < head.end && (*at == '+' || *at == '-')) {
		struct text offset = { at, head.end };

		at = text_scan_offset(offset, s->origin, &s->received);
		if (!at)
			return text_fail_at(f, "offset", offset,
					    "is not a number of seconds");
		s->flags |= SAMPLE_HAS_RECEIVED;
	}
	if (at < head.end && *at == '(') {
		struct text sequence = { at, head.end };

		at = num_parse_u64(at + 1, head.end, &s->sequence);
		if (!at || at == head.end || *at != ')')
			return text_fail_at(f, "sequence number", sequence,
					    "is not (NUMBER)");
		at++;
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
	if (at < head.end && *at == 'F') {
		s->flags |= SAMPLE_NEW_FRAME;
		at++;
	}
	if (at != head.end)
		return text_fail_at(f, "text", (struct text){ at, head.end },
				    "does not belong behind the timestamp");
	return 0;
}

static bool is_blank(const struct format *f, char c)
{
	return c == f->separator || c == ' ' || c == '\t';
}

static int scan_line(struct format *f, struct text line, struct sample *s)
{
	const char *at = line.at;
	unsigned n = 0;
	int ret;

	while (at < line.end && !is_blank(f, *at))
		at++;
	ret = scan_head(f, (struct text){ line.at, at }, s);
	if (ret)
		return ret;
	for (;;) {
		struct text piece;

		while (at < line.end && is_blank(f, *at))
			at++;
		if (at == line.end)
			break;
		piece.at = at;
		while (at < line.end && !is_blank(f, *at))
			at++;
		piece.end = at;
		if (n == s->capacity)
			return text_fail(f, "the line has more than %u values, "
					 "which is all that a sample holds here",
					 s->capacity);
		if (!text_scan_value(piece, text_type(f->signals, n),
				     &s->data[n]))
			return text_fail_at(f, "value", piece,
				text_value_problem(text_type(f->signals, n)));
		n++;
	}
	s->length = n;
	s->signals = f->signals->count ? f->signals : NULL;
	if (n)
		s->flags |= SAMPLE_HAS_DATA;
	return 0;
}

static int human_scan(struct format *f, const char *buf, size_t len,
		      size_t *used, struct sample *smps[], unsigned cnt)
{
	return text_scan_lines(f, scan_line, buf, len, used, smps, cnt);
}

static int human_init(struct format *f)
{
	if (!f->separator)
		f->separator = '\t';
	return 0;
}

const struct format_type format_villas_human = {
	.name = "villas.human",
	.description = "Text, one sample per line, made to be read by people",
	.lines = true,
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA |
			 SAMPLE_NEW_FRAME,
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,
		.seconds_bits = 63, .time_step_ns = 1,
	},
	.size = sizeof(struct text_state),
	.init = human_init,
	.print = human_print,
	.header = human_header,
	.reset = text_reset,
	.scan = human_scan,
};
