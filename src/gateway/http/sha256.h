/* SPDX-License-Identifier: BSD-2-Clause */
/* SHA-256 (FIPS 180-4) of short texts: tokens are kept and compared by their hash. */
#ifndef GATEWAY_HTTP_SHA256_H
#define GATEWAY_HTTP_SHA256_H

#include <stddef.h>

#define SHA256_BYTES 32

void sha256(const void *data, size_t len, unsigned char digest[SHA256_BYTES]);

#endif
