/* SPDX-License-Identifier: BSD-2-Clause */
/* See allowed.h. */
#define LOG_ROOM "hca"
#include "hca/host/allowed.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "util/container_of.h"
#include "util/log.h"

#define ADDRESSES_MAX 32

bool hca_network_allows_all = true;
static uint8_t allowed[ADDRESSES_MAX][16];
static unsigned allowed_count;

/* Parses an address into a GID; false: it is no address. */
static bool parse(const char *text, size_t length, uint8_t gid[16])
{
	char address[INET6_ADDRSTRLEN];

	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	return inet_pton(AF_INET, address, gid + 12) == 1 ||
	       inet_pton(AF_INET6, address, gid) == 1;
}

void hca_network_start(const char *text)
{
	allowed_count = 0;
	hca_network_allows_all = !strcasecmp(text, "all");
	if (!strcasecmp(text, "off"))
		return;
	while (!hca_network_allows_all && *text) {
		size_t length = strcspn(text, ", ");

		if (length && allowed_count < ADDRESSES_MAX &&
		    parse(text, length, allowed[allowed_count]))
			allowed_count++;
		else if (length)
			log_error("BUSBAR_NETWORK: '%.*s' is left out: expected all, off, or up to %u addresses, separated by commas",
				  (int)MIN(length, 40u), text, ADDRESSES_MAX);
		text += length;
		text += strspn(text, ", ");
	}
	if (!hca_network_allows_all && !allowed_count)
		log_warn("BUSBAR_NETWORK names no address: only this host is heard");
}

bool hca_network_find(const uint8_t gid[16])
{
	static const uint8_t v4[13] = { [10] = 0xff, 0xff, 127 }, v6[16] = { [15] = 1 };

	for (unsigned i = 0; i < allowed_count; i++)
		if (!memcmp(gid, allowed[i], sizeof(allowed[i])))
			return true;
	return !memcmp(gid, v4, sizeof(v4)) || !memcmp(gid, v6, sizeof(v6));
}
