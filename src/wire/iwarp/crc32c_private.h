/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of the CRC-32C. */
#ifndef WIRE_IWARP_CRC32C_PRIVATE_H
#define WIRE_IWARP_CRC32C_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* The register after `bytes` more. */
typedef uint32_t crc32c_code(uint32_t crc, const uint8_t *data, size_t bytes);

crc32c_code *crc32c_portable(void);
/* NULL: this processor does not have the instructions. */
crc32c_code *crc32c_x86(void);
crc32c_code *crc32c_arm(void);

#endif
