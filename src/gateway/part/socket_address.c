/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of sockets as text; see socket_address.h. */
#include "gateway/part/socket_address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/lookup.h"
#include "util/container_of.h"

#define HOST_MAX 256
#define ETHERTYPE_MIN 0x600 /* below it the field is a length */

const char *const socket_layer_names[] = {
	[LAYER_UDP] = "udp",
	[LAYER_IP] = "ip",
	[LAYER_ETH] = "eth",
	[LAYER_UNIX] = "unix",
	[LAYER_LOCAL] = "local",
	[LAYER_TCP_CLIENT] = "tcp-client",
	[LAYER_TCP_SERVER] = "tcp-server",
	NULL,
};

static int fail(char *why, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int fail(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, SOCKET_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A whole decimal or hexadecimal number; -1 when it is none. */
static long number(const char *text, long max)
{
	char *end;
	long v;

	if (!isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	v = strtol(text, &end, 0);
	return *end || errno || v > max ? -1 : v;
}

/* Cuts "host:tail"; the brackets of "[host]:tail" go. */
static int cut(const char *text, char host[HOST_MAX], const char **tail,
	       char *why)
{
	const char *colon, *from = text, *to;

	if (*text == '[') {
		to = strchr(text, ']');
		if (!to || to[1] != ':')
			return fail(why, "'%.80s' lacks ']:' behind the address",
				    text);
		colon = to + 1;
		from = text + 1;
	} else {
		colon = to = strrchr(text, ':');
		if (!colon)
			return fail(why, "'%.80s' lacks ':' and what follows it",
				    text);
		if (memchr(text, ':', (size_t)(colon - text)))
			return fail(why, "'%.80s': an IPv6 address has to stand in brackets, \"[::1]:12000\"",
				    text);
	}
	if (to - from >= HOST_MAX)
		return fail(why, "the host name is too long");
	memcpy(host, from, (size_t)(to - from));
	host[to - from] = '\0';
	*tail = colon + 1;
	return 0;
}

static bool is_any(const char *host)
{
	return !*host || !strcmp(host, "*");
}

static int check_internet(int layer, const char *text, char *why)
{
	char host[HOST_MAX];
	const char *tail, *at;
	int ret = cut(text, host, &tail, why);

	if (ret)
		return ret;
	if (layer == LAYER_IP)
		return number(tail, 255) >= 0 ? 0 :
			fail(why, "'%.40s' is no number of an IP protocol, 0 to 255",
			     tail);
	if (number(tail, 65535) >= 0)
		return 0;
	/* The name of a service, as /etc/services has them. */
	for (at = tail; isalpha((unsigned char)*tail) && *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '-')
			break;
	return at > tail && !*at ? 0 :
		fail(why, "'%.40s' is no port, 0 to 65535", tail);
}

/* "12:34:56:78:90:ab%eth0:0x88b5" */
static int parse_eth(const char *text, struct sockaddr_ll *ll, char name[IF_NAMESIZE],
		     char *why)
{
	const char *percent = strchr(text, '%');
	const char *colon = percent ? strrchr(percent, ':') : NULL;
	unsigned byte[6];
	long type;
	int used = -1;

	if (!colon)
		return fail(why, "'%.80s' is not MAC%%interface:ethertype, such as \"02:00:00:00:00:01%%eth0:34997\"",
			    text);
	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1],
		   &byte[2], &byte[3], &byte[4], &byte[5], &used) != 6 ||
	    text + used != percent)
		return fail(why, "'%.*s' is no hardware address of six bytes",
			    (int)(percent - text), text);
	if (colon - percent - 1 <= 0 || colon - percent - 1 >= IF_NAMESIZE)
		return fail(why, "'%.*s' is no name of an interface",
			    (int)(colon - percent - 1), percent + 1);
	memcpy(name, percent + 1, (size_t)(colon - percent - 1));
	name[colon - percent - 1] = '\0';
	type = number(colon + 1, 0xffff);
	if (type < ETHERTYPE_MIN)
		return fail(why, "'%.40s' is no ethertype, %d to 65535",
			    colon + 1, ETHERTYPE_MIN);
	*ll = (struct sockaddr_ll){ .sll_family = AF_PACKET,
				    .sll_halen = 6,
				    .sll_protocol = htons((uint16_t)type) };
	for (unsigned i = 0; i < 6; i++)
		ll->sll_addr[i] = (unsigned char)byte[i];
	return 0;
}

