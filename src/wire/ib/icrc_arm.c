/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC by the instructions of AArch64 for just this polynomial, where they are. */
#include "wire/ib/icrc_private.h"

#ifdef __aarch64__

#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

/* Assembler, so that a compiler for processors without them takes it. */
static inline uint32_t step_8(uint32_t crc, uint64_t word)
{
	__asm__(".arch_extension crc\n\tcrc32x %w0, %w0, %x1" : "+r"(crc) : "r"(word));
	return crc;
}

static inline uint32_t step_1(uint32_t crc, uint32_t byte)
{
	__asm__(".arch_extension crc\n\tcrc32b %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
	return crc;
}

static uint32_t run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	for (; bytes >= 8; data += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, data, sizeof(word));
		crc = step_8(crc, le64toh(word));
	}
	while (bytes--)
		crc = step_1(crc, *data++);
	return crc;
}

const struct icrc_code *icrc_arm(void)
{
	static const struct icrc_code code = { run, icrc_portable_multiply };

	return getauxval(AT_HWCAP) & HWCAP_CRC32 ? &code : NULL;
}

#else

const struct icrc_code *icrc_arm(void)
{
	return NULL;
}

#endif
