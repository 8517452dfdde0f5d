/* SPDX-License-Identifier: BSD-2-Clause */
/* A DDP segment that a machine of this folder has to send. */
#ifndef ENGINE_IWARP_TX_H
#define ENGINE_IWARP_TX_H

#include <stdint.h>

#include "wire/iwarp/segment.h"

/* Where the payload lies, which the caller puts behind the headers. */
enum iwarp_source {
	IWARP_FROM_NOWHERE, /* there is none */
	IWARP_FROM_ENTRY,   /* byte `at` of the message of the work entry `index` */
	IWARP_FROM_MEMORY,  /* `to`, read by the key `stag`, for a READ response */
};

struct iwarp_tx {
	struct iwarp_segment segment; /* `segment.bytes` of payload */
	uint8_t source;               /* enum iwarp_source */
	uint32_t index, at;           /* of requests, also without payload */
	uint32_t stag;
	uint64_t to;
};

#endif
