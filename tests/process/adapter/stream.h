/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP for the adapter's tests. */
#ifndef ADAPTER_STREAM_H
#define ADAPTER_STREAM_H

#include "pair.h"

/* QP `i` of both sides, which are in INIT, to RTS. ADAPTER_STREAM: "crc", "markers" or both: what
 * the streams have. */
void stream_connect(struct pair *p, int i);

#endif
