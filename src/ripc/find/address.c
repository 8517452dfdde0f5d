/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/address.h"

#include <arpa/inet.h>
#include <string.h>

socklen_t address_length(const union address *a)
{
	return a->any.sa_family == AF_INET ? sizeof(a->in) : sizeof(a->in6);
}

uint16_t address_port(const union address *a)
{
	return ntohs(a->any.sa_family == AF_INET ? a->in.sin_port : a->in6.sin6_port);
}

bool address_to_bytes(const union address *a, uint8_t out[16])
{
	if (a->any.sa_family == AF_INET) {
		memset(out, 0, 10);
		memset(out + 10, 0xff, 2);
		memcpy(out + 12, &a->in.sin_addr, 4);
		return true;
	}
	memcpy(out, &a->in6.sin6_addr, 16);
	return !IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr);
}

bool address_same(const union address *a, const union address *b, bool port)
{
	uint8_t x[16], y[16];
	bool wide = address_to_bytes(a, x);

	address_to_bytes(b, y);
	return !memcmp(x, y, sizeof(x)) && (!port || address_port(a) == address_port(b)) &&
	       (wide || a->in6.sin6_scope_id == b->in6.sin6_scope_id);
}

bool address_parse(const char *text, uint16_t port, union address *out)
{
	*out = (union address){ .in6 = { .sin6_family = AF_INET6 } };
	if (inet_pton(AF_INET6, text, &out->in6.sin6_addr) == 1) {
		out->in6.sin6_port = htons(port);
		return true;
	}
	*out = (union address){ .in = { .sin_family = AF_INET } };
	out->in.sin_port = htons(port);
	return inet_pton(AF_INET, text, &out->in.sin_addr) == 1;
}
