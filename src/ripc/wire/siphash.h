/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SipHash-2-4 with an output of 128 bits (Aumasson and Bernstein, 2012, and the longer
 * output of the authors' second version): a short keyed hash. Who does not know the key
 * cannot make the code of a packet; it is no hash without a secret key.
 */
#ifndef RIPC_SIPHASH_H
#define RIPC_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_BYTES 16

void siphash(const uint8_t key[16], const uint8_t *bytes, size_t length,
	     uint8_t out[SIPHASH_BYTES]);

#endif
