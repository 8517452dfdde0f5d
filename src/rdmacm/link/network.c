/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links between hosts: CM messages as datagrams from queue pair 1 to queue pair 1
 * (hca/path/gsi.h). They may be lost, doubled and reordered, which the machines expect, and
 * anybody may have sent them. Nothing tells the end of a peer: there are only timeouts,
 * and programs whose queue pairs fail.
 *
 * A link is only the way to an address. Each identifier has its own; a peer's number in
 * tables of connections is made from its address.
 */
#define LOG_ROOM "rdmacm"
#include <string.h>

#include "rdmacm/base/base.h"
#include "rdmacm/link/link.h"
#include "util/log.h"
#include "verbs/private.h"

/* Set in numbers of peers; addresses of local links do not have it. */
#define PEER_BIT (UINT64_C(1) << 63)

static _Atomic bool is_open;

/* Different for different addresses, but for an accident of 2^-63. */
static uint64_t peer_number(const uint8_t gid[16], uint32_t interface)
{
	static _Atomic uint64_t salt;
	uint64_t hash = atomic_load(&salt), none = 0;

	if (!hash) {
		hash = (uint64_t)cma_random(UINT32_MAX) << 32 |
		       cma_random(UINT32_MAX) | 1;
		if (!atomic_compare_exchange_strong(&salt, &none, hash))
			hash = none;
	}
	for (unsigned i = 0; i < 20; i++) {
		hash ^= i < 16 ? gid[i] : interface >> 8 * (i - 16) & 0xff;
		hash *= UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash | PEER_BIT;
}

struct cma_link *link_network(const struct hca_gsi_address *way)
{
	struct cma_link *link = link_new();

	if (!link)
		return NULL;
	link->is_network = true;
	link->way = *way;
	link->peer = peer_number(way->destination, way->interface);
	return link;
}

void link_network_send(struct cma_link *link, const uint8_t *bytes)
{
	int ret = busbar_gsi_send(&link->way, bytes);

	/* The machine repeats it. */
	if (ret)
		log_debug("message to another host not sent: %s", strerror(-ret));
}

/* On the progress thread. */
static void receive(const struct hca_gsi_address *from, const uint8_t *bytes)
{
	struct hca_gsi_address way = { .interface = from->interface };
	struct cma_link *link;
	struct cm_mad mad;

	if (wire_cm_decode(bytes, CM_MAD_SIZE, &mad))
		return;
	memcpy(way.source, from->destination, sizeof(way.source));
	memcpy(way.destination, from->source, sizeof(way.destination));
	link = link_network(&way);
	if (!link)
		return;
	link_reader->message(link, &mad);
	link_put(link);
}

int link_network_open(void)
{
	int ret = 0;

	if (atomic_load(&is_open))
		return 0;
	ret = busbar_gsi_open(receive);
	if (ret && ret != -EALREADY) {
		log_warn("no connections to other hosts: %s", strerror(-ret));
		return ret;
	}
	atomic_store(&is_open, true);
	return 0;
}

bool link_network_is_open(void)
{
	return atomic_load(&is_open);
}

static void network_forked(void)
{
	atomic_store(&is_open, false);
}

__attribute__((constructor)) static void network_load(void)
{
	pthread_atfork(NULL, NULL, network_forked);
}
