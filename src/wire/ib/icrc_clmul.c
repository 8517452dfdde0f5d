/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC by multiplication without carry, on x86: V. Gopal et al., "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ Instruction", 2009.
 *
 * A block of 16 bytes that n bits follow may be replaced by its two halves, multiplied by
 * x^(n + 32) and x^(n - 32) modulo the polynomial, at the place of the block n bits behind:
 * it is folded over n bits. Several blocks side by side are folded independently of each
 * other, which hides the latency of the multiplication.
 */
#include "wire/ib/icrc_private.h"

#ifdef __x86_64__

#include <immintrin.h>
#include <string.h>

#include "wire/ib/icrc_constants.h"

#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define CLMUL_256 __attribute__((target("pclmul,sse4.1,avx2,vpclmulqdq")))
#define CLMUL_512 __attribute__((target("pclmul,sse4.1,avx512f,vpclmulqdq")))
#define INLINE static inline __attribute__((always_inline))

/* For a fold over n bits. */
#define BY(n_plus_32, n_minus_32) _mm_set_epi64x(n_minus_32, n_plus_32)
#define BY_128 BY(ICRC_X160, ICRC_X96)
#define BY_256 BY(ICRC_X288, ICRC_X224)
#define BY_384 BY(ICRC_X416, ICRC_X352)
#define BY_512 BY(ICRC_X544, ICRC_X480)
#define BY_1024 BY(ICRC_X1056, ICRC_X992)
#define BY_2048 BY(ICRC_X2080, ICRC_X2016)

INLINE CLMUL __m128i load(const uint8_t *from)
{
	return _mm_loadu_si128((const __m128i *)(const void *)from);
}

INLINE CLMUL __m128i fold(__m128i x, __m128i by)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00),
			     _mm_clmulepi64_si128(x, by, 0x11));
}

/* ---- down to 32 bits ---- */

/* The remainder of 96 bits, by Barrett: the lower 64 bits of `x`, which are the upper
 * coefficients, times floor(x^96 / P) yield the quotient. */
INLINE CLMUL uint32_t remainder_96(__m128i x)
{
	const __m128i by = _mm_set_epi64x(ICRC_QUOTIENT, ICRC_POLYNOMIAL_33);
	__m128i q = _mm_clmulepi64_si128(x, by, 0x10);

	q = _mm_clmulepi64_si128(q, by, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, q), 2);
}

/* The register behind the last block. */
INLINE CLMUL uint32_t reduce(__m128i x)
{
	__m128i folded = _mm_clmulepi64_si128(x, _mm_cvtsi64_si128(ICRC_X96), 0x00);

	return remainder_96(_mm_xor_si128(_mm_srli_si128(x, 8), folded));
}

static CLMUL uint32_t multiply(uint32_t a, uint32_t b)
{
	__m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a),
					       _mm_cvtsi32_si128((int)b), 0x00);

	/* Its 63 bits are the last ones of 96. */
	return remainder_96(_mm_slli_si128(_mm_slli_epi64(product, 1), 4));
}

/* ---- ends of less than a block ---- */

/* 4 to 15 bytes alone: zeros in front of them change nothing. */
INLINE CLMUL uint32_t run_few(uint32_t crc, const uint8_t *data, size_t bytes)
{
	unsigned missing = 8 * (unsigned)(16 - bytes);
	uint64_t first = 0, last;

	if (bytes >= 8) {
		memcpy(&first, data, 8);
		memcpy(&last, data + bytes - 8, 8);
		first ^= crc;
		/* The last `bytes` - 8 of them, and the first 8 in front. */
		last = bytes == 8 ? 0 : last >> missing;
		if (bytes == 8)
			return reduce(_mm_set_epi64x((int64_t)first, 0));
		return reduce(_mm_set_epi64x(
			(int64_t)(last << missing | first >> (64 - missing)),
			(int64_t)(first << missing)));
	}
	{
		uint32_t head, tail;

		memcpy(&head, data, 4);
		memcpy(&tail, data + bytes - 4, 4);
		last = head ^ crc;
		if (bytes > 4)
			last |= (uint64_t)(tail >> (missing - 64)) << 32;
		return reduce(_mm_set_epi64x((int64_t)(last << (missing - 64)), 0));
	}
}

