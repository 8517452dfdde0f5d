/* SPDX-License-Identifier: BSD-2-Clause */
/* Error messages of binary formats; see bytes.h. */
#include "gateway/format/part/bytes.h"

int bytes_fail_short(struct format *f, size_t len)
{
	return text_fail(f, "the message ends within a sample: its last %zu bytes are none",
			 len);
}

int bytes_fail_length(struct format *f, uint64_t length, const struct sample *s)
{
	return text_fail(f, "the sample has %ju values, a sample holds %u here",
			 (uintmax_t)length, s->capacity);
}

int bytes_refuse(struct format *f, const struct signal_list *signals, unsigned i)
{
	text_fail(f, "value %u is %s, which the format '%s' cannot hold", i,
		  signal_type_name(text_type(signals, i)), f->type->name);
	return -ENOTSUP;
}
