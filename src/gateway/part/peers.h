/* SPDX-License-Identifier: BSD-2-Clause */
/* The hosts with which a server speaks: the key `peers`, a list of addresses and networks. */
#ifndef GATEWAY_PART_PEERS_H
#define GATEWAY_PART_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/config/config.h"
#include "gateway/part/socket_address.h"

struct peer_network {
	uint8_t address[16]; /* one of IPv4 in its form of IPv6 */
	unsigned bits;
};

struct peers {
	struct peer_network *networks; /* NULL: all hosts */
	unsigned count;
};

/* `list` is the value of the key `peers` of `at`; NULL: all hosts. 0, or a negative errno after
 * config_fail(). */
int peers_parse(struct peers *p, struct config *c, const json_t *at, const json_t *list);
void peers_free(struct peers *p);

static inline bool peers_are_all(const struct peers *p)
{
	return !p->networks;
}

/* Only addresses of IPv4 and IPv6 can be in a list. */
bool peers_have(const struct peers *p, const struct sockaddr *from);

#endif