/* `bytes`, 1 to 15, end at `end`, and behind `x` they come; 16 bytes before `end` may be
 * read. */
INLINE CLMUL __m128i fold_tail(__m128i x, const uint8_t *end, size_t bytes)
{
	static const uint8_t shift[48] = {
		[0 ... 15] = 0x80,
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		[32 ... 47] = 0x80,
	};
	/* The first `bytes` of x are folded, the others move to the front. */
	__m128i front = _mm_shuffle_epi8(x, load(shift + bytes));
	__m128i back = load(shift + 16 + bytes);
	__m128i last = _mm_blendv_epi8(_mm_shuffle_epi8(x, back), load(end - 16), back);

	return _mm_xor_si128(fold(front, BY_128), last);
}

/* What is left behind `x`, less than 64 bytes, of data that had 16 at least. */
INLINE CLMUL uint32_t run_rest(__m128i x, const uint8_t *data, size_t bytes)
{
	for (; bytes >= 16; data += 16, bytes -= 16)
		x = _mm_xor_si128(fold(x, BY_128), load(data));
	if (bytes)
		x = fold_tail(x, data + bytes, bytes);
	return reduce(x);
}

INLINE CLMUL uint32_t run_short(uint32_t crc, const uint8_t *data, size_t bytes)
{
	if (bytes < 4)
		return icrc_portable_run(crc, data, bytes);
	if (bytes < 16)
		return run_few(crc, data, bytes);
	return run_rest(_mm_xor_si128(load(data), _mm_cvtsi32_si128((int)crc)), data + 16,
			bytes - 16);
}

/* ---- 16 bytes at once ---- */

static CLMUL uint32_t run_128(uint32_t crc, const uint8_t *data, size_t bytes)
{
	__m128i a, b, c, d;

	if (bytes < 64)
		return run_short(crc, data, bytes);
	a = _mm_xor_si128(load(data), _mm_cvtsi32_si128((int)crc));
	b = load(data + 16);
	c = load(data + 32);
	d = load(data + 48);
	for (data += 64, bytes -= 64; bytes >= 64; data += 64, bytes -= 64) {
		a = _mm_xor_si128(fold(a, BY_512), load(data));
		b = _mm_xor_si128(fold(b, BY_512), load(data + 16));
		c = _mm_xor_si128(fold(c, BY_512), load(data + 32));
		d = _mm_xor_si128(fold(d, BY_512), load(data + 48));
	}
	a = _mm_xor_si128(fold(a, BY_384), fold(b, BY_256));
	d = _mm_xor_si128(fold(c, BY_128), d);
	return run_rest(_mm_xor_si128(a, d), data, bytes);
}

const struct icrc_code *icrc_clmul(void)
{
	static const struct icrc_code code = { run_128, multiply };

	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1") ?
		       &code : NULL;
}

/* ---- 32 bytes at once ---- */

