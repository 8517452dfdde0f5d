/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hashes of short texts (FIPS 180-4). SHA-1: the handshake of WebSocket shows by it that a server
 * speaks the protocol; nothing is kept secret by it. SHA-256: tokens are kept and compared by
 * their hash.
 */
#ifndef GATEWAY_PART_SHA_H
#define GATEWAY_PART_SHA_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_BYTES 20
#define SHA256_BYTES 32

void sha1(const void *data, size_t len, uint8_t out[SHA1_BYTES]);
void sha256(const void *data, size_t len, uint8_t out[SHA256_BYTES]);

#endif
