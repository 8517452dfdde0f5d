/* SPDX-License-Identifier: BSD-2-Clause */
/* Classic pcap files; see classic.h. */
#include "wire/capture/classic.h"

#include "wire/capture/numbers.h"

#define MAGIC_US 0xa1b2c3d4u
#define MAGIC_NS 0xa1b23c4du
#define VERSION_MAJOR 2
#define NS_PER_S UINT64_C(1000000000)
#define US_PER_S 1000000u

enum {
	HEADER_BYTES = 24,
	HEADER_SNAP = 16,
	HEADER_LINK = 20,
	RECORD_BYTES = 16,
};

bool capture_classic_magic(struct capture_reader *r, const uint8_t magic[4])
{
	for (int big = 0; big < 2; big++) {
		uint32_t value;

		r->big = big;
		value = capture_32(r, magic);
		r->ns = value == MAGIC_NS;
		if (r->ns || value == MAGIC_US)
			return true;
	}
	return false;
}

enum capture_status capture_classic_header(struct capture_reader *r, const uint8_t *data,
					   size_t size, size_t *used)
{
	uint32_t link;

	if (size < HEADER_BYTES)
		return capture_more(r, HEADER_BYTES);
	if (capture_16(r, data + 4) != VERSION_MAJOR)
		return capture_corrupt(r, 4, "the major version", capture_16(r, data + 4),
				       "only version 2 is known");
	link = capture_32(r, data + HEADER_LINK);
	r->interface[0] = (struct capture_interface){
		.link = (uint16_t)link, /* the upper bits tell about check sequences */
		.snap = capture_32(r, data + HEADER_SNAP),
	};
	r->interfaces = 1;
	r->sections = 1;
	r->offset = *used = HEADER_BYTES;
	return CAPTURE_OTHER;
}

enum capture_status capture_classic_next(struct capture_reader *r, const uint8_t *data, size_t size,
					 size_t *used, struct capture_packet *packet)
{
	uint32_t fraction, captured;

	if (size < RECORD_BYTES)
		return capture_more(r, RECORD_BYTES);
	fraction = capture_32(r, data + 4);
	captured = capture_32(r, data + 8);
	if (fraction >= (r->ns ? NS_PER_S : US_PER_S))
		return capture_corrupt(r, 4, "the fraction of the second", fraction,
				       "it is a second or more");
	if (captured > CAPTURE_RECORD_MAX - RECORD_BYTES)
		return capture_corrupt(r, 8, "the captured length", captured,
				       "no packet is that long");
	if (size < RECORD_BYTES + captured)
		return capture_more(r, RECORD_BYTES + captured);
	*packet = (struct capture_packet){
		.when_ns = capture_32(r, data) * NS_PER_S + (r->ns ? fraction : fraction * UINT64_C(1000)),
		.timed = true,
		.link = r->interface[0].link,
		.data = data + RECORD_BYTES,
		.captured = captured,
		.length = capture_32(r, data + 12),
		.offset = r->offset,
	};
	*used = RECORD_BYTES + captured;
	r->offset += *used;
	r->packets++;
	return CAPTURE_PACKET;
}
