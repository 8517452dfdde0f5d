/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of this host by which it exchanges packets with others (BUSBAR_NETWORK). Sockets of
 * packets are bound to all addresses, as processes share them, so each process looks at the packets
 * that it sends and receives; without a list it does not. Connections of streams are looked at once.
 */
#ifndef HCA_ALLOWED_H
#define HCA_ALLOWED_H

#include <stdbool.h>
#include <stdint.h>

/* Takes "all", "off" (none), or a list of addresses separated by commas; logs and leaves out words
 * that are no addresses. Called before the first packet. */
void hca_network_start(const char *text);

extern bool hca_network_allows_all;
bool hca_network_find(const uint8_t gid[16]);

/* May packets come to this address of the host, and leave from it? Those of the loopback
 * interface may. */
static inline bool hca_network_allows(const uint8_t gid[16])
{
	return __builtin_expect(hca_network_allows_all, 1) || hca_network_find(gid);
}

#endif
