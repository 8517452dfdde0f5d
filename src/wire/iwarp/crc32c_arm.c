/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC-32C by the instructions of AArch64, where the processor has them. */
#include "wire/iwarp/crc32c_private.h"

#ifdef __aarch64__

#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#define CRC32C_CODE

/* Assembler, so that a compiler for processors without them takes it. */
static inline uint32_t step_8(uint32_t crc, uint64_t word)
{
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
	return crc;
}

static inline uint32_t step_1(uint32_t crc, uint32_t byte)
{
	__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(byte));
	return crc;
}

#include "wire/iwarp/crc32c_steps.h"

crc32c_code *crc32c_arm(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32 ? run : NULL;
}

#else

crc32c_code *crc32c_arm(void)
{
	return NULL;
}

#endif
