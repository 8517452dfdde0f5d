/* SPDX-License-Identifier: BSD-2-Clause */
/* Signatures, by the module with TLS. Its symbol is `http_tls_key`. */
#ifndef GATEWAY_TLS_TLS_KEY_H
#define GATEWAY_TLS_TLS_KEY_H

#include <stddef.h>
#include <stdint.h>

#define TLS_KEY_SEED_BYTES 32
#define TLS_KEY_SIGNATURE_BYTES 64

struct tls_key_ops {
	/* Ed25519 (RFC 8032). 0 or -EIO. */
	int (*sign)(const uint8_t seed[TLS_KEY_SEED_BYTES], const void *data, size_t len,
		    uint8_t signature[TLS_KEY_SIGNATURE_BYTES]);
};

#endif
