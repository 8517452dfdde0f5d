/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop around an instruction that takes eight bytes. Its result comes after about three
 * cycles, but one can begin in each; so three lanes of CRC32C_LANE bytes run side by side and
 * are joined: the register is linear, and crc32c_shift carries it over a lane of zeros.
 *
 * The file that includes this has CRC32C_CODE (attributes of the functions), step_8() and
 * step_1().
 */
#ifndef WIRE_IWARP_CRC32C_STEPS_H
#define WIRE_IWARP_CRC32C_STEPS_H

#include <endian.h>
#include <string.h>

#define CRC32C_SHIFT
#include "wire/iwarp/crc32c_constants.h"

static inline CRC32C_CODE uint64_t load_8(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return le64toh(word);
}

static inline CRC32C_CODE uint32_t over_a_lane(uint32_t crc)
{
	return crc32c_shift[0][crc & 0xff] ^ crc32c_shift[1][crc >> 8 & 0xff] ^
	       crc32c_shift[2][crc >> 16 & 0xff] ^ crc32c_shift[3][crc >> 24];
}

static CRC32C_CODE uint32_t run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	for (; bytes >= 3 * CRC32C_LANE; data += 3 * CRC32C_LANE, bytes -= 3 * CRC32C_LANE) {
		uint32_t second = 0, third = 0;

		for (size_t i = 0; i < CRC32C_LANE; i += 8) {
			crc = step_8(crc, load_8(data + i));
			second = step_8(second, load_8(data + CRC32C_LANE + i));
			third = step_8(third, load_8(data + 2 * CRC32C_LANE + i));
		}
		crc = over_a_lane(over_a_lane(crc) ^ second) ^ third;
	}
	for (; bytes >= 8; data += 8, bytes -= 8)
		crc = step_8(crc, load_8(data));
	while (bytes--)
		crc = step_1(crc, *data++);
	return crc;
}

#endif
