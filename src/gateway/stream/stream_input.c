/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples out of streams; see stream_input.h. */
#include "gateway/stream/stream_input.h"

#include <assert.h>

#include "util/clock.h"

void stream_input_reset(struct stream_input *in)
{
	in->b.start = in->b.end = 0;
	in->pending = in->at_end = in->waits_for_end = false;
}

size_t stream_input_room(struct stream_input *in)
{
	if (in->b.start == in->b.end)
		in->b.start = in->b.end = 0;
	else if (in->b.end == in->b.size)
		stream_buffer_compact(&in->b);
	return in->b.size - in->b.end;
}

/*
 * Is it worth scanning what has come? An unfinished sample is not scanned again with
 * each of its pieces: that would be the square of its length in work for a peer that
 * sends single bytes. A full buffer is, so that the scan drops it.
 */
static bool worth_scanning(struct stream_input *in, struct format *f)
{
	return !in->waits_for_end || in->b.end == in->b.size ||
	       format_may_end(f, in->b.at + in->b.start, stream_buffer_filled(&in->b),
			      &in->unfinished);
}

void stream_input_add(struct stream_input *in, struct format *f, size_t n)
{
	in->b.end += n;
	in->received = clock_realtime();
	in->pending = worth_scanning(in, f);
}

void stream_input_end(struct stream_input *in, const struct format *f)
{
	in->at_end = true;
	in->pending = in->b.start < in->b.end;
	if (in->pending && f && f->type->lines && !f->binary &&
	    in->b.at[in->b.end - 1] != f->delimiter)
		in->b.at[in->b.end++] = f->delimiter;
}

void stream_input_drop_rest(struct stream_input *in, struct fault_counters *faults)
{
	size_t filled = stream_buffer_filled(&in->b);

	if (!filled || (!in->at_end && filled < in->b.size))
		return;
	fault_note(faults, FAULT_MALFORMED, 1, "%zu bytes %s", filled,
		   in->at_end ? "behind the last whole sample" :
				"without the end of a sample");
	in->b.start = in->b.end = 0;
	in->waits_for_end = false;
}

/* The first of the bytes begin a sample that does not end among them. */
static void await_end(struct stream_input *in, struct fault_counters *faults)
{
	if (!in->waits_for_end)
		in->unfinished = (struct format_unfinished){ 0 };
	in->waits_for_end = true;
	stream_input_drop_rest(in, faults);
}

static void stamp(const struct stream_input *in, struct sample *smps[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		smps[i]->received = in->received;
		smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
}

unsigned stream_input_scan(struct stream_input *in, struct format *f, struct sample *smps[],
			   unsigned cnt, struct fault_counters *faults)
{
	unsigned n = 0;

	while (in->pending && n < cnt) {
		size_t used = 0;
		int ret = f->type->scan(f, in->b.at + in->b.start, stream_buffer_filled(&in->b),
					&used, smps + n, cnt - n);

		assert(used <= stream_buffer_filled(&in->b));
		in->b.start += used;
		if (used || ret)
			in->waits_for_end = false;
		if (likely(ret > 0))
			n += (unsigned)ret;
		else if (ret < 0)
			fault_note(faults, FAULT_MALFORMED, 1, "%s", format_error(f));
		else
			await_end(in, faults);
		if (ret && !used) /* it cannot go on behind that */
			in->b.start = in->b.end;
		in->pending = ret && in->b.start < in->b.end;
	}
	stamp(in, smps, n);
	return n;
}
