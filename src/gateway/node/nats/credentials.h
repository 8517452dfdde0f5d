/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of credentials (.creds), as nsc writes it: the JWT of a user, and the seed of its key. */
#ifndef GATEWAY_NODE_NATS_CREDENTIALS_H
#define GATEWAY_NODE_NATS_CREDENTIALS_H

#include <stddef.h>

#include "gateway/tls/tls_key.h"

#define NATS_CREDENTIALS_MAX 16384
/* A signature in the alphabet of base64 for URLs, with a zero. */
#define NATS_SIGNATURE_SIZE 87

struct nats_credentials {
	const char *jwt;
	uint8_t seed[TLS_KEY_SEED_BYTES];
};

/* Reads `text`, which is changed and from which c->jwt borrows. NULL, or what is wrong. */
const char *nats_credentials_read(struct nats_credentials *c, char *text);
void nats_signature_print(const uint8_t signature[TLS_KEY_SIGNATURE_BYTES],
			  char out[NATS_SIGNATURE_SIZE]);

#endif
