/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has come of a stream of bytes (a connection, a pipe) in which the format finds the ends
 * of samples. The owner reads the bytes; it has a descriptor, and here are none.
 */
#ifndef GATEWAY_STREAM_STREAM_INPUT_H
#define GATEWAY_STREAM_STREAM_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "gateway/part/fault.h"
#include "gateway/plugin/format.h"
#include "gateway/stream/stream.h"

struct stream_input {
	struct stream_buffer b;   /* of the owner, of a fixed size, and one more byte behind it */
	struct timespec received; /* when the last ones came */
	bool pending;             /* they may hold a whole sample */
	bool at_end;              /* no more will come */
	bool waits_for_end;       /* they begin with an unfinished sample ... */
	struct format_unfinished unfinished; /* ... of which so much is known */
};

/* A new stream begins. */
void stream_input_reset(struct stream_input *in);

/* The number of bytes that fit behind at[end]; 0: first the pending ones are to be scanned. */
size_t stream_input_room(struct stream_input *in);

/* `n` more have come there. */
void stream_input_add(struct stream_input *in, struct format *f, size_t n);

/* None will come any more. The last line gets the end that it may lack; `f` NULL: it does not
 * matter here. */
void stream_input_end(struct stream_input *in, const struct format *f);

/*
 * Scans up to `cnt` samples of pending bytes, and stamps them. Notes as malformed what cannot be
 * read: also a sample that is longer than the room, or unfinished at the end.
 */
unsigned stream_input_scan(struct stream_input *in, struct format *f, struct sample *smps[],
			   unsigned cnt, struct fault_counters *faults);

/* For an owner that finds the ends itself: drops the unread bytes if no more come or fit. */
void stream_input_drop_rest(struct stream_input *in, struct fault_counters *faults);

#endif
