/* SPDX-License-Identifier: BSD-2-Clause */
/* The CRC of links: variant CRC of data packets, LPCRC of link packets; see native.h. */
#include <stdint.h>

#include "wire/crc_tables.h"
#include "wire/ib/native.h"
#include "wire/ib/vcrc_tables.h"

uint16_t ib_vcrc(const void *data, size_t bytes)
{
	return (uint16_t)~crc_by_tables(vcrc_bytes, UINT16_MAX, data, bytes);
}
