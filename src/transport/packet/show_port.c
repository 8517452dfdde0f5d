/* SPDX-License-Identifier: BSD-2-Clause */
/* The packets of a port, for the capture of the process; see show.h. */
#include <errno.h>

#include "transport/carrier/tap.h"
#include "transport/packet/packet.h"
#include "transport/packet/show.h"

static void show_bytes(const struct packet_port *port, enum carrier_direction direction,
		       const struct carrier_unit *unit, unsigned k, uint8_t *bytes,
		       size_t length)
{
	struct packet_frame f;
	size_t header = port->medium->decode(unit, k, bytes, length, &f);
	struct iovec payload;

	if (!header || header > length || f.rc.bytes > PACKET_MTU ||
	    f.rc.bytes > length - header)
		return;
	payload = (struct iovec){ bytes + header, f.rc.bytes };
	packet_show(port->ops, direction, &f, &payload, f.rc.bytes > 0, NULL);
}

static void show_unit(const struct packet_port *port, enum carrier_direction direction,
		      const struct carrier_unit *unit)
{
	uint8_t packet[PACKET_HEADER_BYTES + PACKET_MTU + PACKET_TRAILER_BYTES];
	size_t bytes = carrier_unit_bytes(unit), at = 0;
	unsigned packets = carrier_unit_packets(unit, bytes);

	for (unsigned k = 0; k < packets; k++) {
		size_t length = carrier_packet_bytes(unit, bytes, k);

		if (length <= sizeof(packet)) {
			carrier_unit_gather(unit, at, length, packet);
			show_bytes(port, direction, unit, k, packet, length);
		}
		at += length;
	}
}

static void saw(void *arg, enum carrier_direction direction,
		const struct carrier_unit *units, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		show_unit(arg, direction, &units[i]);
}

int packet_show_port(struct packet_port *port, struct carrier **carrier)
{
	if (!packet_show_wanted())
		return 0;
	port->watcher = (struct carrier_watcher){ saw, port };
	return carrier_tap_open(*carrier, &port->watcher, carrier);
}
