/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of a message that a network brought: a datagram, or a frame of a stream. */
#ifndef GATEWAY_PART_MESSAGE_H
#define GATEWAY_PART_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "gateway/part/fault.h"
#include "gateway/plugin/format.h"

struct message {
	char *at;         /* message_scan() only reads */
	size_t len, pos;
	struct timespec received;
	const char *from; /* the sender, for the log; NULL: without one */
	bool padded;      /* zeros may follow */
	unsigned wrong;   /* pieces that were no samples; format_error() has the last cause */
};

/*
 * Scans up to `cnt` samples of what is left of a whole message; the message's `pos` is at
 * its end when nothing more is in it. What cannot be read is counted in `wrong` and, unless
 * `faults` is NULL, noted there as malformed.
 */
unsigned message_scan(struct message *m, struct format *f, struct sample *smps[], unsigned cnt,
		      struct fault_counters *faults);

/*
 * Counts a sample that print() of the format has refused (`printed` is its negative errno), or
 * that is longer than a message may be. `bytes`: its length; 0: it found no room in a buffer.
 * `limit` and `max` tell how long a message may be: "a datagram has at most". Slow.
 */
void message_refuse(struct node *n, struct format *f, struct sample *smp, int printed,
		    size_t bytes, const char *limit, size_t max);

#endif
