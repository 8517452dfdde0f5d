/* SPDX-License-Identifier: BSD-2-Clause */
/* See capture.h. */
#define LOG_ROOM "odp"
#include "virtual/odp/capture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/carrier/udp.h"
#include "transport/packet/frame/show.h"
#include "util/log.h"
#include "virtual/clock.h"
#include "virtual/net.h"
#include "virtual/odp/ends.h"
#include "wire/pcapng.h"

static FILE *file;
static uint64_t began_ns;

static void saw(void *arg, const struct virtual_host *host, enum carrier_direction direction,
		const struct carrier_unit *unit, const uint8_t *bytes, size_t length)
{
	struct packet_ends ends = { .tos = unit->tos, .ttl = 64 };
	uint8_t packet[PACKET_SHOW_BYTES], block[PACKET_SHOW_BYTES + PCAPNG_BLOCK_EXTRA];
	struct pcapng_packet p = {
		.when_ns = virtual_now_ns() - began_ns,
		.data = packet,
		.direction = direction == CARRIER_OUT ? PCAPNG_OUTBOUND : PCAPNG_INBOUND,
	};

	(void)arg;
	if (host->number != ODP_END_CLIENT)
		return;
	carrier_udp_addr_ip(&unit->from, ends.src, &ends.src_port);
	carrier_udp_addr_ip(&unit->to, ends.dst, &ends.dst_port);
	p.length = p.captured = (uint32_t)packet_show_wrap(&ends, bytes, length, packet);
	fwrite(block, 1, pcapng_packet(block, sizeof(block), &p), file);
}

int odp_capture_begin(const char *path)
{
	static const struct virtual_watcher watcher = { .saw = saw };
	const struct pcapng_section section = { .application = "busbar bench odp",
						.comment = "a model; times are virtual" };
	const struct pcapng_interface interface = { .link = PCAPNG_ETHERNET, .name = "client" };
	uint8_t block[2 * PCAPNG_BLOCK_EXTRA];
	size_t bytes = pcapng_section(block, sizeof(block), &section);

	bytes += pcapng_interface(block + bytes, sizeof(block) - bytes, &interface);
	file = fopen(path, "we");
	if (!file || fwrite(block, 1, bytes, file) != bytes) {
		log_error("%s is not writable: %s", path, strerror(errno));
		return -EIO;
	}
	began_ns = virtual_now_ns();
	virtual_watcher = &watcher;
	return 0;
}

void odp_capture_end(void)
{
	virtual_watcher = NULL;
	if (file && fclose(file))
		log_error("the capture is not complete: %s", strerror(errno));
	file = NULL;
}
