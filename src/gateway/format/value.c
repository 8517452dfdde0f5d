/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * value: one bare number per sample and line, for topics and files that hold
 * nothing else. Neither time nor sequence number; of a sample with several values
 * the first one is written.
 */
#include "gateway/format/part/text.h"

#include <errno.h>
#include <string.h>

#define LOG_ROOM "gateway/value"
#include "util/log.h"

struct value {
	struct text_state text;
	bool warned;
};

static char *print_line(const struct format *f, char *at, const char *end,
			size_t real_max, const struct sample *s)
{
	const struct signal_list *signals = s->signals ? s->signals : f->signals;
	enum signal_type type = text_type(signals, 0);

	if ((size_t)(end - at) < text_value_max(real_max, type) + 1)
		return NULL;
	if (s->length && f->data)
		at = text_print_value(f, at, type, &s->data[0]);
	*at++ = f->delimiter;
	return at;
}

static int value_print(struct format *f, char *buf, size_t size, size_t *used,
		       struct sample *const smps[], unsigned cnt)
{
	struct value *v = f->private_data;

	if (unlikely(cnt && smps[0]->length > 1 && !v->warned)) {
		v->warned = true;
		log_warn("samples have %u values, the format 'value' writes the first of them",
			 smps[0]->length);
	}
	return text_print_lines(f, print_line, buf, size, used, smps,
				f->message ? MIN(cnt, 1u) : cnt);
}

static int value_scan_line(struct format *f, struct text line, struct sample *s)
{
	enum signal_type type = text_type(f->signals, 0);

	s->signals = f->signals->count ? f->signals : NULL;
	if (!s->capacity)
		return text_fail(f, "a sample holds no value here");
	if (!text_scan_value(line, type, &s->data[0]))
		return text_fail_at(f, "value", line, text_value_problem(type));
	s->length = 1;
	s->flags = SAMPLE_HAS_DATA;
	return 0;
}

static int value_scan(struct format *f, const char *buf, size_t len, size_t *used,
		      struct sample *smps[], unsigned cnt)
{
	return text_scan_lines(f, value_scan_line, buf, len, used, smps, cnt);
}

const struct format_type format_value = {
	.name = "value",
	.description = "One bare value as text",
	.lines = true,
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_ONE_PER_MESSAGE,
		.types = FORMAT_ALL_TYPES, .flags = SAMPLE_HAS_DATA,
		.values_max = 1, .real_bits = 64, .integer_bits = 64,
	},
	.size = sizeof(struct value),
	.print = value_print,
	.reset = text_reset,
	.scan = value_scan,
};