static int parse_unix(const char *text, struct socket_address *out, char *why)
{
	size_t len = strlen(text);

	if (!len || !strcmp(text, "@"))
		return fail(why, "is empty; a path or @name is needed");
	if (len >= sizeof(out->un.sun_path))
		return fail(why, "has %zu characters, the name of a socket at most %zu",
			    len, sizeof(out->un.sun_path) - 1);
	memset(&out->un, 0, sizeof(out->un));
	out->un.sun_family = AF_UNIX;
	memcpy(out->un.sun_path, text, len);
	if (*text == '@')
		out->un.sun_path[0] = '\0';
	/* The zero at the end belongs to a path, not to an abstract name. */
	out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
			       (*text != '@'));
	return 0;
}

int socket_address_check(int layer, const char *text, char *why)
{
	struct socket_address a;
	char name[IF_NAMESIZE];

	switch (layer) {
	case LAYER_ETH:
		return parse_eth(text, &a.ll, name, why);
	case LAYER_UNIX:
	case LAYER_LOCAL:
		return parse_unix(text, &a, why);
	default:
		return check_internet(layer, text, why);
	}
}

int socket_address_family(const char *text)
{
	char host[HOST_MAX], why[SOCKET_WHY_MAX], *scope;
	struct in6_addr in6;
	struct in_addr in4;
	const char *tail;

	if (cut(text, host, &tail, why))
		return AF_UNSPEC;
	if (inet_pton(AF_INET, host, &in4) == 1)
		return AF_INET;
	scope = strchr(host, '%');
	if (scope)
		*scope = '\0';
	return inet_pton(AF_INET6, host, &in6) == 1 ? AF_INET6 : AF_UNSPEC;
}

bool socket_address_is_any(const char *text)
{
	char host[HOST_MAX], why[SOCKET_WHY_MAX];
	const char *tail;

	return !cut(text, host, &tail, why) && is_any(host);
}

static bool have_ipv6(void)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Of a name with several; *count: how many. */
static const struct addrinfo *choose(const struct addrinfo *list, unsigned nth,
				     unsigned *count)
{
	const struct addrinfo *chosen = list;

	*count = 0;
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		if ((*count)++ == nth)
			chosen = a;
	return chosen;
}

/* Up to `max` addresses, from the one with the number `nth` on. */
static int resolve_internet(int layer, const char *text, int family, unsigned nth,
			    unsigned *count, struct socket_address *out, unsigned max,
			    char *why)
{
	bool stream = layer_is_stream(layer);
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = stream ? SOCK_STREAM : SOCK_DGRAM,
	}, *found;
	const struct addrinfo *chosen;
	char host[HOST_MAX];
	const char *tail;
	int ret = cut(text, host, &tail, why);

	if (ret)
		return ret;
	if (is_any(host)) {
		hints.ai_flags = AI_PASSIVE;
		/* Of a raw socket the other family is another socket. */
		if (family == AF_UNSPEC)
			hints.ai_family = layer != LAYER_IP && have_ipv6() ?
						  AF_INET6 : AF_INET;
	}
	ret = lookup_address(is_any(host) ? NULL : host,
			     layer == LAYER_IP ? "0" : tail, &hints, &found);
	if (ret) {
		fail(why, "'%.100s': %s", text,
		     ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
		return ret == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
	}
	chosen = choose(found, nth, count);
	for (; chosen && max--; chosen = chosen->ai_next, out++) {
		memset(out, 0, sizeof(*out));
		memcpy(&out->storage, chosen->ai_addr, chosen->ai_addrlen);
		out->len = chosen->ai_addrlen;
		out->protocol = layer == LAYER_IP ? (int)number(tail, 255) : 0;
	}
	freeaddrinfo(found);
	return 0;
}

int socket_address_resolve(int layer, const char *text, int family,
			   struct socket_address *out, char *why)
{
	unsigned count;

	return socket_address_resolve_nth(layer, text, family, 0, &count, out, why);
}

int socket_address_resolve_all(int layer, const char *text, int family,
			       struct socket_address out[], unsigned max, char *why)
{
	unsigned count;
	int ret = resolve_internet(layer, text, family, 0, &count, out, max, why);

	return ret ? ret : (int)MIN(count, max);
}

int socket_address_resolve_nth(int layer, const char *text, int family, unsigned nth,
			       unsigned *count, struct socket_address *out, char *why)
{
	char name[IF_NAMESIZE];
	int ret;

	*count = 1;
	memset(out, 0, sizeof(*out));
	if (layer == LAYER_UNIX || layer == LAYER_LOCAL)
		return parse_unix(text, out, why);
	if (layer != LAYER_ETH)
		return resolve_internet(layer, text, family, nth, count, out, 1, why);
	ret = parse_eth(text, &out->ll, name, why);
	if (ret)
		return ret;
	out->ll.sll_ifindex = (int)if_nametoindex(name);
	out->len = sizeof(out->ll);
	if (out->ll.sll_ifindex)
		return 0;
	fail(why, "there is no interface '%s'", name);
	return -ENODEV;
}

