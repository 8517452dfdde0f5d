/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hosts may call an infiniband node: in.peers, addresses and networks. */
#define LOG_ROOM "gateway/infiniband"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/infiniband/infiniband.h"

/* Writes the address as one of IPv6; an IPv4 address is mapped. */
static void map(int family, const void *ip, uint8_t out[16])
{
	memset(out, 0, 16);
	if (family == AF_INET6) {
		memcpy(out, ip, 16);
		return;
	}
	memset(out + 10, 0xff, 2);
	memcpy(out + 12, ip, 4);
}

/* "ADDRESS" or "ADDRESS/BITS"; false: it is neither. */
static bool parse_peer(const char *text, struct ib_peer *out)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN], *end;
	int family = memchr(text, ':', length) ? AF_INET6 : AF_INET;
	long bits = family == AF_INET6 ? 128 : 32, most = bits;
	uint8_t ip[16];

	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(family, host, ip) != 1)
		return false;
	if (slash) {
		bits = strtol(slash + 1, &end, 10);
		if (!slash[1] || slash[1] == '-' || *end || bits < 0 || bits > most)
			return false;
	}
	map(family, ip, out->ip);
	out->bits = (unsigned)(bits + 128 - most);
	return true;
}

void ib_peers_check(struct infiniband *ib, struct config *c)
{
	const json_t *group = ib->node->in.cfg, *list = ib->in.peers, *entry;
	size_t i;

	ib->peer_count = 0;
	if (!list)
		return;
	if (!json_is_array(list) || !json_array_size(list) ||
	    json_array_size(list) > IB_PEERS_MAX) {
		config_fail(c, group, "peers",
			    "expected a list of 1 to %u addresses of hosts and networks, such as ( \"10.0.0.2\", \"10.1.0.0/16\" )",
			    IB_PEERS_MAX);
		return;
	}
	json_array_foreach(list, i, entry) {
		const char *text = json_string_value(entry);

		if (text && parse_peer(text, &ib->peers[ib->peer_count]))
			ib->peer_count++;
		else
			config_fail(c, group, "peers",
				    "entry %zu, '%.60s', is no IPv4 or IPv6 address, with or without a number of bits behind a slash",
				    i, text ? text : "not a string");
	}
}

static bool is_of(const uint8_t ip[16], const struct ib_peer *peer)
{
	unsigned bytes = peer->bits / 8, rest = peer->bits % 8;

	return !memcmp(ip, peer->ip, bytes) &&
	       (!rest || !((ip[bytes] ^ peer->ip[bytes]) >> (8 - rest)));
}

bool ib_peer_ip(struct rdma_cm_id *id, struct caller_ip *out)
{
	union ib_address from;

	*out = (struct caller_ip){ 0 };
	memcpy(&from, rdma_get_peer_addr(id), sizeof(from));
	if (from.sa.sa_family == AF_INET6)
		map(AF_INET6, &from.in6.sin6_addr, out->bytes);
	else if (from.sa.sa_family == AF_INET)
		map(AF_INET, &from.in4.sin_addr, out->bytes);
	else
		return false;
	return true;
}

bool ib_peer_may_call(const struct infiniband *ib, struct rdma_cm_id *caller)
{
	struct caller_ip from;

	if (!ib->in.peers)
		return true;
	if (!ib_peer_ip(caller, &from))
		return false;
	for (unsigned i = 0; i < ib->peer_count; i++)
		if (is_of(from.bytes, &ib->peers[i]))
			return true;
	return false;
}
