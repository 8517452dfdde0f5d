/* SPDX-License-Identifier: BSD-2-Clause */
/* Classic pcap files: a header of 24 bytes and records of 16 bytes and a packet each. */
#ifndef WIRE_CAPTURE_CLASSIC_H
#define WIRE_CAPTURE_CLASSIC_H

#include "wire/capture/reader.h"

/* The four bytes begin a classic pcap file; sets byte order and unit of time. */
bool capture_classic_magic(struct capture_reader *r, const uint8_t magic[4]);
enum capture_status capture_classic_header(struct capture_reader *r, const uint8_t *data,
					   size_t size, size_t *used);
enum capture_status capture_classic_next(struct capture_reader *r, const uint8_t *data, size_t size,
					 size_t *used, struct capture_packet *packet);

#endif
