/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the packets of a port in the capture of the process; see frame/show.h. */
#include <netinet/in.h>
#include <string.h>

#include "transport/carrier/tap.h"
#include "transport/carrier/udp.h"
#include "transport/packet/base/port.h"
#include "transport/packet/frame/show.h"
#include "wire/ib/header.h"
#include "wire/ib/icrc.h"

/* Shows one packet of a unit, from the first byte that the carrier was given. */
typedef void show_fn(const struct packet_port *port, enum carrier_direction direction,
		     const struct carrier_unit *unit, unsigned k, uint8_t *bytes,
		     size_t length);

static void show_frame(const struct packet_port *port, enum carrier_direction direction,
		       const struct carrier_unit *unit, unsigned k, uint8_t *bytes,
		       size_t length)
{
	struct icrc_series series = { 0 };
	enum packet_fault fault;
	struct packet_frame f;
	size_t header = port->medium->decode(unit, &series, k, bytes, length, &f, &fault);
	struct iovec payload;

	if (!header || header > length || f.rc.bytes > PACKET_MTU ||
	    f.rc.bytes > length - header)
		return;
	payload = (struct iovec){ bytes + header, f.rc.bytes };
	packet_show(port->ops, direction, &f, &payload, f.rc.bytes > 0, NULL);
}

/* ---- UDP ---- */

/* A receiver does not know the identification, and in a train it depends on how the kernel sent
 * it; but the ICRC is right for one identification only. */
static uint16_t find_id(const struct packet_ends *ends, const uint8_t *bytes, size_t length)
{
	struct icrc_ip ip = {
		.version = 4,
		.src_port = ends->src_port,
		.dst_port = ends->dst_port,
		.udp_length = (uint16_t)(length + 8),
		.dont_fragment = true,
	};
	const uint8_t *code = bytes + length - IB_ICRC_BYTES;
	struct icrc c;
	uint16_t id;

	memcpy(ip.src, ends->src + 12, 4);
	memcpy(ip.dst, ends->dst + 12, 4);
	icrc_begin(&c, &ip, bytes);
	icrc_add(&c, bytes + IB_BTH_BYTES, length - IB_BTH_BYTES - IB_ICRC_BYTES);
	return icrc_matches_any_id(&c, ip.udp_length, code, &id) ? id : 0;
}

static void show_udp(const struct packet_port *port, enum carrier_direction direction,
		     const struct carrier_unit *unit, unsigned k, uint8_t *bytes,
		     size_t length)
{
	struct packet_ends ends = { .tos = unit->known & CARRIER_TOS ? unit->tos : 0,
				    .ttl = unit->known & CARRIER_TTL ? unit->ttl : 0 };
	bool ipv4 = false;

	if (length < IB_BTH_BYTES + IB_ICRC_BYTES)
		return;
	(void)k;
	if (carrier_udp_addr_ip(&unit->from, ends.src, &ends.src_port) == AF_INET)
		ipv4 = true;
	carrier_udp_addr_ip(&unit->to, ends.dst, &ends.dst_port);
	/* A local address has no port to send from: the port of this end is the same everywhere. */
	if (!ends.src_port)
		ends.src_port = unit->known & CARRIER_FRAGMENTS && port->fragment_port ?
					port->fragment_port : ends.dst_port;
	if (ipv4)
		ends.ip_id = find_id(&ends, bytes, length);
	packet_show_bytes(port->ops, direction, &ends, bytes, length);
}

/* ---- units ---- */

static void show_unit(const struct packet_port *port, enum carrier_direction direction,
		      const struct carrier_unit *unit, show_fn *fn)
{
	uint8_t packet[PACKET_SHOW_IB + PACKET_TRAILER_BYTES];
	size_t bytes = carrier_unit_bytes(unit), at = 0;
	unsigned packets = carrier_unit_packets(unit, bytes);

	for (unsigned k = 0; k < packets; k++) {
		size_t length = carrier_packet_bytes(unit, bytes, k);

		if (length <= sizeof(packet)) {
			carrier_unit_gather(unit, at, length, packet);
			fn(port, direction, unit, k, packet, length);
		}
		at += length;
	}
}

static void saw_frames(void *arg, enum carrier_direction direction,
		       const struct carrier_unit *units, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		show_unit(arg, direction, &units[i], show_frame);
}

static void saw_udp(void *arg, enum carrier_direction direction,
		    const struct carrier_unit *units, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		show_unit(arg, direction, &units[i], show_udp);
}

static int stack(struct packet_port *port, struct carrier **carrier,
		 void (*saw)(void *arg, enum carrier_direction direction,
			     const struct carrier_unit *units, unsigned n))
{
	if (!packet_show_wanted())
		return 0;
	if (!port->watcher.saw) /* the port may have several carriers */
		port->watcher = (struct carrier_watcher){ saw, port };
	return carrier_tap_open(*carrier, &port->watcher, carrier);
}

int packet_show_port(struct packet_port *port, struct carrier **carrier)
{
	return stack(port, carrier, saw_frames);
}

int packet_show_udp(struct packet_port *port, struct carrier **carrier)
{
	return stack(port, carrier, saw_udp);
}
