/* SPDX-License-Identifier: BSD-2-Clause */
/* See tls_key.h. */
#include "gateway/tls/tls_key.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>

static int key_sign(const uint8_t seed[TLS_KEY_SEED_BYTES], const void *data, size_t len,
		    uint8_t signature[TLS_KEY_SIGNATURE_BYTES])
{
	EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed,
						     TLS_KEY_SEED_BYTES);
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	size_t size = TLS_KEY_SIGNATURE_BYTES;
	int good = key && ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
		   EVP_DigestSign(ctx, signature, &size, data, len) == 1;

	EVP_MD_CTX_free(ctx);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return good ? 0 : -EIO;
}

/* Found by its name. */
extern const struct tls_key_ops http_tls_key;
const struct tls_key_ops http_tls_key = { .sign = key_sign };
