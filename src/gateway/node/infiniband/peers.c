/* SPDX-License-Identifier: BSD-2-Clause */
/* Which hosts may call an infiniband node: in.peers, addresses and networks. */
#define LOG_ROOM "gateway/infiniband"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/infiniband/infiniband.h"

/* An IPv4 address as one of IPv6 begins with this. */
static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* "ADDRESS" or "ADDRESS/BITS"; false: it is neither. */
static bool parse_peer(const char *text, struct ib_peer *out)
{
	size_t length = strcspn(text, "/");
	const char *number = text[length] ? text + length + 1 : NULL;
	char host[INET6_ADDRSTRLEN], *end = "";
	long most = 128, bits;

	if (length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	memcpy(out->ip, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, host, out->ip + sizeof(mapped)) == 1)
		most = 32;
	else if (inet_pton(AF_INET6, host, out->ip) != 1)
		return false;
	if (number && !isdigit((unsigned char)*number))
		return false;
	bits = number ? strtol(number, &end, 10) : most;
	out->bits = (unsigned)(bits + 128 - most);
	return !*end && bits <= most;
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

struct caller_ip ib_peer_ip(const struct rdma_cm_id *id)
{
	const struct rdma_addr *a = &id->route.addr;
	struct caller_ip ip = { 0 };

	if (a->dst_addr.sa_family == AF_INET6) {
		memcpy(ip.bytes, &a->dst_sin6.sin6_addr, sizeof(ip.bytes));
	} else if (a->dst_addr.sa_family == AF_INET) {
		memcpy(ip.bytes, mapped, sizeof(mapped));
		memcpy(ip.bytes + sizeof(mapped), &a->dst_sin.sin_addr, 4);
	}
	return ip;
}

bool ib_peer_may_call(const struct infiniband *ib, const struct rdma_cm_id *caller)
{
	struct caller_ip from = ib_peer_ip(caller);
	sa_family_t family = caller->route.addr.dst_addr.sa_family;

	if (!ib->in.peers)
		return true;
	for (unsigned i = 0; i < ib->peer_count; i++)
		if (is_of(from.bytes, &ib->peers[i]))
			return family == AF_INET || family == AF_INET6;
	return false;
}
