/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses of sockets as configurations write them:
 *
 *	udp, tcp-client, tcp-server   "host:port", "*:port", "[::1]:port"
 *	ip                            "host:protocol", "[::1]:protocol"
 *	eth                           "MAC%interface:ethertype"
 *	unix                          "/path", or "@name" for an abstract one
 *
 * No node, no configuration: text in, address out.
 */
#ifndef GATEWAY_PART_SOCKET_ADDRESS_H
#define GATEWAY_PART_SOCKET_ADDRESS_H

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum socket_layer {
	LAYER_UDP,
	LAYER_IP,
	LAYER_ETH,
	LAYER_UNIX,
	LAYER_LOCAL, /* as configurations may say; becomes LAYER_UNIX */
	LAYER_TCP_CLIENT,
	LAYER_TCP_SERVER,
};

/* As configurations write them; NULL at the end. */
extern const char *const socket_layer_names[];

static inline bool layer_is_stream(int layer)
{
	return layer == LAYER_TCP_CLIENT || layer == LAYER_TCP_SERVER;
}

static inline bool layer_is_internet(int layer)
{
	return layer != LAYER_ETH && layer != LAYER_UNIX && layer != LAYER_LOCAL;
}

struct socket_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
		struct sockaddr_ll ll;
		struct sockaddr_storage storage;
	};
	socklen_t len;
	int protocol; /* of layer ip */
};

#define SOCKET_WHY_MAX 200
#define SOCKET_ADDRESS_MAX 140 /* text of one */

/*
 * Is `text` an address of that layer? Asks nobody, so names are not looked up.
 * 0, or -EINVAL with the reason in why[SOCKET_WHY_MAX].
 */
int socket_address_check(int layer, const char *text, char *why);

/* AF_INET or AF_INET6 when the host is written in numbers, else AF_UNSPEC. */
int socket_address_family(const char *text);

/* Puts "host:port" into to[size], of host[:port] and the port that it has by default; an IPv6 address
 * may be without brackets then. False: it does not fit. */
bool socket_address_complete(const char *text, unsigned port, char *to, size_t size);

/* Is the host "*" or empty? */
bool socket_address_is_any(const char *text);

/*
 * Looks it up; names may take as long as the resolver does. `family` AF_UNSPEC
 * takes what comes first, and "*" then means both IPv6 and IPv4. 0 or a negative
 * errno with the reason in why[SOCKET_WHY_MAX].
 */
int socket_address_resolve(int layer, const char *text, int family,
			   struct socket_address *out, char *why);

/* The same for a name with several addresses, which a caller tries in turn: the one with the
 * number `nth`, from 0, or the first one where there are fewer; *count: how many. */
int socket_address_resolve_nth(int layer, const char *text, int family, unsigned nth,
			       unsigned *count, struct socket_address *out, char *why);

/* All addresses, up to `max`, in the order in which they are to be tried; for the layers of
 * IP. How many, 1 or more, or a negative errno with the reason in why[SOCKET_WHY_MAX]. */
int socket_address_resolve_all(int layer, const char *text, int family,
			       struct socket_address out[], unsigned max, char *why);

/* Of the same host; IPv4 inside IPv6 is IPv4. `port`: and the same port. For
 * eth the hardware address, for unix the name. */
bool socket_address_equal(const struct socket_address *a,
			  const struct socket_address *b, bool port);

/* Sets `ip` to the address of the host, one of IPv4 mapped to IPv6. False: `a` is of another
 * family. */
bool socket_address_ip(const struct sockaddr *a, uint8_t ip[16]);

bool socket_address_is_multicast(const struct socket_address *a);

const char *socket_address_print(const struct socket_address *a,
				 char buf[SOCKET_ADDRESS_MAX]);

#endif