INLINE CLMUL_256 __m256i load_256(const uint8_t *from)
{
	return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE CLMUL_256 __m256i fold_256(__m256i x, __m256i by, __m256i onto)
{
	return _mm256_xor_si256(
		onto, _mm256_xor_si256(_mm256_clmulepi64_epi128(x, by, 0x00),
				       _mm256_clmulepi64_epi128(x, by, 0x11)));
}

static CLMUL_256 uint32_t run_256(uint32_t crc, const uint8_t *data, size_t bytes)
{
	const __m256i by = _mm256_broadcastsi128_si256(BY_1024);
	const __m256i by_256 = _mm256_broadcastsi128_si256(BY_256);
	const __m256i by_512 = _mm256_broadcastsi128_si256(BY_512);
	__m256i a, b, c, d;
	__m128i x;

	if (bytes < 256)
		return run_128(crc, data, bytes);
	a = _mm256_xor_si256(load_256(data),
			     _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc)));
	b = load_256(data + 32);
	c = load_256(data + 64);
	d = load_256(data + 96);
	for (data += 128, bytes -= 128; bytes >= 128; data += 128, bytes -= 128) {
		a = fold_256(a, by, load_256(data));
		b = fold_256(b, by, load_256(data + 32));
		c = fold_256(c, by, load_256(data + 64));
		d = fold_256(d, by, load_256(data + 96));
	}
	c = fold_256(a, by_512, c);
	d = fold_256(b, by_512, d);
	d = fold_256(c, by_256, d);
	for (; bytes >= 32; data += 32, bytes -= 32)
		d = fold_256(d, by_256, load_256(data));
	x = _mm_xor_si128(fold(_mm256_castsi256_si128(d), BY_128),
			  _mm256_extracti128_si256(d, 1));
	return run_rest(x, data, bytes);
}

const struct icrc_code *icrc_clmul_256(void)
{
	static const struct icrc_code code = { run_256, multiply };

	return icrc_clmul() && __builtin_cpu_supports("avx2") &&
			       __builtin_cpu_supports("vpclmulqdq") ?
		       &code : NULL;
}

/* ---- 64 bytes at once ---- */

INLINE CLMUL_512 __m512i load_512(const uint8_t *from)
{
	return _mm512_loadu_si512(from);
}

INLINE CLMUL_512 __m512i fold_512(__m512i x, __m512i by, __m512i onto)
{
	return _mm512_ternarylogic_epi64(onto, _mm512_clmulepi64_epi128(x, by, 0x00),
					 _mm512_clmulepi64_epi128(x, by, 0x11),
					 0x96 /* exclusive or of all three */);
}

static CLMUL_512 uint32_t run_512(uint32_t crc, const uint8_t *data, size_t bytes)
{
	const __m512i by = _mm512_broadcast_i32x4(BY_2048);
	const __m512i by_512 = _mm512_broadcast_i32x4(BY_512);
	const __m512i by_1024 = _mm512_broadcast_i32x4(BY_1024);
	__m512i a, b, c, d;
	__m128i x;

	if (bytes < 256)
		return run_128(crc, data, bytes);
	a = _mm512_xor_si512(load_512(data),
			     _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	b = load_512(data + 64);
	c = load_512(data + 128);
	d = load_512(data + 192);
	for (data += 256, bytes -= 256; bytes >= 256; data += 256, bytes -= 256) {
		a = fold_512(a, by, load_512(data));
		b = fold_512(b, by, load_512(data + 64));
		c = fold_512(c, by, load_512(data + 128));
		d = fold_512(d, by, load_512(data + 192));
	}
	c = fold_512(a, by_1024, c);
	d = fold_512(b, by_1024, d);
	d = fold_512(c, by_512, d);
	for (; bytes >= 64; data += 64, bytes -= 64)
		d = fold_512(d, by_512, load_512(data));
	x = _mm_xor_si128(fold(_mm512_castsi512_si128(d), BY_384),
			  fold(_mm512_extracti32x4_epi32(d, 1), BY_256));
	x = _mm_xor_si128(x, fold(_mm512_extracti32x4_epi32(d, 2), BY_128));
	return run_rest(_mm_xor_si128(x, _mm512_extracti32x4_epi32(d, 3)), data, bytes);
}

const struct icrc_code *icrc_clmul_512(void)
{
	static const struct icrc_code code = { run_512, multiply };

	return icrc_clmul() && __builtin_cpu_supports("avx512f") &&
			       __builtin_cpu_supports("vpclmulqdq") ?
		       &code : NULL;
}

#else

const struct icrc_code *icrc_clmul(void)
{
	return NULL;
}

const struct icrc_code *icrc_clmul_256(void)
{
	return NULL;
}

const struct icrc_code *icrc_clmul_512(void)
{
	return NULL;
}

#endif