/* IPv4 inside IPv6 as IPv4. */
static struct socket_address plain(const struct socket_address *a)
{
	struct socket_address p = *a;

	if (a->sa.sa_family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
		memset(&p.in4, 0, sizeof(p.in4));
		p.in4.sin_family = AF_INET;
		p.in4.sin_port = a->in6.sin6_port;
		memcpy(&p.in4.sin_addr, &a->in6.sin6_addr.s6_addr[12], 4);
	}
	return p;
}

bool socket_address_equal(const struct socket_address *a,
			  const struct socket_address *b, bool port)
{
	struct socket_address x = plain(a), y = plain(b);

	if (x.sa.sa_family != y.sa.sa_family)
		return false;
	switch (x.sa.sa_family) {
	case AF_INET:
		return x.in4.sin_addr.s_addr == y.in4.sin_addr.s_addr &&
		       (!port || x.in4.sin_port == y.in4.sin_port);
	case AF_INET6:
		return !memcmp(&x.in6.sin6_addr, &y.in6.sin6_addr, 16) &&
		       (!port || x.in6.sin6_port == y.in6.sin6_port);
	case AF_PACKET:
		return !memcmp(x.ll.sll_addr, y.ll.sll_addr, 6);
	case AF_UNIX:
		return x.len == y.len && !memcmp(&x.un, &y.un, x.len);
	}
	return false;
}

bool socket_address_ip(const struct sockaddr *a, uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (a->sa_family == AF_INET6) {
		memcpy(ip, &((const struct sockaddr_in6 *)a)->sin6_addr, 16);
	} else if (a->sa_family == AF_INET) {
		memcpy(ip, mapped, sizeof(mapped));
		memcpy(ip + sizeof(mapped), &((const struct sockaddr_in *)a)->sin_addr, 4);
	} else {
		return false;
	}
	return true;
}

bool socket_address_is_multicast(const struct socket_address *a)
{
	struct socket_address p = plain(a);

	if (p.sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(p.in4.sin_addr.s_addr));
	return p.sa.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_MULTICAST(&p.in6.sin6_addr);
}

const char *socket_address_print(const struct socket_address *a,
				 char buf[SOCKET_ADDRESS_MAX])
{
	struct socket_address p = plain(a);
	char host[INET6_ADDRSTRLEN];
	const unsigned char *m = p.ll.sll_addr;

	switch (p.sa.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &p.in4.sin_addr, host, sizeof(host));
		snprintf(buf, SOCKET_ADDRESS_MAX, "%s:%u", host,
			 ntohs(p.in4.sin_port));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &p.in6.sin6_addr, host, sizeof(host));
		snprintf(buf, SOCKET_ADDRESS_MAX, "[%s]:%u", host,
			 ntohs(p.in6.sin6_port));
		break;
	case AF_PACKET:
		snprintf(buf, SOCKET_ADDRESS_MAX,
			 "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2],
			 m[3], m[4], m[5]);
		break;
	case AF_UNIX:
		if (p.len <= offsetof(struct sockaddr_un, sun_path))
			snprintf(buf, SOCKET_ADDRESS_MAX, "a socket without name");
		else
			snprintf(buf, SOCKET_ADDRESS_MAX, "%s%.*s",
				 p.un.sun_path[0] ? "" : "@",
				 (int)(p.len - offsetof(struct sockaddr_un, sun_path)) -
					 !p.un.sun_path[0],
				 p.un.sun_path + !p.un.sun_path[0]);
		break;
	default:
		snprintf(buf, SOCKET_ADDRESS_MAX, "nobody");
	}
	return buf;
}

bool socket_address_complete(const char *text, unsigned port, char *to, size_t size)
{
	const char *bracket = strchr(text, ']'), *colon = strrchr(text, ':');
	bool several = colon && strchr(text, ':') != colon;
	int n;

	if (!bracket && several)
		n = snprintf(to, size, "[%s]:%u", text, port);
	else if (colon && (!bracket || colon > bracket))
		n = snprintf(to, size, "%s", text);
	else
		n = snprintf(to, size, "%s:%u", text, port);
	return n > 0 && (size_t)n < size;
}
