/* SPDX-License-Identifier: BSD-2-Clause */
/* The start and the end of a capture file; see reader.h. */
#include "wire/capture/reader.h"

#include <string.h>

#include "wire/capture/blocks.h"
#include "wire/capture/classic.h"
#include "wire/capture/numbers.h"
#include "wire/pcapng.h"

#define MAGIC_BYTES 4

void capture_begin(struct capture_reader *r)
{
	memset(r, 0, sizeof(*r));
}

static enum capture_status first(struct capture_reader *r, const uint8_t *data, size_t size,
				 size_t *used)
{
	if (size < MAGIC_BYTES)
		return capture_more(r, MAGIC_BYTES);
	if (get_32(data) == PCAPNG_SECTION) {
		r->format = CAPTURE_PCAPNG;
		return CAPTURE_OTHER;
	}
	if (capture_classic_magic(r, data)) {
		enum capture_status status = capture_classic_header(r, data, size, used);

		if (status == CAPTURE_OTHER)
			r->format = CAPTURE_PCAP;
		return status;
	}
	if (data[0] == 0x1f && data[1] == 0x8b)
		return capture_corrupt(r, 0, "the number at the start of the file", get_32(data),
				       "the file is compressed: unpack it first (gzip -dc)");
	return capture_corrupt(r, 0, "the number at the start of the file", get_32(data),
			       "neither pcap nor pcapng files begin so");
}

enum capture_status capture_next(struct capture_reader *r, const uint8_t *data, size_t size,
				 size_t *used, struct capture_packet *packet)
{
	*used = 0;
	switch (r->format) {
	case CAPTURE_PCAP: return capture_classic_next(r, data, size, used, packet);
	case CAPTURE_PCAPNG: return capture_block_next(r, data, size, used, packet);
	case CAPTURE_UNKNOWN: break;
	}
	return first(r, data, size, used);
}

bool capture_end(struct capture_reader *r, size_t left)
{
	if (left)
		capture_corrupt(r, left, "the length of the rest of the file", left,
				"the file ends inside of a record");
	else if (r->skip)
		capture_corrupt(r, 0, "the length of the rest of a block", r->skip,
				"the file ends inside of a block");
	else if (r->format == CAPTURE_UNKNOWN)
		capture_corrupt(r, 0, "the length of the file", 0, "the file is empty");
	else
		return true;
	return false;
}

uint64_t capture_dropped(const struct capture_reader *r)
{
	return r->dropped > r->dropped_statistics ? r->dropped : r->dropped_statistics;
}
