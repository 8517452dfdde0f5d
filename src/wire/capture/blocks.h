/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of pcapng files. */
#ifndef WIRE_CAPTURE_BLOCKS_H
#define WIRE_CAPTURE_BLOCKS_H

#include "wire/capture/reader.h"

enum capture_status capture_block_next(struct capture_reader *r, const uint8_t *data, size_t size,
				       size_t *used, struct capture_packet *packet);

#endif
