/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC-32C by the instruction of SSE 4.2. */
#include "wire/iwarp/crc32c_private.h"

#ifdef __x86_64__

#include <immintrin.h>

#define CRC32C_CODE __attribute__((target("sse4.2")))

static inline CRC32C_CODE uint32_t step_8(uint32_t crc, uint64_t word)
{
	return (uint32_t)_mm_crc32_u64(crc, word);
}

static inline CRC32C_CODE uint32_t step_1(uint32_t crc, uint8_t byte)
{
	return _mm_crc32_u8(crc, byte);
}

#include "wire/iwarp/crc32c_steps.h"

crc32c_code *crc32c_x86(void)
{
	return __builtin_cpu_supports("sse4.2") ? run : NULL;
}

#else

crc32c_code *crc32c_x86(void)
{
	return NULL;
}

#endif
