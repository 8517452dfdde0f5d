/* SPDX-License-Identifier: BSD-2-Clause */
/* A reflected CRC of 32 bits by tables, eight bytes a step, for every processor. */
#ifndef WIRE_CRC_TABLES_H
#define WIRE_CRC_TABLES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The register `crc` after `bytes` more. tables[k][b]: that of byte b and k bytes of zeros. */
static inline uint32_t crc_by_tables(const uint32_t tables[8][256], uint32_t crc,
				     const uint8_t *data, size_t bytes)
{
	for (; bytes >= 8; data += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, data, sizeof(word));
		word = le64toh(word) ^ crc;
		crc = 0;
		for (unsigned i = 0; i < 8; i++)
			crc ^= tables[7 - i][word >> 8 * i & 0xff];
	}
	while (bytes--)
		crc = tables[0][(crc ^ *data++) & 0xff] ^ crc >> 8;
	return crc;
}

#endif
