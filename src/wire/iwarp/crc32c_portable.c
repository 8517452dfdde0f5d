/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC-32C by tables, for every processor. */
#include "wire/crc_tables.h"
#include "wire/iwarp/crc32c_private.h"
#define CRC32C_BYTES
#include "wire/iwarp/crc32c_constants.h"

static uint32_t run(uint32_t crc, const uint8_t *data, size_t bytes)
{
	return crc_by_tables(crc32c_bytes, crc, data, bytes);
}

crc32c_code *crc32c_portable(void)
{
	return run;
}
