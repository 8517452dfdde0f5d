/* SPDX-License-Identifier: BSD-2-Clause */
/* What all carriers need to know of units; see carrier.h. */
#include "transport/carrier/carrier.h"

size_t carrier_unit_bytes(const struct carrier_unit *unit)
{
	size_t bytes = 0;

	if (!unit->count || unit->count > CARRIER_IOV_MAX)
		return 0;
	for (unsigned i = 0; i < unit->count; i++)
		bytes += unit->iov[i].iov_len;
	return bytes;
}

unsigned carrier_unit_packets(const struct carrier_unit *unit, size_t bytes)
{
	if (!unit->segment)
		return 1;
	return (unsigned)((bytes + unit->segment - 1) / unit->segment);
}

size_t carrier_packet_bytes(const struct carrier_unit *unit, size_t bytes, unsigned k)
{
	size_t at = (size_t)k * unit->segment;

	return !unit->segment || bytes - at < unit->segment ? bytes - at : unit->segment;
}

void carrier_unit_gather(const struct carrier_unit *unit, size_t at, size_t bytes,
			 void *to)
{
	char *put = to;

	for (unsigned i = 0; bytes && i < unit->count; i++) {
		const struct iovec *v = &unit->iov[i];
		size_t part;

		if (at >= v->iov_len) {
			at -= v->iov_len;
			continue;
		}
		part = v->iov_len - at < bytes ? v->iov_len - at : bytes;
		memcpy(put, (const char *)v->iov_base + at, part);
		put += part;
		bytes -= part;
		at = 0;
	}
}
