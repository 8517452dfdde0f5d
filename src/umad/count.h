/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Performance management of soft0 without a fabric (IBA volume 1, 16.1): ClassPortInfo, PortCounters
 * and PortCountersExtended. The counters are the sums over the processes that use the adapter now, so
 * they fall when one ends; bytes are those of messages, without headers.
 */
#ifndef UMAD_COUNT_H
#define UMAD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad/mad.h"

/* Makes the answer to a request of this class. False: it is of another class, or has no answer. */
bool umad_count_answer(const uint8_t request[MAD_BYTES], uint8_t answer[MAD_BYTES]);

#endif
