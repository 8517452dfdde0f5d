/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-1 (FIPS 180-4) of short texts. The handshake of WebSocket uses it to show that a
 * server speaks the protocol; nothing is kept secret by it. */
#ifndef GATEWAY_PART_WEBSOCKET_SHA1_H
#define GATEWAY_PART_WEBSOCKET_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20

void sha1(const void *data, size_t len, uint8_t digest[SHA1_BYTES]);

#endif
