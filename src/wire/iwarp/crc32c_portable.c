/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC-32C by tables, for every processor. */
#include <endian.h>
#include <string.h>

#include "wire/iwarp/crc32c_private.h"
#define CRC32C_BYTES
#include "wire/iwarp/crc32c_constants.h"

static uint32_t run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	for (; bytes >= 8; data += 8, bytes -= 8) {
		uint64_t word;

		memcpy(&word, data, sizeof(word));
		word = le64toh(word) ^ crc;
		crc = 0;
		for (unsigned i = 0; i < 8; i++)
			crc ^= crc32c_bytes[7 - i][word >> 8 * i & 0xff];
	}
	while (bytes--)
		crc = crc32c_bytes[0][(crc ^ *data++) & 0xff] ^ crc >> 8;
	return crc;
}

crc32c_code *crc32c_portable(void)
{
	return run;
}
