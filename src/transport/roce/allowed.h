/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of this host from and to which roce exchanges packets (BUSBAR_NETWORK). The
 * sockets are bound to all addresses, as processes share them, so each process looks at
 * the packets that it sends and receives; without a list it does not.
 */
#ifndef TRANSPORT_ROCE_ALLOWED_H
#define TRANSPORT_ROCE_ALLOWED_H

#include <stdbool.h>
#include <stdint.h>

/* Takes "all", or a list of addresses separated by commas; logs and leaves out words that are
 * no addresses. Called before the first packet. */
void roce_allowed_start(const char *text);

extern bool roce_allows_all;
bool roce_allowed_find(const uint8_t gid[16]);

/* May packets come to this address of the host, and leave from it? Those of the loopback
 * interface may. */
static inline bool roce_allows(const uint8_t gid[16])
{
	return __builtin_expect(roce_allows_all, 1) || roce_allowed_find(gid);
}

#endif
