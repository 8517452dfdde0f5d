/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC-32C (Castagnoli), as the FPDUs of MPA carry it: RFC 5044, 4.4, with the conventions of
 * RFC 3720 (12.1; check values in B.4). The register begins with ones, is inverted at the end,
 * and stands in the stream with its low byte first.
 *
 * Pure functions, of any thread. The fastest code for the processor is chosen at the first call.
 */
#ifndef WIRE_IWARP_CRC32C_H
#define WIRE_IWARP_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CRC32C_BYTES_OUT = 4 };
#define CRC32C_BEGIN 0xffffffffu

/* The register `crc` after `bytes` more. Data may come in pieces of any length. */
uint32_t crc32c_add(uint32_t crc, const void *data, size_t bytes);
/* Writes the CRC as the stream has it. */
void crc32c_end(uint32_t crc, uint8_t to[CRC32C_BYTES_OUT]);
/* Are the bytes `received` the CRC? */
bool crc32c_matches(uint32_t crc, const uint8_t received[CRC32C_BYTES_OUT]);

/* For tests and measurements: the same by each of the methods that this processor has. */
enum crc32c_method {
	CRC32C_PORTABLE, /* tables, eight bytes a step */
	CRC32C_X86,      /* SSE 4.2 */
	CRC32C_ARM,      /* AArch64: CRC32 instructions */
	CRC32C_METHODS,
};
bool crc32c_method_there(enum crc32c_method method);
const char *crc32c_method_name(enum crc32c_method method);
enum crc32c_method crc32c_method_best(void);
uint32_t crc32c_run(enum crc32c_method method, uint32_t crc, const void *data, size_t bytes);

#endif
