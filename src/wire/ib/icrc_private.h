/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the ICRC. */
#ifndef WIRE_IB_ICRC_PRIVATE_H
#define WIRE_IB_ICRC_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* A word stands for a polynomial, bit 31 for the coefficient of x^0. */
struct icrc_code {
	/* The CRC register after `bytes` more. */
	uint32_t (*run)(uint32_t crc, const uint8_t *data, size_t bytes);
	/* The product modulo the polynomial of the CRC. */
	uint32_t (*multiply)(uint32_t a, uint32_t b);
};

uint32_t icrc_portable_run(uint32_t crc, const uint8_t *data, size_t bytes);
uint32_t icrc_portable_multiply(uint32_t a, uint32_t b);

/* Of this processor; NULL: it has not the instructions. */
const struct icrc_code *icrc_clmul(void);
const struct icrc_code *icrc_clmul_256(void);
const struct icrc_code *icrc_clmul_512(void);
const struct icrc_code *icrc_arm(void);

#endif
