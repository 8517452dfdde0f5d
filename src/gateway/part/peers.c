/* SPDX-License-Identifier: BSD-2-Clause */
/* See peers.h. */
#include "gateway/part/peers.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

/* An address as 16 bytes, one of IPv4 in its form of IPv6. */
static bool parse_address(const char *text, uint8_t to[16], unsigned *bits_before)
{
	*bits_before = 0;
	if (inet_pton(AF_INET6, text, to) == 1)
		return true;
	memcpy(to, mapped, sizeof(mapped));
	*bits_before = 96;
	return inet_pton(AF_INET, text, to + sizeof(mapped)) == 1;
}

static bool parse_network(struct peer_network *h, const char *text)
{
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	unsigned before, most;
	char *end = NULL;
	long bits;

	if (len >= sizeof(address))
		return false;
	memcpy(address, text, len);
	address[len] = '\0';
	if (!parse_address(address, h->address, &before))
		return false;
	most = 128 - before;
	bits = slash ? strtol(slash + 1, &end, 10) : (long)most;
	if (slash && (!isdigit((unsigned char)slash[1]) || *end))
		return false;
	h->bits = before + (unsigned)bits;
	return bits <= (long)most;
}

int peers_parse(struct peers *p, struct config *c, const json_t *at, const json_t *list)
{
	size_t count = json_is_array(list) ? json_array_size(list) : 1;
	int ret = 0;

	if (!list || json_is_null(list))
		return 0;
	if (!json_is_array(list) && !json_is_string(list)) {
		config_fail(c, at, "peers", "expected a list of addresses");
		return -EINVAL;
	}
	p->networks = calloc(count + 1, sizeof(*p->networks));
	if (!p->networks)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *e = json_is_array(list) ? json_array_get(list, i) : list;
		const char *text = json_string_value(e);

		if (text && parse_network(&p->networks[p->count], text)) {
			p->count++;
			continue;
		}
		config_fail(c, at, "peers",
			    "needs addresses in numbers, or networks such as 192.0.2.0/24, and '%.60s' is none",
			    text ? text : "");
		ret = -EINVAL;
	}
	return ret;
}

void peers_free(struct peers *p)
{
	free(p->networks);
	*p = (struct peers){ 0 };
}

static bool begins_with(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned rest = bits % 8;

	return !memcmp(a, b, bits / 8) &&
	       (!rest || !((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)));
}

bool peers_have(const struct peers *p, const struct sockaddr *from)
{
	uint8_t address[16];

	if (peers_are_all(p))
		return true;
	if (!socket_address_ip(from, address))
		return false;
	for (unsigned i = 0; i < p->count; i++)
		if (begins_with(address, p->networks[i].address, p->networks[i].bits))
			return true;
	return false;
}
