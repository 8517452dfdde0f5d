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
	char *at;      /* one writable byte stands behind the end */
	size_t len, pos;
	struct timespec received;
};

/*
 * Scans up to `cnt` samples of what is left of a whole message; the message's `pos` is at
 * its end when nothing more is in it. `padded`: zeros may follow. What cannot be read is
 * noted as malformed.
 */
unsigned message_scan(struct message *m, struct format *f, bool padded,
		      struct sample *smps[], unsigned cnt, struct fault_counters *faults);

/* The bytes of one sample that found no room in a buffer; 0: unknown. Slow. */
size_t message_sample_size(struct format *f, struct sample *smp);

#endif
